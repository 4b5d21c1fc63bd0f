// Layout of a core's weight stream: which matrix, panel and part is in which chunk. The format
// stands in docs/weight_stream.md; this is the arithmetic of it, shared by the packer and by the
// blocks that generate the step program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::weights {

// kMxfp4 is not made from floats: only tensors that hold it can be packed so.
enum class Format : uint8_t { kBf16, kQ8, kQ4, kQ4m, kMxfp4 };
const char* spelling(Format f);  // "bf16", "q8", "q4", "q4m", "mxfp4"
// Of the formats that any tensor can be converted to.
Result<Format> format_from_spelling(std::string_view s);
// Of all formats.
Result<Format> stored_format(std::string_view s);

// Rows of 128 words that one panel of `kp` inputs takes.
int64_t code_rows(Format f, int64_t kp);
int64_t scale_rows(Format f, int64_t kp);

// One core's share of a matrix.
struct MatrixShape {
  std::string name;
  int64_t n = 0;  // outputs; of a paired matrix: of each of the two
  int64_t k = 0;  // inputs, a multiple of 32
  Format format = Format::kBf16;
  bool paired = false;
};

struct MatrixLayout {
  MatrixShape shape;
  int64_t panels = 0;            // of all outputs; of a paired matrix: of both, an even number
  int64_t panels_per_chunk = 0;  // P, divides `panels`; even when paired
  int64_t parts = 0;             // K is read in this many chunks
  int64_t kp = 0;                // inputs per part
  int64_t first_chunk = 0;       // within the front, its layer, or the tail
  int64_t groups() const { return panels / panels_per_chunk; }
  int64_t chunks() const { return groups() * parts; }
  int64_t used_rows() const {  // of one of its chunks
    return panels_per_chunk * (code_rows(shape.format, kp) + scale_rows(shape.format, kp));
  }
  // Outputs behind column c of panel `panel`: {which of the pair (0 or 1), output}; output >= n:
  // padding.
  struct Output {
    int half;
    int64_t index;
  };
  Output output(int64_t panel, int64_t column) const;
};

struct StreamLayout {
  int64_t chunk_rows = 0;  // a multiple of 8
  int64_t layers = 0;
  std::vector<MatrixLayout> front, layer, tail;  // in the order of the stream
  int64_t front_chunks = 0, chunks_per_layer = 0, tail_chunks = 0;
  int64_t total_chunks() const { return front_chunks + layers * chunks_per_layer + tail_chunks; }
  int64_t total_rows() const { return total_chunks() * chunk_rows; }
  int64_t total_bytes() const { return total_rows() * 512; }
  int64_t used_bytes()
      const;  // without the unused rows at the end of chunks: what a CPU step reads
};

// Chooses chunk size, panels per chunk and parts so that little of the chunks is unused and the
// matrix units are kept full; a chunk is at most `max_chunk_bytes` (and never smaller than one
// panel of 32 inputs).
StreamLayout make_stream_layout(int64_t layers, const std::vector<MatrixShape>& layer,
                                const std::vector<MatrixShape>& tail, int64_t max_chunk_bytes,
                                const std::vector<MatrixShape>& front = {});

// A matrix that is read by itself, outside a stream: one part, in as few groups of one size as code
// may have, which follow each other without unused rows between them (chunk_rows = used_rows()).
MatrixLayout whole_matrix(const MatrixShape& shape);

}  // namespace gridless::weights
