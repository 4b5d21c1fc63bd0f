#include "gridless/tpu/runtime/runtime_error.h"

namespace gridless::tpu {
namespace {

// By status; general, since the step and the plugin's own text say the rest.
std::string_view hint(int code) {
  switch (code) {
    case 4:   // DEADLINE_EXCEEDED
    case 14:  // UNAVAILABLE
      return "every host of the slice must run this command at the same time, and no other process "
             "may hold the TPU; see docs/tpu.md, Several hosts";
    case 5:  // NOT_FOUND
      return "this machine has no TPU, or libtpu was not told its slice: see docs/tpu.md";
    case 7:   // PERMISSION_DENIED
    case 16:  // UNAUTHENTICATED
      return "the process needs access to the devices /dev/vfio or /dev/accel*";
    case 6:   // ALREADY_EXISTS
    case 9:   // FAILED_PRECONDITION
    case 10:  // ABORTED
      return "another process may hold the TPU: end it first";
    case 8:  // RESOURCE_EXHAUSTED
      return "the device's memory is full: use more cores, a shorter --context or a smaller "
             "--format";
    case 3:   // INVALID_ARGUMENT
    case 12:  // UNIMPLEMENTED
      return "program and libtpu may be of different builds: compile again with this libtpu";
    case 15:  // DATA_LOSS
      return "the device reported corrupt data: the caches are lost, load the model again";
    default:
      return {};
  }
}

}  // namespace

Error runtime_error(std::string_view what, const PluginError& error) {
  std::string message = fmt::format("{} failed: {}: {}", what, status_name(error.code), error.text);
  if (const std::string_view advice = hint(error.code); !advice.empty())
    message += fmt::format(" ({})", advice);
  return {Error::Kind::kMachine, std::move(message)};
}

}  // namespace gridless::tpu
