// Filters on text.
#include <fmt/format.h>

#include <map>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/strings.h"
#include "gridless/text/utf8.h"

namespace gridless::text::jinja {
namespace {

using In = Interpreter;
using V = Value;

// Every argument is read before the filter runs, as Python would.
template <std::string (*kFn)(std::string_view)>
V mapped(In& in, const V& v, ArgReader& a) {
  a.done();
  return in.text(kFn(to_str(v)));
}

V trim(In& in, const V& v, ArgReader& a) {
  const std::optional<V> chars = a.maybe("chars");
  a.done();
  const std::string s = to_str(v);
  if (!chars || chars->is_none()) return in.text(std::string(strip(s, kBoth)));
  const std::string set = to_str(*chars);
  const std::string_view view = set;
  in.work(s.size() * (1 + set.size() / 8));
  return in.text(std::string(strip(s, kBoth, &view)));
}

V replace(In& in, const V& v, ArgReader& a) {
  CallArgs args;
  args.positional.push_back(V::string(to_str(a.take("old"))));
  args.positional.push_back(V::string(to_str(a.take("new"))));
  if (const auto count = a.maybe("count"); count && !count->is_none())
    args.positional.push_back(*count);
  a.done();
  return find_method(V::string(to_str(v)), "replace")->call(in, args);
}

V indent(In& in, const V& v, ArgReader& a) {
  const V width = a.maybe("width").value_or(V::integer(4));
  const bool first = a.flag("first", false);
  const bool blank = a.flag("blank", false);
  a.done();
  std::string pad;
  if (width.is_string()) {
    pad = width.as_string();
  } else {
    if (!width.is_integral() || width.as_int() > 4096)
      throw Fault{"indent: width must be an integer up to 4096"};
    pad = std::string(static_cast<size_t>(std::max<int64_t>(width.as_int(), 0)), ' ');
  }
  const std::string s = to_str(v) + "\n";
  const std::vector<std::string> lines = splitlines(s, false);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    const bool wanted = i == 0 ? first : blank || !lines[i].empty();
    if (wanted) out += pad;
    in.work(pad.size() + lines[i].size());
    out += lines[i];
  }
  return V::string(std::move(out));
}

V center(In& in, const V& v, ArgReader& a) {
  CallArgs args;
  args.positional.push_back(V::integer(a.integer("width", 80)));
  a.done();
  return find_method(V::string(to_str(v)), "center")->call(in, args);
}

V format(In& in, const V& v, ArgReader& a) {
  std::vector<V> values;
  while (a.left() > 0) values.push_back(a.take("value"));
  a.done();
  return in.text(printf_format(in, to_str(v), V::list(std::move(values), true)));
}

std::string escape(std::string_view s) {
  std::string out;
  for (const char c : s) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string urlencode_text(std::string_view s) {
  std::string out;
  for (const char c : s) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

V wordcount(In& in, const V& v, ArgReader& a) {
  a.done();
  const std::string s = to_str(v);
  in.work(s.size());
  int64_t words = 0;
  bool inside = false;
  for (size_t pos = 0; pos < s.size();) {
    const Utf8Char c = utf8_at(s, pos);
    const bool word = is_word(c.code_point);
    words += word && !inside;
    inside = word;
    pos += c.size;
  }
  return V::integer(words);
}

V truncate(In& in, const V& v, ArgReader& a) {
  const int64_t length = a.integer("length", 255);
  const bool killwords = a.flag("killwords", false);
  const std::string end = a.text("end", "...");
  const int64_t leeway = a.integer("leeway", 5);
  a.done();
  const std::string s = to_str(v);
  in.work(s.size());
  const auto end_length = static_cast<int64_t>(utf8_length(end));
  if (length < end_length)
    throw Fault{fmt::format("truncate: length must be at least {}", end_length)};
  if (leeway < 0) throw Fault{"truncate: leeway must not be negative"};
  const std::vector<size_t> offsets = code_point_offsets(s);
  const auto size = static_cast<int64_t>(offsets.size()) - 1;
  if (size - length <= leeway) return in.text(s);
  std::string cut = s.substr(0, offsets[static_cast<size_t>(length - end_length)]);
  if (!killwords) cut = cut.substr(0, cut.rfind(' '));
  return in.text(cut + end);
}

const std::map<std::string_view, FilterFn>& table() {
  static const std::map<std::string_view, FilterFn> t = {
      {"upper", mapped<upper>},
      {"lower", mapped<lower>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title_filter>},
      {"escape", mapped<escape>},
      {"e", mapped<escape>},
      {"forceescape", mapped<escape>},
      {"urlencode", mapped<urlencode_text>},
      {"trim", trim},
      {"replace", replace},
      {"indent", indent},
      {"center", center},
      {"format", format},
      {"wordcount", wordcount},
      {"truncate", truncate},
  };
  return t;
}

}  // namespace

FilterFn find_text_filter(std::string_view name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : it->second;
}

}  // namespace gridless::text::jinja
