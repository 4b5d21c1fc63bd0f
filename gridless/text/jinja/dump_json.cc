// Python's json.dumps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/utf8.h"

namespace gridless::text::jinja {
namespace {

class Dumper {
 public:
  Dumper(Interpreter& in, const JsonStyle& style) : in_(in), style_(style) {}

  void value(const Value& v, int level) {
    const size_t before = out_.size();
    switch (v.kind()) {
      case Value::Kind::kNone:
        out_ += "null";
        break;
      case Value::Kind::kBool:
        out_ += v.as_bool() ? "true" : "false";
        break;
      case Value::Kind::kInt:
        out_ += fmt::format("{}", v.as_int());
        break;
      case Value::Kind::kFloat:
        out_ += number(v.as_double());
        break;
      case Value::Kind::kString:
        string(v.as_string());
        break;
      case Value::Kind::kList:
        if (v.as_list().generator) refuse(v);
        array(v.as_list(), level);
        return;
      case Value::Kind::kDict:
        object(v.as_dict(), level);
        return;
      default:
        refuse(v);
    }
    in_.work(out_.size() - before);
  }

  std::string out_;

 private:
  [[noreturn]] static void refuse(const Value& v) {
    throw Fault{fmt::format("Object of type {} is not JSON serializable", type_name(v))};
  }

  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return repr_double(d);
  }

  void string(std::string_view s) {
    out_ += '"';
    for (size_t pos = 0; pos < s.size();) {
      const Utf8Char c = utf8_at(s, pos);
      const char32_t x = c.code_point;
      static constexpr std::string_view kNamed = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
      const size_t named = x < 0x80 ? kNamed.find(static_cast<char>(x)) : std::string_view::npos;
      if (named != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[named];
      } else if (x < 0x20) {
        out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(x));
      } else if (style_.ascii && x > 0x7F) {
        if (x > 0xFFFF) {
          out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + static_cast<uint32_t>(x >> 10),
                              0xDC00 + static_cast<uint32_t>(x & 0x3FF));
        } else {
          out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(x));
        }
      } else {
        out_.append(s, pos, c.size);
      }
      pos += c.size;
    }
    out_ += '"';
  }

  void line(int level) {
    if (style_.indent < 0) return;
    out_ += '\n';
    const size_t spaces = static_cast<size_t>(style_.indent) * static_cast<size_t>(level);
    in_.work(spaces + 1);
    out_.append(spaces, ' ');
  }

  void array(const List& list, int level) {
    in_.work(16);
    if (list.items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line(level + 1);
      value(list.items[i], level + 1);
    }
    line(level);
    out_ += ']';
  }

  static std::string key_text(const Value& key) {
    if (key.is_string()) return key.as_string();
    if (key.is_none()) return "null";
    if (key.is_bool()) return key.as_bool() ? "true" : "false";
    if (key.is_float()) return number(key.as_double());
    if (key.is_int()) return fmt::format("{}", key.as_int());
    throw Fault{fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key))};
  }

  void object(const Dict& dict, int level) {
    in_.work(16);
    if (dict.items.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<std::pair<std::string, const Value*>> items;
    for (const auto& [key, v] : dict.items) items.emplace_back(key_text(key), &v);
    if (style_.sort_keys) {
      std::ranges::stable_sort(items, {},
                               [](const auto& item) -> const std::string& { return item.first; });
    }
    out_ += '{';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line(level + 1);
      in_.work(items[i].first.size());
      string(items[i].first);
      out_ += style_.key_separator;
      value(*items[i].second, level + 1);
    }
    line(level);
    out_ += '}';
  }

  Interpreter& in_;
  const JsonStyle& style_;
};

}  // namespace

std::string dump_json(Interpreter& in, const Value& v, const JsonStyle& style) {
  Dumper dumper(in, style);
  dumper.value(v, 0);
  return std::move(dumper.out_);
}

}  // namespace gridless::text::jinja
