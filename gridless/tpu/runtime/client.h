// The TPU runtime: what a host with TPUs does with compiled programs, over the PJRT C API.
//
//   Client      the process's hold on its TPUs. One per process and machine: libtpu locks them.
//   Buffer      an array in the memory of one device (buffer.h)
//   Executable  a program loaded on the devices it was compiled for (executable.h)
//   Session     a program with its memory: constants uploaded once, tables with every launch, state
//               that stays on the devices and is donated from launch to launch (session.h)
//
// A slice may have several hosts. Then every host runs the same command; libtpu finds the others by
// its environment (docs/tpu.md), and each process sees all devices of the slice but holds memory
// and launches programs only on its own ("local") ones. Programs run on all devices together, so
// all processes must launch the same programs in the same order.
//
// Errors of the machine or the plugin are Errors that name the step, the PJRT status and what to do
// (connection.h). Nothing is waited for longer than the client's time limit. What none of this is
// tested on is a TPU: docs/tpu.md says what has been tried.
//
// Not thread-safe. Everything made from a Client must be destroyed before it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/tpu/call_spec.h"
#include "gridless/tpu/runtime/buffer.h"

namespace gridless::tpu {

namespace abi {
struct Client;
struct Device;
}  // namespace abi

// A copy to a device under way: the host's memory must stay until finish(), which the destructor
// waits for too.
class Upload {
 public:
  Upload(Buffer buffer, Event host_done)
      : buffer_(std::move(buffer)), host_(std::move(host_done)) {}
  Upload(Upload&&) = default;
  Upload& operator=(Upload&&) = default;
  ~Upload();

  // Blocks until the data is on the device.
  Result<Buffer> finish(const Step& step);

 private:
  Buffer buffer_;
  Event host_;
};

class Client {
 public:
  // Loads the plugin and takes hold of the TPUs: seconds on one host; with several it returns when
  // all of them have come. `limit` is for that and for everything that is waited for later.
  static Result<std::unique_ptr<Client>> create(
      const std::string& plugin_path, std::chrono::milliseconds limit = std::chrono::minutes(2));
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Device {
    abi::Device* handle = nullptr;
    int id = 0;
    bool has_coordinates = false;
    chips::DeviceCoordinates at;
    bool local = false;  // of this process
  };
  const std::vector<Device>& devices() const { return devices_; }
  const Device* find(int id) const;
  const Device* find(const abi::Device* handle) const;

  // An error unless the devices are those of `slice` with the numbers and places that compiled
  // programs rely on.
  Result<void> check_slice(const chips::Slice& slice) const;
  // Copies a pattern to each of this process's devices and back: an error names the device that
  // does not give it back.
  Result<void> check_transfers();

  const std::string& platform() const { return platform_; }  // "tpu"
  const std::string& version() const { return version_; }    // libtpu's build

  // Starts to copy a row-major array of `data.size()` bytes to a local device.
  Result<Upload> upload(const Device& device, const OperandSpec& spec,
                        std::span<const std::byte> data, const Step& step);

  Connection& connection() { return connection_; }
  abi::Client* handle() const { return client_; }

 private:
  Client(const Connection& connection, abi::Client* client)
      : connection_(connection), client_(client) {}
  Result<void> read_devices();

  Connection connection_;
  abi::Client* client_;
  std::vector<Device> devices_;
  std::string platform_, version_;
};

}  // namespace gridless::tpu
