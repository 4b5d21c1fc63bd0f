// Builds one op around given operand values and evaluates it.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "gridless/emulate/eval.h"

namespace gridless::emulate::testing {

inline Vector floats(Shape shape, std::vector<float> values, Elem e = Elem::kF32) {
  Vector v(Type::vector(std::move(shape), e));
  std::ranges::copy(values, v.mutable_f().begin());
  return v;
}
inline Vector ints(Shape shape, std::vector<int32_t> values, Elem e = Elem::kI32) {
  Vector v(Type::vector(std::move(shape), e));
  std::ranges::copy(values, v.mutable_i().begin());
  return v;
}

inline Type type_of(const RtValue& v) {
  if (const auto* x = std::get_if<Vector>(&v)) return x->type();
  return Type::scalar(std::get<Scalar>(v).elem);
}

inline std::expected<RtValue, Diagnostic> eval(ir::OpCode code, std::vector<RtValue> operands,
                                               Type result, std::vector<ir::NamedAttr> attrs = {}) {
  ir::Module module;
  std::vector<ir::Value*> values;
  std::vector<const RtValue*> args;
  for (const RtValue& v : operands) {
    values.push_back(module.body().add_arg(type_of(v)));
    args.push_back(&v);
  }
  const ir::Op* op = ir::append_op(module.body(), code, values, {result}, std::move(attrs),
                                   SourceLoc("kernel.cc", 7));
  return eval_pure(*op, args);
}

inline std::vector<float> as_floats(const std::expected<RtValue, Diagnostic>& v) {
  if (!v) return {};
  const auto f = std::get<Vector>(*v).f();
  return {f.begin(), f.end()};
}
inline std::vector<int32_t> as_ints(const std::expected<RtValue, Diagnostic>& v) {
  if (!v) return {};
  const auto i = std::get<Vector>(*v).i();
  return {i.begin(), i.end()};
}

}  // namespace gridless::emulate::testing
