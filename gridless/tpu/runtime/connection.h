// What every object of the runtime keeps of the plugin that made it, and how the runtime calls the
// plugin: an error names the step that failed, the PJRT status, the plugin's own text and what to
// do about it where that is known.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "gridless/base/error.h"
#include "gridless/tpu/pjrt_call.h"

namespace gridless::tpu {

// Where on the way from a plugin to a result something failed: the same status means different
// things there.
enum class Stage {
  kStart,   // taking hold of the devices
  kLoad,    // bringing a program to them
  kUpload,  // bringing data to them
  kRun,     // launches and their results
};

// One step of that way; `what` is a noun: "starting the TPU client", "launch 12".
struct Step {
  Stage stage;
  std::string what;
};

struct Connection {
  const abi::Api* api = nullptr;
  std::chrono::milliseconds limit{};  // for everything that is waited for
  // Something did not end within the limit. From then on the plugin is not called any more, not
  // even to free what it gave: it might never return.
  bool lost = false;
};

Error runtime_error(const Step& step, const PluginError& error);
// Marks the connection lost: `step` is not over after its limit.
Error hang(Connection& connection, const Step& step);
Error lost(const Step& step);

// Whether some connection of this process was lost. Such a process should end by _Exit: libraries
// that clean up when it exits would wait for the device.
bool any_connection_lost();

// A call whose failure is such an error.
template <typename Args>
Result<void> checked(const Connection& connection, abi::Slot slot, Args& args, const Step& step) {
  if (connection.lost) return std::unexpected(lost(step));
  auto done = try_call(*connection.api, slot, args);
  if (!done) return std::unexpected(runtime_error(step, done.error()));
  return {};
}

// Calls a function about whose failure nothing can be done: one that frees something.
template <typename Args>
void release(const Connection& connection, abi::Slot slot, Args& args) {
  if (connection.lost) return;
  if (auto done = try_call(*connection.api, slot, args); !done) return;
}

// Runs `work`, which calls a function that blocks until it is done, and waits for it no longer than
// the limit. `work` may run on after that: it must own what it uses.
Result<void> within_limit(Connection& connection, const Step& step,
                          std::function<Result<void>()> work);

}  // namespace gridless::tpu
