#include <fmt/format.h>

#include "gridless/lang/emit.h"
#include "gridless/lang/ops.h"

namespace gridless::lang {

using ir::Attr;
using ir::OpCode;
using ir::Type;

namespace {

Vec matmul(Vec a, Vec b, Vec acc, bool nt, Precision p, Where w) {
  Kernel& k = *a.kernel();
  const bool ranks = a.shape().size() == 2 && b.shape().size() == 2;
  const int64_t bk = ranks ? b.shape()[nt ? 1 : 0] : 0, bn = ranks ? b.shape()[nt ? 0 : 1] : 0;
  if (!ranks || a.shape()[1] != bk || acc.shape() != Shape{a.shape()[0], bn}) {
    k.error("shape_mismatch",
            fmt::format("{}: {} by {} onto {}", nt ? "dot_nt" : "dot", a.value()->type.str(),
                        b.value()->type.str(), acc.value()->type.str()),
            nt ? "shapes are [M,K], [N,K] and [M,N]" : "shapes are [M,K], [K,N] and [M,N]", w);
    return acc;
  }
  if (ir::bit_width(acc.elem()) != 32) {
    k.error("shape_mismatch", fmt::format("an accumulator of {}", spelling(acc.elem())),
            "the MXU accumulates in 32 bits: use f32", w);
    return acc;
  }
  if (ir::is_float(a.elem()) != ir::is_float(b.elem()) && !ir::is_float(acc.elem())) {
    k.error("shape_mismatch",
            fmt::format("a product of {} and {} in {}", spelling(a.elem()), spelling(b.elem()),
                        spelling(acc.elem())),
            "cast() the operands to one element", w);
    return acc;
  }
  const char* numbers = nt ? "#tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>"
                           : "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>";
  std::vector<ir::NamedAttr> attrs = {{"dimension_numbers", Attr::opaque(numbers)},
                                      {"transpose_lhs", Attr::boolean(false)},
                                      {"transpose_lhs_hint", Attr::boolean(false)},
                                      {"transpose_rhs", Attr::boolean(false)}};
  if (p == Precision::kF32)
    attrs.emplace_back("precision", Attr::opaque("#tpu.contract_precision<fp32>"));
  return Vec(&k, k.emit1(OpCode::kTpuMatmul, {a.value(), b.value(), acc.value()}, acc.value()->type,
                         std::move(attrs), w));
}

bool check_mxu(Kernel& k, int mxu, Where w) {
  if (mxu == 0 || mxu == 1) return true;
  k.error("out_of_bounds", fmt::format("MXU {}", mxu), "a core has two: 0 and 1", w);
  return false;
}

}  // namespace

Vec dot(Vec a, Vec b, Vec acc, Precision p, Where w) { return matmul(a, b, acc, false, p, w); }
Vec dot_nt(Vec a, Vec b, Vec acc, Precision p, Where w) { return matmul(a, b, acc, true, p, w); }

void mxu_push(Vec rhs, int mxu, int staging, Where w) {
  Kernel& k = *rhs.kernel();
  if (!check_mxu(k, mxu, w)) return;
  if (rhs.shape() != Shape{256, 256}) {
    k.error("shape_mismatch", fmt::format("mxu_push of {}", rhs.value()->type.str()),
            "the MXU holds exactly 256x256 weights", w);
    return;
  }
  k.emit(OpCode::kTpuMatmulPushRhs, {rhs.value()}, {},
         {{"mxu_index", Attr::i32(mxu)},
          {"staging_register", Attr::i32(staging)},
          {"transpose", Attr::boolean(false)}},
         w);
}

void mxu_accumulate(Vec lhs, int mxu, int accumulator, std::optional<int> load_staged, Where w) {
  Kernel& k = *lhs.kernel();
  if (!check_mxu(k, mxu, w)) return;
  if (lhs.shape().size() != 2 || lhs.shape()[1] != 256) {
    k.error("shape_mismatch", fmt::format("mxu_accumulate of {}", lhs.value()->type.str()),
            "rows of 256 meet the 256x256 weights", w);
    return;
  }
  std::vector<ir::NamedAttr> attrs = {{"acc", Attr::i32(accumulator)}};
  if (load_staged) attrs.emplace_back("load_staged_rhs", Attr::i32(*load_staged));
  attrs.emplace_back("mxu_index", Attr::i32(mxu));
  k.emit(OpCode::kTpuMatmulAccLhs, {lhs.value()}, {}, std::move(attrs), w);
}

Vec mxu_pop(Kernel& k, int64_t rows, int mxu, int accumulator, Where w) {
  const Type type = Type::vector({rows, 256}, Elem::kF32);
  check_mxu(k, mxu, w);
  return Vec(&k, k.emit1(OpCode::kTpuMatmulPop, {}, type,
                         {{"acc", Attr::i32(accumulator)}, {"mxu_index", Attr::i32(mxu)}}, w));
}

// --- random numbers
// -----------------------------------------------------------------------------------

void seed_random(Kernel& k, Scalar seed, Where w) {
  k.emit(OpCode::kTpuPrngSetSeed32, {k.as_i32(seed, w)}, {}, {}, w);
}

Vec random_bits(Kernel& k, Shape shape, Where w) {
  return Vec(&k, k.emit1(OpCode::kTpuPrngRandomBits, {}, Type::vector(std::move(shape), Elem::kI32),
                         {}, w));
}

Vec cast_stochastic(Vec a, Vec bits, Elem e, Where w) {
  Kernel& k = *a.kernel();
  if (a.elem() != Elem::kF32 || bits.value()->type != Type::vector(a.shape(), Elem::kI32)) {
    k.error("shape_mismatch",
            fmt::format("cast_stochastic of {} with {}", a.value()->type.str(),
                        bits.value()->type.str()),
            "needs f32 values and as many i32 random bits", w);
    return a;
  }
  return Vec(&k, k.emit1(OpCode::kTpuStochasticConvert, {a.value(), bits.value()},
                         Type::vector(a.shape(), e), {}, w));
}

}  // namespace gridless::lang
