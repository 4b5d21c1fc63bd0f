// Runs a syntax tree. One interpreter is one rendering: it is made, run once and dropped.
//
// Every step, byte of text and element of a list counts as work, and the sum is limited; recursion
// is limited too. A hostile template therefore ends with an error in bounded time and memory.
#pragma once

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/text/jinja/ast.h"
#include "gridless/text/jinja/value.h"

namespace gridless::text::jinja {

struct Scope {
  std::shared_ptr<Scope> parent;
  int depth = 0;
  std::vector<std::pair<std::string, Value>> variables;

  const Value* find(std::string_view name) const;  // here and in the parents
  void set(std::string_view name, Value value);    // here
};
using ScopePtr = std::shared_ptr<Scope>;

struct Limits {
  // In bytes of text made; a step of the interpreter counts as 16, an element of a list as 32.
  size_t work = 128 << 20;
  int recursion = 600;
};

class Interpreter {
 public:
  Interpreter(Limits limits, std::tm now) : limits_(limits), now_(now) {}

  // Throws Fault. `globals` are the caller's variables; the template's own go to a scope below.
  std::string run(const Block& block, const ScopePtr& globals);

  // For filters, tests, methods and functions.
  void work(size_t amount) {
    work_ += amount;
    if (work_ > limits_.work) over_budget();
  }
  void work_items(size_t count) { work(count * 32); }
  Value text(std::string s);  // a string, its bytes accounted for
  Value list(std::vector<Value> items, bool tuple = false, bool generator = false);
  Value call(const Value& callee, CallArgs& args);
  Value filter(const std::string& name, const Value& input, CallArgs& args);
  bool test(const std::string& name, const Value& input, CallArgs& args);
  Value attribute(const Value& object, std::string_view name);  // a.b: methods before items
  Value item(const Value& object, const Value& key);            // a[b]: items before methods
  // The elements that a for loop would see.
  std::vector<Value> elements(const Value& v);
  bool contains(const Value& container, const Value& element);
  Value binary(std::string_view op, const Value& a, const Value& b);
  const std::tm& now() const { return now_; }

  // For macros and recursive loops.
  Value call_macro(const MacroBody& macro, Scope* closure, CallArgs& args);
  std::string run_loop(const Stmt& loop, ScopePtr outer, const Value& iterable, int level);

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  struct Recursion;

  [[noreturn]] void over_budget() const;
  Value eval(const Expr& e);
  Value eval_inner(const Expr& e);
  Value eval_compare(const Expr& e);
  Value eval_slice(const Expr& e);
  CallArgs eval_args(const Args& args);
  Flow exec(const Block& block);
  Flow exec(const Stmt& s);
  // `outer` by value: the loop moves scope_, which callers pass here.
  Flow exec_for(const Stmt& s, ScopePtr outer, const Value& iterable, int level);
  std::string capture(const Block& block);  // the text of a block, in a scope of its own
  void print(std::string_view s);
  void bind(const Target& target, const Value& value);
  ScopePtr child(const ScopePtr& parent) const;

  Limits limits_;
  std::tm now_;
  size_t work_ = 0;
  int recursion_ = 0;
  std::string* out_ = nullptr;
  ScopePtr scope_;
  // Scopes that macros and recursive loops look into: alive to the end of the rendering, because a
  // namespace may carry the macro out of its scope.
  std::vector<ScopePtr> kept_;
};

// Reads the arguments of a built-in, in the order of its signature; done() refuses what is left
// over.
class ArgReader {
 public:
  ArgReader(std::string what, CallArgs& args) : what_(std::move(what)), args_(args) {}
  // The next positional argument, or the named one.
  std::optional<Value> maybe(std::string_view name);
  Value take(std::string_view name);  // required
  std::string text(std::string_view name, std::optional<std::string> fallback = {});
  int64_t integer(std::string_view name, std::optional<int64_t> fallback = {});
  bool flag(std::string_view name, bool fallback);
  void done();
  size_t left() const { return args_.positional.size() - next_; }
  const std::string& what() const { return what_; }

 private:
  std::string what_;
  CallArgs& args_;
  size_t next_ = 0;
};

// The built-ins, by name. Null: there is none.
using FilterFn = Value (*)(Interpreter&, const Value&, ArgReader&);
using TestFn = bool (*)(Interpreter&, const Value&, ArgReader&);
FilterFn find_filter(std::string_view name);           // filters.cc
FilterFn find_sequence_filter(std::string_view name);  // filters_sequence.cc
FilterFn find_text_filter(std::string_view name);      // filters_text.cc
TestFn find_test(std::string_view name);               // tests.cc
// A bound method, or null. Methods that would change the object are refused by a Fault.
std::shared_ptr<Object> find_method(const Value& object, std::string_view name);  // methods.cc
// range, namespace, dict, ... into `scope`.
void add_functions(Scope& scope);  // functions.cc

// Python's "%s %d" % values and "{} {x}".format(...).
std::string printf_format(Interpreter& in, std::string_view format, const Value& values);
std::string brace_format(Interpreter& in, std::string_view format, CallArgs& args);

struct JsonStyle {
  int indent = -1;  // -1: one line
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false, ascii = false;
};
// Python's json.dumps.
std::string dump_json(Interpreter& in, const Value& v, const JsonStyle& style);

}  // namespace gridless::text::jinja
