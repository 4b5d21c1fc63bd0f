#include "gridless/models/tensors.h"

#include <algorithm>

#include "gridless/blocks/activations.h"
#include "gridless/weights/dequantise.h"

namespace gridless::models {

using weights::Format;
using weights::MatrixPlan;
using weights::RowSource;
using weights::TensorView;

Result<void> check_shape(const weights::Checkpoint& c, const std::string& name,
                         std::vector<int64_t> shape) {
  TRY(const TensorView* t, c.require(name));
  if (t->shape != shape) {
    return input_error("tensor {} has the shape {}, the config asks for {}", name,
                       weights::shape_text(t->shape), weights::shape_text(shape));
  }
  return weights::check_readable(*t);
}

Format native_format(const TensorView& t) {
  switch (t.dtype) {
    case weights::Dtype::kQ8_0:
      return Format::kQ8;
    case weights::Dtype::kQ4_0:
      return Format::kQ4;
    case weights::Dtype::kQ4_1:
      return Format::kQ4m;
    default:
      return Format::kBf16;
  }
}

Result<void> fill_rows(const weights::Checkpoint& c, const std::string& name, int64_t rows,
                       std::span<float> out, float added, FillWatch* watch) {
  constexpr int64_t kPieceBytes = 64 << 20;
  TRY(const TensorView* t, c.require(name));
  const int64_t width = t->row_elements(), padded = blocks::round_to_lanes(width);
  const int64_t at_once = watch ? std::max<int64_t>(1, kPieceBytes / (4 * padded)) : rows;
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t last = std::min(rows, first + at_once);
    const auto begin = static_cast<size_t>(4 * first * padded);
    const auto end = static_cast<size_t>(4 * last * padded);
    if (watch && !watch->wanted(begin, end)) continue;
    std::ranges::fill(out.subspan(begin / 4, (end - begin) / 4), 0.0f);
    for (int64_t r = first; r < last; ++r) {
      float* row = out.data() + r * padded;
      TRY_VOID(weights::dequantise_row(*t, r, row));
      for (int64_t i = 0; i < width; ++i) row[i] += added;
    }
    if (watch) TRY_VOID(watch->filled(begin, end));
  }
  if (!watch) std::ranges::fill(out.subspan(static_cast<size_t>(rows * padded)), 0.0f);
  return {};
}

Result<std::vector<float>> floats(const weights::Checkpoint& c, const std::string& name) {
  TRY(const TensorView* t, c.require(name));
  std::vector<float> out(static_cast<size_t>(t->rows() * t->row_elements()));
  for (int64_t r = 0; r < t->rows(); ++r) {
    TRY_VOID(weights::dequantise_row(*t, r, out.data() + r * t->row_elements()));
  }
  return out;
}

std::vector<RowSource> rows_of(const TensorView* t, int64_t first, int64_t count) {
  std::vector<RowSource> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back({t, first + i});
  return rows;
}

MatrixPlan plan_rows(const TensorView* t, int64_t first, int64_t count) {
  return {.rows = rows_of(t, first, count), .columns = {{0, t->row_elements()}}};
}

MatrixPlan plan_from_heads(const TensorView* t, const std::vector<std::vector<int64_t>>& groups,
                           int64_t head_dim) {
  MatrixPlan plan{.rows = rows_of(t, 0, t->rows())};
  for (const std::vector<int64_t>& group : groups)
    for (const int64_t head : group) {
      plan.columns.push_back({head < 0 ? -1 : head * head_dim, head_dim});
    }
  return plan;
}

InnerShare inner_share(int core, int64_t of_core, int64_t total) {
  const int64_t first = std::min(core * of_core, total);
  return {first, std::min(of_core, total - first)};
}

MatrixPlan plan_gate_up(const TensorView* gate, const TensorView* up, InnerShare share) {
  MatrixPlan plan = plan_rows(gate, share.first, share.count);
  plan.second_rows = rows_of(up, share.first, share.count);
  return plan;
}

MatrixPlan plan_down(const TensorView* t, InnerShare share) {
  MatrixPlan plan{.rows = rows_of(t, 0, t->rows())};
  if (share.count > 0) plan.columns = {{share.first, share.count}};
  return plan;
}

}  // namespace gridless::models
