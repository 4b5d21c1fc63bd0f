// Filters on lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/strings.h"

namespace gridless::text::jinja {
namespace {

using In = Interpreter;
using V = Value;

// "a.b.0" as templates write attributes of map, sort and so on.
V path(In& in, V v, const V& attribute) {
  if (attribute.is_integral()) return in.item(v, attribute);
  const std::string text = to_str(attribute);
  const std::string_view dot = ".";
  for (const std::string& part : split(text, &dot, -1)) {
    int64_t index = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = error == std::errc() && stop == part.data() + part.size() && !part.empty();
    v = in.item(v, number ? V::integer(index) : V::string(part));
  }
  return v;
}

V fold_case(In& in, const V& v, bool case_sensitive) {
  return v.is_string() && !case_sensitive ? in.text(lower(v.as_string())) : v;
}

V first(In& in, const V& v, ArgReader& a) {
  a.done();
  const std::vector<V> items = in.elements(v);
  return items.empty() ? V::undefined("No first item, sequence was empty.") : items.front();
}

V last(In& in, const V& v, ArgReader& a) {
  a.done();
  const std::vector<V> items = in.elements(v);
  return items.empty() ? V::undefined("No last item, sequence was empty.") : items.back();
}

V list(In& in, const V& v, ArgReader& a) {
  a.done();
  return in.list(in.elements(v));
}

V join(In& in, const V& v, ArgReader& a) {
  const V separator = a.maybe("d").value_or(V::string(""));
  const std::optional<V> attribute = a.maybe("attribute");
  a.done();
  std::string out;
  bool started = false;
  for (const V& item : in.elements(v)) {
    const size_t before = out.size();
    if (started) out += to_str(separator);
    started = true;
    out += to_str(attribute && !attribute->is_none() ? path(in, item, *attribute) : item);
    in.work(out.size() - before);
  }
  return V::string(std::move(out));
}

V reverse(In& in, const V& v, ArgReader& a) {
  a.done();
  std::vector<V> items = in.elements(v);
  std::reverse(items.begin(), items.end());
  if (!v.is_string()) return in.list(std::move(items), false, true);
  std::string out;
  for (const V& c : items) out += c.as_string();
  return in.text(std::move(out));
}

// Sorts stably by key; what cannot be ordered is a Fault.
void sort_by(In& in, std::vector<std::pair<V, V>>& keyed, bool descending) {
  size_t log = 1;
  while ((keyed.size() >> log) != 0) ++log;
  in.work_items(keyed.size() * log);
  const auto less = [&](const auto& x, const auto& y) {
    return descending ? compare(y.first, x.first, "<") < 0 : compare(x.first, y.first, "<") < 0;
  };
  std::stable_sort(keyed.begin(), keyed.end(), less);
}

V sort(In& in, const V& v, ArgReader& a) {
  const bool descending = a.flag("reverse", false);
  const bool case_sensitive = a.flag("case_sensitive", false);
  const std::optional<V> attribute = a.maybe("attribute");
  a.done();
  std::vector<std::pair<V, V>> keyed;
  for (const V& item : in.elements(v)) {
    if (!attribute || attribute->is_none()) {
      keyed.emplace_back(fold_case(in, item, case_sensitive), item);
      continue;
    }
    // "a,b": by several attributes.
    std::vector<V> keys;
    const std::string_view comma = ",";
    const std::vector<std::string> names = attribute->is_string()
                                               ? split(attribute->as_string(), &comma, -1)
                                               : std::vector<std::string>{to_str(*attribute)};
    for (const std::string& name : names) {
      keys.push_back(fold_case(in, path(in, item, V::string(name)), case_sensitive));
    }
    keyed.emplace_back(in.list(std::move(keys)), item);
  }
  sort_by(in, keyed, descending);
  std::vector<V> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return in.list(std::move(out));
}

V dictsort(In& in, const V& v, ArgReader& a) {
  const bool case_sensitive = a.flag("case_sensitive", false);
  const std::string by = a.text("by", "key");
  const bool descending = a.flag("reverse", false);
  a.done();
  if (by != "key" && by != "value") throw Fault{"You can only sort by either \"key\" or \"value\""};
  if (!v.is_dict()) throw Fault{fmt::format("dictsort needs a mapping, not {}", type_name(v))};
  std::vector<std::pair<V, V>> keyed;
  for (const auto& [key, value] : v.as_dict().items) {
    keyed.emplace_back(fold_case(in, by == "key" ? key : value, case_sensitive),
                       in.list({key, value}, true));
  }
  sort_by(in, keyed, descending);
  std::vector<V> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return in.list(std::move(out));
}

V groupby(In& in, const V& v, ArgReader& a) {
  const V attribute = a.take("attribute");
  const std::optional<V> fallback = a.maybe("default");
  const bool case_sensitive = a.flag("case_sensitive", false);
  a.done();
  std::vector<std::pair<V, V>> keyed;
  for (const V& item : in.elements(v)) {
    V key = path(in, item, attribute);
    if (key.is_undefined() && fallback) key = *fallback;
    keyed.emplace_back(fold_case(in, key, case_sensitive), in.list({key, item}, true));
  }
  sort_by(in, keyed, false);
  std::vector<V> out;
  for (size_t i = 0; i < keyed.size();) {
    std::vector<V> group;
    const V label = keyed[i].second.as_list().items[0];
    const size_t start = i;
    while (i < keyed.size() && equal(keyed[i].first, keyed[start].first)) {
      group.push_back(keyed[i++].second.as_list().items[1]);
    }
    out.push_back(in.list({label, in.list(std::move(group))}, true));
  }
  return in.list(std::move(out));
}

V unique(In& in, const V& v, ArgReader& a) {
  const bool case_sensitive = a.flag("case_sensitive", false);
  const std::optional<V> attribute = a.maybe("attribute");
  a.done();
  Dict seen;
  std::vector<V> out;
  for (const V& item : in.elements(v)) {
    const V key = fold_case(
        in, attribute && !attribute->is_none() ? path(in, item, *attribute) : item, case_sensitive);
    if (seen.find(key) != nullptr) continue;
    seen.set(key, V::none());
    out.push_back(item);
  }
  return in.list(std::move(out), false, true);
}

template <int kSign>
V extreme(In& in, const V& v, ArgReader& a) {
  const bool case_sensitive = a.flag("case_sensitive", false);
  const std::optional<V> attribute = a.maybe("attribute");
  a.done();
  std::optional<std::pair<V, V>> best;
  for (const V& item : in.elements(v)) {
    V key = fold_case(in, attribute && !attribute->is_none() ? path(in, item, *attribute) : item,
                      case_sensitive);
    if (!best || compare(key, best->first, kSign < 0 ? "<" : ">") == kSign)
      best = {std::move(key), item};
  }
  return best ? best->second : V::undefined("No aggregated item, sequence was empty.");
}

V sum(In& in, const V& v, ArgReader& a) {
  const std::optional<V> attribute = a.maybe("attribute");
  V total = a.maybe("start").value_or(V::integer(0));
  a.done();
  for (const V& item : in.elements(v)) {
    total = in.binary("+", total,
                      attribute && !attribute->is_none() ? path(in, item, *attribute) : item);
  }
  return total;
}

V batch(In& in, const V& v, ArgReader& a) {
  const int64_t size = a.integer("linecount");
  const std::optional<V> fill = a.maybe("fill_with");
  a.done();
  if (size < 1) throw Fault{"batch: linecount must be at least 1"};
  std::vector<V> out, row;
  for (const V& item : in.elements(v)) {
    row.push_back(item);
    if (static_cast<int64_t>(row.size()) == size) out.push_back(in.list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    while (fill && !fill->is_none() && static_cast<int64_t>(row.size()) < size) {
      in.work_items(1);
      row.push_back(*fill);
    }
    out.push_back(in.list(std::move(row)));
  }
  return in.list(std::move(out), false, true);
}

V slice(In& in, const V& v, ArgReader& a) {
  const int64_t slices = a.integer("slices");
  const std::optional<V> fill = a.maybe("fill_with");
  a.done();
  if (slices < 1) throw Fault{"slice: slices must be at least 1"};
  const std::vector<V> items = in.elements(v);
  const auto n = static_cast<int64_t>(items.size());
  std::vector<V> out;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t count = n / slices + (i < n % slices);
    std::vector<V> part(items.begin() + begin, items.begin() + begin + count);
    begin += count;
    if (fill && !fill->is_none() && n % slices != 0 && i >= n % slices) part.push_back(*fill);
    out.push_back(in.list(std::move(part)));
    in.work_items(1);
  }
  return in.list(std::move(out), false, true);
}

// The arguments that map, select and reject hand on to a filter or test.
CallArgs rest(ArgReader& a) {
  CallArgs out;
  while (a.left() > 0) out.positional.push_back(a.take("value"));
  return out;
}

V map(In& in, const V& v, ArgReader& a) {
  std::vector<V> out;
  const std::vector<V> items = in.elements(v);
  if (a.left() == 0) {
    const V attribute = a.take("attribute");
    const std::optional<V> fallback = a.maybe("default");
    a.done();
    for (const V& item : items) {
      V found = path(in, item, attribute);
      out.push_back(found.is_undefined() && fallback ? *fallback : std::move(found));
    }
    return in.list(std::move(out), false, true);
  }
  const std::string name = a.text("filter");
  const CallArgs extra = rest(a);
  a.done();
  for (const V& item : items) {
    CallArgs args = extra;
    in.work(16);
    out.push_back(in.filter(name, item, args));
  }
  return in.list(std::move(out), false, true);
}

template <bool kWanted, bool kAttribute>
V choose(In& in, const V& v, ArgReader& a) {
  const std::optional<V> attribute =
      kAttribute ? std::optional<V>(a.take("attribute")) : std::nullopt;
  std::string name;
  if (a.left() > 0) name = a.text("test");
  const CallArgs extra = rest(a);
  a.done();
  std::vector<V> out;
  for (const V& item : in.elements(v)) {
    const V value = kAttribute ? path(in, item, *attribute) : item;
    CallArgs args = extra;
    in.work(16);
    const bool holds = name.empty() ? truthy(value) : in.test(name, value, args);
    if (holds == kWanted) out.push_back(item);
  }
  return in.list(std::move(out), false, true);
}

const std::map<std::string_view, FilterFn>& table() {
  static const std::map<std::string_view, FilterFn> t = {
      {"first", first},
      {"last", last},
      {"list", list},
      {"join", join},
      {"reverse", reverse},
      {"sort", sort},
      {"dictsort", dictsort},
      {"groupby", groupby},
      {"unique", unique},
      {"min", extreme<-1>},
      {"max", extreme<1>},
      {"sum", sum},
      {"batch", batch},
      {"slice", slice},
      {"map", map},
      {"select", choose<true, false>},
      {"reject", choose<false, false>},
      {"selectattr", choose<true, true>},
      {"rejectattr", choose<false, true>},
  };
  return t;
}

}  // namespace

FilterFn find_sequence_filter(std::string_view name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : it->second;
}

}  // namespace gridless::text::jinja
