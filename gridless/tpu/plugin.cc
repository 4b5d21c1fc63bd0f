#include "gridless/tpu/plugin.h"

#include <chrono>
#include <utility>

#include "gridless/tpu/device_attributes.h"
#include "gridless/tpu/pjrt_call.h"
#include "gridless/tpu/pjrt_layouts.h"

namespace gridless::tpu {
namespace {

using abi::Slot;

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
  out.operand_layouts = parameter_layouts(api, executable);
  return out;
}

}  // namespace

Result<Plugin> Plugin::open(const std::string& path) {
  TRY(const abi::Api* api, load_plugin(path));
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
    auto device = describe_device(*api_, list.descriptions[i]);
    if (!device) return machine_error("{}", device.error().text);
    devices.push_back({device->id, device->at});
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
