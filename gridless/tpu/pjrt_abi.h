// The part of the PJRT C API that Gridless calls, declared by us.
//
// PJRT is a plugin ABI: a shared library exports GetPjrtApi(), which returns a table of function
// pointers; every function takes one pointer to an argument struct. The ABI only ever grows at the
// end, in the table and in each struct, and both carry their size. A slot of the table may be
// called when it lies within the table's own struct_size (pjrt_call.h checks that at each call). A
// plugin refuses an argument struct that is smaller than the one it was built with, and takes a
// larger one.
//
// Layouts are those of API 0.116 (libtpu 0.0.51). tests/tpu/pjrt_abi_test.cc asks the real libtpu
// for the name and size that it expects in every slot declared here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridless::tpu::abi {

// Opaque to us: owned by the plugin.
struct Error;
struct Buffer;
struct Client;
struct Device;
struct DeviceDescription;
struct Event;
struct Executable;
struct LoadedExecutable;
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
  kEventDestroy = 5,
  kEventAwait = 8,
  kEventOnReady = 9,
  kClientCreate = 10,
  kClientDestroy = 11,
  kClientPlatformName = 12,
  kClientPlatformVersion = 14,
  kClientDevices = 15,
  kClientAddressableDevices = 16,
  kClientCompile = 20,
  kClientBufferFromHostBuffer = 22,
  kDeviceDescriptionId = 23,
  kDeviceDescriptionAttributes = 25,
  kDeviceGetDescription = 29,
  kExecutableDestroy = 40,
  kExecutableNumOutputs = 44,
  kExecutableSizeOfGeneratedCode = 45,
  kExecutableGetCostAnalysis = 46,
  kExecutableSerialize = 49,
  kLoadedExecutableDestroy = 50,
  kLoadedExecutableGetExecutable = 51,
  kLoadedExecutableAddressableDevices = 52,
  kLoadedExecutableExecute = 55,
  kExecutableDeserializeAndLoad = 56,
  kBufferDestroy = 58,
  kBufferToHostBuffer = 70,
  kBufferReadyEvent = 72,
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

// ---- What only a host with devices needs.

struct EventArgs {  // destroy and await
  Header header;
  Event* event = nullptr;
};
struct EventOnReadyArgs {
  Header header;
  Event* event = nullptr;
  // Called once, on any thread, with the error of the work (which the callee frees) or none.
  void (*callback)(Error* error, void* argument) = nullptr;
  void* argument = nullptr;
};

struct ClientCreateArgs {
  Header header;
  const NamedValue* options = nullptr;
  size_t num_options = 0;
  // A key-value store between processes, which libtpu does not need: it finds its peers itself.
  void* kv_get_callback = nullptr;
  void* kv_get_argument = nullptr;
  void* kv_put_callback = nullptr;
  void* kv_put_argument = nullptr;
  Client* client = nullptr;  // out
  void* kv_try_get_callback = nullptr;
  void* kv_try_get_argument = nullptr;
};
struct ClientDestroyArgs {
  Header header;
  Client* client = nullptr;
};
struct ClientTextArgs {  // platform name and version
  Header header;
  Client* client = nullptr;
  const char* text = nullptr;  // out, lives as long as the client
  size_t text_size = 0;        // out
};
struct ClientDevicesArgs {  // all, and those of this process
  Header header;
  Client* client = nullptr;
  Device* const* devices = nullptr;  // out, live as long as the client
  size_t num_devices = 0;            // out
};
struct ClientCompileArgs {
  Header header;
  Client* client = nullptr;
  const Program* program = nullptr;
  const char* options = nullptr;
  size_t options_size = 0;
  LoadedExecutable* executable = nullptr;  // out
};

// A plugin may read host memory after the call, until an event says that it is done.
inline constexpr int kImmutableUntilTransferCompletes = 1;

// How an array lies in a device's memory: the order of its dimensions, and the tiles that they are
// cut into, each tile's sizes behind those of the one before.
struct MemoryLayout {
  Header header;
  Header tiled_header;
  const int64_t* minor_to_major = nullptr;
  size_t num_dims = 0;
  const int64_t* tile_dims = nullptr;
  const size_t* tile_dim_sizes = nullptr;  // sizes of each tile
  size_t num_tiles = 0;
  int type = 0;  // tiled
};

struct BufferFromHostArgs {
  Header header;
  Client* client = nullptr;
  const void* data = nullptr;
  int type = 0;  // runtime/element_type.h
  const int64_t* dims = nullptr;
  size_t num_dims = 0;
  const int64_t* byte_strides = nullptr;  // none: dense, row-major
  size_t num_byte_strides = 0;
  int host_buffer_semantics = kImmutableUntilTransferCompletes;
  Device* device = nullptr;
  void* memory = nullptr;                  // none: the device's default memory
  MemoryLayout* device_layout = nullptr;   // none: what the plugin likes for the shape
  Event* done_with_host_buffer = nullptr;  // out
  Buffer* buffer = nullptr;                // out
};

struct DeviceGetDescriptionArgs {
  Header header;
  Device* device = nullptr;
  DeviceDescription* description = nullptr;  // out
};

struct ExecutableNumOutputsArgs {
  Header header;
  Executable* executable = nullptr;
  size_t num_outputs = 0;  // out
};
struct DeserializeAndLoadArgs {
  Header header;
  Client* client = nullptr;
  const char* bytes = nullptr;
  size_t bytes_size = 0;
  LoadedExecutable* executable = nullptr;  // out
  const char* overridden_options = nullptr;
  size_t overridden_options_size = 0;
  void* load_options = nullptr;
};
struct LoadedExecutableArgs {  // destroy
  Header header;
  LoadedExecutable* executable = nullptr;
};
struct LoadedExecutableGetExecutableArgs {
  Header header;
  LoadedExecutable* loaded = nullptr;
  Executable* executable = nullptr;  // out, the caller destroys it
};
struct LoadedExecutableDevicesArgs {
  Header header;
  LoadedExecutable* executable = nullptr;
  Device* const* devices = nullptr;  // out, in the order of Execute's lists
  size_t num_devices = 0;            // out
};

struct ExecuteOptions {
  Header header;
  void* send_callbacks = nullptr;
  void* receive_callbacks = nullptr;
  size_t num_send_ops = 0;
  size_t num_receive_ops = 0;
  // Not zero: processes that launch in different orders can be told apart by it.
  int launch_id = 0;
  const int64_t* not_donated = nullptr;  // operands whose donation is called off
  size_t num_not_donated = 0;
  void* context = nullptr;
  const char* call_location = nullptr;
  size_t num_tasks = 0;
  int* task_ids = nullptr;
  int64_t* incarnation_ids = nullptr;
  void* multi_slice_config = nullptr;
  bool row_major_callbacks = false;
  void* output_callbacks = nullptr;
  size_t num_output_callbacks = 0;
};
struct ExecuteArgs {
  Header header;
  LoadedExecutable* executable = nullptr;
  ExecuteOptions* options = nullptr;
  Buffer* const* const* arguments = nullptr;  // [devices][operands]
  size_t num_devices = 0;
  size_t num_arguments = 0;
  Buffer** const* outputs = nullptr;  // [devices][results], the lists are the caller's
  Event** device_complete = nullptr;  // [devices], filled in unless the call fails
  Device* execute_device = nullptr;   // none: all that the program was compiled for
};

struct BufferArgs {  // destroy
  Header header;
  Buffer* buffer = nullptr;
};
struct BufferToHostArgs {
  Header header;
  Buffer* source = nullptr;
  void* host_layout = nullptr;  // none: the buffer's own
  void* data = nullptr;
  size_t size = 0;
  Event* event = nullptr;  // out
};
struct BufferReadyEventArgs {
  Header header;
  Buffer* buffer = nullptr;
  Event* event = nullptr;  // out
};

// ---- Extensions: a list behind Api::extension_start, each with functions of its own.

struct Extension {
  size_t struct_size = 0;
  int type = 0;
  Extension* next = nullptr;
};
inline constexpr int kLayoutsExtension = 4;
struct LayoutsExtension {
  Extension base;
  enum : int { kSerialize = 1, kParameterLayouts = 6, kFunctions = 7 };
  void* functions[kFunctions] = {};
};
struct Layout;            // owned by whoever gave it
struct SerializedLayout;  // owns the text
struct ParameterLayoutsArgs {
  Header header;
  Executable* executable = nullptr;
  size_t num_parameters = 0;   // out
  Layout** layouts = nullptr;  // out, live as long as the executable
};
struct SerializeLayoutArgs {
  Header header;
  Layout* layout = nullptr;
  const char* text = nullptr;                    // out
  size_t text_size = 0;                          // out
  SerializedLayout* serialized = nullptr;        // out, owns text
  void (*deleter)(SerializedLayout*) = nullptr;  // out, call once
};

static_assert(offsetof(Api, slots) == 40);
static_assert(sizeof(MemoryLayout) == 80 && sizeof(LayoutsExtension) == 80);
static_assert(sizeof(ExecuteArgs) == 80 && sizeof(BufferFromHostArgs) == 120);
static_assert(sizeof(CompileArgs) == 0x40 && sizeof(TopologyCreateArgs) == 0x38);

}  // namespace gridless::tpu::abi
