// Expressions.
#include <fmt/format.h>

#include <cmath>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/recursion.h"
#include "gridless/text/jinja/strings.h"
#include "gridless/text/utf8.h"

namespace gridless::text::jinja {
namespace {

using Kind = Value::Kind;

[[noreturn]] void no_operator(std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) throw Fault{a.as_missing().message};
  if (b.is_undefined()) throw Fault{b.as_missing().message};
  if (op == "+" && a.is_string()) {
    throw Fault{fmt::format("can only concatenate str (not \"{}\") to str", type_name(b))};
  }
  throw Fault{fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op, type_name(a),
                          type_name(b))};
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      throw Fault{"integer overflow"};
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) throw Fault{"integer overflow"};
  }
  return Value::integer(result);
}

Value integer_arithmetic(std::string_view op, int64_t a, int64_t b) {
  int64_t r = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &r);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &r);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &r);
  } else if (op == "**") {
    return integer_power(a, b);
  } else {
    if (b == 0) throw Fault{"division by zero"};
    if (op == "/") return Value::real(static_cast<double>(a) / static_cast<double>(b));
    if (b == -1) {  // the one quotient that overflows
      if (op == "%") return Value::integer(0);
      overflow = __builtin_sub_overflow(int64_t{0}, a, &r);
    } else {
      // Python rounds down and gives the remainder the divisor's sign.
      const int64_t rest = a % b;
      const bool adjust = rest != 0 && ((rest < 0) != (b < 0));
      r = op == "%" ? rest + (adjust ? b : 0) : a / b - (adjust ? 1 : 0);
    }
  }
  if (overflow) throw Fault{"integer overflow"};
  return Value::integer(r);
}

Value real_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return Value::real(a + b);
  if (op == "-") return Value::real(a - b);
  if (op == "*") return Value::real(a * b);
  if (op == "**") return Value::real(std::pow(a, b));
  if (b == 0) throw Fault{"division by zero"};
  if (op == "/") return Value::real(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && ((rest < 0) != (b < 0))) rest += b;
  return Value::real(op == "%" ? rest : std::floor((a - rest) / b + 0.5));
}

Value repeat(Interpreter& in, const Value& what, int64_t times) {
  const auto n = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (what.is_string()) {
    const std::string& s = what.as_string();
    if (n != 0) in.work(s.size() > SIZE_MAX / 2 / n ? SIZE_MAX / 2 : s.size() * n);
    std::string out;
    for (size_t i = 0; i < n && !s.empty(); ++i) out += s;
    return Value::string(std::move(out));
  }
  const std::vector<Value>& items = what.as_list().items;
  if (n != 0) in.work_items(items.size() > SIZE_MAX / 128 / n ? SIZE_MAX / 128 : items.size() * n);
  std::vector<Value> out;
  for (size_t i = 0; i < n && !items.empty(); ++i)
    out.insert(out.end(), items.begin(), items.end());
  return Value::list(std::move(out), what.as_list().tuple);
}

}  // namespace

Value Interpreter::binary(std::string_view op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return integer_arithmetic(op, a.as_int(), b.as_int());
    return real_arithmetic(op, a.as_double(), b.as_double());
  }
  if (op == "+" && a.is_string() && b.is_string()) return text(a.as_string() + b.as_string());
  if (op == "+" && a.is_list() && b.is_list() && a.as_list().tuple == b.as_list().tuple) {
    std::vector<Value> items = a.as_list().items;
    items.insert(items.end(), b.as_list().items.begin(), b.as_list().items.end());
    return list(std::move(items), a.as_list().tuple);
  }
  if (op == "*") {
    if ((a.is_string() || a.is_list()) && b.is_integral()) return repeat(*this, a, b.as_int());
    if ((b.is_string() || b.is_list()) && a.is_integral()) return repeat(*this, b, a.as_int());
  }
  if (op == "%" && a.is_string()) return text(printf_format(*this, a.as_string(), b));
  no_operator(op, a, b);
}

bool Interpreter::contains(const Value& container, const Value& element) {
  switch (container.kind()) {
    case Kind::kString:
      if (!element.is_string()) {
        if (element.is_undefined()) throw Fault{element.as_missing().message};
        throw Fault{fmt::format("'in <string>' requires string as left operand, not {}",
                                type_name(element))};
      }
      work(container.as_string().size() / 16);
      return container.as_string().find(element.as_string()) != std::string::npos;
    case Kind::kDict:
      return container.as_dict().find(element) != nullptr;
    case Kind::kUndefined:
      return false;
    case Kind::kList:
      work(container.as_list().items.size());
      for (const Value& item : container.as_list().items) {
        if (equal(item, element)) return true;
      }
      return false;
    default:
      throw Fault{fmt::format("argument of type '{}' is not iterable", type_name(container))};
  }
}

Value Interpreter::eval(const Expr& e) {
  const Recursion guard(recursion_, limits_.recursion);
  work(16);
  try {
    return eval_inner(e);
  } catch (Fault& fault) {
    if (fault.line == 0) fault.line = e.line;
    throw;
  }
}

Value Interpreter::eval_inner(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::kConst:
      return e.value;
    case Expr::Kind::kName:
      if (const Value* found = scope_->find(e.name)) return *found;
      return Value::undefined(fmt::format("'{}' is undefined", e.name));
    case Expr::Kind::kList:
    case Expr::Kind::kTuple: {
      std::vector<Value> items;
      items.reserve(e.kids.size());
      for (const ExprPtr& kid : e.kids) items.push_back(eval(*kid));
      return list(std::move(items), e.kind == Expr::Kind::kTuple);
    }
    case Expr::Kind::kDict: {
      Dict out;
      for (size_t i = 0; i + 1 < e.kids.size(); i += 2) {
        const Value key = eval(*e.kids[i]);
        out.set(key, eval(*e.kids[i + 1]));
      }
      work_items(2 * out.items.size());
      return Value::dict(std::move(out));
    }
    case Expr::Kind::kAttribute:
      return attribute(eval(*e.kids[0]), e.name);
    case Expr::Kind::kItem: {
      const Value object = eval(*e.kids[0]);
      return item(object, eval(*e.kids[1]));
    }
    case Expr::Kind::kSlice:
      return eval_slice(e);
    case Expr::Kind::kCall: {
      const Value callee = eval(*e.kids[0]);
      CallArgs args = eval_args(e.args);
      return call(callee, args);
    }
    case Expr::Kind::kFilter: {
      const Value input = eval(*e.kids[0]);
      CallArgs args = eval_args(e.args);
      return filter(e.name, input, args);
    }
    case Expr::Kind::kTest: {
      const Value input = eval(*e.kids[0]);
      CallArgs args = eval_args(e.args);
      return Value::boolean(test(e.name, input, args));
    }
    case Expr::Kind::kNot:
      return Value::boolean(!truthy(eval(*e.kids[0])));
    case Expr::Kind::kNegate:
      return binary("-", Value::integer(0), eval(*e.kids[0]));
    case Expr::Kind::kPlus:
      return binary("+", Value::integer(0), eval(*e.kids[0]));
    case Expr::Kind::kBinary: {
      const Value a = eval(*e.kids[0]);
      return binary(e.name, a, eval(*e.kids[1]));
    }
    case Expr::Kind::kConcat: {
      std::string out;
      for (const ExprPtr& kid : e.kids) out += to_str(eval(*kid));
      return text(std::move(out));
    }
    case Expr::Kind::kCompare:
      return eval_compare(e);
    case Expr::Kind::kAnd: {
      Value a = eval(*e.kids[0]);
      return truthy(a) ? eval(*e.kids[1]) : a;
    }
    case Expr::Kind::kOr: {
      Value a = eval(*e.kids[0]);
      return truthy(a) ? a : eval(*e.kids[1]);
    }
    case Expr::Kind::kConditional:
      if (truthy(eval(*e.kids[1]))) return eval(*e.kids[0]);
      if (e.kids[2]) return eval(*e.kids[2]);
      return Value::undefined(
          "the inline if-expression evaluated to false and no else section was defined");
  }
  return {};
}

Value Interpreter::eval_compare(const Expr& e) {
  Value left = eval(*e.kids[0]);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    Value right = eval(*e.kids[i + 1]);
    const std::string& op = e.ops[i];
    bool holds = false;
    if (op == "==") {
      holds = equal(left, right);
    } else if (op == "!=") {
      holds = !equal(left, right);
    } else if (op == "in") {
      holds = contains(right, left);
    } else if (op == "not in") {
      holds = !contains(right, left);
    } else {
      const int order = compare(left, right, op);
      holds = op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
    }
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::eval_slice(const Expr& e) {
  const Value object = eval(*e.kids[0]);
  std::optional<int64_t> bounds[3];
  for (int i = 0; i < 3; ++i) {
    if (!e.kids[i + 1]) continue;
    const Value v = eval(*e.kids[i + 1]);
    if (v.is_none()) continue;
    if (!v.is_integral()) throw Fault{"slice indices must be integers or None"};
    bounds[i] = v.as_int();
  }
  if (object.is_undefined()) throw Fault{object.as_missing().message};
  if (!object.is_string() && !object.is_list()) {
    throw Fault{fmt::format("'{}' object cannot be sliced", type_name(object))};
  }
  std::vector<size_t> offsets;
  if (object.is_string()) offsets = code_point_offsets(object.as_string());
  const auto size =
      static_cast<int64_t>(object.is_string() ? offsets.size() - 1 : object.as_list().items.size());
  const int64_t step = bounds[2].value_or(1);
  if (step == 0) throw Fault{"slice step cannot be zero"};
  // Python's slice.indices.
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto clamp = [&](std::optional<int64_t> bound, int64_t fallback) {
    if (!bound) return fallback;
    const int64_t i = *bound < 0 ? std::max(*bound, -size - 1) + size : *bound;
    return std::min(std::max(i, low), high);
  };
  const int64_t start = clamp(bounds[0], step < 0 ? high : low);
  const int64_t stop = clamp(bounds[1], step < 0 ? low : high);
  std::string out;
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (object.is_string()) {
      out.append(object.as_string(), offsets[i], offsets[i + 1] - offsets[i]);
    } else {
      items.push_back(object.as_list().items[i]);
    }
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (object.is_string()) {
    work(object.as_string().size());
    return text(std::move(out));
  }
  return list(std::move(items), object.as_list().tuple);
}

CallArgs Interpreter::eval_args(const Args& args) {
  CallArgs out;
  for (const ExprPtr& a : args.positional) out.positional.push_back(eval(*a));
  for (const auto& [name, a] : args.named) out.named.emplace_back(name, eval(*a));
  if (args.star) {
    for (Value& v : elements(eval(*args.star))) out.positional.push_back(std::move(v));
  }
  if (args.double_star) {
    const Value v = eval(*args.double_star);
    if (!v.is_dict()) throw Fault{"the argument after ** must be a mapping"};
    for (const auto& [key, value] : v.as_dict().items) out.named.emplace_back(to_str(key), value);
  }
  return out;
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) throw Fault{object.as_missing().message};
  if (auto method = find_method(object, name)) return Value::object(std::move(method));
  if (object.is_object()) {
    Value scratch;
    if (const Value* found = object.as_object()->attribute(name, scratch)) return *found;
  }
  if (object.is_dict()) {
    if (const Value* found = object.as_dict().find(name)) return *found;
  }
  const std::string owner = object.is_none() ? "None" : type_name(object) + " object";
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", owner, name));
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) throw Fault{object.as_missing().message};
  if (object.is_dict()) {
    // A key that cannot be hashed is simply not there, as in Jinja.
    const bool hashable = !key.is_dict() && !key.is_undefined() && !key.is_object() &&
                          (!key.is_list() || key.as_list().tuple);
    if (hashable) {
      if (const Value* found = object.as_dict().find(key)) return *found;
    }
  }
  if ((object.is_list() || object.is_string()) && key.is_integral()) {
    const int64_t i = key.as_int();
    if (object.is_list()) {
      const auto& items = object.as_list().items;
      const auto size = static_cast<int64_t>(items.size());
      if (i >= -size && i < size) return items[i < 0 ? i + size : i];
    } else {
      work(object.as_string().size());
      const std::vector<size_t> offsets = code_point_offsets(object.as_string());
      const auto size = static_cast<int64_t>(offsets.size()) - 1;
      const int64_t at = i < 0 ? i + size : i;
      if (i >= -size && i < size) {
        return Value::string(object.as_string().substr(offsets[at], offsets[at + 1] - offsets[at]));
      }
    }
  }
  if (key.is_string()) return attribute(object, key.as_string());
  const std::string owner = object.is_none() ? "None" : type_name(object) + " object";
  return Value::undefined(fmt::format("{} has no element {}", owner, repr(key)));
}

}  // namespace gridless::text::jinja
