// The runtime against a plugin that keeps watch: donation, lifetimes, order of devices, several
// launches in flight, and every error at every call. The oracle is arithmetic in the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "gridless/tpu/pjrt_call.h"
#include "gridless/tpu/runtime/session.h"
#include "tests/tpu/mock_plugin.h"

namespace gridless::tpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

// state (donated), step -> state + step, sum.
CallSpec increment_call(int cores) {
  return {.kernel_name = "increment",
          .operands = {{{4}, "i32"}, {{1}, "i32"}},
          .results = {{{4}, "i32"}, {{1}, "i32"}},
          .aliases = {{.result = 0, .operand = 0}},
          .cores = cores};
}

// The host's side of `cores` cores: core c's state starts as {10 c, 10 c + 1, ...}.
struct Host {
  explicit Host(size_t cores) : state(cores), step(cores), sum(cores) {
    for (size_t c = 0; c < cores; ++c) {
      std::iota(state[c].begin(), state[c].end(), static_cast<int32_t>(10 * c));
      memory.push_back(
          {.operands = {std::as_bytes(std::span(state[c])), std::as_bytes(std::span(step[c]))},
           .results = {{}, std::as_writable_bytes(std::span(sum[c]))}});
    }
  }
  void set_step(int32_t by) {
    for (auto& s : step) s[0] = by;
  }
  Session::Source source() const {
    return [this](int core, size_t operand) -> Result<std::span<const std::byte>> {
      return memory[static_cast<size_t>(core)].operands[operand];
    };
  }
  std::vector<std::array<int32_t, 4>> state;
  std::vector<std::array<int32_t, 1>> step, sum;
  std::vector<HostMemory> memory;
};

class RuntimeTest : public testing::Test {
 protected:
  void TearDown() override {
    client_.reset();
    inject(0, 0);
    EXPECT_EQ(violations(), "");
    EXPECT_EQ(live_objects(), 0) << "objects of the plugin were leaked";
  }
  // All that a step needs; the error of whatever failed.
  Result<Session> open(Host& host, const std::string& text, std::vector<int> device_ids) {
    client_.reset();
    TRY(client_, Client::create(kMockPlugin, limit_));
    memory_ = DeviceMemory();
    const int cores = static_cast<int>(device_ids.size());
    TRY(Executable executable,
        Executable::load(*client_, "MOCK" + text, increment_call(cores), std::move(device_ids)));
    return Session::create(*client_, memory_, std::move(executable), {Role::kState, Role::kTable},
                           host.memory, host.source());
  }
  std::unique_ptr<Client> client_;
  std::chrono::milliseconds limit_ = std::chrono::minutes(1);
  DeviceMemory memory_;  // destroyed before the client, see run()

  // Runs `body` on an open session and frees everything but the client.
  Result<void> run(Host& host, const std::string& text, std::vector<int> device_ids,
                   const std::function<Result<void>(Session&)>& body) {
    Result<void> outcome;
    {
      auto session = open(host, text, std::move(device_ids));
      outcome = session ? body(*session) : std::unexpected(session.error());
    }
    memory_ = DeviceMemory();
    return outcome;
  }
};

Result<void> finish(Session& session) {
  TRY_VOID(session.finish());
  return session.read(1);
}

Result<void> step(Session& session) {
  TRY_VOID(session.start());
  return finish(session);
}

TEST_F(RuntimeTest, StateIsDonatedFromLaunchToLaunch) {
  Host host(1);
  const auto done = run(host, "mock:increment", {0}, [&](Session& s) -> Result<void> {
    for (int32_t by : {1, 5, 100}) {
      host.set_step(by);
      TRY_VOID(step(s));
    }
    return {};
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(host.sum[0][0], (0 + 1 + 2 + 3) + 4 * 106);
  EXPECT_THAT(host.state[0], ElementsAre(0, 1, 2, 3)) << "the host's copy is not written";
}

TEST_F(RuntimeTest, SeveralLaunchesInFlightRunInOrderOnTheTablesOfTheirStart) {
  Host host(1);
  const auto done = run(host, "mock:increment", {0}, [&](Session& s) -> Result<void> {
    for (int32_t by = 1; by <= 50; ++by) {
      host.set_step(by);
      TRY_VOID(s.start());
    }
    host.set_step(-1);
    return finish(s);
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(host.sum[0][0], 6 + 4 * (50 * 51 / 2));
}

TEST_F(RuntimeTest, CoresFollowTheDeviceAssignment) {
  const Environment slice("MOCK_SLICE", "2x1x1");
  Host host(4);
  host.set_step(1);
  const auto done = run(host, "mock:increment mock:devices=2,3,1,0 ", {2, 3, 1, 0}, step);
  ASSERT_TRUE(done) << done.error().message;
  const std::array<int, 4> device = {2, 3, 1, 0};
  for (size_t c = 0; c < 4; ++c)
    EXPECT_EQ(host.sum[c][0], 6 + 4 * 10 * static_cast<int>(c) + 4 + 1000 * device[c]) << c;
}

// The plugin lists a program's devices in its own order.
TEST_F(RuntimeTest, AnotherOrderOfThePluginsListsChangesNothing) {
  Host host(2);
  host.set_step(2);
  const auto done = run(host, "mock:increment mock:devices=1,0 ", {0, 1}, step);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(host.sum[0][0], 6 + 8);
  EXPECT_EQ(host.sum[1][0], 46 + 8 + 1000);
}

TEST_F(RuntimeTest, OneOfSeveralHostsRunsItsOwnCores) {
  const Environment slice("MOCK_SLICE", "2x1x1"), hosts("MOCK_HOSTS", "2");
  Host host(4);
  host.set_step(1);
  const auto done = run(host, "mock:increment mock:devices=2,3,1,0 ", {2, 3, 1, 0},
                        [&](Session& s) -> Result<void> {
                          EXPECT_THAT(s.executable().local_cores(), ElementsAre(2, 3));
                          return step(s);
                        });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(host.sum[0][0], 0) << "of a core elsewhere";
  EXPECT_EQ(host.sum[2][0], 86 + 4 + 1000);
  EXPECT_EQ(host.sum[3][0], 126 + 4);
}

TEST_F(RuntimeTest, SessionsOfOneMemoryShareState) {
  Host host(1);
  host.set_step(1);
  const auto done = run(host, "mock:increment", {0}, [&](Session& first) -> Result<void> {
    TRY(Executable again, Executable::compile(*client_, "mock:increment", increment_call(1), {0}));
    TRY(Session second, Session::create(*client_, memory_, std::move(again),
                                        {Role::kState, Role::kTable}, host.memory, host.source()));
    TRY_VOID(step(first));
    TRY_VOID(step(second));
    return step(first);
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(host.sum[0][0], 6 + 4 * 3);
}

TEST_F(RuntimeTest, UploadSaysHowFarItIs) {
  Host host(2);
  auto client = Client::create(kMockPlugin);
  ASSERT_TRUE(client);
  auto executable =
      Executable::load(**client, "MOCKmock:increment mock:devices=0,1 ", increment_call(2), {0, 1});
  ASSERT_TRUE(executable) << executable.error().message;
  std::vector<std::pair<int64_t, int64_t>> seen;
  DeviceMemory memory;
  const auto session = Session::create(
      **client, memory, std::move(*executable), {Role::kState, Role::kTable}, host.memory,
      host.source(), [&](int64_t done, int64_t total) { seen.emplace_back(done, total); });
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_THAT(seen, ElementsAre(std::pair(16, 32), std::pair(32, 32)));
  client_ = std::move(*client);
}

// Every status at the first use of every function that can fail, one of them at every use: the
// outcome is an error with the status; nothing leaks, nothing is used after it is gone.
class RuntimeFaults : public RuntimeTest, public testing::WithParamInterface<int> {};

TEST_P(RuntimeFaults, AreErrorsWithTheirStatusAndLeakNothing) {
  const auto attempt = [&](int code, int skip) {
    Host host(2);
    host.set_step(1);
    inject(GetParam(), code, skip);
    return run(host, "mock:increment mock:devices=0,1 ", {0, 1}, [](Session& s) -> Result<void> {
      TRY_VOID(step(s));
      return step(s);
    });
  };
  for (int code = 1; code <= 16; ++code) {
    int failures = 0;
    const int most = code == 13 ? 40 : 1;
    for (int skip = 0; skip < most; ++skip) {
      const auto outcome = attempt(code, skip);
      client_.reset();
      ASSERT_EQ(violations(), "");
      ASSERT_EQ(live_objects(), 0) << "code " << code << " at use " << skip;
      if (outcome) break;
      ++failures;
      EXPECT_THAT(outcome.error().message,
                  HasSubstr(fmt::format("failed: {}: injected", status_name(code))));
      EXPECT_EQ(outcome.error().kind, Error::Kind::kMachine);
    }
    EXPECT_GT(failures, 0);
    EXPECT_LT(failures, 40);
  }
}

std::vector<int> slots_that_fail() {
  using abi::Slot;
  std::vector<int> slots = {kMockAsynchronous};
  for (const Slot slot :
       {Slot::kClientCreate, Slot::kClientPlatformName, Slot::kClientPlatformVersion,
        Slot::kClientDevices, Slot::kClientAddressableDevices, Slot::kDeviceGetDescription,
        Slot::kExecutableDeserializeAndLoad, Slot::kLoadedExecutableGetExecutable,
        Slot::kExecutableNumOutputs, Slot::kLoadedExecutableAddressableDevices,
        Slot::kClientBufferFromHostBuffer, Slot::kBufferReadyEvent, Slot::kEventOnReady,
        Slot::kLoadedExecutableExecute, Slot::kBufferToHostBuffer}) {
    slots.push_back(static_cast<int>(slot));
  }
  return slots;
}
INSTANTIATE_TEST_SUITE_P(Calls, RuntimeFaults, testing::ValuesIn(slots_that_fail()),
                         [](const auto& info) { return "slot" + std::to_string(info.param); });

// What does not end is given up after the client's limit; then the plugin is left alone.
class RuntimeHangs : public RuntimeTest, public testing::WithParamInterface<int> {
 protected:
  void TearDown() override {
    inject(GetParam(), 0);  // what hung goes on, in threads that nobody waits for
    client_.reset();
    EXPECT_EQ(violations(), "");
  }
};

TEST_P(RuntimeHangs, AreGivenUpAfterTheLimit) {
  Host host(1);
  host.set_step(1);
  const auto attempt = [&](int skip) {
    inject(GetParam(), kMockHang, skip);
    limit_ = std::chrono::milliseconds(20);
    return run(host, "mock:increment", {0}, [](Session& s) -> Result<void> {
      TRY_VOID(step(s));
      return step(s);
    });
  };
  int failures = 0;
  for (int skip = 0; skip < 40; ++skip) {
    const auto outcome = attempt(skip);
    if (outcome) break;
    ++failures;
    EXPECT_EQ(outcome.error().kind, Error::Kind::kMachine);
    EXPECT_THAT(outcome.error().message, HasSubstr("is not over after 0.02 s: "));
    EXPECT_THAT(outcome.error().message, HasSubstr("another host"));
    if (client_) {
      const auto later = client_->check_transfers();
      ASSERT_FALSE(later);
      EXPECT_THAT(later.error().message, HasSubstr("the TPU has stopped answering"));
    }
    inject(GetParam(), 0);
    client_.reset();
    forget_objects();
  }
  EXPECT_GT(failures, 0);
  EXPECT_LT(failures, 40);
  EXPECT_TRUE(any_connection_lost());
}

INSTANTIATE_TEST_SUITE_P(
    Calls, RuntimeHangs,
    testing::Values(kMockAsynchronous, static_cast<int>(abi::Slot::kClientCreate),
                    static_cast<int>(abi::Slot::kExecutableDeserializeAndLoad)),
    [](const auto& info) { return "slot" + std::to_string(info.param); });

TEST(RuntimeErrors, SayWhatToDoAtTheirStage) {
  const auto text = [](Stage stage, int code) {
    return runtime_error({stage, "this"}, {code, "that"}).message;
  };
  EXPECT_EQ(text(Stage::kStart, 14).substr(0, 32), "this failed: UNAVAILABLE: that (");
  EXPECT_THAT(text(Stage::kStart, 14), HasSubstr("every host of the slice must run this command"));
  EXPECT_THAT(text(Stage::kStart, 9), HasSubstr("another process may hold the TPU"));
  EXPECT_THAT(text(Stage::kStart, 7), HasSubstr("/dev/vfio"));
  EXPECT_THAT(text(Stage::kLoad, 3), HasSubstr("compile it again with this libtpu"));
  EXPECT_THAT(text(Stage::kUpload, 8), HasSubstr("the device's memory is full"));
  EXPECT_THAT(text(Stage::kRun, 14), HasSubstr("a device was lost"));
  EXPECT_THAT(text(Stage::kRun, 15), HasSubstr("corrupt data"));
  EXPECT_EQ(text(Stage::kRun, 99), "this failed: code 99: that");
}

TEST_F(RuntimeTest, TestCopiesFindAFaultyDevice) {
  client_ = std::move(*Client::create(kMockPlugin));
  EXPECT_TRUE(client_->check_transfers());
  const Environment corrupt("MOCK_CORRUPT", "1");
  const auto found = client_->check_transfers();
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message,
              HasSubstr("device 0 at (0, 0, 0) core 0 gives back other bytes"));
}

TEST_F(RuntimeTest, AFailedLaunchLosesTheStateAndSaysSo) {
  Host host(1);
  const auto done = run(host, "mock:increment", {0}, [&](Session& s) -> Result<void> {
    TRY_VOID(step(s));
    inject(abi::Slot::kLoadedExecutableExecute, 13);
    const auto failed = step(s);
    EXPECT_FALSE(failed);
    EXPECT_THAT(failed.error().message, HasSubstr("launch 2 of increment failed: INTERNAL"));
    return step(s);
  });
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("the state of increment was lost"));
}

TEST_F(RuntimeTest, DevicesMustBeThoseOfTheSlice) {
  const auto complaint = [&](const char* slice) {
    client_.reset();
    auto client = Client::create(kMockPlugin);
    client_ = std::move(*client);
    const auto ok = client_->check_slice(*chips::parse_slice(slice));
    return ok ? "" : ok.error().message;
  };
  const Environment shape("MOCK_SLICE", "2x2x1");
  EXPECT_EQ(complaint("tpu7x:2x2x1"), "");
  EXPECT_THAT(complaint("tpu7x:2x2x2"), HasSubstr("libtpu sees 8 cores, tpu7x:2x2x2 has 16"));
  const Environment numbering("MOCK_PJRT", "renumbered");
  EXPECT_THAT(complaint("tpu7x:2x2x1"),
              HasSubstr("device 2 is at (0, 1, 0) core 0, a program compiled for tpu7x:2x2x1 "
                        "expects it at (1, 0, 0) core 0"));
}

TEST_F(RuntimeTest, AProgramThatIsNotWhatItsDescriptionSaysIsRefused) {
  Host host(2);
  auto refused = run(host, "mock:increment mock:devices=0 ", {0, 1}, step);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("was loaded on 1 devices of this host"));
  refused = run(host, "mock:increment mock:devices=1 ", {0}, step);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("device 1, which it was not compiled for"));
  client_.reset();
  client_ = std::move(*Client::create(kMockPlugin));
  CallSpec spec = increment_call(1);
  spec.results.push_back({{1}, "i32"});
  const auto counted = Executable::load(*client_, "MOCKmock:increment", spec, {0});
  ASSERT_FALSE(counted);
  EXPECT_THAT(counted.error().message, HasSubstr("has 2 results, its description 3"));
  const auto bytes = Executable::load(*client_, "ELF", increment_call(1), {0});
  ASSERT_FALSE(bytes);
  EXPECT_THAT(
      bytes.error().message,
      HasSubstr("loading the compiled program failed: INVALID_ARGUMENT: not an executable"));
}

}  // namespace
}  // namespace gridless::tpu
