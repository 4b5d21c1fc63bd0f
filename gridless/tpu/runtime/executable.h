// A compiled program on the devices of a Client.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gridless/tpu/runtime/client.h"

namespace gridless::tpu {

namespace abi {
struct LoadedExecutable;
}

// One launch, which may still be running: its results can be handed to the next one at once.
struct Launch {
  std::vector<std::vector<Buffer>> results;  // [local core][result]
  std::vector<Event> done;                   // [local core]

  // Blocks until all local cores are through.
  Result<void> wait(const Step& step);
};

class Executable {
 public:
  // Loads what PJRT_Executable_Serialize gave (Compiled::executable). Core c of the program runs on
  // the device with the number device_ids[c]. The devices must be those the program was compiled
  // for, and `spec` the call it was compiled from: its results are counted, operands cannot be.
  static Result<Executable> load(Client& client, std::string serialized, CallSpec spec,
                                 std::vector<int> device_ids);
  // Compiles StableHLO on the spot, in this process: for programs that are known to compile.
  static Result<Executable> compile(Client& client, std::string stablehlo, CallSpec spec,
                                    std::vector<int> device_ids);
  Executable(Executable&& o) noexcept;
  Executable& operator=(Executable&&) = delete;
  ~Executable();

  const CallSpec& spec() const { return spec_; }
  // Which cores of the program run in this process, in the order of a launch's lists; all of them
  // where the slice has one host.
  const std::vector<int>& local_cores() const { return local_cores_; }
  const Client::Device& device_of(int core) const;
  const std::vector<int>& device_ids() const { return device_ids_; }

  // Enqueues one launch and returns. operands[i][k] is operand k of core local_cores()[i]. Aliased
  // operands are donated: their Buffers are empty afterwards, and the result in their place takes
  // over the memory. When the call fails they are empty too, as nobody knows what became of them.
  // `number` tells launches apart on several hosts: the same on all, counted from 1.
  Result<Launch> launch(std::span<const std::vector<Buffer*>> operands, int number) const;

 private:
  Executable(Client& client, abi::LoadedExecutable* executable, CallSpec spec,
             std::vector<int> device_ids);
  Result<void> describe();
  Result<void> read_devices();
  Result<void> check_results() const;

  Client* client_;
  abi::LoadedExecutable* executable_;
  CallSpec spec_;
  std::vector<int> device_ids_, local_cores_;
};

}  // namespace gridless::tpu
