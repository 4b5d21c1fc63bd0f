// {{ x is ... }}
#include <map>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/strings.h"

namespace gridless::text::jinja {
namespace {

using In = Interpreter;
using V = Value;

int64_t whole(const V& v, const ArgReader& a) {
  if (v.is_undefined()) throw Fault{v.as_missing().message};
  if (!v.is_integral()) throw Fault{a.what() + " needs an integer, not " + type_name(v)};
  return v.as_int();
}

template <int kSign, bool kOrEqual>
bool ordered(In&, const V& v, ArgReader& a) {
  const int order =
      compare(v, a.take("other"), kSign < 0 ? (kOrEqual ? "<=" : "<") : (kOrEqual ? ">=" : ">"));
  return order == kSign || (kOrEqual && order == 0);
}

bool eq(In&, const V& v, ArgReader& a) { return equal(v, a.take("other")); }
bool ne(In&, const V& v, ArgReader& a) { return !equal(v, a.take("other")); }

bool is_iterable(const V& v) {
  return v.is_string() || v.is_list() || v.is_dict() || v.is_undefined();
}

const std::map<std::string_view, TestFn>& table() {
  static const std::map<std::string_view, TestFn> t = {
      {"defined", [](In&, const V& v, ArgReader&) { return !v.is_undefined(); }},
      {"undefined", [](In&, const V& v, ArgReader&) { return v.is_undefined(); }},
      {"none", [](In&, const V& v, ArgReader&) { return v.is_none(); }},
      {"boolean", [](In&, const V& v, ArgReader&) { return v.is_bool(); }},
      {"true", [](In&, const V& v, ArgReader&) { return v.is_bool() && v.as_bool(); }},
      {"false", [](In&, const V& v, ArgReader&) { return v.is_bool() && !v.as_bool(); }},
      {"integer", [](In&, const V& v, ArgReader&) { return v.is_int(); }},
      {"float", [](In&, const V& v, ArgReader&) { return v.is_float(); }},
      {"number", [](In&, const V& v, ArgReader&) { return v.is_number(); }},
      {"string", [](In&, const V& v, ArgReader&) { return v.is_string(); }},
      {"mapping", [](In&, const V& v, ArgReader&) { return v.is_dict(); }},
      {"iterable", [](In&, const V& v, ArgReader&) { return is_iterable(v); }},
      {"sequence", [](In&, const V& v, ArgReader&) { return is_iterable(v); }},
      {"callable",
       [](In&, const V& v, ArgReader&) { return v.is_object() && v.as_object()->callable(); }},
      {"escaped", [](In&, const V&, ArgReader&) { return false; }},
      {"odd", [](In&, const V& v, ArgReader& a) { return whole(v, a) % 2 != 0; }},
      {"even", [](In&, const V& v, ArgReader& a) { return whole(v, a) % 2 == 0; }},
      {"divisibleby",
       [](In&, const V& v, ArgReader& a) {
         const int64_t n = whole(v, a), by = a.integer("num");
         if (by == 0) throw Fault{"division by zero"};
         return by == -1 || n % by == 0;
       }},
      {"lower",
       [](In&, const V& v, ArgReader&) {
         const auto s = to_str(v);
         return lower(s) == s && upper(s) != s;
       }},
      {"upper",
       [](In&, const V& v, ArgReader&) {
         const auto s = to_str(v);
         return upper(s) == s && lower(s) != s;
       }},
      {"in", [](In& in, const V& v, ArgReader& a) { return in.contains(a.take("seq"), v); }},
      {"sameas",
       [](In&, const V& v, ArgReader& a) {
         const V other = a.take("other");
         return v.kind() == other.kind() && equal(v, other);
       }},
      {"filter",
       [](In&, const V& v, ArgReader&) {
         const std::string name = to_str(v);
         return find_filter(name) || find_text_filter(name) || find_sequence_filter(name);
       }},
      {"test", [](In&, const V& v, ArgReader&) { return find_test(to_str(v)) != nullptr; }},
      {"eq", eq},
      {"equalto", eq},
      {"==", eq},
      {"ne", ne},
      {"!=", ne},
      {"lt", ordered<-1, false>},
      {"lessthan", ordered<-1, false>},
      {"<", ordered<-1, false>},
      {"le", ordered<-1, true>},
      {"<=", ordered<-1, true>},
      {"gt", ordered<1, false>},
      {"greaterthan", ordered<1, false>},
      {">", ordered<1, false>},
      {"ge", ordered<1, true>},
      {">=", ordered<1, true>},
  };
  return t;
}

}  // namespace

TestFn find_test(std::string_view name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : it->second;
}

}  // namespace gridless::text::jinja
