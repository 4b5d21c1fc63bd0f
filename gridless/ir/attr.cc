#include "gridless/ir/attr.h"

#include <algorithm>
#include <bit>

namespace gridless::ir {

Attr::Attr(AttrData d) : data_(std::make_shared<const AttrData>(std::move(d))) {}
AttrKind Attr::kind() const { return data_->kind; }

Attr Attr::unit() { return Attr(AttrData{.kind = AttrKind::kUnit}); }
Attr Attr::boolean(bool v) { return Attr(AttrData{.kind = AttrKind::kBool, .ints = {v}}); }
Attr Attr::integer(int64_t v, Type type) {
  return Attr(AttrData{.kind = AttrKind::kInt, .type = type, .ints = {v}});
}
Attr Attr::real(double v, Type type) {
  return Attr(AttrData{.kind = AttrKind::kFloat, .type = type, .reals = {v}});
}
Attr Attr::string(std::string v) {
  return Attr(AttrData{.kind = AttrKind::kString, .text = std::move(v)});
}
Attr Attr::symbol(std::string v) {
  return Attr(AttrData{.kind = AttrKind::kSymbol, .text = std::move(v)});
}
Attr Attr::type(Type t) { return Attr(AttrData{.kind = AttrKind::kType, .type = t}); }
Attr Attr::array(std::vector<Attr> v) {
  return Attr(AttrData{.kind = AttrKind::kArray, .array = std::move(v)});
}
Attr Attr::dict(std::vector<NamedAttr> v) {
  return Attr(AttrData{.kind = AttrKind::kDict, .dict = std::move(v)});
}
Attr Attr::dense_array(Elem e, std::vector<int64_t> v) {
  return Attr(AttrData{.kind = AttrKind::kDenseArray, .elem = e, .ints = std::move(v)});
}
Attr Attr::dense_array_f(Elem e, std::vector<double> v) {
  return Attr(AttrData{.kind = AttrKind::kDenseArray, .elem = e, .reals = std::move(v)});
}
Attr Attr::dense_int(Type shaped, std::vector<int64_t> ints) {
  return Attr(AttrData{.kind = AttrKind::kDense, .type = shaped, .ints = std::move(ints)});
}
Attr Attr::dense_real(Type shaped, std::vector<double> reals) {
  return Attr(AttrData{.kind = AttrKind::kDense, .type = shaped, .reals = std::move(reals)});
}
Attr Attr::opaque(std::string text) {
  return Attr(AttrData{.kind = AttrKind::kOpaque, .text = std::move(text)});
}

bool Attr::operator==(const Attr& o) const {
  if (data_ == o.data_) return true;
  return data_ && o.data_ && *data_ == *o.data_;
}

bool AttrData::operator==(const AttrData& o) const {
  // Doubles compare by bits: NaN equals itself and -0 differs from +0, as in the text.
  const auto same_bits = [](double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  };
  return kind == o.kind && type == o.type && elem == o.elem && text == o.text && ints == o.ints &&
         array == o.array && dict == o.dict && std::ranges::equal(reals, o.reals, same_bits);
}

}  // namespace gridless::ir
