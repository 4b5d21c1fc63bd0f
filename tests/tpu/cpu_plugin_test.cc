// The runtime on a PJRT plugin that others wrote: XLA's for CPUs, from a wheel of
// packages/wheels.txt. It takes plain StableHLO and knows donation, events and several launches in
// flight, as libtpu does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "gridless/tpu/runtime/session.h"

namespace gridless::tpu {
namespace {

// state (donated), step -> state + step, sum of the new state.
constexpr const char* kIncrement = R"(module @increment {
  func.func public @main(%state: tensor<4xi32> {tf.aliasing_output = 0 : i32},
                         %step: tensor<1xi32>) -> (tensor<4xi32>, tensor<1xi32>) {
    %by = stablehlo.broadcast_in_dim %step, dims = [0] : (tensor<1xi32>) -> tensor<4xi32>
    %new = stablehlo.add %state, %by : tensor<4xi32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %sum = stablehlo.reduce(%new init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
    %out = stablehlo.reshape %sum : (tensor<i32>) -> tensor<1xi32>
    return %new, %out : tensor<4xi32>, tensor<1xi32>
  }
})";

// Named by GRIDLESS_PJRT_CPU, else where ./dev test puts the wheel.
std::optional<std::string> find_plugin() {
  namespace fs = std::filesystem;
  if (const char* named = getenv("GRIDLESS_PJRT_CPU")) return named;
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "wheels" /
                        "fastatomstruct-xla-cpu" / "fastatomstruct_xla_cpu" / "libpjrt_cpu.so";
  return fs::exists(path) ? std::optional(path.string()) : std::nullopt;
}

// One client for all tests: the plugin takes one per process.
class CpuPlugin : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the plugin is not built for the sanitizers";
#endif
    const auto plugin = find_plugin();
    if (!plugin)
      GTEST_SKIP() << "there is no PJRT plugin for CPUs: ./dev test fetches it, or name one by "
                      "GRIDLESS_PJRT_CPU";
    auto created = Client::create(*plugin);
    ASSERT_TRUE(created) << created.error().message;
    client = std::move(*created);
    device = client->devices().front().id;
  }
  std::unique_ptr<Client> client;
  int device = 0;
};

TEST_F(CpuPlugin, RefusesAProgramWithItsOwnWords) {
  const CallSpec none = {.kernel_name = "broken"};
  const auto refused = Executable::compile(*client, "module { nonsense }", none, {device});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::kMachine);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("compiling the program failed: "));
  EXPECT_FALSE(Executable::load(*client, "no executable", none, {device}));
}

TEST_F(CpuPlugin, RunsStepsWithDonatedState) {
  EXPECT_FALSE(client->check_slice({})) << "a CPU is no slice";
  const CallSpec spec = {.kernel_name = "increment",
                         .operands = {{{4}, "i32"}, {{1}, "i32"}},
                         .results = {{{4}, "i32"}, {{1}, "i32"}},
                         .aliases = {{.result = 0, .operand = 0}}};
  auto executable = Executable::compile(*client, kIncrement, spec, {device});
  ASSERT_TRUE(executable) << executable.error().message;
  const std::array<int32_t, 4> state = {1, 2, 3, 4};
  std::array<int32_t, 1> step = {}, sum = {};
  DeviceMemory memory;
  const Session::Source source = [&](int, size_t) -> Result<std::span<const std::byte>> {
    return std::as_bytes(std::span(state));
  };
  auto session =
      Session::create(*client, memory, std::move(*executable), {Role::kState, Role::kTable},
                      {{.operands = {{}, std::as_bytes(std::span(step))},
                        .results = {{}, std::as_writable_bytes(std::span(sum))}}},
                      source);
  ASSERT_TRUE(session) << session.error().message;
  for (int32_t by = 1; by <= 10; ++by) {
    step[0] = by;
    const auto started = session->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  auto done = session->finish();
  if (done) done = session->read(1);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(sum[0], 10 + 4 * 55);
}

}  // namespace
}  // namespace gridless::tpu
