#include "gridless/tpu/plugin.h"

#include <dlfcn.h>

#include <chrono>
#include <utility>

#include "gridless/tpu/pjrt_abi.h"

namespace gridless::tpu {
namespace {

using abi::Slot;

// Codes that speak about the program rather than about this machine: INVALID_ARGUMENT,
// RESOURCE_EXHAUSTED (of the chip), UNIMPLEMENTED, and INTERNAL, which is how Mosaic reports most
// of what it refuses.
bool program_at_fault(int code) { return code == 3 || code == 8 || code == 12 || code == 13; }

template <typename Args>
Args make_args() {
  Args args{};
  args.header.struct_size = sizeof(Args);
  return args;
}

// The function in `slot`, or nullptr when this plugin's table ends before it.
void* function(const abi::Api& api, Slot slot) {
  const size_t end = offsetof(abi::Api, slots) + (static_cast<size_t>(slot) + 1) * sizeof(void*);
  return api.struct_size >= end ? api.slots[static_cast<int>(slot)] : nullptr;
}

template <typename Args>
void call_void(const abi::Api& api, Slot slot, Args& args) {
  if (void* f = function(api, slot)) reinterpret_cast<void (*)(Args*)>(f)(&args);
}

// Takes ownership of `error` and returns its text.
Error take(const abi::Api& api, abi::Error* error) {
  auto message = make_args<abi::ErrorMessageArgs>();
  message.error = error;
  call_void(api, Slot::kErrorMessage, message);
  auto code = make_args<abi::ErrorGetCodeArgs>();
  code.error = error;
  if (void* f = function(api, Slot::kErrorGetCode)) {
    reinterpret_cast<abi::Error* (*)(abi::ErrorGetCodeArgs*)>(f)(&code);
  }
  Error result{program_at_fault(code.code) ? Error::Kind::kInput : Error::Kind::kMachine,
               message.message ? std::string(message.message, message.message_size)
                               : "the plugin gave no error text"};
  auto destroy = make_args<abi::ErrorArgs>();
  destroy.error = error;
  call_void(api, Slot::kErrorDestroy, destroy);
  return result;
}

template <typename Args>
Result<void> call(const abi::Api& api, Slot slot, Args& args) {
  void* f = function(api, slot);
  if (f == nullptr) {
    return machine_error(
        "the PJRT plugin (API {}.{}, table of {} bytes) lacks function {}: it is too old; "
        "use libtpu 0.0.44 or later",
        api.version.major, api.version.minor, api.struct_size, static_cast<int>(slot));
  }
  if (abi::Error* error = reinterpret_cast<abi::Error* (*)(Args*)>(f)(&args)) {
    return std::unexpected(take(api, error));
  }
  return {};
}

// Frees the executable when the scope ends.
class ScopedExecutable {
 public:
  ScopedExecutable(const abi::Api& api, abi::Executable* executable)
      : api_(api), executable_(executable) {}
  ~ScopedExecutable() {
    auto args = make_args<abi::ExecutableDestroyArgs>();
    args.executable = executable_;
    if (Result<void> done = call(api_, Slot::kExecutableDestroy, args); !done) return;
  }
  ScopedExecutable(const ScopedExecutable&) = delete;
  ScopedExecutable& operator=(const ScopedExecutable&) = delete;

 private:
  const abi::Api& api_;
  abi::Executable* executable_;
};

// Everything that can be asked of a compiled program. A plugin that does not implement one of the
// statistics leaves it at zero; only the bytes themselves are required.
Result<Compiled> describe(const abi::Api& api, abi::Executable* executable) {
  Compiled out;
  auto bytes = make_args<abi::ExecutableSerializeArgs>();
  bytes.executable = executable;
  TRY_VOID(call(api, Slot::kExecutableSerialize, bytes));
  out.executable.assign(bytes.bytes, bytes.bytes_size);
  if (bytes.deleter) bytes.deleter(bytes.serialized);

  auto code = make_args<abi::ExecutableSizeOfGeneratedCodeArgs>();
  code.executable = executable;
  if (call(api, Slot::kExecutableSizeOfGeneratedCode, code)) out.code_bytes = code.bytes;

  auto memory = make_args<abi::ExecutableGetCompiledMemoryStatsArgs>();
  memory.executable = executable;
  if (call(api, Slot::kExecutableGetCompiledMemoryStats, memory)) {
    out.memory = {memory.generated_code, memory.argument,  memory.output,
                  memory.alias,          memory.temporary, memory.peak};
  }

  auto cost = make_args<abi::ExecutableGetCostAnalysisArgs>();
  cost.executable = executable;
  if (call(api, Slot::kExecutableGetCostAnalysis, cost)) {
    for (size_t i = 0; i < cost.num_properties; ++i) {
      const abi::NamedValue& value = cost.properties[i];
      if (value.type != abi::NamedValue::kFloat) continue;
      out.cost[std::string(value.name, value.name_size)] = value.float_value;
    }
  }
  return out;
}

}  // namespace

Result<Plugin> Plugin::open(const std::string& path) {
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
  return Plugin(api);
}

int Plugin::api_minor() const { return api_->version.minor; }

Result<abi::Topology*> Plugin::topology(const chips::Slice& slice) {
  const std::string name = slice.name();
  if (auto found = topologies_.find(name); found != topologies_.end()) return found->second;
  auto args = make_args<abi::TopologyCreateArgs>();
  args.name = name.data();
  args.name_size = name.size();
  TRY_VOID(call(*api_, Slot::kTopologyCreate, args));
  topologies_[name] = args.topology;
  return args.topology;
}

Result<std::string> Plugin::platform_version(const chips::Slice& slice) {
  auto args = make_args<abi::TopologyPlatformVersionArgs>();
  TRY(args.topology, topology(slice));
  TRY_VOID(call(*api_, Slot::kTopologyPlatformVersion, args));
  return std::string(args.version, args.version_size);
}

Result<std::vector<Plugin::Device>> Plugin::devices(const chips::Slice& slice) {
  auto list = make_args<abi::TopologyGetDeviceDescriptionsArgs>();
  TRY(list.topology, topology(slice));
  TRY_VOID(call(*api_, Slot::kTopologyGetDeviceDescriptions, list));
  std::vector<Device> devices;
  for (size_t i = 0; i < list.num_descriptions; ++i) {
    auto id = make_args<abi::DeviceDescriptionIdArgs>();
    id.description = list.descriptions[i];
    TRY_VOID(call(*api_, Slot::kDeviceDescriptionId, id));
    auto attributes = make_args<abi::DeviceDescriptionAttributesArgs>();
    attributes.description = list.descriptions[i];
    TRY_VOID(call(*api_, Slot::kDeviceDescriptionAttributes, attributes));
    Device device{.id = id.id};
    for (size_t k = 0; k < attributes.num_attributes; ++k) {
      const abi::NamedValue& value = attributes.attributes[k];
      const std::string_view name(value.name, value.name_size);
      if (name == "coords" && value.type == abi::NamedValue::kInt64List && value.value_size >= 3) {
        device.at.x = static_cast<int>(value.int64_list[0]);
        device.at.y = static_cast<int>(value.int64_list[1]);
        device.at.z = static_cast<int>(value.int64_list[2]);
      } else if (name == "core_on_chip" && value.type == abi::NamedValue::kInt64) {
        device.at.core = static_cast<int>(value.int64_value);
      }
    }
    devices.push_back(device);
  }
  return devices;
}

Result<Compiled> Plugin::compile(std::string_view stablehlo, const chips::Slice& slice,
                                 const CompileOptions& options) {
  constexpr std::string_view kFormat = "mlir";
  auto program = make_args<abi::Program>();
  program.code = stablehlo.data();
  program.code_size = stablehlo.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  const std::string encoded = encode(options);
  auto args = make_args<abi::CompileArgs>();
  TRY(args.topology, topology(slice));
  args.program = &program;
  args.options = encoded.data();
  args.options_size = encoded.size();

  const auto start = std::chrono::steady_clock::now();
  TRY_VOID(call(*api_, Slot::kCompile, args));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const ScopedExecutable owner(*api_, args.executable);
  TRY(Compiled out, describe(*api_, args.executable));
  out.seconds = seconds.count();
  return out;
}

}  // namespace gridless::tpu
