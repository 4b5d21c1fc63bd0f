// What weight plans of several families have in common.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gridless/models/model.h"
#include "gridless/models/step_shape.h"
#include "gridless/weights/checkpoint.h"
#include "gridless/weights/stream_packer.h"

namespace gridless::models {

Result<void> check_shape(const weights::Checkpoint& c, const std::string& name,
                         std::vector<int64_t> shape);

// The stream format that holds a tensor's blocks exactly, bf16 where there is none.
weights::Format native_format(const weights::TensorView& t);

// All elements of a tensor.
Result<std::vector<float>> floats(const weights::Checkpoint& c, const std::string& name);

// `rows` rows of a tensor as f32, each padded with zeros to whole panels, `added` to every element
// of the tensor. Watched it is filled in pieces of 64 MiB.
Result<void> fill_rows(const weights::Checkpoint& c, const std::string& name, int64_t rows,
                       std::span<float> out, float added = 0, FillWatch* watch = nullptr);

// Outputs [first, first + count) of a tensor.
std::vector<weights::RowSource> rows_of(const weights::TensorView* t, int64_t first, int64_t count);
// The same as a matrix, of all inputs.
weights::MatrixPlan plan_rows(const weights::TensorView* t, int64_t first, int64_t count);
// All outputs of a projection from heads: the inputs of each head in turn, zeros for head -1.
weights::MatrixPlan plan_from_heads(const weights::TensorView* t,
                                    const std::vector<std::vector<int64_t>>& groups,
                                    int64_t head_dim);
// A core's part of an MLP: inner channels [first, first + count), the rest of its width is zero.
struct InnerShare {
  int64_t first, count;
};
InnerShare inner_share(int core, int64_t of_core, int64_t total);
weights::MatrixPlan plan_gate_up(const weights::TensorView* gate, const weights::TensorView* up,
                                 InnerShare share);
weights::MatrixPlan plan_down(const weights::TensorView* t, InnerShare share);

inline std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Packs every matrix of a stream: plan(name, layer) says where its outputs come from; the layer is
// 0 for those of the front and the tail.
template <typename Plan>
Result<void> pack_stream(const weights::StreamLayout& layout, std::span<std::byte> image,
                         FillWatch* watch, const Plan& plan) {
  const std::span<uint32_t> words = {reinterpret_cast<uint32_t*>(image.data()), image.size() / 4};
  const int64_t chunk_words = layout.chunk_rows * 128;
  const auto pack = [&](const weights::MatrixLayout& m, int64_t layer,
                        int64_t first_chunk) -> Result<void> {
    const auto first = static_cast<size_t>(first_chunk * chunk_words);
    const auto count = static_cast<size_t>(m.chunks() * chunk_words);
    if (watch && !watch->wanted(4 * first, 4 * (first + count))) return {};
    TRY(const weights::MatrixPlan p, plan(m.shape.name, layer));
    TRY_VOID(weights::pack_matrix(m, layout.chunk_rows, p, words.subspan(first, count)));
    return watch ? watch->filled(4 * first, 4 * (first + count)) : Result<void>{};
  };
  for (const weights::MatrixLayout& m : layout.front) TRY_VOID(pack(m, 0, m.first_chunk));
  int64_t chunk = layout.front_chunks;
  for (int64_t l = 0; l < layout.layers; ++l, chunk += layout.chunks_per_layer) {
    for (const weights::MatrixLayout& m : layout.layer) {
      TRY_VOID(pack(m, l, chunk + m.first_chunk));
    }
  }
  for (const weights::MatrixLayout& m : layout.tail) TRY_VOID(pack(m, 0, chunk + m.first_chunk));
  return {};
}

}  // namespace gridless::models
