#include "gridless/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gridless/text/jinja/strings.h"

namespace gridless::text::jinja {
namespace {

[[noreturn]] void too_deep() {
  throw Fault{fmt::format("values nest more than {} levels deep", kMaxValueDepth)};
}

std::string repr_items(const std::vector<Value>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ", ") + repr(items[i]);
  return out;
}

std::string repr_dict(const Dict& dict) {
  std::string out = "{";
  for (size_t i = 0; i < dict.items.size(); ++i) {
    out += (i == 0 ? "" : ", ") + repr(dict.items[i].first) + ": " + repr(dict.items[i].second);
  }
  return out + "}";
}

}  // namespace

Value Object::call(Interpreter&, CallArgs&) {
  throw Fault{fmt::format("'{}' object is not callable", type_name())};
}

const Value* Object::attribute(std::string_view, Value&) { return nullptr; }

Value Value::undefined(std::string message) {
  return Value(std::make_shared<const Missing>(Missing{std::move(message)}));
}

Value Value::list(std::vector<Value> items, bool tuple, bool generator) {
  auto out = std::make_shared<List>();
  for (const Value& v : items) {
    out->depth = std::max(out->depth, v.depth() + 1);
    out->has_namespace |= v.has_namespace();
  }
  if (out->depth > kMaxValueDepth) too_deep();
  out->items = std::move(items);
  out->tuple = tuple;
  out->generator = generator;
  return Value(std::shared_ptr<const List>(std::move(out)));
}

Value Value::dict(Dict items) {
  for (const auto& [key, v] : items.items) {
    items.depth = std::max({items.depth, v.depth() + 1, key.depth() + 1});
    items.has_namespace |= v.has_namespace();
  }
  if (items.depth > kMaxValueDepth) too_deep();
  return Value(std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(items))));
}

int Value::depth() const {
  if (is_list()) return as_list().depth;
  if (is_dict()) return as_dict().depth;
  return is_object() ? as_object()->depth() : 0;
}

bool Value::has_namespace() const {
  if (is_list()) return as_list().has_namespace;
  if (is_dict()) return as_dict().has_namespace;
  return is_object() && as_object()->has_namespace();
}

const Value* Dict::find(const Value& key) const {
  const auto it = index.find(hash_key(key));
  return it == index.end() ? nullptr : &items[it->second].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto it = index.find("s" + std::string(key));
  return it == index.end() ? nullptr : &items[it->second].second;
}

void Dict::set(const Value& key, const Value& value) {
  const auto [it, fresh] = index.emplace(hash_key(key), items.size());
  if (fresh) {
    items.emplace_back(key, value);
  } else {
    items[it->second].second = value;
  }
}

void Namespace::assign(std::string_view name, const Value& value) {
  if (value.has_namespace()) throw Fault{"a namespace cannot hold another namespace"};
  if (value.depth() + 1 > kMaxValueDepth) too_deep();
  attributes.set(Value::string(std::string(name)), value);
  attributes.depth = std::max(attributes.depth, value.depth() + 1);
}

bool truthy(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return false;
    case Value::Kind::kBool:
      return v.as_bool();
    case Value::Kind::kInt:
      return v.as_int() != 0;
    case Value::Kind::kFloat:
      return v.as_double() != 0;
    case Value::Kind::kString:
      return !v.as_string().empty();
    case Value::Kind::kList:
      return v.as_list().generator || !v.as_list().items.empty();
    case Value::Kind::kDict:
      return !v.as_dict().items.empty();
    case Value::Kind::kObject:
      return true;
  }
  return false;
}

std::string type_name(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::kUndefined:
      return "Undefined";
    case Value::Kind::kNone:
      return "NoneType";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
      return "int";
    case Value::Kind::kFloat:
      return "float";
    case Value::Kind::kString:
      return "str";
    case Value::Kind::kList:
      return v.as_list().generator ? "generator" : v.as_list().tuple ? "tuple" : "list";
    case Value::Kind::kDict:
      return "dict";
    case Value::Kind::kObject:
      return v.as_object()->type_name();
  }
  return "object";
}

std::string repr_double(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  // fmt prints the shortest digits that read back, with Python's choice of exponents.
  std::string out = fmt::format("{}", d);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string to_str(const Value& v) {
  if (v.is_string()) return v.as_string();
  if (v.is_undefined()) return "";
  return repr(v);
}

std::string repr(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::kUndefined:
      return "Undefined";
    case Value::Kind::kNone:
      return "None";
    case Value::Kind::kBool:
      return v.as_bool() ? "True" : "False";
    case Value::Kind::kInt:
      return fmt::format("{}", v.as_int());
    case Value::Kind::kFloat:
      return repr_double(v.as_double());
    case Value::Kind::kString:
      return repr_string(v.as_string());
    case Value::Kind::kList: {
      const List& list = v.as_list();
      const std::string inner = repr_items(list.items);
      if (!list.tuple) return "[" + inner + "]";
      return "(" + inner + (list.items.size() == 1 ? ",)" : ")");
    }
    case Value::Kind::kDict:
      return repr_dict(v.as_dict());
    case Value::Kind::kObject:
      if (const auto* ns = dynamic_cast<const Namespace*>(v.as_object().get())) {
        return "<Namespace " + repr_dict(ns->attributes) + ">";
      }
      return "<" + v.as_object()->type_name() + ">";
  }
  return "";
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kString:
      return a.as_string() == b.as_string();
    case Value::Kind::kList: {
      const List &x = a.as_list(), &y = b.as_list();
      if (x.tuple != y.tuple || x.items.size() != y.items.size()) return false;
      for (size_t i = 0; i < x.items.size(); ++i) {
        if (!equal(x.items[i], y.items[i])) return false;
      }
      return true;
    }
    case Value::Kind::kDict: {
      const Dict &x = a.as_dict(), &y = b.as_dict();
      if (x.items.size() != y.items.size()) return false;
      for (const auto& [key, value] : x.items) {
        const Value* other = y.find(key);
        if (other == nullptr || !equal(value, *other)) return false;
      }
      return true;
    }
    case Value::Kind::kObject:
      return a.as_object() == b.as_object();
    default:
      return true;  // undefined and none have one value each
  }
}

int compare(const Value& a, const Value& b, std::string_view op) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return order(a.as_int(), b.as_int());
    return order(a.as_double(), b.as_double());
  }
  if (a.is_undefined()) throw Fault{a.as_missing().message};
  if (b.is_undefined()) throw Fault{b.as_missing().message};
  if (a.is_string() && b.is_string()) return order(a.as_string(), b.as_string());
  if (a.is_list() && b.is_list() && a.as_list().tuple == b.as_list().tuple) {
    const auto &x = a.as_list().items, &y = b.as_list().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i])) return compare(x[i], y[i], op);
    }
    return order(x.size(), y.size());
  }
  throw Fault{fmt::format("'{}' not supported between instances of '{}' and '{}'", op, type_name(a),
                          type_name(b))};
}

std::string hash_key(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::kString:
      return "s" + v.as_string();
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      return fmt::format("n{}", v.as_int());
    case Value::Kind::kFloat: {
      const double d = v.as_double();
      if (d == std::floor(d) && std::abs(d) < 9e15)
        return fmt::format("n{}", static_cast<int64_t>(d));
      return "f" + repr_double(d);
    }
    case Value::Kind::kNone:
      return "N";
    case Value::Kind::kList:
      if (v.as_list().tuple) {
        std::string out = "t";
        for (const Value& item : v.as_list().items) {
          const std::string key = hash_key(item);
          out += fmt::format("{}:", key.size()) + key;
        }
        return out;
      }
      [[fallthrough]];
    default:
      throw Fault{fmt::format("unhashable type: '{}'", type_name(v))};
  }
}

}  // namespace gridless::text::jinja
