// A loaded program with its memory, launched again and again.
//
// The host describes the memory of every core as for the other engines: a span per operand and
// result. What becomes of an operand is its role:
//   kTable     copied to the device before every launch: small tables that the host changes
//   kConstant  copied once: weights
//   kState     copied once, then it lives on the device: each launch is given the buffer that the
//              last one left (donated, so in place); the host's copy goes stale
// Sessions of one DeviceMemory share constants and state where the host's memory is the same, as
// programs for different numbers of rows do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gridless/tpu/runtime/executable.h"

namespace gridless::tpu {

enum class Role { kTable, kConstant, kState };

// Of one core. Spans have exactly the bytes of their operands and results.
struct HostMemory {
  std::vector<std::span<const std::byte>> operands;
  std::vector<std::span<std::byte>> results;
};

// The buffers that stay on the devices, by core and by the host memory that they came from.
class DeviceMemory {
 public:
  using Key = std::pair<int, const std::byte*>;
  // Null when nothing is there yet, or no longer: state is lost with a failed launch.
  Buffer* find(const Key& key);
  Buffer* insert(const Key& key, Buffer buffer);

 private:
  std::map<Key, Buffer> buffers_;
};

class Session {
 public:
  // Bytes that are on the devices, and that will be.
  using Progress = std::function<void(int64_t done, int64_t total)>;

  // Uploads constants and state that `memory` does not have. `host` has all cores of the program;
  // on several hosts those of others may be empty. Everything given must outlive the session.
  static Result<Session> create(const Client& client, DeviceMemory& memory, Executable executable,
                                std::vector<Role> roles, std::vector<HostMemory> host,
                                const Progress& progress = nullptr);

  // Enqueues one launch. The tables may be changed as soon as it returns. Several launches may be
  // on the way: they run in order, each on the state that the one before it left.
  Result<void> start();
  // Waits for all launches, and reads the results of the last one that are not state. An error of
  // any of them loses the state: every later launch says so.
  Result<void> finish();

  const Executable& executable() const { return executable_; }

 private:
  Session(const Client& client, DeviceMemory& memory, Executable executable,
          std::vector<Role> roles, std::vector<HostMemory> host);
  Result<void> upload_all(const Progress& progress);
  Result<Upload> upload(size_t local, size_t operand) const;
  Result<void> upload_tables();
  std::string operand_name(size_t local, size_t operand) const;
  bool is_state(size_t result) const;
  DeviceMemory::Key key(size_t local, size_t operand) const;

  const Client* client_;
  DeviceMemory* memory_;
  Executable executable_;
  std::vector<Role> roles_;
  std::vector<HostMemory> host_;
  std::map<DeviceMemory::Key, Buffer> tables_;
  std::vector<Launch> running_;  // the last one's results are kept until they are read
  int launches_ = 0;
};

}  // namespace gridless::tpu
