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
  std::vector<std::array<int32_t, 4>> state;
  std::vector<std::array<int32_t, 1>> step, sum;
  std::vector<HostMemory> memory;
};

class RuntimeTest : public testing::Test {
 protected:
  void TearDown() override {
    client_.reset();
    inject(abi::Slot::kErrorDestroy, 0);
    EXPECT_EQ(violations(), "");
    EXPECT_EQ(live_objects(), 0) << "objects of the plugin were leaked";
  }
  // All that a step needs; the error of whatever failed.
  Result<Session> open(Host& host, const std::string& text, std::vector<int> device_ids) {
    client_.reset();
    TRY(client_, Client::create(kMockPlugin));
    memory_ = DeviceMemory();
    const int cores = static_cast<int>(device_ids.size());
    TRY(Executable executable,
        Executable::load(*client_, "MOCK" + text, increment_call(cores), std::move(device_ids)));
    return Session::create(*client_, memory_, std::move(executable), {Role::kState, Role::kTable},
                           host.memory);
  }
  std::unique_ptr<Client> client_;
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

Result<void> step(Session& session) {
  TRY_VOID(session.start());
  return session.finish();
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
    return s.finish();
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
                                        {Role::kState, Role::kTable}, host.memory));
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
      [&](int64_t done, int64_t total) { seen.emplace_back(done, total); });
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_THAT(seen, ElementsAre(std::pair(16, 32), std::pair(32, 32)));
  client_ = std::move(*client);
}

// Every status at the n-th use of every function, until the function is not reached any more: the
// outcome is an error with the status, or none where the call only frees something; nothing leaks,
// nothing is used after it is gone.
class RuntimeFaults : public RuntimeTest, public testing::WithParamInterface<abi::Slot> {};

TEST_P(RuntimeFaults, AreErrorsWithTheirStatusAndLeakNothing) {
  const bool frees =
      GetParam() == abi::Slot::kEventDestroy || GetParam() == abi::Slot::kBufferDestroy ||
      GetParam() == abi::Slot::kLoadedExecutableDestroy || GetParam() == abi::Slot::kClientDestroy;
  if (frees) GTEST_SKIP() << "an object that cannot be freed is leaked by definition";
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
    for (int skip = 0; skip < 40; ++skip) {
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

INSTANTIATE_TEST_SUITE_P(
    Calls, RuntimeFaults,
    testing::Values(abi::Slot::kClientCreate, abi::Slot::kClientPlatformName,
                    abi::Slot::kClientPlatformVersion, abi::Slot::kClientDevices,
                    abi::Slot::kClientAddressableDevices, abi::Slot::kDeviceGetDescription,
                    abi::Slot::kExecutableDeserializeAndLoad,
                    abi::Slot::kLoadedExecutableGetExecutable, abi::Slot::kExecutableNumOutputs,
                    abi::Slot::kLoadedExecutableAddressableDevices,
                    abi::Slot::kClientBufferFromHostBuffer, abi::Slot::kBufferReadyEvent,
                    abi::Slot::kEventAwait, abi::Slot::kLoadedExecutableExecute,
                    abi::Slot::kBufferToHostBuffer),
    [](const auto& info) { return "slot" + std::to_string(static_cast<int>(info.param)); });

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
