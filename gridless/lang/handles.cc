#include "gridless/lang/handles.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "gridless/lang/kernel.h"

namespace gridless::lang {

using ir::Attr;
using ir::NamedAttr;
using ir::OpCode;
using ir::Type;
using ir::Value;

namespace {

const NamedAttr kFastmath = {"fastmath", Attr::opaque("#arith.fastmath<none>")};
const NamedAttr kOverflow = {"overflowFlags", Attr::opaque("#arith.overflow<none>")};

// numpy's rule; empty when the shapes do not broadcast.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = std::max(x, y);
  }
  return out;
}

Vec stretch(Vec v, const Shape& shape, Where w) {
  if (v.shape() == shape) return v;
  Kernel& k = *v.kernel();
  return Vec(&k, k.emit1(OpCode::kVectorBroadcast, {v.value()}, Type::vector(shape, v.elem()), {}, w));
}

struct Pair {
  Vec a, b;
};

}  // namespace

// Brings both operands to one shape and element; reports mismatches. Shared with ops.cc.
std::pair<Vec, Vec> unify(Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  if (b.kind == VecArg::kNumber) return {a, k.constant(a.shape(), a.elem(), b.number, b.where)};
  if (b.kind == VecArg::kScalar) {
    const Scalar s = b.scalar;
    if (s.is_constant()) {
      return {a, k.constant(a.shape(), a.elem(), static_cast<double>(s.constant()), b.where)};
    }
    if (s.elem() != a.elem()) {
      k.error("shape_mismatch",
              fmt::format("a vector of {} and a scalar of {}", spelling(a.elem()), spelling(s.elem())),
              "cast() one of them", b.where);
      return {a, a};
    }
    return {a, Vec(&k, k.emit1(OpCode::kVectorBroadcast, {s.value()},
                               Type::vector(a.shape(), a.elem()), {}, b.where))};
  }
  if (a.elem() != b.vec.elem()) {
    k.error("shape_mismatch",
            fmt::format("operands of {} and {}", a.value()->type.str(), b.vec.value()->type.str()),
            "cast() one of them: the vector unit does not convert by itself", b.where);
    return {a, a};
  }
  const std::optional<Shape> shape = broadcast_shape(a.shape(), b.vec.shape());
  if (!shape) {
    k.error("shape_mismatch",
            fmt::format("shapes {} and {} do not broadcast", ir::shape_str(a.shape()),
                        ir::shape_str(b.vec.shape())),
            "dimensions must be equal or 1, counted from the last", b.where);
    return {a, a};
  }
  return {stretch(a, *shape, b.where), stretch(b.vec, *shape, b.where)};
}

// One binary op; `on_float` for float elements, `on_int` for integers.
Vec binary(OpCode on_float, std::optional<OpCode> on_int, Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  const auto [x, y] = unify(a, b);
  const bool floats = ir::is_float(x.elem());
  if (!floats && !on_int) {
    k.error("shape_mismatch", fmt::format("this operation needs floats, not {}", spelling(x.elem())),
            "cast() to f32 first", b.where);
    return x;
  }
  const OpCode code = floats ? on_float : *on_int;
  std::vector<NamedAttr> attrs;
  if (floats) attrs.push_back(kFastmath);
  if (code == OpCode::kArithAddi || code == OpCode::kArithSubi || code == OpCode::kArithMuli ||
      code == OpCode::kArithShli) {
    attrs.push_back(kOverflow);
  }
  return Vec(&k, k.emit1(code, {x.value(), y.value()}, x.value()->type, std::move(attrs), b.where));
}

Vec bitwise(OpCode code, Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  const auto [x, y] = unify(a, b);
  if (ir::is_float(x.elem())) {
    k.error("shape_mismatch", fmt::format("bits of {} values", spelling(x.elem())),
            "bitcast() to an integer element first", b.where);
    return x;
  }
  std::vector<NamedAttr> attrs;
  if (code == OpCode::kArithShli) attrs.push_back(kOverflow);
  return Vec(&k, k.emit1(code, {x.value(), y.value()}, x.value()->type, std::move(attrs), b.where));
}

namespace {

// Predicates in the order of MLIR's cmpi (signed) and cmpf (ordered; `ne` unordered).
enum Compare { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr int kIntPredicate[] = {0, 1, 2, 3, 4, 5};
constexpr int kFloatPredicate[] = {1, 13, 4, 5, 2, 3};

Vec compare(Compare c, Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  const auto [x, y] = unify(a, b);
  const bool floats = ir::is_float(x.elem());
  std::vector<NamedAttr> attrs;
  if (floats) attrs.push_back(kFastmath);
  attrs.emplace_back("predicate", Attr::i64(floats ? kFloatPredicate[c] : kIntPredicate[c]));
  return Vec(&k, k.emit1(floats ? OpCode::kArithCmpf : OpCode::kArithCmpi, {x.value(), y.value()},
                         Type::vector(x.shape(), Elem::kI1), std::move(attrs), b.where));
}

Kernel* kernel_of(Scalar a, Scalar b) { return a.kernel() ? a.kernel() : b.kernel(); }

Scalar scalar_op(OpCode code, Scalar a, const ScalarArg& b,
                 const std::function<int64_t(int64_t, int64_t)>& fold, bool wraps = false) {
  if (a.is_constant() && b.scalar.is_constant()) {
    return Scalar(fold(a.constant(), b.scalar.constant()));
  }
  Kernel& k = *kernel_of(a, b.scalar);
  std::vector<NamedAttr> attrs;
  if (wraps) attrs.push_back(kOverflow);
  return Scalar(&k, k.emit1(code, {k.as_i32(a, b.where), k.as_i32(b.scalar, b.where)},
                            Type::scalar(Elem::kI32), std::move(attrs), b.where));
}

Scalar scalar_compare(Compare c, Scalar a, const ScalarArg& b) {
  if (a.is_constant() && b.scalar.is_constant()) {
    const int64_t x = a.constant(), y = b.scalar.constant();
    const bool r[] = {x == y, x != y, x < y, x <= y, x > y, x >= y};
    return Scalar(static_cast<int64_t>(r[c]));
  }
  Kernel& k = *kernel_of(a, b.scalar);
  return Scalar(&k, k.emit1(OpCode::kArithCmpi, {k.as_i32(a, b.where), k.as_i32(b.scalar, b.where)},
                            Type::scalar(Elem::kI1), {{"predicate", Attr::i64(kIntPredicate[c])}},
                            b.where));
}

Scalar scalar_logic(OpCode code, Scalar a, const ScalarArg& b, bool is_and) {
  const Scalar s = b.scalar;
  // With one side known the result is that side or the other one.
  if (a.is_constant()) return (a.constant() != 0) == is_and ? s : Scalar(int64_t{!is_and});
  if (s.is_constant()) return (s.constant() != 0) == is_and ? a : Scalar(int64_t{!is_and});
  Kernel& k = *kernel_of(a, s);
  return Scalar(&k,
                k.emit1(code, {a.value(), s.value()}, Type::scalar(Elem::kI1), {}, b.where));
}

}  // namespace

int64_t Vec::dim(int i) const {
  const Shape& s = shape();
  return s[static_cast<size_t>(i < 0 ? static_cast<int>(s.size()) + i : i)];
}

Vec operator+(Vec a, VecArg b) { return binary(OpCode::kArithAddf, OpCode::kArithAddi, a, b); }
Vec operator-(Vec a, VecArg b) { return binary(OpCode::kArithSubf, OpCode::kArithSubi, a, b); }
Vec operator*(Vec a, VecArg b) { return binary(OpCode::kArithMulf, OpCode::kArithMuli, a, b); }
Vec operator/(Vec a, VecArg b) { return binary(OpCode::kArithDivf, std::nullopt, a, b); }
Vec operator&(Vec a, VecArg b) { return bitwise(OpCode::kArithAndi, a, b); }
Vec operator|(Vec a, VecArg b) { return bitwise(OpCode::kArithOri, a, b); }
Vec operator^(Vec a, VecArg b) { return bitwise(OpCode::kArithXori, a, b); }
Vec operator<(Vec a, VecArg b) { return compare(kLt, a, b); }
Vec operator<=(Vec a, VecArg b) { return compare(kLe, a, b); }
Vec operator>(Vec a, VecArg b) { return compare(kGt, a, b); }
Vec operator>=(Vec a, VecArg b) { return compare(kGe, a, b); }
Vec operator==(Vec a, VecArg b) { return compare(kEq, a, b); }
Vec operator!=(Vec a, VecArg b) { return compare(kNe, a, b); }

Scalar operator+(Scalar a, ScalarArg b) {
  if (b.scalar.is_constant() && b.scalar.constant() == 0) return a;
  if (a.is_constant() && a.constant() == 0) return b.scalar;
  return scalar_op(OpCode::kArithAddi, a, b, std::plus<int64_t>(), true);
}
Scalar operator-(Scalar a, ScalarArg b) {
  if (b.scalar.is_constant() && b.scalar.constant() == 0) return a;
  return scalar_op(OpCode::kArithSubi, a, b, std::minus<int64_t>(), true);
}
Scalar operator*(Scalar a, ScalarArg b) {
  if (b.scalar.is_constant() && b.scalar.constant() == 1) return a;
  if (b.scalar.is_constant() && b.scalar.constant() == 0) return Scalar(0);
  return scalar_op(OpCode::kArithMuli, a, b, std::multiplies<int64_t>(), true);
}
Scalar operator/(Scalar a, ScalarArg b) {
  if (b.scalar.is_constant() && b.scalar.constant() == 1) return a;
  return scalar_op(OpCode::kArithDivsi, a, b, [](int64_t x, int64_t y) { return y ? x / y : 0; });
}
Scalar operator%(Scalar a, ScalarArg b) {
  if (b.scalar.is_constant() && b.scalar.constant() == 1) return Scalar(0);
  return scalar_op(OpCode::kArithRemsi, a, b, [](int64_t x, int64_t y) { return y ? x % y : 0; });
}
Scalar operator<(Scalar a, ScalarArg b) { return scalar_compare(kLt, a, b); }
Scalar operator<=(Scalar a, ScalarArg b) { return scalar_compare(kLe, a, b); }
Scalar operator>(Scalar a, ScalarArg b) { return scalar_compare(kGt, a, b); }
Scalar operator>=(Scalar a, ScalarArg b) { return scalar_compare(kGe, a, b); }
Scalar operator==(Scalar a, ScalarArg b) { return scalar_compare(kEq, a, b); }
Scalar operator!=(Scalar a, ScalarArg b) { return scalar_compare(kNe, a, b); }
Scalar operator&&(Scalar a, ScalarArg b) { return scalar_logic(OpCode::kArithAndi, a, b, true); }
Scalar operator||(Scalar a, ScalarArg b) { return scalar_logic(OpCode::kArithOri, a, b, false); }

// --- refs ---------------------------------------------------------------------------------------------

int64_t Ref::dim(int i) const {
  const Shape& s = shape();
  return s[static_cast<size_t>(i < 0 ? static_cast<int>(s.size()) + i : i)];
}

Ref Ref::slice(const std::vector<Scalar>& starts, const Shape& sizes, Where w) const {
  Kernel& k = *kernel_;
  const Shape& full = shape();
  if (starts.size() != full.size() || sizes.size() != full.size()) {
    k.error("shape_mismatch",
            fmt::format("a slice with {} starts and {} sizes of a ref of rank {} ({})", starts.size(),
                        sizes.size(), full.size(), value_->type.str()),
            "give one start and one size for every dimension", w);
    return *this;
  }
  std::vector<Value*> operands = {value_};
  for (size_t i = 0; i < full.size(); ++i) {
    if (starts[i].is_constant() &&
        (starts[i].constant() < 0 || starts[i].constant() + sizes[i] > full[i] || sizes[i] < 1)) {
      k.error("out_of_bounds",
              fmt::format("rows {} to {} of dimension {} of {}", starts[i].constant(),
                          starts[i].constant() + sizes[i], i, value_->type.str()),
              fmt::format("the dimension has {} elements", full[i]), w);
      return *this;
    }
    operands.push_back(k.as_i32(starts[i], w));
  }
  const auto rank = static_cast<int64_t>(full.size());
  return Ref(&k, k.emit1(OpCode::kTpuMemrefSlice, std::move(operands),
                         value_->type.with_shape(sizes),
                         {{"operandSegmentSizes", Attr::dense_array(Elem::kI32, {1, rank, 0})}}, w));
}

Ref Ref::rows(Scalar start, int64_t n, Where w) const {
  std::vector<Scalar> starts(shape().size(), Scalar(0));
  Shape sizes = shape();
  if (starts.empty()) {
    kernel_->error("shape_mismatch", "rows() of a ref of rank 0", "only arrays have rows", w);
    return *this;
  }
  starts[0] = start;
  sizes[0] = n;
  return slice(starts, sizes, w);
}

Ref Ref::at(Scalar i, Where w) const {
  if (shape().empty()) {
    kernel_->error("shape_mismatch", "at() of a ref of rank 0", "it has no first dimension", w);
    return *this;
  }
  const Ref one = rows(i, 1, w);
  if (one.value_ == value_ && dim(0) != 1) return *this;  // an error was reported
  const Shape rest(shape().begin() + 1, shape().end());
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefSqueeze, {one.value_},
                                     one.value_->type.with_shape(rest), {}, w));
}

Ref Ref::squeeze(Where w) const {
  Shape rest = shape();
  while (rest.size() > 2 && rest.front() == 1) rest.erase(rest.begin());
  if (rest == shape()) return *this;
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefSqueeze, {value_}, value_->type.with_shape(rest),
                                     {}, w));
}

Ref Ref::reshape(const Shape& to, Where w) const {
  const Type type = value_->type.with_shape(to);
  if (type.num_elements() != value_->type.num_elements()) {
    kernel_->error("shape_mismatch",
                   fmt::format("reshape of {} to {}", value_->type.str(), ir::shape_str(to)),
                   "the number of elements must stay the same", w);
    return *this;
  }
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefReshape, {value_}, type, {}, w));
}

Ref Ref::bitcast(Elem e, Where w) const {
  Shape s = shape();
  const int from = ir::bit_width(elem()), to = ir::bit_width(e);
  if (s.size() < 2 || (s[s.size() - 2] * from) % to != 0) {
    kernel_->error("shape_mismatch",
                   fmt::format("bitcast of {} to {}", value_->type.str(), ir::spelling(e)),
                   "needs two dimensions, the second-minor divisible by the ratio of the widths", w);
    return *this;
  }
  s[s.size() - 2] = s[s.size() - 2] * from / to;
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefBitcast, {value_},
                                     Type::memref(s, e, space()), {}, w));
}

Vec Ref::load(Where w) const {
  return load(std::vector<Scalar>(shape().size(), Scalar(0)), shape(), w);
}

Vec Ref::load(const std::vector<Scalar>& starts, const Shape& sizes, Where w) const {
  Kernel& k = *kernel_;
  if (space() != Space::kVmem) {
    k.error("invalid_ir", fmt::format("vector load from {}", value_->type.str()),
            "the vector unit reaches VMEM only: copy() it there first", w);
  }
  if (starts.size() != shape().size() || sizes.size() != shape().size()) {
    k.error("shape_mismatch", fmt::format("a load with {} starts from {}", starts.size(), value_->type.str()),
            "give one start and one size for every dimension", w);
    return k.constant(shape(), elem(), 0, w);
  }
  std::vector<Value*> operands = {value_};
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i].is_constant() && starts[i].constant() + sizes[i] > shape()[i]) {
      k.error("out_of_bounds",
              fmt::format("a load of rows {} to {} of dimension {} of {}", starts[i].constant(),
                          starts[i].constant() + sizes[i], i, value_->type.str()),
              fmt::format("the dimension has {} elements", shape()[i]), w);
      return k.constant(sizes, elem(), 0, w);
    }
    operands.push_back(k.as_index(starts[i], w));
  }
  return Vec(&k, k.emit1(OpCode::kVectorLoad, std::move(operands), Type::vector(sizes, elem()), {}, w));
}

namespace {

void store_op(const Ref& ref, Vec v, Value* mask, const std::vector<Scalar>& starts, Where w) {
  Kernel& k = *ref.kernel();
  const Type type = ref.value()->type;
  if (ref.space() != Space::kVmem) {
    k.error("invalid_ir", fmt::format("vector store to {}", type.str()),
            "Expected base memref to be in VMEM: store there and copy() it out", w);
    return;
  }
  bool fits = starts.size() == ref.shape().size() && v.shape().size() == ref.shape().size() &&
              v.elem() == ref.elem();
  for (size_t i = 0; fits && i < starts.size(); ++i) {
    fits = !starts[i].is_constant() || starts[i].constant() + v.shape()[i] <= ref.shape()[i];
  }
  if (!fits) {
    k.error("shape_mismatch", fmt::format("store of {} into {}", v.value()->type.str(), type.str()),
            "element and rank must agree and the part must lie inside: cast() or reshape() first", w);
    return;
  }
  std::vector<Value*> operands = {v.value(), ref.value()};
  for (const Scalar& s : starts) operands.push_back(k.as_index(s, w));
  if (mask) operands.push_back(mask);
  const auto rank = static_cast<int64_t>(starts.size());
  k.emit(OpCode::kTpuVectorStore, std::move(operands), {},
         {{"add", Attr::boolean(false)},
          {"operandSegmentSizes", Attr::dense_array(Elem::kI32, {1, 1, rank, mask ? 1 : 0})},
          {"strides", Attr::dense_array(Elem::kI32, {})}},
         w);
}

}  // namespace

void Ref::store(Vec v, Where w) const {
  store_op(*this, v, nullptr, std::vector<Scalar>(shape().size(), Scalar(0)), w);
}
void Ref::store(Vec v, const std::vector<Scalar>& starts, Where w) const {
  store_op(*this, v, nullptr, starts, w);
}
void Ref::store_masked(Vec v, Vec mask, Where w) const {
  store_op(*this, v, mask.value(), std::vector<Scalar>(shape().size(), Scalar(0)), w);
}

Scalar Ref::get(const std::vector<Scalar>& index, Where w) const {
  Kernel& k = *kernel_;
  if (space() != Space::kSmem || index.size() != shape().size()) {
    k.error("invalid_ir", fmt::format("scalar read with {} indices from {}", index.size(), value_->type.str()),
            "scalars live in SMEM, and every dimension needs an index", w);
    return Scalar(0);
  }
  std::vector<Value*> operands = {value_};
  for (const Scalar& s : index) operands.push_back(k.as_index(s, w));
  return Scalar(&k, k.emit1(OpCode::kMemrefLoad, std::move(operands), Type::scalar(elem()), {}, w));
}

void Ref::set(const std::vector<Scalar>& index, Scalar value, Where w) const {
  Kernel& k = *kernel_;
  if (space() != Space::kSmem || index.size() != shape().size()) {
    k.error("invalid_ir", fmt::format("scalar write with {} indices to {}", index.size(), value_->type.str()),
            "scalars live in SMEM, and every dimension needs an index", w);
    return;
  }
  std::vector<Value*> operands = {k.as_i32(value, w), value_};
  for (const Scalar& s : index) operands.push_back(k.as_index(s, w));
  k.emit(OpCode::kMemrefStore, std::move(operands), {}, {}, w);
}

}  // namespace gridless::lang
