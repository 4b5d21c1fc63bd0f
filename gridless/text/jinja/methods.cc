// Methods of str, list and dict: 'x'.upper(), d.items(), ...
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/strings.h"
#include "gridless/text/utf8.h"

namespace gridless::text::jinja {
namespace {

using In = Interpreter;
using V = Value;
using MethodFn = V (*)(In&, const V&, ArgReader&);

struct BoundMethod : Object {
  BoundMethod(V s, MethodFn f, std::string n) : self(std::move(s)), fn(f), name(std::move(n)) {}
  std::string type_name() const override { return "method"; }
  bool callable() const override { return true; }
  int depth() const override { return self.depth() + 1; }
  bool has_namespace() const override { return self.has_namespace(); }
  V call(In& in, CallArgs& args) override {
    ArgReader reader(name + "()", args);
    V out = fn(in, self, reader);
    reader.done();
    return out;
  }
  V self;
  MethodFn fn;
  std::string name;
};

template <std::string (*kFn)(std::string_view)>
V mapped(In& in, const V& s, ArgReader&) {
  return in.text(kFn(s.as_string()));
}

template <bool (*kTest)(char32_t)>
V classified(In& in, const V& s, ArgReader&) {
  in.work(s.as_string().size() / 4);
  return V::boolean(all_of(s.as_string(), kTest));
}

// str.islower, str.isupper: there are letters with case, and none of the other case.
template <bool kUpper>
V has_case(In& in, const V& v, ArgReader&) {
  const std::string& s = v.as_string();
  const std::string up = upper(s), low = lower(s);
  in.work(up.size() + low.size());
  return V::boolean(kUpper ? s == up && up != low : s == low && up != low);
}

template <Side kSide>
V strip_method(In& in, const V& v, ArgReader& a) {
  const std::string& s = v.as_string();
  const std::optional<V> chars = a.maybe("chars");
  if (!chars || chars->is_none()) return in.text(std::string(strip(s, kSide)));
  if (!chars->is_string()) throw Fault{"strip arg must be None or str"};
  const std::string_view set = chars->as_string();
  in.work(s.size() * (1 + set.size() / 8));
  return in.text(std::string(strip(s, kSide, &set)));
}

V to_list(In& in, std::vector<std::string> parts, bool tuple = false) {
  std::vector<V> out;
  for (std::string& p : parts) out.push_back(in.text(std::move(p)));
  return in.list(std::move(out), tuple);
}

template <std::vector<std::string> (*kFn)(std::string_view, const std::string_view*, int64_t)>
V split_method(In& in, const V& s, ArgReader& a) {
  const V separator = a.maybe("sep").value_or(V::none());
  const int64_t limit = a.integer("maxsplit", -1);
  in.work(s.as_string().size() * 32);  // bounds the number of parts before they are made
  if (separator.is_none()) return to_list(in, kFn(s.as_string(), nullptr, limit));
  if (!separator.is_string()) throw Fault{"split(): sep must be a string or none"};
  const std::string_view text = separator.as_string();
  if (text.empty()) throw Fault{"empty separator"};
  return to_list(in, kFn(s.as_string(), &text, limit));
}

V splitlines_method(In& in, const V& s, ArgReader& a) {
  in.work(s.as_string().size() * 32);
  return to_list(in, splitlines(s.as_string(), a.flag("keepends", false)));
}

template <bool kLast>
V partition(In& in, const V& v, ArgReader& a) {
  const std::string& s = v.as_string();
  const std::string sep = a.text("sep");
  if (sep.empty()) throw Fault{"empty separator"};
  const size_t at = kLast ? s.rfind(sep) : s.find(sep);
  if (at == std::string::npos)
    return to_list(
        in, kLast ? std::vector<std::string>{"", "", s} : std::vector<std::string>{s, "", ""},
        true);
  return to_list(in, {s.substr(0, at), sep, s.substr(at + sep.size())}, true);
}

template <bool kEnd>
V affix_test(In&, const V& v, ArgReader& a) {
  const V affix = a.take(kEnd ? "suffix" : "prefix");
  const std::string& s = v.as_string();
  const auto fits = [&](const V& x) {
    if (!x.is_string())
      throw Fault{
          fmt::format("{} needs a string or a tuple of strings, not {}", a.what(), type_name(x))};
    return kEnd ? s.ends_with(x.as_string()) : s.starts_with(x.as_string());
  };
  if (!affix.is_list() || !affix.as_list().tuple) return V::boolean(fits(affix));
  return V::boolean(std::ranges::any_of(affix.as_list().items, fits));
}

template <bool kEnd>
V remove_affix(In& in, const V& v, ArgReader& a) {
  const std::string affix = a.text(kEnd ? "suffix" : "prefix");
  std::string s = v.as_string();
  if (kEnd ? s.ends_with(affix) : s.starts_with(affix))
    s.erase(kEnd ? s.size() - affix.size() : 0, affix.size());
  return in.text(std::move(s));
}

template <bool kLast, bool kRaises>
V find_method_of_str(In& in, const V& v, ArgReader& a) {
  const std::string& s = v.as_string();
  const std::string needle = a.text("sub");
  in.work(s.size());
  const size_t at = kLast ? s.rfind(needle) : s.find(needle);
  if (at == std::string::npos) {
    if (kRaises) throw Fault{"substring not found"};
    return V::integer(-1);
  }
  return V::integer(static_cast<int64_t>(utf8_length(std::string_view(s).substr(0, at))));
}

V count(In& in, const V& v, ArgReader& a) {
  const std::string& s = v.as_string();
  const std::string needle = a.text("sub");
  in.work(s.size());
  if (needle.empty()) return V::integer(static_cast<int64_t>(utf8_length(s)) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = s.find(needle, at)) != std::string::npos; at += needle.size()) ++n;
  return V::integer(n);
}

V replace(In& in, const V& v, ArgReader& a) {
  const std::string& s = v.as_string();
  const std::string from = a.text("old"), to = a.text("new");
  int64_t limit = a.integer("count", -1);
  if (limit < 0) limit = INT64_MAX;
  in.work(s.size());
  std::string out;
  size_t pos = 0;
  while (limit-- > 0) {
    // An empty pattern stands before every code point and at the end.
    const size_t at = s.find(from, pos);
    if (at == std::string::npos) break;
    in.work(to.size() + 1);
    out.append(s, pos, at - pos);
    out += to;
    pos = at + from.size();
    if (!from.empty()) continue;
    if (pos >= s.size()) break;
    const int size = utf8_at(s, pos).size;
    out.append(s, pos, size);
    pos += size;
  }
  if (pos < s.size()) out.append(s, pos);
  return in.text(std::move(out));
}

V join(In& in, const V& v, ArgReader& a) {
  std::string out;
  bool started = false;
  for (const V& item : in.elements(a.take("iterable"))) {
    if (!item.is_string())
      throw Fault{fmt::format("join(): expected str, found {}", type_name(item))};
    in.work(v.as_string().size() + item.as_string().size());
    if (started) out += v.as_string();
    started = true;
    out += item.as_string();
  }
  return V::string(std::move(out));
}

enum class Align { kLeft, kRight, kCenter, kZero };
template <Align kAlign>
V pad(In& in, const V& v, ArgReader& a) {
  const std::string& s = v.as_string();
  const int64_t width = a.integer("width");
  const std::string fill = kAlign == Align::kZero ? "0" : a.text("fillchar", " ");
  if (utf8_length(fill) != 1) throw Fault{"the fill character must be exactly one character long"};
  const auto length = static_cast<int64_t>(utf8_length(s));
  if (width <= length) return in.text(s);
  const int64_t total = width - length;
  in.work(static_cast<size_t>(total) * fill.size());
  int64_t left = 0;
  if (kAlign == Align::kRight || kAlign == Align::kZero) left = total;
  if (kAlign == Align::kCenter) left = total / 2 + (total & width & 1);
  std::string out;
  size_t sign = 0;
  if (kAlign == Align::kZero && !s.empty() && (s[0] == '-' || s[0] == '+')) sign = 1;
  out += s.substr(0, sign);
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += s.substr(sign);
  for (int64_t i = left; i < total; ++i) out += fill;
  return in.text(std::move(out));
}

// ---- list and dict ----

V list_index(In& in, const V& v, ArgReader& a) {
  const V wanted = a.take("value");
  const auto& items = v.as_list().items;
  in.work(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(items[i], wanted)) return V::integer(static_cast<int64_t>(i));
  }
  throw Fault{fmt::format("{} is not in list", repr(wanted))};
}

V list_count(In& in, const V& v, ArgReader& a) {
  const V wanted = a.take("value");
  in.work(v.as_list().items.size());
  return V::integer(
      std::ranges::count_if(v.as_list().items, [&](const V& x) { return equal(x, wanted); }));
}

template <bool kKeys, bool kValues>
V dict_view(In& in, const V& v, ArgReader&) {
  std::vector<V> out;
  for (const auto& [key, value] : v.as_dict().items) {
    out.push_back(kKeys && kValues ? in.list({key, value}, true) : kKeys ? key : value);
  }
  return in.list(std::move(out));
}

V dict_get(In&, const V& v, ArgReader& a) {
  const V key = a.take("key");
  V fallback = a.maybe("default").value_or(V::none());
  const V* found = v.as_dict().find(key);
  return found != nullptr ? *found : fallback;
}

V copy(In&, const V& v, ArgReader&) { return v; }

using Table = std::map<std::string_view, MethodFn>;

const Table& str_table() {
  static const Table t = {
      {"upper", mapped<upper>},
      {"lower", mapped<lower>},
      {"casefold", mapped<lower>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title>},
      {"swapcase", mapped<swapcase>},
      {"isalpha", classified<is_alpha>},
      {"isalnum", classified<is_alnum>},
      {"isdigit", classified<is_digit>},
      {"isdecimal", classified<is_digit>},
      {"isnumeric", classified<is_digit>},
      {"isspace", classified<is_python_space>},
      {"isupper", has_case<true>},
      {"islower", has_case<false>},
      {"strip", strip_method<kBoth>},
      {"lstrip", strip_method<kLeft>},
      {"rstrip", strip_method<kRight>},
      {"split", split_method<split>},
      {"rsplit", split_method<rsplit>},
      {"splitlines", splitlines_method},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"startswith", affix_test<false>},
      {"endswith", affix_test<true>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"find", find_method_of_str<false, false>},
      {"rfind", find_method_of_str<true, false>},
      {"index", find_method_of_str<false, true>},
      {"rindex", find_method_of_str<true, true>},
      {"count", count},
      {"replace", replace},
      {"join", join},
      {"ljust", pad<Align::kLeft>},
      {"rjust", pad<Align::kRight>},
      {"center", pad<Align::kCenter>},
      {"zfill", pad<Align::kZero>},
      {"format", nullptr},  // takes any arguments: FormatMethod below
  };
  return t;
}

const Table& list_table() {
  static const Table t = {{"index", list_index}, {"count", list_count}, {"copy", copy}};
  return t;
}

const Table& dict_table() {
  static const Table t = {{"items", dict_view<true, true>},
                          {"keys", dict_view<true, false>},
                          {"values", dict_view<false, true>},
                          {"get", dict_get},
                          {"copy", copy}};
  return t;
}

struct FormatMethod : Object {
  explicit FormatMethod(V s) : self(std::move(s)) {}
  std::string type_name() const override { return "method"; }
  bool callable() const override { return true; }
  V call(In& in, CallArgs& args) override {
    return in.text(brace_format(in, self.as_string(), args));
  }
  V self;
};

constexpr std::string_view kListMutators[] = {"append", "extend",  "insert", "pop",
                                              "remove", "reverse", "sort",   "clear"};
constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem", "setdefault", "update"};

}  // namespace

std::shared_ptr<Object> find_method(const Value& object, std::string_view name) {
  const Table* table = nullptr;
  if (object.is_string()) table = &str_table();
  if (object.is_list()) table = &list_table();
  if (object.is_dict()) table = &dict_table();
  if (table == nullptr) return nullptr;
  if (const auto it = table->find(name); it != table->end()) {
    if (it->second == nullptr) return std::make_shared<FormatMethod>(object);
    return std::make_shared<BoundMethod>(object, it->second, std::string(name));
  }
  const bool mutates =
      (object.is_list() && !object.as_list().tuple &&
       std::ranges::find(kListMutators, name) != std::end(kListMutators)) ||
      (object.is_dict() && std::ranges::find(kDictMutators, name) != std::end(kDictMutators) &&
       object.as_dict().find(name) == nullptr);
  if (mutates) {
    throw Fault{fmt::format("{}() would change a {}; values cannot be changed in a chat template",
                            name, type_name(object))};
  }
  return nullptr;
}

}  // namespace gridless::text::jinja
