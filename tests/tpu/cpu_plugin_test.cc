// The runtime on a PJRT plugin that others wrote: XLA's for CPUs, from a wheel of
// packages/wheels.txt. It takes plain StableHLO and knows donation, events and several launches in
// flight, as libtpu does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "gridless/decode/next_rows.h"
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

// The whole arrays of three cores on one device: as a program of one core it computes the same.
TEST_F(CpuPlugin, MakesTheNextRows) {
  constexpr int kCores = 3;
  constexpr int64_t kRows = 4, kShard = 100;
  std::string text = decode::next_rows_text({.cores = kCores, .rows = kRows, .shard = kShard});
  for (const auto& [from, to] :
       {std::pair{"num_partitions = 3", "num_partitions = 1"}, {"[\"core\"=3]", "[\"core\"=1]"}}) {
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), strlen(from), to);
  }
  const CallSpec spec = {.kernel_name = "next_rows",
                         .operands = {{{kCores * 4, kRows}, "i32"},
                                      {{kCores * kRows, 128}, "f32"},
                                      {{kCores * kRows, 128}, "i32"}},
                         .results = {{{kCores * 4, kRows}, "i32"}}};
  auto program = Executable::compile(*client, text, spec, {device});
  ASSERT_TRUE(program) << program.error().message;
  // Row 0: the last core's; row 1: two are equal, the smaller id; row 2: not active; row 3: no
  // numbers, some token of the vocabulary.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float first[kCores][kRows] = {{1, 5, 9, nan}, {2, 5, 8, nan}, {3, -7, 8, nan}};
  const int32_t id[kCores][kRows] = {{10, 20, 30, -1}, {11, 0, 31, -1}, {99, 22, 32, -1}};
  std::vector<float> logits(kCores * kRows * 128, 1000);
  std::vector<int32_t> ids(kCores * kRows * 128, 77), rows;
  for (int c = 0; c < kCores; ++c) {
    for (int r = 0; r < kRows; ++r) {
      logits[static_cast<size_t>((c * kRows + r) * 128)] = first[c][r];
      ids[static_cast<size_t>((c * kRows + r) * 128)] = id[c][r];
    }
    rows.insert(rows.end(), {7, 7, 7, 7, 0, 1, 2, 3, 40, 41, 42, 43, 1, 1, 0, 1});
  }
  const Step step = {Stage::kRun, "testing"};
  std::vector<Buffer> operands;
  const auto upload = [&](const auto& values, const OperandSpec& operand) {
    auto started =
        client->upload(*client->find(device), operand, std::as_bytes(std::span(values)), step);
    ASSERT_TRUE(started) << started.error().message;
    auto buffer = started->finish(step);
    ASSERT_TRUE(buffer) << buffer.error().message;
    operands.push_back(std::move(*buffer));
  };
  upload(rows, spec.operands[0]);
  upload(logits, spec.operands[1]);
  upload(ids, spec.operands[2]);
  const std::vector<std::vector<Buffer*>> given = {{&operands[0], &operands[1], &operands[2]}};
  auto launch = program->launch(given, 1);
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_TRUE(launch->wait(step));
  std::vector<int32_t> out(rows.size());
  ASSERT_TRUE(launch->results[0][0].read(std::as_writable_bytes(std::span(out)), step));
  for (size_t c = 0; c < kCores; ++c) {
    const std::span<int32_t> table = std::span(out).subspan(c * 16, 16);
    EXPECT_EQ(table[0], 299);
    EXPECT_EQ(table[1], 20);
    EXPECT_EQ(table[2], 7);
    EXPECT_TRUE(table[3] >= 0 && table[3] < kCores * kShard) << table[3];
    EXPECT_TRUE(std::ranges::equal(table.subspan(4), std::span(rows).subspan(4, 12)));
  }
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
