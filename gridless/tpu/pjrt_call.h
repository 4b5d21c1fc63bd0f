// Checked calls over pjrt_abi.h, for the two that hold a plugin: plugin.h compiles, runtime/ runs.
#pragma once

#include <cstddef>
#include <string>

#include "gridless/base/error.h"
#include "gridless/tpu/pjrt_abi.h"

namespace gridless::tpu {

// Loads the library and initialises it. Environment variables that it reads must be set before.
// A plugin is never unloaded; loading the same one again gives the same table.
Result<const abi::Api*> load_plugin(const std::string& path);

// What a plugin says about a call that failed.
struct PluginError {
  int code = 0;  // of absl::StatusCode
  std::string text;
};

// INVALID_ARGUMENT, ... as the plugin's authors call the code; "code 99" for one that is not known.
std::string status_name(int code);

// Whether a refused *compilation* speaks about the program rather than about this machine.
bool program_at_fault(int code);

// Takes ownership of `error`.
PluginError take_error(const abi::Api& api, abi::Error* error);

template <typename Args>
Args make_args() {
  Args args{};
  args.header.struct_size = sizeof(Args);
  return args;
}

// The function in `slot`, or nullptr when this plugin's table ends before it or leaves it empty.
void* find_function(const abi::Api& api, abi::Slot slot);

// The error for a plugin without the function, in which case `code` is UNIMPLEMENTED.
PluginError missing_function(const abi::Api& api, abi::Slot slot);

template <typename Args>
std::expected<void, PluginError> try_call(const abi::Api& api, abi::Slot slot, Args& args) {
  void* function = find_function(api, slot);
  if (function == nullptr) return std::unexpected(missing_function(api, slot));
  if (abi::Error* error = reinterpret_cast<abi::Error* (*)(Args*)>(function)(&args)) {
    return std::unexpected(take_error(api, error));
  }
  return {};
}

// The same with the plugin's text unchanged, as compiling needs it.
template <typename Args>
Result<void> call(const abi::Api& api, abi::Slot slot, Args& args) {
  auto done = try_call(api, slot, args);
  if (done) return {};
  const bool input = find_function(api, slot) != nullptr && program_at_fault(done.error().code);
  return std::unexpected(
      Error{input ? Error::Kind::kInput : Error::Kind::kMachine, std::move(done.error().text)});
}

}  // namespace gridless::tpu
