// Functions that templates find without importing: range, namespace, dict, raise_exception, ...
#include <fmt/format.h>

#include "gridless/text/jinja/interpreter.h"

namespace gridless::text::jinja {
namespace {

using In = Interpreter;
using V = Value;

struct Function : Object {
  using Fn = V (*)(In&, CallArgs&);
  Function(std::string n, Fn f) : name(std::move(n)), fn(f) {}
  std::string type_name() const override { return "function"; }
  bool callable() const override { return true; }
  V call(In& in, CallArgs& args) override { return fn(in, args); }
  std::string name;
  Fn fn;
};

V range(In& in, CallArgs& args) {
  constexpr int64_t kMax = 100000;  // Jinja's sandbox has the same limit
  ArgReader a("range()", args);
  int64_t start = a.integer("start"), stop = 0, step = 1;
  if (a.left() == 0) {
    stop = std::exchange(start, 0);
  } else {
    stop = a.integer("stop");
    step = a.integer("step", 1);
  }
  a.done();
  if (step == 0) throw Fault{"range() arg 3 must not be zero"};
  std::vector<V> out;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(out.size()) >= kMax) {
      throw Fault{fmt::format(
          "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMax)};
    }
    out.push_back(V::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return in.list(std::move(out));
}

Dict pairs(In& in, CallArgs& args) {
  Dict out;
  for (const V& source : args.positional) {
    if (source.is_dict()) {
      for (const auto& [key, value] : source.as_dict().items) out.set(key, value);
      continue;
    }
    for (const V& pair : in.elements(source)) {
      const std::vector<V> two = in.elements(pair);
      if (two.size() != 2) throw Fault{"a dict is made from pairs"};
      out.set(two[0], two[1]);
    }
  }
  for (const auto& [name, value] : args.named) out.set(V::string(name), value);
  in.work_items(2 * out.items.size());
  return out;
}

V make_dict(In& in, CallArgs& args) { return V::dict(pairs(in, args)); }

V make_namespace(In& in, CallArgs& args) {
  auto ns = std::make_shared<Namespace>();
  for (const auto& [key, value] : pairs(in, args).items) ns->assign(to_str(key), value);
  return V::object(std::move(ns));
}

V raise_exception(In&, CallArgs& args) {
  ArgReader a("raise_exception()", args);
  const V message = a.take("message");
  a.done();
  throw Fault{to_str(message)};
}

V strftime_now(In& in, CallArgs& args) {
  ArgReader a("strftime_now()", args);
  const std::string format = a.text("format");
  a.done();
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const char c = format[++i];
    if (c == 'f') {
      out += "000000";  // the clock is taken in whole seconds
      continue;
    }
    // Flags and widths of the C library are not Python's.
    if (std::string_view("aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyYzZ%").find(c) ==
        std::string_view::npos) {
      out += '%';
      out += c;
      continue;
    }
    const char spec[] = {'%', c, '\0'};
    char buffer[128];
    out.append(buffer, std::strftime(buffer, sizeof buffer, spec, &in.now()));
  }
  return in.text(std::move(out));
}

// cycler('odd', 'even'): next(), current, reset().
struct Cycler : Object, std::enable_shared_from_this<Cycler> {
  struct Method : Object {
    Method(std::shared_ptr<Cycler> c, bool n) : cycler(std::move(c)), next(n) {}
    std::string type_name() const override { return "method"; }
    bool callable() const override { return true; }
    int depth() const override { return cycler->depth(); }
    bool has_namespace() const override { return cycler->has_namespace(); }
    V call(In&, CallArgs&) override {
      const auto& items = cycler->values.as_list().items;
      if (!next) {
        cycler->position = 0;
        return V::none();
      }
      return items[cycler->position++ % items.size()];
    }
    std::shared_ptr<Cycler> cycler;
    bool next;
  };
  std::string type_name() const override { return "Cycler"; }
  int depth() const override { return values.depth() + 1; }
  bool has_namespace() const override { return values.has_namespace(); }
  const V* attribute(std::string_view name, V& out) override {
    const auto& items = values.as_list().items;
    if (name == "current") {
      out = items[position % items.size()];
    } else if (name == "next" || name == "reset") {
      out = V::object(std::make_shared<Method>(shared_from_this(), name == "next"));
    } else {
      return nullptr;
    }
    return &out;
  }
  V values;
  size_t position = 0;
};

V cycler(In& in, CallArgs& args) {
  if (args.positional.empty()) throw Fault{"cycler() needs at least one value"};
  auto out = std::make_shared<Cycler>();
  out->values = in.list(args.positional);
  return V::object(std::move(out));
}

// joiner(', '): nothing on the first call, the separator on every other.
struct Joiner : Object {
  std::string type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  V call(In&, CallArgs&) override { return std::exchange(used, true) ? separator : V::string(""); }
  V separator;
  bool used = false;
};

V joiner(In&, CallArgs& args) {
  ArgReader a("joiner()", args);
  auto out = std::make_shared<Joiner>();
  out->separator = V::string(a.text("sep", ", "));
  a.done();
  return V::object(std::move(out));
}

}  // namespace

void add_functions(Scope& scope) {
  const auto add = [&](const char* name, Function::Fn fn) {
    scope.set(name, V::object(std::make_shared<Function>(name, fn)));
  };
  add("range", range);
  add("dict", make_dict);
  add("namespace", make_namespace);
  add("raise_exception", raise_exception);
  add("strftime_now", strftime_now);
  add("cycler", cycler);
  add("joiner", joiner);
}

}  // namespace gridless::text::jinja
