#include "gridless/blocks/delta_chunk.h"

#include "gridless/base/check.h"

namespace gridless::blocks {

using namespace lang;  // NOLINT: blocks are written in the language

namespace {

constexpr int64_t kBlock = 8;

Vec product(Vec a, Vec b) {
  return dot(a, b, zeros(*a.kernel(), Elem::kF32, {a.dim(0), b.dim(1)}), Precision::kF32);
}
Vec product_nt(Vec a, Vec b) {
  return dot_nt(a, b, zeros(*a.kernel(), Elem::kF32, {a.dim(0), b.dim(0)}), Precision::kF32);
}

// (I + a) u = rhs for a strictly lower triangular a [R, R].
Vec solve(Vec a, Vec rhs) {
  std::vector<Vec> blocks;
  for (int64_t i = 0; i < a.dim(0); i += kBlock) {
    Vec u = slice(rhs, {i, 0}, {kBlock, rhs.dim(1)});
    if (i > 0) u = u - product(slice(a, {i, 0}, {kBlock, i}), concat(blocks, 0));
    Vec power = neg(slice(a, {i, i}, {kBlock, kBlock}));
    for (int64_t n = 1; n < kBlock; n *= 2) {
      u = u + product(power, u);
      if (2 * n < kBlock) power = product(power, power);
    }
    blocks.push_back(u);
  }
  return concat(blocks, 0);
}

}  // namespace

DeltaChunk delta_chunk(Vec q, Vec k, Vec v, Vec beta, Vec g, Vec state) {
  Kernel& kernel = *q.kernel();
  const int64_t rows = q.dim(0);
  GRIDLESS_CHECK(rows % kBlock == 0, "{} rows", rows);
  const Shape square = {rows, rows};
  const Vec i = iota(kernel, square, 0), j = iota(kernel, square, 1);
  const auto over = [&](Vec condition, Vec x, int axis) {
    return sum(where(condition, broadcast(x, square), 0.0), axis);
  };
  // c as a column and as a row.
  const Vec g_row = over(i == j, g, 0);
  const Vec c = over(j <= i, g_row, 1), c_row = over(i <= j, g, 0), c_all = sum(g, 0);
  const Vec decay =
      where(j <= i, exp(where(j <= i, broadcast(c, square) - broadcast(c_row, square), 0.0)), 0.0);
  const Vec a = where(j < i, broadcast(beta, square) * decay * product_nt(k, k), 0.0);
  const Vec u = solve(a, beta * (v - exp(c) * product(k, state)));
  const Vec late = k * exp(broadcast(c_all, {rows, 1}) - c);
  return {exp(c) * product(q, state) + product(decay * product_nt(q, k), u),
          broadcast(exp(c_all), state.shape()) * state + product(transpose(late), u)};
}

}  // namespace gridless::blocks
