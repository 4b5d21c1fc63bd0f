// Statements, macros, loops and scopes.
#include <fmt/format.h>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/jinja/recursion.h"
#include "gridless/text/jinja/strings.h"

namespace gridless::text::jinja {
namespace {

constexpr int kMaxScopeDepth = 400;

struct Macro : Object {
  Macro(const MacroBody& b, Scope* c) : body(&b), closure(c) {}
  std::string type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  Value call(Interpreter& in, CallArgs& args) override {
    return in.call_macro(*body, closure, args);
  }
  const Value* attribute(std::string_view name, Value& scratch) override {
    if (name != "name") return nullptr;
    scratch = Value::string(body->name);
    return &scratch;
  }
  const MacroBody* body;
  Scope* closure;  // kept alive by the interpreter
};

// The variable `loop`.
struct Loop : Object, std::enable_shared_from_this<Loop> {
  std::string type_name() const override { return "LoopContext"; }
  bool callable() const override { return true; }
  int depth() const override { return values.depth() + 1; }
  bool has_namespace() const override { return values.has_namespace(); }

  Value call(Interpreter& in, CallArgs& args) override {
    if (!stmt->recursive) throw Fault{"the loop is not recursive: write {% for ... recursive %}"};
    if (args.positional.size() != 1) throw Fault{"loop() takes one argument"};
    return in.text(in.run_loop(*stmt, ScopePtr(ScopePtr(), outer), args.positional[0], level + 1));
  }

  const Value* attribute(std::string_view name, Value& out) override;

  Value values;  // the list looped over
  int64_t index0 = 0;
  int level = 0;
  const Stmt* stmt = nullptr;
  Scope* outer = nullptr;  // of recursive loops; kept alive by the interpreter
  std::optional<Value> last_changed;
};

// loop.cycle(...) and loop.changed(...)
struct LoopMethod : Object {
  LoopMethod(std::shared_ptr<Loop> l, bool c) : loop(std::move(l)), cycle(c) {}
  std::string type_name() const override { return "method"; }
  bool callable() const override { return true; }
  int depth() const override { return loop->depth(); }
  bool has_namespace() const override { return loop->has_namespace(); }
  Value call(Interpreter& in, CallArgs& args) override {
    if (cycle) {
      if (args.positional.empty()) throw Fault{"loop.cycle needs at least one value"};
      return args.positional[static_cast<size_t>(loop->index0) % args.positional.size()];
    }
    Value now = in.list(args.positional, true);
    if (now.has_namespace() || now.depth() > 100)
      throw Fault{"loop.changed cannot compare such values"};
    const bool changed = !loop->last_changed || !equal(*loop->last_changed, now);
    loop->last_changed = std::move(now);
    return Value::boolean(changed);
  }
  std::shared_ptr<Loop> loop;
  bool cycle;
};

const Value* Loop::attribute(std::string_view name, Value& out) {
  const std::vector<Value>& items = values.as_list().items;
  const auto size = static_cast<int64_t>(items.size());
  if (name == "index") {
    out = Value::integer(index0 + 1);
  } else if (name == "index0") {
    out = Value::integer(index0);
  } else if (name == "revindex") {
    out = Value::integer(size - index0);
  } else if (name == "revindex0") {
    out = Value::integer(size - index0 - 1);
  } else if (name == "first") {
    out = Value::boolean(index0 == 0);
  } else if (name == "last") {
    out = Value::boolean(index0 == size - 1);
  } else if (name == "length") {
    out = Value::integer(size);
  } else if (name == "depth") {
    out = Value::integer(level + 1);
  } else if (name == "depth0") {
    out = Value::integer(level);
  } else if (name == "cycle" || name == "changed") {
    out = Value::object(std::make_shared<LoopMethod>(shared_from_this(), name == "cycle"));
  } else if (name == "previtem") {
    out = index0 > 0 ? items[index0 - 1] : Value::undefined("there is no previous item");
  } else if (name == "nextitem") {
    out = index0 + 1 < size ? items[index0 + 1] : Value::undefined("there is no next item");
  } else {
    return nullptr;
  }
  return &out;
}

}  // namespace

const Value* Scope::find(std::string_view name) const {
  for (const Scope* s = this; s != nullptr; s = s->parent.get()) {
    for (const auto& [key, value] : s->variables) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : variables) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

ScopePtr Interpreter::child(const ScopePtr& parent) const {
  if (parent->depth >= kMaxScopeDepth) throw Fault{"the template recurses too deeply"};
  auto scope = std::make_shared<Scope>();
  scope->parent = parent;
  scope->depth = parent->depth + 1;
  return scope;
}

void Interpreter::over_budget() const {
  throw Fault{
      fmt::format("the template does too much work (limit {} bytes of text)", limits_.work)};
}

std::string Interpreter::run(const Block& block, const ScopePtr& globals) {
  std::string out;
  out_ = &out;
  scope_ = child(globals);
  exec(block);
  return out;
}

void Interpreter::print(std::string_view s) {
  work(s.size());
  *out_ += s;
}

std::string Interpreter::capture(const Block& block) {
  std::string out;
  std::string* const saved = std::exchange(out_, &out);
  const ScopePtr outer = scope_;
  scope_ = child(outer);
  exec(block);
  scope_ = outer;
  out_ = saved;
  return out;
}

void Interpreter::bind(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const std::vector<Value> items = elements(value);
    if (items.size() != target.parts.size()) {
      throw Fault{
          fmt::format("cannot unpack {} values into {} names", items.size(), target.parts.size())};
    }
    for (size_t i = 0; i < items.size(); ++i) bind(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) return scope_->set(target.name, value);
  const Value* object = scope_->find(target.name);
  auto* ns = object != nullptr && object->is_object()
                 ? dynamic_cast<Namespace*>(object->as_object().get())
                 : nullptr;
  if (ns == nullptr) throw Fault{"cannot assign attribute on non-namespace object"};
  ns->assign(target.attribute, value);
}

Interpreter::Flow Interpreter::exec(const Block& block) {
  for (const auto& s : block) {
    const Flow flow = exec(*s);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const Stmt& s) {
  const Recursion guard(recursion_, limits_.recursion);
  work(16);
  try {
    switch (s.kind) {
      case Stmt::Kind::kText:
        print(s.text);
        break;
      case Stmt::Kind::kPrint:
        print(to_str(eval(*s.expr)));
        break;
      case Stmt::Kind::kIf:
        for (size_t i = 0; i < s.conditions.size(); ++i) {
          if (truthy(eval(*s.conditions[i]))) return exec(s.blocks[i]);
        }
        if (s.blocks.size() > s.conditions.size()) return exec(s.blocks.back());
        break;
      case Stmt::Kind::kFor:
        exec_for(s, scope_, eval(*s.expr), 0);
        break;
      case Stmt::Kind::kSet:
        bind(s.targets[0], eval(*s.expr));
        break;
      case Stmt::Kind::kSetBlock:
      case Stmt::Kind::kFilter: {
        Value body = text(capture(s.blocks[0]));
        if (s.expr) {
          const ScopePtr outer = scope_;
          scope_ = child(outer);
          scope_->set(kBlockText, body);
          body = eval(*s.expr);
          scope_ = outer;
        }
        if (s.kind == Stmt::Kind::kFilter) {
          print(to_str(body));
        } else {
          bind(s.targets[0], body);
        }
        break;
      }
      case Stmt::Kind::kMacro:
        kept_.push_back(scope_);
        scope_->set(s.macro.name, Value::object(std::make_shared<Macro>(s.macro, scope_.get())));
        break;
      case Stmt::Kind::kCall: {
        kept_.push_back(scope_);
        const Value callee = eval(*s.expr->kids[0]);
        CallArgs args = eval_args(s.expr->args);
        args.named.emplace_back("caller",
                                Value::object(std::make_shared<Macro>(s.macro, scope_.get())));
        print(to_str(call(callee, args)));
        break;
      }
      case Stmt::Kind::kWith: {
        const ScopePtr outer = scope_;
        const ScopePtr inner = child(outer);
        for (size_t i = 0; i < s.targets.size(); ++i) {
          const Value value = eval(*s.conditions[i]);
          scope_ = inner;
          bind(s.targets[i], value);
          scope_ = outer;
        }
        scope_ = inner;
        const Flow flow = exec(s.blocks[0]);
        scope_ = outer;
        return flow;
      }
      case Stmt::Kind::kScope: {
        const ScopePtr outer = scope_;
        scope_ = child(outer);
        const Flow flow = exec(s.blocks[0]);
        scope_ = outer;
        return flow;
      }
      case Stmt::Kind::kBreak:
        return Flow::kBreak;
      case Stmt::Kind::kContinue:
        return Flow::kContinue;
    }
  } catch (Fault& fault) {
    if (fault.line == 0) fault.line = s.line;
    throw;
  }
  return Flow::kNormal;
}

std::string Interpreter::run_loop(const Stmt& loop, ScopePtr outer, const Value& iterable,
                                  int level) {
  std::string out;
  std::string* const saved = std::exchange(out_, &out);
  exec_for(loop, std::move(outer), iterable, level);
  out_ = saved;
  return out;
}

Interpreter::Flow Interpreter::exec_for(const Stmt& s, ScopePtr outer, const Value& iterable,
                                        int level) {
  const Recursion guard(recursion_, limits_.recursion);
  const ScopePtr saved = scope_;
  std::vector<Value> items = elements(iterable);
  if (s.condition) {
    std::vector<Value> chosen;
    for (Value& v : items) {
      scope_ = child(outer);
      bind(s.targets[0], v);
      if (truthy(eval(*s.condition))) chosen.push_back(std::move(v));
    }
    items = std::move(chosen);
  }
  auto loop = std::make_shared<Loop>();
  loop->values = list(std::move(items));
  loop->level = level;
  loop->stmt = &s;
  if (s.recursive) {
    loop->outer = outer.get();
    kept_.push_back(outer);
  }
  const std::vector<Value>& all = loop->values.as_list().items;
  for (size_t i = 0; i < all.size(); ++i) {
    work(16);
    loop->index0 = static_cast<int64_t>(i);
    scope_ = child(outer);
    scope_->set("loop", Value::object(loop));
    bind(s.targets[0], all[i]);
    if (exec(s.blocks[0]) == Flow::kBreak) break;
  }
  if (all.empty() && s.blocks.size() > 1) {
    scope_ = child(outer);
    exec(s.blocks[1]);
  }
  scope_ = saved;
  return Flow::kNormal;
}

Value Interpreter::call_macro(const MacroBody& macro, Scope* closure, CallArgs& args) {
  const Recursion guard(recursion_, limits_.recursion);
  const ScopePtr saved = scope_;
  // The closure is in kept_, so a pointer without ownership is as good as a share.
  const ScopePtr inner = child(ScopePtr(ScopePtr(), closure));
  scope_ = inner;
  std::vector<bool> used(args.named.size(), false);
  const auto named = [&](std::string_view name) -> const Value* {
    for (size_t i = 0; i < args.named.size(); ++i) {
      if (args.named[i].first != name) continue;
      used[i] = true;
      return &args.named[i].second;
    }
    return nullptr;
  };
  const size_t count = macro.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const Parameter& p = macro.parameters[i];
    const Value* by_name = named(p.name);
    if (i < args.positional.size()) {
      if (by_name != nullptr)
        throw Fault{fmt::format("macro '{}' got two values for '{}'", macro.name, p.name)};
      inner->set(p.name, args.positional[i]);
    } else if (by_name != nullptr) {
      inner->set(p.name, *by_name);
    } else if (p.fallback) {
      inner->set(p.name, eval(*p.fallback));
    } else {
      inner->set(p.name, Value::undefined(fmt::format("parameter '{}' was not provided", p.name)));
    }
  }
  if (macro.uses_caller) {
    const Value* caller = named("caller");
    inner->set("caller", caller != nullptr ? *caller : Value::undefined("No caller defined"));
  }
  if (macro.uses_kwargs) {
    Dict rest;
    for (size_t i = 0; i < args.named.size(); ++i) {
      if (!used[i]) rest.set(Value::string(args.named[i].first), args.named[i].second);
      used[i] = true;
    }
    inner->set("kwargs", Value::dict(std::move(rest)));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    throw Fault{
        fmt::format("macro '{}' takes no keyword argument '{}'", macro.name, args.named[i].first)};
  }
  const size_t extra = args.positional.size() > count ? args.positional.size() - count : 0;
  if (macro.uses_varargs) {
    inner->set(
        "varargs",
        list({args.positional.end() - static_cast<ptrdiff_t>(extra), args.positional.end()}, true));
  } else if (extra > 0) {
    throw Fault{fmt::format("macro '{}' takes not more than {} argument(s)", macro.name, count)};
  }
  std::string out;
  std::string* const saved_out = std::exchange(out_, &out);
  exec(macro.body);
  out_ = saved_out;
  scope_ = saved;
  return Value::string(std::move(out));
}

Value Interpreter::text(std::string s) {
  work(s.size());
  return Value::string(std::move(s));
}

Value Interpreter::list(std::vector<Value> items, bool tuple, bool generator) {
  work_items(items.size());
  return Value::list(std::move(items), tuple, generator);
}

Value Interpreter::call(const Value& callee, CallArgs& args) {
  if (callee.is_undefined()) throw Fault{callee.as_missing().message};
  if (!callee.is_object())
    throw Fault{fmt::format("'{}' object is not callable", type_name(callee))};
  return callee.as_object()->call(*this, args);
}

std::vector<Value> Interpreter::elements(const Value& v) {
  std::vector<Value> out;
  switch (v.kind()) {
    case Value::Kind::kUndefined:
      return out;
    case Value::Kind::kList:
      out = v.as_list().items;
      break;
    case Value::Kind::kDict:
      for (const auto& [key, value] : v.as_dict().items) out.push_back(key);
      break;
    case Value::Kind::kString: {
      const std::string& s = v.as_string();
      const std::vector<size_t> offsets = code_point_offsets(s);
      work_items(offsets.size());
      for (size_t i = 0; i + 1 < offsets.size(); ++i) {
        out.push_back(Value::string(s.substr(offsets[i], offsets[i + 1] - offsets[i])));
      }
      return out;
    }
    default:
      throw Fault{fmt::format("'{}' object is not iterable", type_name(v))};
  }
  work_items(out.size());
  return out;
}

}  // namespace gridless::text::jinja
