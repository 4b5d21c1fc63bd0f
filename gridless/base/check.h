// CHECK: our own bugs. A failed CHECK prints the condition, a message and its place, and aborts.
// Never for bad input: see error.h (files, plugins) and diagnostic.h (the user's kernel or model).
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <string>

namespace gridless {

[[noreturn]] void check_failed(const char* condition, const std::string& message,
                               std::source_location where);

}  // namespace gridless

#define GRIDLESS_CHECK(cond, ...)                                    \
  do {                                                               \
    if (!(cond)) [[unlikely]] {                                      \
      ::gridless::check_failed(#cond, ::fmt::format("" __VA_ARGS__), \
                               std::source_location::current());     \
    }                                                                \
  } while (false)
