// A loaded program with its memory, launched again and again.
//
// What becomes of an operand is its role:
//   kTable     copied to the device before every launch: small tables that the host changes
//   kConstant  copied once: weights
//   kState     copied once, then it lives on the device: each launch is given the buffer that the
//              last one left (donated, so in place)
// Launches may also be chained: the host enqueues several, and a small program on the devices makes
// a table of each from what the launch before it found, so that nobody has to read that first.
//
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

  // Makes a table on the devices: a plain StableHLO program whose operands are the table as the
  // host has it and results of the launch before, and whose one result is the table to use.
  struct TableProgram {
    std::string name, text;
    size_t table = 0;             // an operand with Role::kTable
    std::vector<size_t> results;  // of the kernel
  };
  // Enqueues `count` launches behind each other. `prepare(n)` leaves the tables of launch n (from
  // 0) in the host's memory; what `next` makes of them replaces its table in all but the first.
  // After finish() the results of all of them can be read. An error of any part loses the state.
  Result<void> start_chain(size_t count, const std::function<Result<void>(size_t)>& prepare,
                           const TableProgram& next);

  // Reads a result of the last launch, or of launch n of the last chain, after finish(), for all
  // cores. Where some of them belong to other hosts, all hosts must read the same results in the
  // same order.
  Result<void> read(size_t result);
  Result<void> read(size_t result, size_t n);

  const Executable& executable() const { return executable_; }
  static constexpr size_t kMostInFlight = 8;

 private:
  Session(Client& client, DeviceMemory& memory, Executable executable, std::vector<Role> roles,
          std::vector<HostMemory> host);
  Result<void> upload_all(const Source& source, const Progress& progress);
  Result<Upload> upload(size_t local, size_t operand, std::span<const std::byte> data);
  Result<void> enqueue_chain(size_t count, const std::function<Result<void>(size_t)>& prepare,
                             const TableProgram& next);
  void lose_state();
  Result<void> upload_tables();
  Result<void> make_table(const TableProgram& next);
  Result<Executable*> compiled(const TableProgram& next);
  // `keep`: the results of the launch before can still be read.
  Result<void> enqueue(bool keep);
  Result<void> wait_until(size_t in_flight);
  using Results = std::vector<std::vector<Buffer>>;  // [local core][result]
  Result<void> read_from_all(size_t result, Results& of);
  Result<Executable*> gather_for(size_t result);
  // The place in this session's lists of the core that is another program's n-th.
  size_t local_of(const Executable& other, size_t n) const;
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
  std::map<size_t, Executable> gathers_;              // by result
  std::map<std::string, Executable> table_programs_;  // by name
  struct Running {
    Launch launch;
    Step step;
  };
  std::vector<Running> running_;  // those of which results may be read have them
  std::vector<Results> results_;  // of what is over: the last launch, or the launches of a chain
  int launches_ = 0;
};

}  // namespace gridless::tpu
