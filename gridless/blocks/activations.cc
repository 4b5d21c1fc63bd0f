#include "gridless/blocks/activations.h"

#include <limits>

namespace gridless::blocks {

Ref activations(Kernel& k, Elem e, int64_t width, int64_t rows) {
  return k.vmem(e, {panels(width), rows, kLanes});
}

Ref copy_in(Kernel& k, Ref from) {
  const Ref local = k.vmem(from.elem(), from.shape());
  k.scope([&] { k.copy(from, local, k.dma_sem()).wait(); });
  return local;
}

Vec columns(Ref x, int64_t start, int64_t width) {
  const int64_t rows = x.dim(1), first = start / kLanes;
  const int64_t count = panels(start + width) - first;
  const Vec all = x.load({first, 0, 0}, {count, rows, kLanes});
  std::vector<Vec> parts;
  for (int64_t p = 0; p < count; ++p) {
    parts.push_back(reshape(slice(all, {p, 0, 0}, {1, rows, kLanes}), {rows, kLanes}));
  }
  return slice(concat(parts, 1), {0, start - first * kLanes}, {rows, width});
}

Vec pad_lanes(Vec matrix, int64_t width) {
  const int64_t rows = matrix.dim(0), have = matrix.dim(1);
  if (have == width) return matrix;
  return concat({matrix, zeros(*matrix.kernel(), matrix.elem(), {rows, width - have})}, 1);
}

Vec round_to_bf16(Vec x) { return cast(cast(x, Elem::kBf16), Elem::kF32); }
void round_to_bf16(Ref x) { x.store(round_to_bf16(x.load())); }

Vec silu(Vec x) { return x / (exp(neg(x)) + 1.0); }

void store_columns(Ref x, Vec matrix) {
  const int64_t rows = matrix.dim(0), width = matrix.dim(1), count = x.dim(0);
  matrix = pad_lanes(matrix, round_to_lanes(width));
  for (int64_t p = 0; p < count; ++p) {
    const Vec panel = p * kLanes < matrix.dim(1) ? slice(matrix, {0, p * kLanes}, {rows, kLanes})
                                                 : zeros(*x.kernel(), x.elem(), {rows, kLanes});
    x.store(reshape(panel, {1, rows, kLanes}), {p, 0, 0});
  }
}

Vec pick_row(Vec matrix, Scalar r) {
  Kernel& k = *matrix.kernel();
  if (matrix.dim(0) == 1) return matrix;
  const Vec row = iota(k, matrix.shape(), 0);
  const double lowest = -std::numeric_limits<double>::infinity();
  // The maximum over "this row, else -inf" keeps every bit, the sign of zero included; a sum would
  // not.
  return cast(max_over(where(row == r, cast(matrix, Elem::kF32), lowest), 0), matrix.elem());
}

void add_into(Ref x, Ref y) {
  Kernel& k = *x.kernel();
  const Ref part = y.dim(0) == x.dim(0) ? y : y.rows(0, x.dim(0));
  k.composite("add_into", {x, part}, {{"rows", x.dim(1)}},
              [&] { x.store(x.load() + part.load()); });
}

}  // namespace gridless::blocks
