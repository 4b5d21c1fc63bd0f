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

RtValue integer_matmul(const ir::Op& op, const std::vector<int64_t>& lp,
                       const std::vector<int64_t>& rp, const std::vector<int64_t>& op_places,
                       Args args, int64_t b, int64_t m, int64_t n, int64_t k) {
  Vector out(op.result()->type);
  const auto y = out.mutable_i();
  const auto x = vector(*args[0]).i(), w = vector(*args[1]).i(), acc = vector(*args[2]).i();
  for (int64_t g = 0; g < b; ++g) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t c = 0; c < n; ++c) {
        const auto at = static_cast<size_t>(op_places[static_cast<size_t>((g * m + i) * n + c)]);
        auto sum = static_cast<uint32_t>(acc[at]);
        for (int64_t j = 0; j < k; ++j) {
          const int32_t a = x[static_cast<size_t>(lp[static_cast<size_t>((g * m + i) * k + j)])];
          const int32_t v = w[static_cast<size_t>(rp[static_cast<size_t>((g * k + j) * n + c)])];
          sum += static_cast<uint32_t>(a) * static_cast<uint32_t>(v);
        }
        y[at] = static_cast<int32_t>(sum);
      }
    }
  }
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
  const auto lp = places(lhs.shape(), joined(dims.lhs_batch, dims.lhs_free, dims.lhs_contract));
  const auto rp = places(rhs.shape(), joined(dims.rhs_batch, dims.rhs_contract, dims.rhs_free));
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
  const auto op_places = places(acc.shape(), out_dims);
  if (!acc.is_float()) return integer_matmul(op, lp, rp, op_places, args, b, m, n, k);

  const std::string_view precision = op.text_attr("precision");
  const bool keep_f32 = precision.find("fp32") != std::string_view::npos ||
                        precision.find("bf16x3") != std::string_view::npos;
  const auto arrange = [&](const Vector& v, const std::vector<int64_t>& from) {
    std::vector<float> out(from.size());
    for (size_t e = 0; e < from.size(); ++e)
      out[e] = v.is_float() ? v.f()[static_cast<size_t>(from[e])]
                            : static_cast<float>(v.i()[static_cast<size_t>(from[e])]);
    if (v.elem() == Elem::kF32 && !keep_f32) round_to(Elem::kBf16, out);
    return out;
  };
  const std::vector<float> x = arrange(lhs, lp), w = arrange(rhs, rp);
  std::vector<float> sum(op_places.size());
  for (size_t e = 0; e < sum.size(); ++e) sum[e] = acc.f()[static_cast<size_t>(op_places[e])];
  for (int64_t g = 0; g < b; ++g)
    matmul_accumulate(m, n, k, x.data() + g * m * k, w.data() + g * k * n, sum.data() + g * m * n);
  Vector out(op.result()->type);
  for (size_t e = 0; e < sum.size(); ++e)
    out.mutable_f()[static_cast<size_t>(op_places[e])] = sum[e];
  round_to(out.elem(), out.mutable_f());
  return out;
}

}  // namespace gridless::emulate
