// Python's two ways of formatting, as far as templates use them, and json.dumps.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/strings.h"
#include "gridless/text/utf8.h"

namespace gridless::text::jinja {
namespace {

constexpr int kMaxWidth = 4096;

// [[fill]align][sign][#][0][width][.precision][type], shared by both.
struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '-';
  bool grouped = false;
  int width = 0, precision = -1;
  char type = '\0';
};

int read_int(std::string_view s, size_t& pos) {
  int n = 0;
  while (pos < s.size() && s[pos] >= '0' && s[pos] <= '9') {
    n = n * 10 + (s[pos++] - '0');
    if (n > kMaxWidth) throw Fault{fmt::format("a width or precision above {}", kMaxWidth)};
  }
  return n;
}

std::string padded(std::string body, const Spec& spec, bool number) {
  const auto length = static_cast<int>(utf8_length(body));
  if (length >= spec.width) return body;
  const int total = spec.width - length;
  const char align = spec.align != '\0' ? spec.align : number ? '>' : '<';
  const auto fill = [&](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += spec.fill;
    return out;
  };
  if (align == '<') return body + fill(total);
  if (align == '^') return fill(total / 2) + body + fill(total - total / 2);
  if (align == '=') {
    const size_t sign =
        !body.empty() && (body[0] == '-' || body[0] == '+' || body[0] == ' ') ? 1 : 0;
    return body.substr(0, sign) + fill(total) + body.substr(sign);
  }
  return fill(total) + body;
}

std::string with_sign(std::string digits, bool negative, char sign) {
  if (negative) return "-" + digits;
  return sign == '-' ? digits : std::string(1, sign) + digits;
}

std::string grouped(std::string digits) {
  const size_t end = std::min(digits.find_first_of(".e"), digits.size());
  for (size_t i = end; i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string format_number(const Value& v, const Spec& spec) {
  std::string digits;
  bool negative = false;
  const bool integer_type = spec.type == 'd' || spec.type == 'x' || spec.type == 'X' ||
                            spec.type == 'o' || spec.type == 'b' || spec.type == 'i' ||
                            spec.type == 'u';
  if (v.is_integral() && (integer_type || spec.type == '\0')) {
    const int64_t i = v.as_int();
    negative = i < 0;
    const uint64_t magnitude =
        negative ? uint64_t{0} - static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
    switch (spec.type) {
      case 'x':
        digits = fmt::format("{:x}", magnitude);
        break;
      case 'X':
        digits = fmt::format("{:X}", magnitude);
        break;
      case 'o':
        digits = fmt::format("{:o}", magnitude);
        break;
      case 'b':
        digits = fmt::format("{:b}", magnitude);
        break;
      default:
        digits = fmt::format("{}", magnitude);
    }
  } else {
    double d = v.as_double();
    negative = std::signbit(d);
    d = std::abs(d);
    if (spec.type == '%') d *= 100;
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    switch (spec.type) {
      case 'e':
        digits = fmt::format("{:.{}e}", d, precision);
        break;
      case 'E':
        digits = fmt::format("{:.{}E}", d, precision);
        break;
      case 'g':
      case 'G':
        digits = fmt::format("{:.{}g}", d, std::max(precision, 1));
        break;
      case '\0':
        digits =
            spec.precision < 0 ? repr_double(d) : fmt::format("{:.{}g}", d, std::max(precision, 1));
        break;
      case 'f':
      case 'F':
      case '%':
        digits = fmt::format("{:.{}f}", d, precision);
        break;
      default:
        throw Fault{fmt::format("the format '{}' does not take a float", spec.type)};
    }
    if (spec.type == '%') digits += '%';
  }
  if (spec.grouped) digits = grouped(digits);
  return padded(with_sign(digits, negative, spec.sign), spec, true);
}

std::string cut(std::string s, int precision) {
  if (precision < 0) return s;
  const std::vector<size_t> offsets = code_point_offsets(s);
  if (static_cast<size_t>(precision) < offsets.size())
    s.resize(offsets[static_cast<size_t>(precision)]);
  return s;
}

Spec parse_spec(std::string_view s) {
  Spec spec;
  size_t pos = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!s.empty()) {
    const int size = utf8_at(s, 0).size;
    if (static_cast<size_t>(size) < s.size() && is_align(s[size])) {
      spec.fill = s.substr(0, size);
      spec.align = s[size];
      pos = size + 1;
    } else if (is_align(s[0])) {
      spec.align = s[0];
      pos = 1;
    }
  }
  if (pos < s.size() && (s[pos] == '+' || s[pos] == '-' || s[pos] == ' ')) spec.sign = s[pos++];
  if (pos < s.size() && s[pos] == '0') {
    ++pos;
    if (spec.align == '\0') {
      spec.align = '=';
      spec.fill = "0";
    }
  }
  spec.width = read_int(s, pos);
  if (pos < s.size() && s[pos] == ',') {
    spec.grouped = true;
    ++pos;
  }
  if (pos < s.size() && s[pos] == '.') spec.precision = read_int(s, ++pos);
  if (pos < s.size()) spec.type = s[pos++];
  if (pos != s.size()) throw Fault{fmt::format("invalid format specifier '{}'", s)};
  return spec;
}

std::string format_value(const Value& v, const Spec& spec) {
  if (v.is_number() && !(v.is_bool() && spec.type == '\0')) return format_number(v, spec);
  if (spec.type != '\0' && spec.type != 's') {
    throw Fault{
        fmt::format("unknown format code '{}' for object of type '{}'", spec.type, type_name(v))};
  }
  return padded(cut(to_str(v), spec.precision), spec, false);
}

}  // namespace

std::string printf_format(Interpreter& in, std::string_view format, const Value& values) {
  std::vector<Value> list;
  if (values.is_list() && values.as_list().tuple) {
    list = values.as_list().items;
  } else {
    list.push_back(values);
  }
  std::string out;
  size_t next = 0;
  for (size_t pos = 0; pos < format.size();) {
    if (format[pos] != '%') {
      out += format[pos++];
      continue;
    }
    ++pos;
    Spec spec;
    spec.sign = '-';
    Value value;
    if (pos < format.size() && format[pos] == '(') {
      const size_t close = format.find(')', pos);
      if (close == std::string_view::npos) throw Fault{"incomplete format key"};
      if (!values.is_dict()) throw Fault{"format requires a mapping"};
      const Value* found = values.as_dict().find(format.substr(pos + 1, close - pos - 1));
      if (found == nullptr)
        throw Fault{fmt::format("no value for '{}'", format.substr(pos + 1, close - pos - 1))};
      value = *found;
      pos = close + 1;
    }
    const bool keyed = format[pos - 1] == ')' && values.is_dict();
    bool left = false;
    for (; pos < format.size() &&
           std::string_view("-+ 0#").find(format[pos]) != std::string_view::npos;
         ++pos) {
      if (format[pos] == '-') left = true;
      if (format[pos] == '+') spec.sign = '+';
      if (format[pos] == ' ' && spec.sign != '+') spec.sign = ' ';
      if (format[pos] == '0') {
        spec.align = '=';
        spec.fill = "0";
      }
    }
    spec.width = read_int(format, pos);
    if (pos < format.size() && format[pos] == '.') spec.precision = read_int(format, ++pos);
    if (pos >= format.size()) throw Fault{"incomplete format"};
    spec.type = format[pos++];
    if (spec.type == '%') {
      out += '%';
      continue;
    }
    if (left) {
      spec.align = '<';
      spec.fill = " ";
    } else if (spec.align == '\0') {
      spec.align = '>';
    }
    if (!keyed) {
      if (next >= list.size()) throw Fault{"not enough arguments for format string"};
      value = list[next++];
    }
    in.work(static_cast<size_t>(spec.width) + 16);
    if (spec.type == 's' || spec.type == 'r') {
      out +=
          padded(cut(spec.type == 's' ? to_str(value) : repr(value), spec.precision), spec, false);
      continue;
    }
    if (!value.is_number()) {
      throw Fault{fmt::format("%{} format: a real number is required, not {}", spec.type,
                              type_name(value))};
    }
    if ((spec.type == 'd' || spec.type == 'i' || spec.type == 'u') && value.is_float()) {
      if (!(std::abs(value.as_double()) < 9e18)) throw Fault{"%d of a float that large"};
      value = Value::integer(static_cast<int64_t>(value.as_double()));
    }
    if (std::string_view("diuxXoeEfFgG").find(spec.type) == std::string_view::npos) {
      throw Fault{fmt::format("unsupported format character '{}'", spec.type)};
    }
    out += format_number(value, spec);
  }
  if (next < list.size() && !values.is_dict())
    throw Fault{"not all arguments converted during string formatting"};
  return out;
}

std::string brace_format(Interpreter& in, std::string_view format, CallArgs& args) {
  std::string out;
  size_t automatic = 0;
  for (size_t pos = 0; pos < format.size(); ++pos) {
    const char c = format[pos];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (pos + 1 < format.size() && format[pos + 1] == c) {
      out += c;
      ++pos;
      continue;
    }
    if (c == '}') throw Fault{"single '}' encountered in format string"};
    const size_t close = format.find('}', pos);
    if (close == std::string_view::npos) throw Fault{"expected '}' before end of string"};
    std::string_view field = format.substr(pos + 1, close - pos - 1);
    pos = close;
    std::string_view spec_text;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec_text = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = '\0';
    if (field.size() >= 2 && field[field.size() - 2] == '!') {
      conversion = field.back();
      field.remove_suffix(2);
    }
    if (spec_text.find('{') != std::string_view::npos ||
        field.find_first_of(".[{") != std::string_view::npos) {
      throw Fault{fmt::format("the format field '{{{}}}' is not supported", field)};
    }
    const Value* value = nullptr;
    size_t index = automatic;
    const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), index);
    if (field.empty()) ++automatic;
    if (field.empty() || (error == std::errc() && stop == field.data() + field.size())) {
      if (index < args.positional.size()) value = &args.positional[index];
    } else {
      for (const auto& [name, v] : args.named) {
        if (name == field) value = &v;
      }
    }
    if (value == nullptr) throw Fault{fmt::format("format() has no value for '{{{}}}'", field)};
    const Spec spec = parse_spec(spec_text);
    in.work(static_cast<size_t>(spec.width) + 16);
    out += format_value(conversion == 'r' ? Value::string(repr(*value)) : *value, spec);
    in.work(out.size() / 64);
  }
  return out;
}

}  // namespace gridless::text::jinja
