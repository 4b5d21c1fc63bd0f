#include <fmt/format.h>

#include "gridless/base/check.h"
#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::OpCode;
using ir::Type;
using ir::Value;

Kernel* Ref::kernel() const {
  GRIDLESS_CHECK(kernel_, "an empty Ref is used: it was declared and never given a value");
  return kernel_;
}

int64_t Ref::dim(int i) const {
  const Shape& s = shape();
  return s[static_cast<size_t>(i < 0 ? static_cast<int>(s.size()) + i : i)];
}

namespace {

// After a reported mistake building goes on with a ref of the type that was asked for, so that one
// mistake gives one message.
Ref stand_in(Kernel& k, const Ref& ref, Type type, Where w) {
  return Ref(&k, k.emit1(OpCode::kTpuMemrefReshape, {ref.value()}, type, {}, w));
}

}  // namespace

Ref Ref::slice(const std::vector<Scalar>& starts, const Shape& sizes, Where w) const {
  Kernel& k = *kernel();
  const Shape& full = shape();
  if (starts.size() != full.size() || sizes.size() != full.size()) {
    k.error("shape_mismatch",
            fmt::format("a slice with {} starts and {} sizes of a ref of rank {} ({})",
                        starts.size(), sizes.size(), full.size(), value_->type.str()),
            "give one start and one size for every dimension", w);
    return stand_in(k, *this, value_->type.with_shape(sizes), w);
  }
  std::vector<Value*> operands = {value_};
  for (size_t i = 0; i < full.size(); ++i) {
    const int64_t first = starts[i].is_constant() ? starts[i].constant() : 0;
    if (first < 0 || first + sizes[i] > full[i] || sizes[i] < 1) {
      k.error("out_of_bounds",
              fmt::format("a slice of elements {} to {} of dimension {} of {}", first,
                          first + sizes[i], i, value_->type.str()),
              fmt::format("the dimension has {} elements", full[i]), w);
      return stand_in(k, *this, value_->type.with_shape(sizes), w);
    }
    operands.push_back(k.as_i32(starts[i], w));
  }
  if (!check_alignment(k, value_->type, starts, sizes, /*is_copy=*/true, "slice", w))
    return stand_in(k, *this, value_->type.with_shape(sizes), w);
  const auto rank = static_cast<int64_t>(full.size());
  return Ref(&k, k.emit1(OpCode::kTpuMemrefSlice, std::move(operands),
                         value_->type.with_shape(sizes), {segments({1, rank, 0})}, w));
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
  const Shape rest(shape().begin() + 1, shape().end());
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefSqueeze, {one.value_},
                                     one.value_->type.with_shape(rest), {}, w));
}

Ref Ref::squeeze(Where w) const {
  Shape rest = shape();
  while (rest.size() > 2 && rest.front() == 1) rest.erase(rest.begin());
  if (rest == shape()) return *this;
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefSqueeze, {value_},
                                     value_->type.with_shape(rest), {}, w));
}

Ref Ref::reshape(const Shape& to, Where w) const {
  const Type type = value_->type.with_shape(to);
  if (type.num_elements() != value_->type.num_elements()) {
    kernel_->error("shape_mismatch",
                   fmt::format("reshape of {} to {}", value_->type.str(), ir::shape_str(to)),
                   "the number of elements must stay the same", w);
    return stand_in(*kernel_, *this, type, w);
  }
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefReshape, {value_}, type, {}, w));
}

Ref Ref::bitcast(Elem e, Where w) const {
  Shape s = shape();
  const int from = ir::bit_width(elem()), to = ir::bit_width(e);
  if (s.size() < 2 || (s[s.size() - 2] * from) % to != 0) {
    kernel_->error(
        "shape_mismatch", fmt::format("bitcast of {} to {}", value_->type.str(), ir::spelling(e)),
        "needs two dimensions, the second-minor divisible by the ratio of the widths", w);
    return *this;
  }
  s[s.size() - 2] = s[s.size() - 2] * from / to;
  return Ref(kernel_, kernel_->emit1(OpCode::kTpuMemrefBitcast, {value_},
                                     Type::memref(s, e, space()), {}, w));
}

}  // namespace gridless::lang
