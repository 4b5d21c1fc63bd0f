#include <fmt/format.h>

#include <charconv>
#include <unordered_set>

#include "gridless/ir/float_text.h"
#include "gridless/ir/text_parser.h"

namespace gridless::ir {
namespace {

bool is_hex_literal(std::string_view s) { return s.starts_with("0x") || s.starts_with("-0x"); }
bool is_float_literal(std::string_view s) {
  return !is_hex_literal(s) && s.find('.') != std::string_view::npos;
}

bool is_unsigned(Elem e) { return e >= Elem::kUi4 && e <= Elem::kUi64; }

}  // namespace

// The value of an integer literal in the width of `e`: both the signed and the unsigned reading of
// the bits are taken, and kept as the signed one (as the unsigned one for uiN).
int64_t TextParser::to_integer(std::string_view number, size_t at, Elem e) {
  if (number.empty() || is_float_literal(number)) {
    fail(at, fmt::format("expected an integer for {}", spelling(e)));
    return 0;
  }
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  const bool hex = is_hex_literal(number);
  if (hex) number.remove_prefix(2);
  uint64_t v = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), v, hex ? 16 : 10);
  const int bits = bit_width(e);
  const uint64_t half = uint64_t{1} << (bits - 1);
  const bool fits = error == std::errc() && (negative ? v <= half : bits == 64 || v >> bits == 0);
  if (!fits || (negative && is_unsigned(e))) {
    fail(at, fmt::format("the integer does not fit {}", spelling(e)));
    return 0;
  }
  if (negative) return static_cast<int64_t>(0 - v);
  if (is_unsigned(e) || bits == 64 || bits == 1 || v < half) return static_cast<int64_t>(v);
  return static_cast<int64_t>(v - half - half);
}

double TextParser::to_real(std::string_view number, size_t at, Elem e) {
  if (is_float_literal(number)) return read_float(number, e);
  if (is_hex_literal(number) && !number.starts_with('-')) {
    uint64_t bits = 0;
    number.remove_prefix(2);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), bits, 16);
    const int width = bit_width(e);
    if (error == std::errc() && (width == 64 || bits >> width == 0))
      return float_from_bits(bits, e);
    fail(at, fmt::format("the bits do not fit {}", spelling(e)));
    return 0;
  }
  fail(at, fmt::format("expected a float for {}", spelling(e)), "write 1.0 instead of 1");
  return 0;
}

Attr TextParser::parse_number_attr() {
  const size_t at = position();
  const std::string_view n = number();
  if (n.empty()) {
    fail(at, "expected a number");
    return Attr::unit();
  }
  Type type = is_float_literal(n) ? Type::scalar(Elem::kF64) : Type::scalar(Elem::kI64);
  if (accept(":")) type = parse_type();
  if (failed()) return Attr::unit();
  if (!type.is_scalar()) {
    fail(at, fmt::format("a number of type {}", type.str()));
    return Attr::unit();
  }
  if (type.kind() == TypeKind::kFloat) return Attr::real(to_real(n, at, type.elem()), type);
  const int64_t v = to_integer(n, at, type.elem());
  return type.elem() == Elem::kI1 ? Attr::boolean(v != 0) : Attr::integer(v, type);
}

// #alias, or a dialect attribute, which stays text: #tpu.memory_space<vmem>.
Attr TextParser::parse_hash_attr() {
  const size_t at = position();
  expect("#", "the start of an attribute");
  const std::string name(word());
  if (name.empty()) fail(at, "expected a name after '#'");
  if (failed()) return Attr::unit();
  if (name.find('.') == std::string::npos) {
    const auto it = attr_aliases_.find(name);
    if (it != attr_aliases_.end()) return it->second;
    fail(at, fmt::format("unknown attribute alias '#{}'", name));
    return Attr::unit();
  }
  std::string text = "#" + name;
  if (raw_peek() == '<') text += balanced();
  return Attr::opaque(std::move(text));
}

Attr TextParser::parse_dense_array() {
  expect("<", "array");
  const size_t at = position();
  const std::string_view name = word();
  const auto e = elem_from_spelling(name);
  if (!e || is_semaphore(*e)) {
    fail(at, fmt::format("unknown element type '{}' of an array", name));
    return Attr::unit();
  }
  std::vector<int64_t> ints;
  std::vector<double> reals;
  if (accept(":")) {
    do {
      const size_t from = position();
      const std::string_view flag = word();
      if (flag == "true" || flag == "false") {
        if (*e != Elem::kI1) fail(from, fmt::format("a bool in an array of {}", spelling(*e)));
        ints.push_back(flag == "true");
      } else if (is_float(*e)) {
        reals.push_back(to_real(number(), from, *e));
      } else {
        ints.push_back(to_integer(number(), from, *e));
      }
    } while (!failed() && accept(","));
  }
  expect(">", "the elements of an array");
  return is_float(*e) ? Attr::dense_array_f(*e, std::move(reals))
                      : Attr::dense_array(*e, std::move(ints));
}

Attr TextParser::parse_word_attr() {
  const size_t at = position();
  TextCursor& cursor = *this;
  if (peek_is("loc(")) {
    parse_loc();  // as the value of an attribute a place means nothing
    return Attr::opaque("loc(unknown)");
  }
  const std::string_view name = cursor.word();
  if (name == "true" || name == "false") return Attr::boolean(name == "true");
  if (name == "unit") return Attr::unit();
  if (name == "array") return parse_dense_array();
  if (name == "dense") return parse_dense();
  if (name == "affine_map" || name == "affine_set" || name == "strided") {
    return Attr::opaque(std::string(name) + std::string(balanced()));
  }
  if (name == "dense_resource" || name == "sparse" || name == "distinct") {
    fail(at, fmt::format("'{}' attributes are not supported", name));
  }
  return {};
}

Attr TextParser::parse_attr() {
  Level level(*this);
  if (failed()) return Attr::unit();
  switch (peek()) {
    case '"': {
      std::string s = quoted();
      if (accept(":")) parse_type();
      return Attr::string(std::move(s));
    }
    case '@': {
      raw_skip();
      std::string name = raw_peek() == '"' ? quoted() : std::string(suffix_name("a symbol name"));
      if (peek_is("::")) fail("nested symbol references are not supported");
      return Attr::symbol(std::move(name));
    }
    case '#':
      return parse_hash_attr();
    case '{':
      accept("{");
      return Attr::dict(parse_dict("}"));
    case '[': {
      accept("[");
      std::vector<Attr> list;
      if (accept("]")) return Attr::array({});
      do {
        list.push_back(parse_attr());
      } while (!failed() && accept(","));
      expect("]", "a list of attributes");
      return Attr::array(std::move(list));
    }
    case '!':
    case '(':
      return Attr::type(parse_type());
    default:
      break;
  }
  const char c = peek();
  if (c == '-' || (c >= '0' && c <= '9')) return parse_number_attr();
  for (const char* keyword : {"true", "false", "unit", "array<", "dense<", "affine_map<",
                              "affine_set<", "strided<", "dense_resource", "sparse<", "loc("}) {
    if (!peek_is(keyword)) continue;
    Attr a = parse_word_attr();
    if (a) return a;
    fail("unknown attribute");
    return Attr::unit();
  }
  return Attr::type(parse_type());
}

Attr TextParser::parse_only_attr() {
  Attr attr = parse_attr();
  if (!at_end()) fail("unexpected text behind an attribute");
  return attr;
}

std::vector<NamedAttr> TextParser::parse_dict(std::string_view close) {
  std::vector<NamedAttr> out;
  std::unordered_set<std::string> names;
  if (accept(close)) return out;
  do {
    const size_t at = position();
    std::string name = peek() == '"' ? quoted() : std::string(word());
    if (name.empty()) fail(at, "expected the name of an attribute");
    if (failed()) return out;
    if (!names.insert(name).second) report(at, fmt::format("attribute '{}' is given twice", name));
    const bool has_value = accept("=");
    if (name == "tpu.locs" && has_value && peek() == '[') {
      parse_places();
      continue;
    }
    Attr value = has_value ? parse_attr() : Attr::unit();
    out.emplace_back(std::move(name), std::move(value));
  } while (!failed() && accept(","));
  expect(close, "a dictionary of attributes");
  return out;
}

}  // namespace gridless::ir
