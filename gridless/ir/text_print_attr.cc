#include <fmt/format.h>

#include <algorithm>

#include "gridless/ir/float_text.h"
#include "gridless/ir/text.h"

namespace gridless::ir {
namespace {

// From this many elements on MLIR writes the bytes in hex.
constexpr size_t kMostListed = 100;

bool is_unsigned(Elem e) { return e >= Elem::kUi4 && e <= Elem::kUi64; }

std::string print_int(int64_t v, Elem e) {
  if (e == Elem::kI1) return v ? "true" : "false";
  return is_unsigned(e) ? std::to_string(static_cast<uint64_t>(v)) : std::to_string(v);
}

bool is_bare_name(std::string_view s) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto inner = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '$' || c == '.';
  };
  return !s.empty() && letter(s[0]) && std::ranges::all_of(s, inner);
}

class DensePrinter {
 public:
  explicit DensePrinter(const AttrData& a) : a_(a), real_(is_float(a.type.elem())) {}

  std::string print() {
    const size_t n = real_ ? a_.reals.size() : a_.ints.size();
    if (n == 0) return "";
    if (n == 1) return element(0);
    if (n > kMostListed) return hex(n);
    std::string out;
    lists(0, out);
    return out;
  }

 private:
  std::string element(size_t i) const {
    const Elem e = a_.type.elem();
    return real_ ? print_float(a_.reals[i], e) : print_int(a_.ints[i], e);
  }

  void lists(size_t depth, std::string& out) {
    if (depth == a_.type.shape().size()) {
      out += element(next_++);
      return;
    }
    out += '[';
    for (int64_t i = 0; i < a_.type.shape()[depth]; ++i) {
      if (i) out += ", ";
      lists(depth + 1, out);
    }
    out += ']';
  }

  std::string hex(size_t n) const {
    const Elem e = a_.type.elem();
    std::string out = "\"0x";
    const auto byte = [&](uint64_t b) { out += fmt::format("{:02X}", b & 0xff); };
    if (e == Elem::kI1) {
      for (size_t i = 0; i < n; i += 8) {
        uint64_t b = 0;
        for (size_t j = 0; j < 8 && i + j < n; ++j)
          b |= static_cast<uint64_t>(a_.ints[i + j] & 1) << j;
        byte(b);
      }
    } else {
      const int bytes = (bit_width(e) + 7) / 8;
      for (size_t i = 0; i < n; ++i) {
        const uint64_t v = real_ ? float_bits(a_.reals[i], e) : static_cast<uint64_t>(a_.ints[i]);
        for (int b = 0; b < bytes; ++b) byte(v >> (8 * b));
      }
    }
    return out + '"';
  }

  const AttrData& a_;
  bool real_;
  size_t next_ = 0;
};

std::string dense_array(const AttrData& a) {
  std::string out = fmt::format("array<{}", spelling(a.elem));
  const bool real = is_float(a.elem);
  const size_t n = real ? a.reals.size() : a.ints.size();
  for (size_t i = 0; i < n; ++i) {
    out += i ? ", " : ": ";
    out += real ? print_float(a.reals[i], a.elem) : print_int(a.ints[i], a.elem);
  }
  return out + '>';
}

// `in_array`: MLIR leaves out the types i64 and f64 of the elements of an array attribute.
std::string print_attr(const Attr& attr, bool in_array) {
  const AttrData& a = *attr;
  const auto typed = [&](std::string value, Elem silent) {
    if (in_array && a.type == Type::scalar(silent)) return value;
    return value + " : " + a.type.str();
  };
  switch (a.kind) {
    case AttrKind::kUnit:
      return "unit";
    case AttrKind::kBool:
      return a.ints[0] ? "true" : "false";
    case AttrKind::kInt:
      return typed(print_int(a.ints[0], a.type.elem()), Elem::kI64);
    case AttrKind::kFloat:
      return typed(print_float(a.reals[0], a.type.elem()), Elem::kF64);
    case AttrKind::kString:
      return print_string(a.text);
    case AttrKind::kSymbol:
      return "@" + (is_bare_name(a.text) ? a.text : print_string(a.text));
    case AttrKind::kType:
      return a.type.str();
    case AttrKind::kArray: {
      std::string out = "[";
      for (size_t i = 0; i < a.array.size(); ++i)
        out += (i ? ", " : "") + print_attr(a.array[i], true);
      return out + ']';
    }
    case AttrKind::kDict:
      return print_dict(a.dict);
    case AttrKind::kDenseArray:
      return dense_array(a);
    case AttrKind::kDense:
      return "dense<" + DensePrinter(a).print() + "> : " + a.type.str();
    case AttrKind::kOpaque:
      return a.text;
  }
  return {};
}

}  // namespace

std::string print_string(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c >= ' ' && c <= '~' && c != '"') {
      out += c;
    } else {
      out += fmt::format("\\{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out + '"';
}

std::string print_dict(const std::vector<NamedAttr>& attrs) {
  std::string out = "{";
  for (size_t i = 0; i < attrs.size(); ++i) {
    if (i) out += ", ";
    out += is_bare_name(attrs[i].first) ? attrs[i].first : print_string(attrs[i].first);
    if (attrs[i].second.kind() != AttrKind::kUnit) out += " = " + print(attrs[i].second);
  }
  return out + '}';
}

std::string print(const Attr& attr) { return print_attr(attr, false); }

}  // namespace gridless::ir
