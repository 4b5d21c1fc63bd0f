// Fills the weight stream of one core from checkpoint tensors (format: docs/weight_stream.md).
//
// A MatrixPlan says as data where a core's share of a matrix comes from: for every output the
// tensor and row, for the inputs the columns. Slicing, fusing, reordering and padding of heads are
// all just row and column numbers.
#pragma once

#include <span>
#include <vector>

#include "gridless/weights/stream_layout.h"
#include "gridless/weights/tensor.h"

namespace gridless::weights {

struct RowSource {
  const TensorView* tensor = nullptr;  // null: a row of zeros
  int64_t row = 0;
  // Of a tensor that holds MXFP4 codes as bytes: its scales (mxfp4.h). Inputs are then elements,
  // not bytes.
  const TensorView* scales = nullptr;

  int64_t inputs() const { return tensor->row_elements() * (scales ? 2 : 1); }
};

// Inputs [begin, begin + count) of the tensors' rows; begin < 0: `count` zeros.
struct ColumnRange {
  int64_t begin = 0;
  int64_t count = 0;
};

struct MatrixPlan {
  std::vector<RowSource> rows;         // n entries; of a paired matrix the first of the two
  std::vector<RowSource> second_rows;  // of a paired matrix
  std::vector<ColumnRange> columns;    // in input order; together at most k, zeros follow
  // The other way round: row k of `rows` is what input k gives all outputs, which are the elements
  // of its one range of columns, counted from 0. Not for paired matrices.
  bool transposed = false;
};

// Packs all chunks of one matrix of one layer: `out` holds layout.chunks() * chunk_rows * 128 words
// and is overwritten whole (unused rows become zero). A tensor whose blocks are those of the format
// is copied code by code; others are converted, rounding once to bf16, or quantised per 32 inputs
// (scale f16). mxfp4 takes only rows that have scales. Errors name the tensor: types that cannot be
// read, columns that cut a block.
Result<void> pack_matrix(const MatrixLayout& layout, int64_t chunk_rows, const MatrixPlan& plan,
                         std::span<uint32_t> out);

// One 32-input block of q8, q4 or q4m from floats. codes: int8 for q8, 0..15 for q4 and q4m.
struct Block {
  uint16_t scale = 0, min = 0;  // f16 bits; scale of mxfp4: the E8M0 byte
  int8_t codes[32] = {};
};
Block quantise_block(Format f, const float* x);

}  // namespace gridless::weights
