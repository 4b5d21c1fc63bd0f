// tpu.matmul. Operands are brought to batch x M x K and batch x K x N, row-major, then one loop
// order does all forms, so that the order of the sum never depends on how the operands were laid
// out.
#include <algorithm>
#include <cmath>

#include "gridless/emulate/codec.h"
#include "gridless/emulate/pure_ops.h"

namespace gridless::emulate {
namespace {

using Dims = std::vector<int64_t>;

// #tpu.dot_dimension_numbers<[lhs contracting], [rhs contracting], [lhs free], [rhs free],
//   [order of the result as pairs (0 = lhs or 1 = rhs, dimension)], [lhs batch], [rhs batch]>
struct DotDims {
  Dims lhs_contract, rhs_contract, lhs_free, rhs_free, order, lhs_batch, rhs_batch;
};

std::vector<Dims> parse_lists(std::string_view text) {
  std::vector<Dims> lists;
  int64_t number = -1;
  for (char c : text) {
    if (c == '[') lists.emplace_back();
    if (c >= '0' && c <= '9') {
      number = (number < 0 ? 0 : number * 10) + (c - '0');
    } else if (number >= 0) {
      if (!lists.empty()) lists.back().push_back(number);
      number = -1;
    }
  }
  return lists;
}

DotDims dot_dims(const ir::Op& op) {
  std::vector<Dims> l;
  if (op.find("dimension_numbers")) l = parse_lists(op.text_attr("dimension_numbers"));
  if (l.size() == 7) return {l[0], l[1], l[2], l[3], l[4], l[5], l[6]};
  const bool tl = op.bool_attr_or("transpose_lhs", false);
  const bool tr = op.bool_attr_or("transpose_rhs", false);
  const int64_t lc = tl ? 0 : 1, rc = tr ? 1 : 0;
  return {{lc}, {rc}, {1 - lc}, {1 - rc}, {0, 1 - lc, 1, 1 - rc}, {}, {}};
}

int64_t product(const Shape& shape, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape[static_cast<size_t>(d)];
  return n;
}

// The places in a row-major array of `shape` of its elements taken in the order of `dims`.
std::vector<int64_t> places(const Shape& shape, const Dims& dims) {
  const Shape stride = row_major(shape);
  std::vector<int64_t> out{0};
  for (int64_t d : dims) {
    std::vector<int64_t> longer;
    longer.reserve(out.size() * static_cast<size_t>(shape[static_cast<size_t>(d)]));
    for (int64_t base : out)
      for (int64_t i = 0; i < shape[static_cast<size_t>(d)]; ++i)
        longer.push_back(base + i * stride[static_cast<size_t>(d)]);
    out = std::move(longer);
  }
  return out;
}

Dims joined(const Dims& a, const Dims& b, const Dims& c) {
  Dims out = a;
  out.insert(out.end(), b.begin(), b.end());
  out.insert(out.end(), c.begin(), c.end());
  return out;
}

// The same loop twice: with the host's fused multiply-add instruction (a vector loop), and with
// std::fma, which is a call and gives the same bits.
void accumulate(int64_t m, int64_t n, int64_t k, const float* lhs, const float* rhs, float* acc) {
  for (int64_t i = 0; i < m; ++i) {
    float* row = acc + i * n;
    for (int64_t j = 0; j < k; ++j) {
      const float x = lhs[i * k + j];
      const float* w = rhs + j * n;
      for (int64_t c = 0; c < n; ++c) row[c] = std::fma(x, w[c], row[c]);
    }
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void accumulate_fma(int64_t m, int64_t n, int64_t k, const float* lhs,
                                                const float* rhs, float* acc) {
  for (int64_t i = 0; i < m; ++i) {
    float* row = acc + i * n;
    for (int64_t j = 0; j < k; ++j) {
      const float x = lhs[i * k + j];
      const float* w = rhs + j * n;
      for (int64_t c = 0; c < n; ++c) row[c] = __builtin_fmaf(x, w[c], row[c]);
    }
  }
}
#endif

// The elements of x in the row-major order of `dims`.
template <typename T>
std::vector<T> arranged(std::span<const T> x, const Shape& shape, const Dims& dims) {
  if (std::ranges::is_sorted(dims)) return {x.begin(), x.end()};
  std::vector<T> out;
  out.reserve(x.size());
  for (int64_t at : places(shape, dims)) out.push_back(x[static_cast<size_t>(at)]);
  return out;
}

// And back: y[place] = the next element.
template <typename T>
void put_back(const std::vector<T>& from, std::span<T> y, const Shape& shape, const Dims& dims) {
  if (std::ranges::is_sorted(dims)) {
    std::ranges::copy(from, y.begin());
    return;
  }
  size_t next = 0;
  for (int64_t at : places(shape, dims)) y[static_cast<size_t>(at)] = from[next++];
}

// As matmul_accumulate, modulo 2^32.
void matmul_accumulate(int64_t m, int64_t n, int64_t k, const int32_t* lhs, const int32_t* rhs,
                       int32_t* acc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j)
      for (int64_t c = 0; c < n; ++c)
        acc[i * n + c] = static_cast<int32_t>(static_cast<uint32_t>(acc[i * n + c]) +
                                              static_cast<uint32_t>(lhs[i * k + j]) *
                                                  static_cast<uint32_t>(rhs[j * n + c]));
}

// An operand as floats, rounded to what the unit multiplies.
std::vector<float> float_operand(const Vector& v, const Dims& dims, bool keep_f32) {
  if (!v.is_float()) {
    const auto ints = arranged(v.i(), v.shape(), dims);
    return {ints.begin(), ints.end()};
  }
  std::vector<float> out = arranged(v.f(), v.shape(), dims);
  if (v.elem() == Elem::kF32 && !keep_f32) round_to(Elem::kBf16, out);
  return out;
}

}  // namespace

void matmul_accumulate(int64_t m, int64_t n, int64_t k, const float* lhs, const float* rhs,
                       float* acc) {
#if defined(__x86_64__)
  static const bool has_fma = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
  if (has_fma) return accumulate_fma(m, n, k, lhs, rhs, acc);
#endif
  accumulate(m, n, k, lhs, rhs, acc);
}

RtValue PureOps::TpuMatmul(const ir::Op& op) const {
  const Vector& lhs = vector(*args[0]);
  const Vector& rhs = vector(*args[1]);
  const Vector& acc = vector(*args[2]);
  const DotDims dims = dot_dims(op);
  const int64_t b = product(lhs.shape(), dims.lhs_batch), m = product(lhs.shape(), dims.lhs_free),
                k = product(lhs.shape(), dims.lhs_contract),
                n = product(rhs.shape(), dims.rhs_free);
  if (product(rhs.shape(), dims.rhs_contract) != k || product(rhs.shape(), dims.rhs_batch) != b ||
      acc.size() != b * m * n) {
    fault(op, "shape_mismatch",
          "tpu.matmul: " + lhs.type().str() + " and " + rhs.type().str() + " do not give " +
              acc.type().str());
  }
  const Dims lhs_dims = joined(dims.lhs_batch, dims.lhs_free, dims.lhs_contract);
  const Dims rhs_dims = joined(dims.rhs_batch, dims.rhs_contract, dims.rhs_free);
  // Where batch, M and N dimensions stand in the result.
  const auto position = [&](int64_t side, int64_t d) -> int64_t {
    for (size_t p = 0; p + 1 < dims.order.size(); p += 2)
      if (dims.order[p] == side && dims.order[p + 1] == d) return static_cast<int64_t>(p / 2);
    fault(op, "invalid_ir", "tpu.matmul: the result's order lacks a dimension");
  };
  Dims out_dims;
  for (int64_t d : dims.lhs_batch) out_dims.push_back(position(0, d));
  for (int64_t d : dims.lhs_free) out_dims.push_back(position(0, d));
  for (int64_t d : dims.rhs_free) out_dims.push_back(position(1, d));

  Vector out(op.result()->type);
  if (!acc.is_float()) {
    const auto x = arranged(lhs.i(), lhs.shape(), lhs_dims);
    const auto w = arranged(rhs.i(), rhs.shape(), rhs_dims);
    auto sum = arranged(acc.i(), acc.shape(), out_dims);
    for (int64_t g = 0; g < b; ++g)
      matmul_accumulate(m, n, k, x.data() + g * m * k, w.data() + g * k * n,
                        sum.data() + g * m * n);
    put_back(sum, out.mutable_i(), acc.shape(), out_dims);
    return out;
  }
  const std::string_view precision = op.text_attr("precision");
  const bool keep_f32 = precision.find("fp32") != std::string_view::npos ||
                        precision.find("bf16x3") != std::string_view::npos;
  const auto x = float_operand(lhs, lhs_dims, keep_f32);
  const auto w = float_operand(rhs, rhs_dims, keep_f32);
  auto sum = arranged(acc.f(), acc.shape(), out_dims);
  for (int64_t g = 0; g < b; ++g)
    matmul_accumulate(m, n, k, x.data() + g * m * k, w.data() + g * k * n, sum.data() + g * m * n);
  put_back(sum, out.mutable_f(), acc.shape(), out_dims);
  round_to(out.elem(), out.mutable_f());
  return out;
}

}  // namespace gridless::emulate
