#include "gridless/tpu/runtime/executable.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gridless/base/check.h"
#include "gridless/tpu/compile_options.h"

namespace gridless::tpu {

using abi::Slot;

Result<void> Launch::wait(const Step& step) {
  // All of them, so that nothing runs on when the first error is told.
  Result<void> first;
  for (Event& event : done)
    if (Result<void> over = event.wait(step); !over && first) first = std::move(over);
  return first;
}

Executable::Executable(Client& client, abi::LoadedExecutable* executable, CallSpec spec,
                       std::vector<int> device_ids)
    : client_(&client),
      executable_(executable),
      spec_(std::move(spec)),
      device_ids_(std::move(device_ids)) {}

Executable::Executable(Executable&& o) noexcept
    : client_(o.client_),
      executable_(std::exchange(o.executable_, nullptr)),
      spec_(std::move(o.spec_)),
      device_ids_(std::move(o.device_ids_)),
      local_cores_(std::move(o.local_cores_)) {}

Executable::~Executable() {
  if (executable_ == nullptr) return;
  auto args = make_args<abi::LoadedExecutableArgs>();
  args.executable = executable_;
  release(client_->connection(), Slot::kLoadedExecutableDestroy, args);
}

Result<Executable> Executable::load(Client& client, std::string serialized, CallSpec spec,
                                    std::vector<int> device_ids) {
  const Step step = {Stage::kLoad, "loading the compiled program"};
  const auto bytes = std::make_shared<std::string>(std::move(serialized));
  auto args =
      std::make_shared<abi::DeserializeAndLoadArgs>(make_args<abi::DeserializeAndLoadArgs>());
  args->client = client.handle();
  args->bytes = bytes->data();
  args->bytes_size = bytes->size();
  TRY_VOID(within_limit(
      client.connection(), step, [connection = client.connection(), step, bytes, args] {
        return checked(connection, Slot::kExecutableDeserializeAndLoad, *args, step);
      }));
  Executable out(client, args->executable, std::move(spec), std::move(device_ids));
  TRY_VOID(out.describe());
  return out;
}

Result<Executable> Executable::compile(Client& client, std::string stablehlo, CallSpec spec,
                                       std::vector<int> device_ids) {
  constexpr std::string_view kFormat = "mlir";
  struct Job {
    std::string code, options;
    abi::Program program = make_args<abi::Program>();
    abi::ClientCompileArgs args = make_args<abi::ClientCompileArgs>();
  };
  const Step step = {Stage::kLoad, "compiling the program"};
  const auto job = std::make_shared<Job>();
  job->code = std::move(stablehlo);
  job->options = encode({.device_ids = device_ids});
  job->program.code = job->code.data();
  job->program.code_size = job->code.size();
  job->program.format = kFormat.data();
  job->program.format_size = kFormat.size();
  job->args.client = client.handle();
  job->args.program = &job->program;
  job->args.options = job->options.data();
  job->args.options_size = job->options.size();
  TRY_VOID(within_limit(client.connection(), step, [connection = client.connection(), step, job] {
    return checked(connection, Slot::kClientCompile, job->args, step);
  }));
  Executable out(client, job->args.executable, std::move(spec), std::move(device_ids));
  TRY_VOID(out.describe());
  return out;
}

Result<void> Executable::describe() {
  TRY_VOID(check_results());
  return read_devices();
}

// How many results Execute writes must be known for certain: the lists it fills are ours.
Result<void> Executable::check_results() const {
  auto inner = make_args<abi::LoadedExecutableGetExecutableArgs>();
  inner.loaded = executable_;
  const Step step = {Stage::kLoad, "counting the results of the program"};
  const Connection& connection = client_->connection();
  TRY_VOID(checked(connection, Slot::kLoadedExecutableGetExecutable, inner, step));
  auto count = make_args<abi::ExecutableNumOutputsArgs>();
  count.executable = inner.executable;
  Result<void> counted = checked(connection, Slot::kExecutableNumOutputs, count, step);
  auto destroy = make_args<abi::ExecutableDestroyArgs>();
  destroy.executable = inner.executable;
  release(connection, Slot::kExecutableDestroy, destroy);
  TRY_VOID(std::move(counted));
  if (count.num_outputs != spec_.results.size()) {
    return machine_error("the program {} has {} results, its description {}", spec_.kernel_name,
                         count.num_outputs, spec_.results.size());
  }
  return {};
}

Result<void> Executable::read_devices() {
  auto args = make_args<abi::LoadedExecutableDevicesArgs>();
  args.executable = executable_;
  TRY_VOID(checked(client_->connection(), Slot::kLoadedExecutableAddressableDevices, args,
                   {Stage::kLoad, "asking where the program runs"}));
  for (abi::Device* handle : std::span(args.devices, args.num_devices)) {
    const Client::Device* device = client_->find(handle);
    const auto at =
        device == nullptr ? device_ids_.end() : std::ranges::find(device_ids_, device->id);
    if (at == device_ids_.end()) {
      return machine_error("the program {} was loaded on device {}, which it was not compiled for",
                           spec_.kernel_name, device == nullptr ? -1 : device->id);
    }
    local_cores_.push_back(static_cast<int>(at - device_ids_.begin()));
  }
  const auto here = std::ranges::count_if(device_ids_, [&](int id) {
    const Client::Device* device = client_->find(id);
    return device != nullptr && device->local;
  });
  if (here != static_cast<std::ptrdiff_t>(local_cores_.size())) {
    return machine_error("the program {} was loaded on {} devices of this host, expected are {}",
                         spec_.kernel_name, local_cores_.size(), here);
  }
  return {};
}

const Client::Device& Executable::device_of(int core) const {
  const Client::Device* device = client_->find(device_ids_[static_cast<size_t>(core)]);
  GRIDLESS_CHECK(device != nullptr, "core {} runs nowhere", core);
  return *device;
}

Result<Launch> Executable::launch(std::span<const std::vector<Buffer*>> operands,
                                  int number) const {
  const size_t cores = local_cores_.size();
  GRIDLESS_CHECK(operands.size() == cores, "operands for {} cores of {}", operands.size(), cores);
  std::vector<std::vector<abi::Buffer*>> in(cores), out(cores);
  std::vector<abi::Buffer* const*> arguments;
  std::vector<abi::Buffer**> outputs;
  for (size_t c = 0; c < cores; ++c) {
    GRIDLESS_CHECK(operands[c].size() == spec_.operands.size(), "{} operands of {}",
                   operands[c].size(), spec_.operands.size());
    for (const Buffer* buffer : operands[c]) in[c].push_back(buffer->handle());
    out[c].resize(spec_.results.size());
    arguments.push_back(in[c].data());
    outputs.push_back(out[c].data());
  }
  std::vector<abi::Event*> done(cores);
  auto options = make_args<abi::ExecuteOptions>();
  options.launch_id = number;
  auto args = make_args<abi::ExecuteArgs>();
  args.executable = executable_;
  args.options = &options;
  args.arguments = arguments.data();
  args.num_devices = cores;
  args.num_arguments = spec_.operands.size();
  args.outputs = outputs.data();
  args.device_complete = done.data();
  Result<void> started =
      checked(client_->connection(), Slot::kLoadedExecutableExecute, args,
              {Stage::kRun, fmt::format("launch {} of {}", number, spec_.kernel_name)});
  for (const std::vector<Buffer*>& list : operands)
    for (const Alias& alias : spec_.aliases) *list[static_cast<size_t>(alias.operand)] = Buffer();
  TRY_VOID(std::move(started));

  Launch launch;
  launch.results.resize(cores);
  for (size_t c = 0; c < cores; ++c) {
    for (abi::Buffer* buffer : out[c])
      launch.results[c].emplace_back(client_->connection(), buffer);
    launch.done.emplace_back(client_->connection(), done[c]);
  }
  return launch;
}

}  // namespace gridless::tpu
