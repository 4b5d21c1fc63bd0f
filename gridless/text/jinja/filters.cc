// Filters on single values and numbers, and those that make JSON.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/strings.h"

namespace gridless::text::jinja {
namespace {

using In = Interpreter;
using V = Value;

V default_value(In&, const V& v, ArgReader& a) {
  V fallback = a.maybe("default_value").value_or(V::string(""));
  const bool also_false = a.flag("boolean", false);
  a.done();
  return v.is_undefined() || (also_false && !truthy(v)) ? fallback : v;
}

V tojson(In& in, const V& v, ArgReader& a) {
  JsonStyle style;
  style.ascii = a.flag("ensure_ascii", false);
  if (const auto indent = a.maybe("indent"); indent && !indent->is_none()) {
    if (!indent->is_integral() || indent->as_int() > 64)
      throw Fault{"tojson: indent must be an integer up to 64"};
    style.indent = static_cast<int>(std::max<int64_t>(indent->as_int(), 0));
    style.item_separator = std::string(1, ',');
  }
  if (const auto separators = a.maybe("separators"); separators && !separators->is_none()) {
    const std::vector<V> pair = in.elements(*separators);
    if (pair.size() != 2) throw Fault{"tojson: separators must be a pair of strings"};
    style.item_separator = to_str(pair[0]);
    style.key_separator = to_str(pair[1]);
  }
  style.sort_keys = a.flag("sort_keys", false);
  a.done();
  return V::string(dump_json(in, v, style));
}

std::optional<double> parse_double(std::string_view s) {
  const std::string t(strip(s, kBoth));
  if (t.empty()) return {};
  char* end = nullptr;
  const double d = std::strtod(t.c_str(), &end);
  if (end != t.c_str() + t.size() || t.find_first_of("xXpP") != std::string::npos) return {};
  return d;
}

V to_int(In&, const V& v, ArgReader& a) {
  const V fallback = a.maybe("default").value_or(V::integer(0));
  const int64_t base = a.integer("base", 10);
  a.done();
  if (base < 2 || base > 36) throw Fault{"int: base must be in 2..36"};
  if (v.is_integral()) return V::integer(v.as_int());
  if (v.is_float() && std::abs(v.as_double()) < 9e18)
    return V::integer(static_cast<int64_t>(v.as_double()));
  if (!v.is_string()) return fallback;
  std::string_view s = strip(v.as_string(), kBoth);
  const bool minus = s.starts_with('-');
  if (minus || s.starts_with('+')) s.remove_prefix(1);
  if (base == 16 && (s.starts_with("0x") || s.starts_with("0X"))) s.remove_prefix(2);
  int64_t i = 0;
  const auto [stop, error] =
      std::from_chars(s.data(), s.data() + s.size(), i, static_cast<int>(base));
  if (error == std::errc() && stop == s.data() + s.size() && !s.empty() && i >= 0)
    return V::integer(minus ? -i : i);
  if (const auto d = parse_double(v.as_string()); d && std::abs(*d) < 9e18)
    return V::integer(static_cast<int64_t>(*d));
  return fallback;
}

V to_float(In&, const V& v, ArgReader& a) {
  const V fallback = a.maybe("default").value_or(V::real(0));
  a.done();
  if (v.is_number()) return V::real(v.as_double());
  if (v.is_string()) {
    if (const auto d = parse_double(v.as_string())) return V::real(*d);
  }
  return fallback;
}

double number(const V& v, const ArgReader& a) {
  if (v.is_undefined()) throw Fault{v.as_missing().message};
  if (!v.is_number()) throw Fault{fmt::format("{} needs a number, not {}", a.what(), type_name(v))};
  return v.as_double();
}

V round_filter(In&, const V& v, ArgReader& a) {
  const double x = number(v, a);
  const int64_t precision = a.integer("precision", 0);
  const std::string method = a.text("method", "common");
  a.done();
  if (std::abs(precision) > 300) throw Fault{"round: precision must be in -300..300"};
  if (v.is_integral() && method == "common") {  // integers stay integers
    if (precision >= 0) return V::integer(v.as_int());
    if (precision < -15) return V::integer(0);
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return V::integer(static_cast<int64_t>(std::nearbyint(x / unit) * unit));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return V::real(std::ceil(x * scale) / scale);
  if (method == "floor") return V::real(std::floor(x * scale) / scale);
  if (method != "common") throw Fault{"round: method must be 'common', 'ceil' or 'floor'"};
  if (precision < 0) return V::real(std::nearbyint(x * scale) / scale);
  // Python rounds the exact decimal value, which printing with that many digits does too.
  return V::real(std::strtod(fmt::format("{:.{}f}", x, precision).c_str(), nullptr));
}

V absolute(In& in, const V& v, ArgReader& a) {
  a.done();
  const double x = number(v, a);
  if (v.is_float()) return V::real(std::abs(x));
  return v.as_int() < 0 ? in.binary("-", V::integer(0), v) : V::integer(v.as_int());
}

V length(In& in, const V& v, ArgReader& a) {
  a.done();
  if (v.is_string()) {
    in.work(v.as_string().size() / 16);
    return V::integer(static_cast<int64_t>(code_point_offsets(v.as_string()).size()) - 1);
  }
  if (v.is_list()) return V::integer(static_cast<int64_t>(v.as_list().items.size()));
  if (v.is_dict()) return V::integer(static_cast<int64_t>(v.as_dict().items.size()));
  if (v.is_undefined()) return V::integer(0);
  throw Fault{fmt::format("object of type '{}' has no len()", type_name(v))};
}

V attr(In& in, const V& v, ArgReader& a) {
  const std::string name = a.text("name");
  a.done();
  if (v.is_undefined()) throw Fault{v.as_missing().message};
  // Attributes only: items of a dict are none.
  if (v.is_dict()) {
    if (auto method = find_method(v, name)) return V::object(std::move(method));
    return V::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return in.attribute(v, name);
}

V items(In& in, const V& v, ArgReader& a) {
  a.done();
  std::vector<V> out;
  if (v.is_undefined()) return in.list(std::move(out), false, true);
  if (!v.is_dict()) throw Fault{"Can only get item pairs from a mapping."};
  for (const auto& [key, value] : v.as_dict().items) out.push_back(in.list({key, value}, true));
  return in.list(std::move(out), false, true);
}

V string_filter(In& in, const V& v, ArgReader& a) {
  a.done();
  return in.text(to_str(v));
}

V same(In& in, const V& v, ArgReader& a) { return string_filter(in, v, a); }

V pprint(In& in, const V& v, ArgReader& a) {
  a.maybe("verbose");
  a.done();
  return in.text(repr(v));
}

const std::map<std::string_view, FilterFn>& table() {
  static const std::map<std::string_view, FilterFn> t = {
      {"default", default_value},
      {"d", default_value},
      {"tojson", tojson},
      {"int", to_int},
      {"float", to_float},
      {"round", round_filter},
      {"abs", absolute},
      {"length", length},
      {"count", length},
      {"attr", attr},
      {"items", items},
      {"string", string_filter},
      {"safe", same},
      {"pprint", pprint},
  };
  return t;
}

}  // namespace

FilterFn find_filter(std::string_view name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : it->second;
}

}  // namespace gridless::text::jinja
