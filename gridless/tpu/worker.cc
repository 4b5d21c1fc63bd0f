#include "gridless/tpu/worker.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "gridless/chips/slice.h"
#include "gridless/tpu/plugin.h"
#include "gridless/tpu/worker_protocol.h"

namespace gridless::tpu {
namespace {

constexpr int kSocket = 0;

// nullopt at the end of the stream.
Result<std::optional<Frame>> receive(std::string& buffer) {
  while (true) {
    TRY(std::optional<Frame> frame, take_frame(buffer));
    if (frame) return frame;
    char chunk[1 << 16];
    const ssize_t n = read(kSocket, chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    buffer.append(chunk, static_cast<size_t>(n));
  }
}

bool send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(kSocket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void limit_memory(int64_t bytes) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);  // a crash is reported, not kept
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Address space: libtpu maps about 1.7 GB of it before it compiles anything. (The sanitizers
  // reserve terabytes, so there the limit is off.)
  const rlimit space = {static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  setrlimit(RLIMIT_AS, &space);
#else
  (void)bytes;
#endif
}

// libtpu reads these while it loads. They keep it from looking for a metadata server and for the
// other hosts of a slice; a value that the user has set stays.
void set_environment(const std::vector<std::string>& flags) {
  // Compiling touches no device, so several processes may do it at once; without this the second
  // one finds the lock file of the first and gives up.
  setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
  setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  setenv("TPU_ACCELERATOR_TYPE", "tpu7x-8", 0);
  setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
  setenv("TPU_WORKER_ID", "0", 0);
  setenv("TPU_STDERR_LOG_LEVEL", "1", 0);
  if (flags.empty()) return;
  const char* old = getenv("LIBTPU_INIT_ARGS");
  std::string all = old ? old : "";
  for (const std::string& flag : flags) all += (all.empty() ? "" : " ") + flag;
  setenv("LIBTPU_INIT_ARGS", all.c_str(), 1);
}

// Mesh order and remote ids rest on the numbering of chips/slice.h; a compiler that numbers the
// devices otherwise must not be used in silence.
Result<void> check_devices(Plugin& plugin, const chips::Slice& slice) {
  TRY(const std::vector<Plugin::Device> devices, plugin.devices(slice));
  if (std::ssize(devices) != slice.cores()) {
    return machine_error("libtpu sees {} devices in {}, expected {}", devices.size(), slice.name(),
                         slice.cores());
  }
  for (const Plugin::Device& device : devices) {
    if (device.id < 0 || device.id >= slice.cores() ||
        !(slice.coordinates(device.id) == device.at)) {
      return machine_error(
          "libtpu puts device {} of {} at ({}, {}, {}) core {}, unlike this program", device.id,
          slice.name(), device.at.x, device.at.y, device.at.z, device.at.core);
    }
  }
  return {};
}

std::string serve(Plugin& plugin, const Frame& job) {
  std::string version;
  const auto compiled = [&]() -> Result<Compiled> {
    TRY(const chips::Slice slice, chips::parse_slice(job.head.at("slice").get<std::string>()));
    TRY_VOID(check_devices(plugin, slice));
    TRY(version, plugin.platform_version(slice));
    CompileOptions options;
    options.device_ids = job.head.at("device_ids").get<std::vector<int>>();
    options.flags = job.head.at("flags").get<std::map<std::string, std::string>>();
    return plugin.compile(job.body, slice, options);
  }();
  return encode_answer(compiled, version);
}

}  // namespace

int worker_main() {
  struct stat info = {};
  if (fstat(kSocket, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    fmt::print(stderr, "tpu-worker is started by 'gridless compile', not by hand\n");
    return 1;
  }
  std::string buffer;
  const Result<std::optional<Frame>> first = receive(buffer);
  if (!first || !*first) return 2;
  const nlohmann::json& head = (*first)->head;
  limit_memory(head.at("memory_limit_bytes").get<int64_t>());
  const std::string folder = head.at("folder").get<std::string>();
  if (!folder.empty() && chdir(folder.c_str()) != 0) {
    send_all(encode_answer(machine_error("cannot work in {}", folder), ""));
    return 2;
  }
  set_environment(head.at("libtpu_flags").get<std::vector<std::string>>());
  Result<Plugin> plugin = Plugin::open(head.at("libtpu").get<std::string>());
  if (!plugin) {
    send_all(encode_answer(std::unexpected(plugin.error()), ""));
    return 2;
  }
  if (!send_all(encode_frame({{"ok", true}, {"api_minor", plugin->api_minor()}}, ""))) return 2;
  while (true) {
    const Result<std::optional<Frame>> job = receive(buffer);
    if (!job) return 2;
    if (!*job) break;
    if (!send_all(serve(*plugin, **job))) break;
  }
  // Not exit(): libtpu's threads may still run, and its destructors are none of our business.
  fflush(nullptr);
  _exit(0);
}

}  // namespace gridless::tpu
