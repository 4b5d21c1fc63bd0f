// Error: what the outside world did wrong (files, sockets, plugins, command lines). Returned in
// std::expected; never thrown across rooms. `message` is one sentence that says what to do where
// that is known, and names the file, tensor or option it speaks about.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <utility>

namespace gridless {

struct Error {
  enum class Kind {
    kInput,    // the user's file, option or model is at fault: exit status 1
    kMachine,  // this machine or a plugin failed (no memory, no libtpu): exit status 2
  };
  Kind kind = Kind::kInput;
  std::string message;

  // The same error with "context: " in front; for callers that know the file name.
  Error in(std::string_view context) const {
    return {kind, fmt::format("{}: {}", context, message)};
  }
};

template <typename T>
using Result = std::expected<T, Error>;

template <typename... Args>
std::unexpected<Error> input_error(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{Error::Kind::kInput, fmt::format(format, std::forward<Args>(args)...)});
}

template <typename... Args>
std::unexpected<Error> machine_error(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{Error::Kind::kMachine, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace gridless

#define GRIDLESS_CONCAT_(a, b) a##b
#define GRIDLESS_CONCAT(a, b) GRIDLESS_CONCAT_(a, b)

// TRY(auto x, f()): x = *f(), or return f's error from the enclosing function.
#define TRY(decl, expr) TRY_IMPL_(GRIDLESS_CONCAT(try_, __LINE__), decl, expr)
#define TRY_IMPL_(tmp, decl, expr)                          \
  auto tmp = (expr);                                        \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  decl = std::move(tmp).value()

// TRY_VOID(f()): return f's error from the enclosing function, if there is one.
#define TRY_VOID(expr)                                       \
  do {                                                       \
    if (auto try_result = (expr); !try_result)               \
      return std::unexpected(std::move(try_result).error()); \
  } while (false)
