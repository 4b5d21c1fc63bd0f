// Values of the template language: Python's, as far as templates see them.
//
// Strings are UTF-8 and count in code points. Lists, tuples and dicts never change once made (the
// sandbox of transformers forbids it too), so values share them freely; a namespace is the one
// mutable thing. Containers know how deep they nest, which bounds every recursion over values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace gridless::text::jinja {

class Interpreter;
class Value;

// What went wrong in a template. Thrown inside this folder only; template.h turns it into an Error.
struct Fault {
  std::string message;
  int line = 0;  // 0: not known yet; the statement that was running fills it in
};

constexpr int kMaxValueDepth = 200;

struct List {
  std::vector<Value> items;
  int depth = 1;
  bool has_namespace = false;
  bool tuple = false;
  bool generator = false;  // what map, select, ... give in Jinja: true even when empty
};

// In order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  std::unordered_map<std::string, size_t> index;  // hash_key(key) -> position
  int depth = 1;
  bool has_namespace = false;

  const Value* find(const Value& key) const;  // throws Fault for a key that cannot be hashed
  const Value* find(std::string_view key) const;
  void set(const Value& key, const Value& value);
};

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Anything with behaviour: functions, macros, bound methods, loop, namespace.
struct Object {
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter&, CallArgs&);
  virtual const Value* attribute(std::string_view, Value& scratch);  // null: there is none
  // As for containers, of the values it holds.
  virtual int depth() const { return 1; }
  virtual bool has_namespace() const { return false; }
};

// An absent value; remembers what was asked for, so that using it gives a useful message.
struct Missing {
  std::string message;
};

class Value {
 public:
  enum class Kind { kUndefined, kNone, kBool, kInt, kFloat, kString, kList, kDict, kObject };

  Value() = default;  // none
  static Value undefined(std::string message);
  static Value none() { return {}; }
  static Value boolean(bool b) { return Value(b); }
  static Value integer(int64_t i) { return Value(i); }
  static Value real(double d) { return Value(d); }
  static Value string(std::string s) {
    return Value(std::make_shared<const std::string>(std::move(s)));
  }
  static Value list(std::vector<Value> items, bool tuple = false, bool generator = false);
  static Value dict(Dict items);
  static Value object(std::shared_ptr<Object> o) { return Value(std::move(o)); }

  Kind kind() const {
    return static_cast<Kind>(data_.index() == 0 ? 1 : data_.index() == 8 ? 0 : data_.index() + 1);
  }
  bool is_undefined() const { return kind() == Kind::kUndefined; }
  bool is_none() const { return kind() == Kind::kNone; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int() const { return kind() == Kind::kInt; }
  bool is_float() const { return kind() == Kind::kFloat; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_list() const { return kind() == Kind::kList; }
  bool is_dict() const { return kind() == Kind::kDict; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_integral() const { return is_int() || is_bool(); }
  bool is_number() const { return is_integral() || is_float(); }

  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is_bool() ? as_bool() : std::get<int64_t>(data_); }
  double as_double() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
  }
  const std::string& as_string() const {
    return *std::get<std::shared_ptr<const std::string>>(data_);
  }
  const List& as_list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  const std::shared_ptr<Object>& as_object() const {
    return std::get<std::shared_ptr<Object>>(data_);
  }
  const Missing& as_missing() const { return *std::get<std::shared_ptr<const Missing>>(data_); }

  int depth() const;
  bool has_namespace() const;

 private:
  template <typename T>
  explicit Value(T data) : data_(std::move(data)) {}

  std::variant<std::monostate, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Object>,
               std::shared_ptr<const Missing>>
      data_;
};

// {% set ns = namespace(x=1) %}: the attributes may be assigned to, from inner scopes too. They
// cannot hold namespaces, so no cycle of values can arise.
struct Namespace : Object {
  Dict attributes;
  std::string type_name() const override { return "Namespace"; }
  const Value* attribute(std::string_view name, Value&) override { return attributes.find(name); }
  int depth() const override { return attributes.depth; }
  bool has_namespace() const override { return true; }
  void assign(std::string_view name, const Value& value);
};

bool truthy(const Value& v);
std::string type_name(const Value& v);  // Python's: "str", "dict", ...
std::string to_str(const Value& v);     // str(): what {{ }} prints
std::string repr(const Value& v);       // repr()
std::string repr_double(double d);
bool equal(const Value& a, const Value& b);
// -1, 0, 1; throws Fault for types that have no order.
int compare(const Value& a, const Value& b, std::string_view op);
// Equal values (1, 1.0, true) have equal keys. Throws Fault for lists and dicts.
std::string hash_key(const Value& v);

}  // namespace gridless::text::jinja
