// A launch on the mock plugin's devices.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/tpu/plugins/mock_exchange.h"
#include "tests/tpu/plugins/mock_programs.h"
#include "tests/tpu/plugins/mock_world.h"

namespace gridless::tpu::abi {

struct Executable {
  std::string bytes;
};
struct DeviceDescription {
  int id = 0;
  int64_t coordinates[3] = {};
  NamedValue attributes[2] = {};
};
struct Device {
  DeviceDescription* description = nullptr;
  std::shared_ptr<std::atomic<size_t>> used = std::make_shared<std::atomic<size_t>>(0);  // bytes
};
struct Client {
  std::string platform, version;
  std::vector<DeviceDescription> descriptions;
  std::vector<Device> devices;
  std::vector<Device*> all, local;
};
struct LoadedExecutable {
  std::string text;
  std::vector<int> ids;          // of the cores' devices
  std::vector<Device*> devices;  // of this host, as the plugin lists them
  std::shared_ptr<mock::MockProgram> program;
};
struct Buffer {
  std::shared_ptr<mock::Storage> storage;
  Device* device = nullptr;
  bool donated = false;
};

}  // namespace gridless::tpu::abi

namespace mock {

inline int number(const char* name, int otherwise) {
  return std::stoi(environment(name, std::to_string(otherwise).c_str()));
}
inline bool usable(const Buffer* buffer, const char* what) {
  if (buffer != nullptr && world().alive(buffer) && !buffer->donated) return true;
  world().complain(std::string(what) + " of a buffer that was " +
                   (buffer != nullptr && buffer->donated ? "donated" : "destroyed"));
  return false;
}
// One launch under way: what it reads and writes lives as long as it runs.
struct Run {
  std::shared_ptr<MockProgram> program;
  std::vector<int> ids;  // of all cores
  struct Core {
    std::vector<std::shared_ptr<Storage>> operands, results;
  };
  std::map<int, Core> cores;  // by device; at first those of this host
  int launch = 0;

  std::string execute() {
    if (std::string error = bring_others(); !error.empty()) return error;
    std::vector<CoreData> data;
    for (const int id : ids) {
      CoreData& core = data.emplace_back();
      core.device = id;
      for (const auto& operand : cores[id].operands) core.operands.push_back(operand.get());
      for (const auto& result : cores[id].results) core.results.push_back(result.get());
    }
    return program->run(data);
  }
  void add_results(Core& core) {
    CoreData data;
    for (const auto& operand : core.operands) data.operands.push_back(operand.get());
    for (size_t r = 0; r < program->results(); ++r)
      core.results.push_back(std::make_shared<Storage>(program->result_bytes(r, data, ids.size())));
    for (const auto& [result, operand] : program->donated())
      core.results[static_cast<size_t>(result)] = core.operands[static_cast<size_t>(operand)];
  }

 private:
  // The cores of the other hosts, in the order in which each listed its own: by device.
  std::string bring_others() {
    if (cores.size() == ids.size()) return "";
    const std::string folder = environment("MOCK_EXCHANGE", "");
    if (folder.empty()) {  // alone: as if the others had nothing but zeros
      const Core mine = cores.begin()->second;
      for (const int id : ids) {
        if (cores.contains(id)) continue;
        for (const auto& operand : mine.operands)
          cores[id].operands.push_back(std::make_shared<Storage>(operand->bytes.size()));
        add_results(cores[id]);
      }
      return "";
    }
    const int hosts = number("MOCK_HOSTS", 1), host = number("MOCK_HOST", 0);
    const Exchange exchange(folder, launch, host);
    std::vector<Operands> mine;
    for (const auto& [id, core] : cores) {
      Operands& operands = mine.emplace_back();
      for (const auto& operand : core.operands) operands.push_back(operand->bytes);
    }
    exchange.write(mine);
    std::vector<int> sorted = ids;
    std::ranges::sort(sorted);
    const size_t each = sorted.size() / static_cast<size_t>(hosts);
    for (int other = 0; other < hosts; ++other) {
      if (other == host) continue;
      const std::vector<Operands> theirs = exchange.read(other);
      if (theirs.size() != each) return "host " + std::to_string(other) + " has not come";
      for (size_t i = 0; i < each; ++i) {
        Core& core = cores[sorted[static_cast<size_t>(other) * each + i]];
        for (const std::vector<std::byte>& bytes : theirs[i]) {
          core.operands.push_back(std::make_shared<Storage>(bytes.size()));
          core.operands.back()->bytes = bytes;
        }
        add_results(core);
      }
    }
    return "";
  }
};

inline Error* check_arguments(const ExecuteArgs& args) {
  const LoadedExecutable& program = *args.executable;
  if (args.num_devices != program.devices.size()) return new Error{"wrong number of devices", 3};
  for (size_t d = 0; d < args.num_devices; ++d) {
    for (size_t k = 0; k < args.num_arguments; ++k) {
      const Buffer* buffer = args.arguments[d][k];
      if (!usable(buffer, "launching on")) return new Error{"deleted or donated", 3};
      if (buffer->device != program.devices[d]) {
        world().complain("launching on a buffer of another device");
        return new Error{"wrong device", 3};
      }
    }
  }
  return nullptr;
}

inline Error* execute(ExecuteArgs* args) {
  if (Error* error = check_arguments(*args)) return error;
  const LoadedExecutable& loaded = *args->executable;
  auto run = std::make_shared<Run>();
  run->program = loaded.program;
  run->ids = loaded.ids;
  run->launch = ++world().launches;
  for (size_t d = 0; d < args->num_devices; ++d) {
    Run::Core& core = run->cores[loaded.devices[d]->description->id];
    for (size_t k = 0; k < args->num_arguments; ++k)
      core.operands.push_back(args->arguments[d][k]->storage);
    run->add_results(core);
    for (const auto& [result, operand] : loaded.program->donated()) {
      Buffer& given = *args->arguments[d][operand];
      given.donated = true;
      given.storage.reset();
    }
    for (size_t r = 0; r < core.results.size(); ++r) {
      auto buffer = std::make_unique<Buffer>();
      buffer->storage = core.results[r];
      buffer->device = loaded.devices[d];
      args->outputs[d][r] = world().add(std::move(buffer));
    }
  }
  // The whole launch is the first event's work; the others follow it and fail as it does.
  const auto error = std::make_shared<std::string>();
  for (size_t d = 0; d < args->num_devices; ++d) {
    args->device_complete[d] = world().enqueue([run, error, first = d == 0] {
      if (first) *error = run->execute();
      return *error;
    });
  }
  return nullptr;
}

}  // namespace mock
