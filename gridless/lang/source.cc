#include "gridless/lang/source.h"

#include <fmt/format.h>

namespace gridless::lang {

Scalar source(const Source& s, Scalar value, const std::vector<Scalar>& at, Where w) {
  if (value.is_constant()) return value;  // nobody need be told
  Kernel& k = *value.kernel();
  std::string wrong = problem(s);
  if (wrong.empty() && at.size() != s.extents.size())
    wrong =
        fmt::format("source {} has {} indices, {} are given", s.name, s.extents.size(), at.size());
  if (wrong.empty() && value.elem() != Elem::kI32)
    wrong = fmt::format("source {} of {}", s.name, ir::spelling(value.elem()));
  if (!wrong.empty()) {
    k.error("invalid_ir", std::move(wrong), "see gridless/ir/source.h", w);
    return value;
  }
  std::vector<ir::Value*> yielded = {value.value()};
  for (const Scalar& i : at) yielded.push_back(k.as_i32(i, w));
  const std::vector<ir::Type> types(yielded.size(), ir::Type::scalar(Elem::kI32));
  ir::Op* region = k.emit(ir::OpCode::kTpuRegion, {}, types, attributes(s), w, 1);
  k.in_block(region->body(), [&] { k.emit(ir::OpCode::kTpuYield, yielded, {}, {}, w); });
  return Scalar(&k, region->result());
}

}  // namespace gridless::lang
