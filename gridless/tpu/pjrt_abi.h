// The part of the PJRT C API that Gridless calls, declared by us.
//
// PJRT is a plugin ABI: a shared library exports GetPjrtApi(), which returns a table of function
// pointers; every function takes one pointer to an argument struct. The ABI only ever grows at the
// end, in the table and in each struct, and both carry their size. So we declare prefixes: a caller
// writes the size it knows into struct_size and the plugin reads no further, and a slot of the
// table may be called when it lies within the table's own struct_size (plugin.cc checks that for
// each call).
//
// Layouts are those of API 0.40 and later (field `extension_start` where older headers say `priv`);
// tests/tpu/pjrt_abi_test.cc pins the offsets that are known from published bindings.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridless::tpu::abi {

// Opaque to us: owned by the plugin.
struct Error;
struct Client;
struct DeviceDescription;
struct Executable;
struct SerializedExecutable;
struct Topology;

// Every argument struct begins with this.
struct Header {
  size_t struct_size = 0;
  void* extension_start = nullptr;
};

struct ApiVersion {
  Header header;
  int major = 0;
  int minor = 0;
};

// Positions in the function table, counted in pointers after `version`.
enum class Slot : int {
  kErrorDestroy = 0,
  kErrorMessage = 1,
  kErrorGetCode = 2,
  kPluginInitialize = 3,
  kPluginAttributes = 4,
  kDeviceDescriptionId = 23,
  kDeviceDescriptionAttributes = 25,
  kExecutableDestroy = 40,
  kExecutableSizeOfGeneratedCode = 45,
  kExecutableGetCostAnalysis = 46,
  kExecutableSerialize = 49,
  kTopologyCreate = 82,
  kTopologyDestroy = 83,
  kTopologyPlatformVersion = 85,
  kTopologyGetDeviceDescriptions = 86,
  kCompile = 89,
  kExecutableGetCompiledMemoryStats = 96,
};
inline constexpr int kSlots = 97;

struct Api {
  size_t struct_size = 0;
  void* extension_start = nullptr;
  ApiVersion version;
  void* slots[kSlots] = {};
};

struct ErrorArgs {  // destroy; get_code reads `code`
  Header header;
  Error* error = nullptr;
};
struct ErrorMessageArgs {
  Header header;
  const Error* error = nullptr;
  const char* message = nullptr;  // out, lives as long as the error
  size_t message_size = 0;        // out
};
struct ErrorGetCodeArgs {
  Header header;
  const Error* error = nullptr;
  int code = 0;  // out; the numbers of absl::StatusCode
};

struct NamedValue {
  enum Type : int { kString = 0, kInt64 = 1, kInt64List = 2, kFloat = 3, kBool = 4 };
  Header header;
  const char* name = nullptr;
  size_t name_size = 0;
  int type = kString;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_list;
    float float_value;
    bool bool_value;
  };
  size_t value_size = 0;  // elements of a list or string, 1 for a scalar
};

struct PluginInitializeArgs {
  Header header;
};
struct PluginAttributesArgs {
  Header header;
  const NamedValue* attributes = nullptr;  // out, live as long as the process
  size_t num_attributes = 0;               // out
};

struct TopologyCreateArgs {
  Header header;
  const char* name = nullptr;
  size_t name_size = 0;
  const NamedValue* options = nullptr;
  size_t num_options = 0;
  Topology* topology = nullptr;  // out
};
struct TopologyDestroyArgs {
  Header header;
  Topology* topology = nullptr;
};
struct TopologyPlatformVersionArgs {
  Header header;
  Topology* topology = nullptr;
  const char* version = nullptr;  // out
  size_t version_size = 0;        // out
};
struct TopologyGetDeviceDescriptionsArgs {
  Header header;
  Topology* topology = nullptr;
  DeviceDescription* const* descriptions = nullptr;  // out
  size_t num_descriptions = 0;                       // out
};
struct DeviceDescriptionIdArgs {
  Header header;
  DeviceDescription* description = nullptr;
  int id = 0;  // out
};
struct DeviceDescriptionAttributesArgs {
  Header header;
  DeviceDescription* description = nullptr;
  size_t num_attributes = 0;               // out
  const NamedValue* attributes = nullptr;  // out
};

struct Program {
  Header header;
  const char* code = nullptr;
  size_t code_size = 0;
  const char* format = nullptr;  // "mlir": StableHLO as text or bytecode
  size_t format_size = 0;
};
struct CompileArgs {
  Header header;
  const Topology* topology = nullptr;
  const Program* program = nullptr;
  const char* options = nullptr;  // a serialized CompileOptionsProto, see compile_options.h
  size_t options_size = 0;
  Client* client = nullptr;          // none: compile for a topology
  Executable* executable = nullptr;  // out
};

struct ExecutableDestroyArgs {
  Header header;
  Executable* executable = nullptr;
};
struct ExecutableSizeOfGeneratedCodeArgs {
  Header header;
  Executable* executable = nullptr;
  int64_t bytes = 0;  // out
};
struct ExecutableGetCostAnalysisArgs {
  Header header;
  Executable* executable = nullptr;
  size_t num_properties = 0;               // out
  const NamedValue* properties = nullptr;  // out, live as long as the executable
};
struct ExecutableSerializeArgs {
  Header header;
  const Executable* executable = nullptr;
  const char* bytes = nullptr;                       // out
  size_t bytes_size = 0;                             // out
  SerializedExecutable* serialized = nullptr;        // out, owns bytes
  void (*deleter)(SerializedExecutable*) = nullptr;  // out, call once
};
struct ExecutableGetCompiledMemoryStatsArgs {
  Header header;
  Executable* executable = nullptr;
  int64_t generated_code = 0;  // all out, bytes
  int64_t argument = 0;
  int64_t output = 0;
  int64_t alias = 0;
  int64_t temporary = 0;
  int64_t host[5] = {};  // the same five for host memory
  int64_t peak = 0;      // API 0.81 and later; stays 0 with an older plugin
};

static_assert(offsetof(Api, slots) == 40);
static_assert(sizeof(CompileArgs) == 0x40 && sizeof(TopologyCreateArgs) == 0x38);

}  // namespace gridless::tpu::abi
