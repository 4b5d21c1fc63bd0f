// A tensor of a checkpoint file: name, type, shape, and its bytes where they lie in the mapped
// file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/base/mapped_file.h"
#include "gridless/weights/dtype.h"

namespace gridless::weights {

// Shapes are row-major as in Hugging Face files: a linear layer is [out, in], and a *row* is the
// run of the last dimension, `row_elements()` elements in `row_bytes()` bytes. Bytes are
// little-endian and may lie at any address (safetensors promises no alignment): read them by
// memcpy.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  ByteView stored;  // all bytes in file order; see `rotary_heads` before using them as rows

  // GGUF files of the Llama architecture hold the rows of q_proj and k_proj in another order than
  // Hugging Face files: per head, the pair (i, i + head/2) that RoPE rotates lies in rows 2i, 2i
  // + 1. For these tensors this is the number of heads, else 0, and row() undoes it. Only whole
  // rows move, so block formats, whose blocks run along a row, keep their exact bytes.
  int64_t rotary_heads = 0;

  int64_t elements() const;
  int64_t rows() const;          // product of all dimensions but the last; 1 for a scalar
  int64_t row_elements() const;  // the last dimension; 1 for a scalar
  int64_t row_bytes() const;

  // The bytes of row `r` in Hugging Face order, 0 <= r < rows().
  ByteView row(int64_t r) const;
};

// Where row `r` of the Hugging Face order lies among the stored rows of a tensor with `rows` rows
// and `heads` rotary heads (see above). The identity for heads = 0.
int64_t stored_row(int64_t r, int64_t rows, int64_t heads);

// "[576, 1536]"
std::string shape_text(std::span<const int64_t> shape);

// `text` fit for a message: control characters and bytes outside ASCII become '?', at most 80
// bytes.
std::string printable(std::string_view text);

// Checks that the byte ranges of `tensors` (all inside `data`) do not overlap; names both if they
// do. With `complete`, also that they leave no byte of `data` unused.
Result<void> check_layout(std::span<const TensorView> tensors, ByteView data, bool complete);

// The number of elements of a shape; an error naming the tensor where it overflows 2^62.
Result<uint64_t> count_elements(std::string_view tensor, std::span<const int64_t> shape);

}  // namespace gridless::weights
