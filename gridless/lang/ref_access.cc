#include <fmt/format.h>

#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::Attr;
using ir::OpCode;
using ir::Type;
using ir::Value;

namespace {

std::vector<Scalar> origin(size_t rank) { return std::vector<Scalar>(rank, Scalar(0)); }

// Everything a vector access of `sizes` elements (taken every `strides`) must satisfy; false after
// a report.
bool check_access(const Ref& ref, const std::vector<Scalar>& starts, const Shape& sizes,
                  const Shape& strides, const char* what, Where w) {
  Kernel& k = *ref.kernel();
  const Type type = ref.value()->type;
  const Shape& full = ref.shape();
  if (ref.space() != Space::kVmem) {
    k.error("invalid_ir", fmt::format("a vector {} in {}", what, type.str()),
            "the vector unit reaches VMEM only: copy() the data to or from a VMEM ref", w);
    return false;
  }
  if (starts.size() != full.size() || sizes.size() != full.size()) {
    k.error("shape_mismatch",
            fmt::format("a {} with {} starts and {} sizes in a ref of rank {} ({})", what,
                        starts.size(), sizes.size(), full.size(), type.str()),
            "give one start and one size for every dimension", w);
    return false;
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t reach = (sizes[i] - 1) * (strides.empty() ? 1 : strides[i]) + 1;
    const int64_t first = starts[i].is_constant() ? starts[i].constant() : 0;
    if (sizes[i] < 1 || first < 0 || first + reach > full[i]) {
      k.error("out_of_bounds",
              fmt::format("a {} of elements {} to {} of dimension {} of {}", what, first,
                          first + reach, i, type.str()),
              fmt::format("the dimension has {} elements", full[i]), w);
      return false;
    }
  }
  return check_alignment(k, type, starts, sizes, /*is_copy=*/false, what, w);
}

void store_op(const Ref& ref, const Vec& v, const Value* mask, const std::vector<Scalar>& starts,
              Where w) {
  Kernel& k = *ref.kernel();
  const Type type = ref.value()->type;
  if (v.elem() != ref.elem() || v.shape().size() != ref.shape().size()) {
    k.error("shape_mismatch",
            fmt::format("a store of {} into {}", v.value()->type.str(), type.str()),
            "element and rank must agree: cast() or reshape() the vector first", w);
    return;
  }
  if (!check_access(ref, starts, v.shape(), {}, "store", w)) return;
  std::vector<Value*> operands = {v.value(), ref.value()};
  for (const Scalar& s : starts) operands.push_back(k.as_index(s, w));
  if (mask) operands.push_back(const_cast<Value*>(mask));
  const auto rank = static_cast<int64_t>(starts.size());
  k.emit(OpCode::kTpuVectorStore, std::move(operands), {},
         {{"add", Attr::boolean(false)},
          segments({1, 1, rank, mask ? 1 : 0}),
          {"strides", Attr::dense_array(Elem::kI32, {})}},
         w);
}

bool check_32_bits(const Ref& ref, const char* what, Where w) {
  if (ir::bit_width(ref.elem()) == 32) return true;
  ref.kernel()->error("shape_mismatch", fmt::format("{} in {}", what, ref.value()->type.str()),
                      "the chip does this for 32-bit elements only: keep the data as f32 or i32",
                      w);
  return false;
}

// What strided loads and stores of the chip need.
bool check_strided(const Ref& ref, const char* what, Where w) {
  if (!check_32_bits(ref, what, w)) return false;
  if (ref.shape().empty() || ref.shape().back() != 128) {
    ref.kernel()->error("shape_mismatch", fmt::format("{} in {}", what, ref.value()->type.str()),
                        "the allocation must be exactly 128 lanes wide", w);
    return false;
  }
  return true;
}

bool check_smem(const Ref& ref, size_t indices, const char* what, Where w) {
  if (ref.space() == Space::kSmem && indices == ref.shape().size()) return true;
  ref.kernel()->error(
      "invalid_ir",
      fmt::format("a scalar {} with {} indices in {}", what, indices, ref.value()->type.str()),
      ref.space() == Space::kSmem ? "every dimension needs an index"
                                  : "scalars live in SMEM: copy() the table there, or "
                                    "extract() from a loaded vector",
      w);
  return false;
}

// The indices as IR values; false after a report.
bool scalar_indices(const Ref& ref, const std::vector<Scalar>& index, std::vector<Value*>& out,
                    Where w) {
  Kernel& k = *ref.kernel();
  for (size_t i = 0; i < index.size(); ++i) {
    const int64_t n = ref.shape()[i];
    if (index[i].is_constant() && (index[i].constant() < 0 || index[i].constant() >= n)) {
      k.error("out_of_bounds",
              fmt::format("index {} of dimension {} of {}", index[i].constant(), i,
                          ref.value()->type.str()),
              fmt::format("the dimension has {} elements", n), w);
      return false;
    }
    out.push_back(k.as_index(index[i], w));
  }
  return true;
}

}  // namespace

Vec Ref::load(Where w) const { return load(origin(shape().size()), shape(), w); }

Vec Ref::load(const std::vector<Scalar>& starts, const Shape& sizes, Where w) const {
  Kernel& k = *kernel();
  if (!check_access(*this, starts, sizes, {}, "load", w)) return k.constant(sizes, elem(), 0, w);
  std::vector<Value*> operands = {value_};
  for (const Scalar& s : starts) operands.push_back(k.as_index(s, w));
  return Vec(&k,
             k.emit1(OpCode::kVectorLoad, std::move(operands), Type::vector(sizes, elem()), {}, w));
}

Vec Ref::load_strided(const std::vector<Scalar>& starts, const Shape& sizes, const Shape& strides,
                      Where w) const {
  Kernel& k = *kernel();
  if (!check_strided(*this, "a strided load", w) || strides.size() != sizes.size() ||
      !check_access(*this, starts, sizes, strides, "strided load", w)) {
    return k.constant(sizes, elem(), 0, w);
  }
  std::vector<Value*> operands = {value_};
  for (const Scalar& s : starts) operands.push_back(k.as_index(s, w));
  return Vec(&k, k.emit1(OpCode::kTpuStridedLoad, std::move(operands), Type::vector(sizes, elem()),
                         {{"strides", Attr::dense_array(Elem::kI32, strides)}}, w));
}

void Ref::store(Vec v, Where w) const { store(v, origin(shape().size()), w); }

void Ref::store(Vec v, const std::vector<Scalar>& starts, Where w) const {
  v.kernel();
  store_op(*this, v, nullptr, starts, w);
}

void Ref::store_masked(Vec v, Vec mask, Where w) const {
  store_masked(v, mask, origin(shape().size()), w);
}

void Ref::store_masked(Vec v, Vec mask, const std::vector<Scalar>& starts, Where w) const {
  if (!check_32_bits(*this, "a masked store", w)) return;
  if (mask.elem() != Elem::kI1 || mask.shape() != v.shape()) {
    kernel()->error(
        "shape_mismatch",
        fmt::format("a mask of {} for {}", mask.value()->type.str(), v.value()->type.str()),
        "the mask is an i1 vector of the shape of the value: compare, then broadcast()", w);
    return;
  }
  store_op(*this, v, mask.value(), starts, w);
}

void Ref::store_strided(Vec v, const std::vector<Scalar>& starts, const Shape& strides,
                        Where w) const {
  Kernel& k = *kernel();
  if (!check_strided(*this, "a strided store", w) || strides.size() != v.shape().size() ||
      !check_access(*this, starts, v.shape(), strides, "strided store", w)) {
    return;
  }
  std::vector<Value*> operands = {v.value(), value_};
  for (const Scalar& s : starts) operands.push_back(k.as_index(s, w));
  k.emit(OpCode::kTpuStridedStore, std::move(operands), {},
         {{"strides", Attr::dense_array(Elem::kI32, strides)}}, w);
}

Scalar Ref::get(const std::vector<Scalar>& index, Where w) const {
  Kernel& k = *kernel();
  std::vector<Value*> operands = {value_};
  if (!check_smem(*this, index.size(), "read", w) || !scalar_indices(*this, index, operands, w)) {
    return Scalar(&k, k.as_elem(Scalar(0), ir::is_float(elem()) ? Elem::kF32 : Elem::kI32, w));
  }
  return Scalar(&k, k.emit1(OpCode::kMemrefLoad, std::move(operands), Type::scalar(elem()), {}, w));
}

void Ref::set(const std::vector<Scalar>& index, Scalar value, Where w) const {
  Kernel& k = *kernel();
  if (!check_smem(*this, index.size(), "write", w)) return;
  std::vector<Value*> operands = {k.as_elem(value, elem(), w), value_};
  if (!scalar_indices(*this, index, operands, w)) return;
  k.emit(OpCode::kMemrefStore, std::move(operands), {}, {}, w);
}

}  // namespace gridless::lang
