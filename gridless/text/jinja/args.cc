// Arguments of built-ins, and the dispatch of filters and tests.
#include <fmt/format.h>

#include "gridless/text/jinja/interpreter.h"

namespace gridless::text::jinja {

std::optional<Value> ArgReader::maybe(std::string_view name) {
  if (next_ < args_.positional.size()) return std::move(args_.positional[next_++]);
  for (auto it = args_.named.begin(); it != args_.named.end(); ++it) {
    if (it->first != name) continue;
    Value v = std::move(it->second);
    args_.named.erase(it);
    return v;
  }
  return std::nullopt;
}

Value ArgReader::take(std::string_view name) {
  std::optional<Value> v = maybe(name);
  if (!v) throw Fault{fmt::format("{} needs the argument '{}'", what_, name)};
  return std::move(*v);
}

std::string ArgReader::text(std::string_view name, std::optional<std::string> fallback) {
  std::optional<Value> v = maybe(name);
  if (!v && fallback) return std::move(*fallback);
  if (!v) throw Fault{fmt::format("{} needs the argument '{}'", what_, name)};
  if (!v->is_string()) {
    throw Fault{fmt::format("{}: '{}' must be a string, not {}", what_, name, type_name(*v))};
  }
  return v->as_string();
}

int64_t ArgReader::integer(std::string_view name, std::optional<int64_t> fallback) {
  std::optional<Value> v = maybe(name);
  if (!v && fallback) return *fallback;
  if (!v) throw Fault{fmt::format("{} needs the argument '{}'", what_, name)};
  if (!v->is_integral()) {
    throw Fault{fmt::format("{}: '{}' must be an integer, not {}", what_, name, type_name(*v))};
  }
  return v->as_int();
}

bool ArgReader::flag(std::string_view name, bool fallback) {
  const std::optional<Value> v = maybe(name);
  return v ? truthy(*v) : fallback;
}

void ArgReader::done() {
  if (next_ < args_.positional.size()) throw Fault{fmt::format("{} got too many arguments", what_)};
  if (!args_.named.empty()) {
    throw Fault{fmt::format("{} has no argument '{}'", what_, args_.named.front().first)};
  }
}

Value Interpreter::filter(const std::string& name, const Value& input, CallArgs& args) {
  FilterFn fn = find_filter(name);
  if (fn == nullptr) fn = find_text_filter(name);
  if (fn == nullptr) fn = find_sequence_filter(name);
  if (fn == nullptr) throw Fault{fmt::format("the filter '{}' is not supported", name)};
  ArgReader reader(fmt::format("the filter '{}'", name), args);
  return fn(*this, input, reader);
}

bool Interpreter::test(const std::string& name, const Value& input, CallArgs& args) {
  const TestFn fn = find_test(name);
  if (fn == nullptr) throw Fault{fmt::format("the test '{}' is not supported", name)};
  ArgReader reader(fmt::format("the test '{}'", name), args);
  const bool result = fn(*this, input, reader);
  reader.done();
  return result;
}

}  // namespace gridless::text::jinja
