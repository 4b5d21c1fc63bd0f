#include "gridless/tpu/runtime/connection.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>

namespace gridless::tpu {
namespace {

constexpr int kInvalidArgument = 3, kDeadlineExceeded = 4, kNotFound = 5, kAlreadyExists = 6,
              kPermissionDenied = 7, kResourceExhausted = 8, kFailedPrecondition = 9, kAborted = 10,
              kUnimplemented = 12, kInternal = 13, kUnavailable = 14, kDataLoss = 15,
              kUnauthenticated = 16;

std::atomic<bool> some_lost = false;

std::string_view start_hint(int code) {
  switch (code) {
    case kDeadlineExceeded:
    case kUnavailable:
      return "every host of the slice must run this command at the same time, and no other process "
             "may hold the TPU; see docs/tpu.md, Several hosts";
    case kNotFound:
    case kInvalidArgument:
      return "this machine has no TPU, or libtpu was not told its slice: see docs/tpu.md, Which "
             "devices";
    case kPermissionDenied:
    case kUnauthenticated:
      return "the process needs access to the devices /dev/vfio or /dev/accel*";
    case kAlreadyExists:
    case kResourceExhausted:
    case kFailedPrecondition:
    case kAborted:
      return "another process may hold the TPU: end it first";
    case kUnimplemented:
      return "use another libtpu: docs/tpu.md says which was tried";
    default:
      return {};
  }
}

std::string_view load_hint(int code) {
  switch (code) {
    case kInvalidArgument:
    case kNotFound:
    case kFailedPrecondition:
    case kUnimplemented:
    case kInternal:
      return "a program loads only with the libtpu build and on the slice that it was compiled "
             "for: compile it again with this libtpu";
    case kResourceExhausted:
      return "the program does not fit beside what the devices hold: use more cores or fewer "
             "programs";
    default:
      return {};
  }
}

std::string_view upload_hint(int code) {
  if (code == kResourceExhausted)
    return "the device's memory is full: use more cores, a shorter context or a smaller --format";
  if (code == kUnavailable || code == kAborted || code == kInternal)
    return "a device may have failed: start again; if it happens again, reset the TPU host";
  return {};
}

std::string_view run_hint(int code) {
  switch (code) {
    case kInvalidArgument:
    case kUnimplemented:
      return "the program may be of another libtpu build: compile it again with this libtpu";
    case kResourceExhausted:
      return "the device's memory is full: use more cores, a shorter context or a smaller --format";
    case kDataLoss:
      return "the device reported corrupt data: the caches are lost, load the model again";
    case kDeadlineExceeded:
    case kAborted:
    case kInternal:
    case kUnavailable:
      return "a device was lost, or halted at a check within the kernel, or another host ended: "
             "the "
             "caches are lost, start again on all hosts";
    default:
      return {};
  }
}

std::string_view hint(Stage stage, int code) {
  switch (stage) {
    case Stage::kStart:
      return start_hint(code);
    case Stage::kLoad:
      return load_hint(code);
    case Stage::kUpload:
      return upload_hint(code);
    case Stage::kRun:
      return run_hint(code);
  }
  return {};
}

}  // namespace

Error runtime_error(const Step& step, const PluginError& error) {
  std::string message =
      fmt::format("{} failed: {}: {}", step.what, status_name(error.code), error.text);
  if (const std::string_view advice = hint(step.stage, error.code); !advice.empty())
    message += fmt::format(" ({})", advice);
  return {Error::Kind::kMachine, std::move(message)};
}

Error hang(Connection& connection, const Step& step) {
  connection.lost = true;
  some_lost = true;
  const double seconds = static_cast<double>(connection.limit.count()) / 1000;
  return {Error::Kind::kMachine,
          fmt::format(
              "{} is not over after {} s: {}", step.what, seconds,
              step.stage == Stage::kStart
                  ? "another host of the slice has not come, or another process holds the TPU (see "
                    "docs/tpu.md, Several hosts; --time-limit waits longer)"
                  : "a device hangs, or another host has ended; end this process on all hosts "
                    "(--time-limit waits longer)")};
}

Error lost(const Step& step) {
  return {Error::Kind::kMachine,
          fmt::format("{}: the TPU has stopped answering, start again", step.what)};
}

bool any_connection_lost() { return some_lost; }

Result<void> within_limit(Connection& connection, const Step& step,
                          std::function<Result<void>()> work) {
  if (connection.lost) return std::unexpected(lost(step));
  auto outcome = std::make_shared<std::promise<Result<void>>>();
  std::future<Result<void>> over = outcome->get_future();
  std::thread([outcome, work = std::move(work)]() mutable {
    Result<void> result = work();
    work = nullptr;  // frees what it owns before anyone goes on
    outcome->set_value(std::move(result));
  }).detach();
  if (over.wait_for(connection.limit) == std::future_status::timeout)
    return std::unexpected(hang(connection, step));
  return over.get();
}

}  // namespace gridless::tpu
