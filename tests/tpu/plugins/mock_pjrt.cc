// A PJRT plugin that compiles nothing and misbehaves on demand. The program's text says how:
// "mock:error TEXT" refuses it with TEXT, "mock:abort", "mock:segv", "mock:exit", "mock:hang",
// "mock:memory" do what they say; anything else "compiles" to an executable that repeats the
// program and its options. The environment variable MOCK_PJRT does the same to loading:
// "small_table", "major", "init_error", "init_abort", "no_compile", "renumbered".
// mock_runtime.h has the part that runs programs.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/tpu/pjrt_abi.h"
#include "tests/tpu/plugins/mock_runtime.h"

namespace gridless::tpu::abi {

struct SerializedExecutable {
  std::string bytes;
};
struct Topology {
  std::vector<DeviceDescription> devices;
  std::vector<DeviceDescription*> pointers;
};

}  // namespace gridless::tpu::abi

namespace {

using namespace gridless::tpu::abi;  // NOLINT: this file is the other side of that namespace

std::string mode() {
  const char* value = getenv("MOCK_PJRT");
  return value ? value : "";
}

void error_destroy(ErrorArgs* args) { delete args->error; }
void error_message(ErrorMessageArgs* args) {
  args->message = args->error->text.data();
  args->message_size = args->error->text.size();
}
Error* error_code(ErrorGetCodeArgs* args) {
  args->code = args->error->code;
  return nullptr;
}

Error* initialize(PluginInitializeArgs*) {
  if (mode() == "init_error") return new Error{"no such luck", 14};
  if (mode() == "init_abort") {
    fprintf(stderr, "F1130 mock_pjrt.cc:1] cannot start\n");
    abort();
  }
  return nullptr;
}

Error* topology_create(TopologyCreateArgs* args) {
  const std::string name(args->name, args->name_size);
  int x = 0, y = 0, z = 0;
  if (sscanf(name.c_str(), "tpu7x:%dx%dx%d", &x, &y, &z) != 3) {
    return new Error{"unknown topology " + name, 3};
  }
  auto* topology = new Topology;
  for (int i = 0; i < 2 * x * y * z; ++i) {
    const int chip = i / 2;
    DeviceDescription device{.id = i};
    device.coordinates[0] = chip % x;
    device.coordinates[1] = chip / x % y;
    device.coordinates[2] = chip / (x * y);
    if (mode() == "renumbered") std::swap(device.coordinates[0], device.coordinates[1]);
    topology->devices.push_back(device);
  }
  for (DeviceDescription& device : topology->devices) {
    NamedValue& coords = device.attributes[0];
    coords.name = "coords";
    coords.name_size = 6;
    coords.type = NamedValue::kInt64List;
    coords.int64_list = device.coordinates;
    coords.value_size = 3;
    NamedValue& core = device.attributes[1];
    core.name = "core_on_chip";
    core.name_size = 12;
    core.type = NamedValue::kInt64;
    core.int64_value = device.id % 2;
    core.value_size = 1;
    topology->pointers.push_back(&device);
  }
  args->topology = topology;
  return nullptr;
}
Error* topology_version(TopologyPlatformVersionArgs* args) {
  args->version = "mock 1";
  args->version_size = 6;
  return nullptr;
}
Error* topology_devices(TopologyGetDeviceDescriptionsArgs* args) {
  args->descriptions = args->topology->pointers.data();
  args->num_descriptions = args->topology->pointers.size();
  return nullptr;
}
Error* device_id(DeviceDescriptionIdArgs* args) {
  args->id = args->description->id;
  return nullptr;
}
Error* device_attributes(DeviceDescriptionAttributesArgs* args) {
  args->attributes = args->description->attributes;
  args->num_attributes = 2;
  return nullptr;
}

Error* compile(CompileArgs* args) {
  const std::string_view code(args->program->code, args->program->code_size);
  const auto has = [&](std::string_view word) { return code.find(word) != std::string_view::npos; };
  if (const size_t at = code.find("mock:error "); at != std::string_view::npos) {
    return new Error{std::string(code.substr(at + strlen("mock:error "))), 13};
  }
  if (has("mock:machine")) return new Error{"the plugin is out of sorts", 14};
  if (has("mock:abort")) {
    fprintf(stderr,
            "F1130 12:00:00.000000 sync_flags.cc:42] Custom barrier sync flag is not set\n");
    fprintf(stderr, "*** Check failure stack trace: ***\n");
    abort();
  }
  if (has("mock:segv")) {
    signal(SIGSEGV, SIG_DFL);  // the sanitizers' handlers would make an exit status of it
    raise(SIGSEGV);
  }
  if (has("mock:exit")) _exit(7);
  if (has("mock:hang")) {
    fprintf(stderr, "thinking about it\n");
    for (;;) sleep(1);
  }
  if (has("mock:memory")) {
    std::vector<std::string> hoard;
    for (;;) hoard.emplace_back(size_t{64} << 20, 'x');
  }
  fprintf(stdout, "libraries do print to stdout\n");
  fflush(stdout);
  args->executable = new Executable{"MOCK" + std::string(code) + "|" +
                                    std::string(args->options, args->options_size)};
  return nullptr;
}

Error* executable_destroy(ExecutableDestroyArgs* args) {
  delete args->executable;
  return nullptr;
}
Error* executable_code(ExecutableSizeOfGeneratedCodeArgs* args) {
  args->bytes = 1234;
  return nullptr;
}
Error* executable_cost(ExecutableGetCostAnalysisArgs*) { return new Error{"not here", 12}; }
Error* executable_memory(ExecutableGetCompiledMemoryStatsArgs* args) {
  args->argument = 11;
  args->output = 22;
  args->alias = 33;
  args->temporary = 44;
  args->peak = 55;
  return nullptr;
}
Error* executable_serialize(ExecutableSerializeArgs* args) {
  args->serialized = new SerializedExecutable{args->executable->bytes};
  args->bytes = args->serialized->bytes.data();
  args->bytes_size = args->serialized->bytes.size();
  args->deleter = [](SerializedExecutable* serialized) { delete serialized; };
  return nullptr;
}

}  // namespace

extern "C" const Api* GetPjrtApi() {
  // One for each mode, written once and never freed: threads that hung may read it to the end.
  static auto& mutex = *new std::mutex;
  static auto& tables = *new std::map<std::string, Api>;
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = tables.try_emplace(mode());
  Api& api = entry->second;
  if (!fresh) return &api;
  api.struct_size = mode() == "small_table" ? 48 : sizeof(Api);
  if (mode() == "no_compile") api.struct_size = offsetof(Api, slots) + 89 * sizeof(void*);
  api.version.major = mode() == "major" ? 3 : 0;
  api.version.minor = 116;
  const auto set = [&](Slot slot, auto* function) {
    api.slots[static_cast<int>(slot)] = reinterpret_cast<void*>(function);
  };
  set(Slot::kErrorDestroy, error_destroy);
  set(Slot::kErrorMessage, error_message);
  set(Slot::kErrorGetCode, error_code);
  set(Slot::kPluginInitialize, initialize);
  set(Slot::kDeviceDescriptionId, device_id);
  set(Slot::kDeviceDescriptionAttributes, device_attributes);
  set(Slot::kExecutableDestroy, executable_destroy);
  set(Slot::kExecutableSizeOfGeneratedCode, executable_code);
  set(Slot::kExecutableGetCostAnalysis, executable_cost);
  set(Slot::kExecutableSerialize, executable_serialize);
  set(Slot::kTopologyCreate, topology_create);
  set(Slot::kTopologyPlatformVersion, topology_version);
  set(Slot::kTopologyGetDeviceDescriptions, topology_devices);
  set(Slot::kCompile, compile);
  set(Slot::kExecutableGetCompiledMemoryStats, executable_memory);
  mock::install_runtime(api);
  return &api;
}
