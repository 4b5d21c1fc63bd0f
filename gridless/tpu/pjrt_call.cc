#include "gridless/tpu/pjrt_call.h"

#include <dlfcn.h>

#include <array>
#include <string_view>

namespace gridless::tpu {
namespace {

using abi::Slot;

constexpr std::array<std::string_view, 17> kStatusNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};
constexpr int kUnknown = 2;
constexpr int kUnimplemented = 12;

// For functions that cannot fail.
template <typename Args>
void call_void(const abi::Api& api, Slot slot, Args& args) {
  if (void* f = find_function(api, slot)) reinterpret_cast<void (*)(Args*)>(f)(&args);
}

}  // namespace

std::string status_name(int code) {
  if (code >= 0 && code < static_cast<int>(kStatusNames.size()))
    return std::string(kStatusNames[static_cast<size_t>(code)]);
  return fmt::format("code {}", code);
}

// INTERNAL too: it is how Mosaic reports most of what it refuses. RESOURCE_EXHAUSTED is of the
// chip.
bool program_at_fault(int code) { return code == 3 || code == 8 || code == 12 || code == 13; }

void* find_function(const abi::Api& api, Slot slot) {
  const size_t end = offsetof(abi::Api, slots) + (static_cast<size_t>(slot) + 1) * sizeof(void*);
  return api.struct_size >= end ? api.slots[static_cast<int>(slot)] : nullptr;
}

PluginError missing_function(const abi::Api& api, Slot slot) {
  return {
      kUnimplemented,
      fmt::format("the PJRT plugin (API {}.{}, table of {} bytes) lacks function {}: it is too "
                  "old; use libtpu 0.0.44 or later",
                  api.version.major, api.version.minor, api.struct_size, static_cast<int>(slot))};
}

PluginError take_error(const abi::Api& api, abi::Error* error) {
  auto message = make_args<abi::ErrorMessageArgs>();
  message.error = error;
  call_void(api, Slot::kErrorMessage, message);
  auto code = make_args<abi::ErrorGetCodeArgs>();
  code.error = error;
  code.code = kUnknown;  // stays for a plugin that does not say
  if (void* f = find_function(api, Slot::kErrorGetCode)) {
    reinterpret_cast<abi::Error* (*)(abi::ErrorGetCodeArgs*)>(f)(&code);
  }
  PluginError result{code.code, message.message ? std::string(message.message, message.message_size)
                                                : "the plugin gave no error text"};
  auto destroy = make_args<abi::ErrorArgs>();
  destroy.error = error;
  call_void(api, Slot::kErrorDestroy, destroy);
  return result;
}

Result<const abi::Api*> load_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();  // names the file
    return machine_error("cannot load the TPU compiler: {}", why ? why : path.c_str());
  }
  auto get_api = reinterpret_cast<const abi::Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    return machine_error("{} is not a PJRT plugin: it exports no GetPjrtApi", path);
  }
  const abi::Api* api = get_api();
  if (api == nullptr) return machine_error("{}: GetPjrtApi returned nothing", path);
  if (api->struct_size < offsetof(abi::Api, slots)) {
    return machine_error("{}: the PJRT table is {} bytes, smaller than its own header", path,
                         api->struct_size);
  }
  if (api->version.major != 0) {
    return machine_error("{} speaks PJRT {}.{}; this program speaks major version 0", path,
                         api->version.major, api->version.minor);
  }
  auto init = make_args<abi::PluginInitializeArgs>();
  TRY_VOID(call(*api, Slot::kPluginInitialize, init));
  return api;
}

}  // namespace gridless::tpu
