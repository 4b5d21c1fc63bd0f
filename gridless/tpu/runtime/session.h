// A loaded program with its memory, launched again and again.
//
// What becomes of an operand is its role:
//   kTable     copied to the device before every launch: small tables that the host changes
//   kConstant  copied once: weights
//   kState     copied once, then it lives on the device: each launch is given the buffer that the
//              last one left (donated, so in place)
// Sessions of one DeviceMemory have the same operands in the same places, and share constants and
// state, as programs for different numbers of rows do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "gridless/tpu/runtime/executable.h"

namespace gridless::tpu {

enum class Role { kTable, kConstant, kState };

// The host's side of one core: where its tables are read from (by operand; the others are not
// looked at), and where its results are read to. Spans have exactly the bytes of their operands and
// results.
struct HostMemory {
  std::vector<std::span<const std::byte>> operands;
  std::vector<std::span<std::byte>> results;
};

// The buffers that stay on the devices.
class DeviceMemory {
 public:
  struct Key {
    int core = 0;
    size_t operand = 0;
    auto operator<=>(const Key&) const = default;
  };
  // Null when nothing is there yet, or no longer: state is lost with a failed launch.
  Buffer* find(const Key& key);
  Buffer* insert(const Key& key, Buffer buffer);

 private:
  std::map<Key, Buffer> buffers_;
};

class Session {
 public:
  // The bytes of a constant or of state as it begins. They must stay until the next call, or the
  // end of the upload.
  using Source = std::function<Result<std::span<const std::byte>>(int core, size_t operand)>;
  // Bytes that are on the devices, and that will be.
  using Progress = std::function<void(int64_t done, int64_t total)>;

  // Uploads the constants and state that `memory` does not have, one after the other, so that the
  // host need never hold more than one of them. `host` has all cores of the program. Memory, client
  // and the host's spans must outlive the session.
  static Result<Session> create(Client& client, DeviceMemory& memory, Executable executable,
                                std::vector<Role> roles, std::vector<HostMemory> host,
                                const Source& source, const Progress& progress = nullptr);

  // Enqueues one launch. The tables may be changed as soon as it returns. Several launches may be
  // on the way: they run in order, each on the state that the one before it left. With more than
  // kMostInFlight it first waits for the oldest.
  Result<void> start();
  // Waits for all launches. An error of any of them loses the state: every later launch says so.
  Result<void> finish();
  // Reads a result of the last launch, after finish(), for all cores. Where some of them belong to
  // other hosts, all hosts must read the same results in the same order.
  Result<void> read(size_t result);

  const Executable& executable() const { return executable_; }
  static constexpr size_t kMostInFlight = 8;

 private:
  Session(Client& client, DeviceMemory& memory, Executable executable, std::vector<Role> roles,
          std::vector<HostMemory> host);
  Result<void> upload_all(const Source& source, const Progress& progress);
  Result<Upload> upload(size_t local, size_t operand, std::span<const std::byte> data);
  Result<void> upload_tables();
  Result<void> wait_until(size_t in_flight);
  Result<void> read_from_all(size_t result);
  Result<Executable*> gather_for(size_t result);
  Step upload_step(size_t local, size_t operand) const;
  DeviceMemory::Key key(size_t local, size_t operand) const;
  int local_core(size_t local) const { return executable_.local_cores()[local]; }
  size_t local_cores() const { return executable_.local_cores().size(); }

  Client* client_;
  DeviceMemory* memory_;
  Executable executable_;
  std::vector<Role> roles_;
  std::vector<HostMemory> host_;
  std::map<DeviceMemory::Key, Buffer> tables_;
  std::map<size_t, Executable> gathers_;  // by result
  std::vector<Launch> running_;           // the last one's results are kept until they are read
  std::vector<std::vector<Buffer>> results_;
  int launches_ = 0;
};

}  // namespace gridless::tpu
