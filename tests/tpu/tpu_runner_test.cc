// StepRunner on the mock plugin, which runs the compiled kernel on the CPU engine: what comes back
// is what the CPU engine gives, to the bit, whatever way the rows took.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "gridless/decode/runner.h"
#include "gridless/tpu/compile_kernel.h"
#include "tests/temporary_folder.h"
#include "tests/tpu/mock_plugin.h"

namespace gridless::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTiny = GRIDLESS_TEST_DATA "/llama_tiny/untied";
constexpr int kCores = 2;
constexpr int64_t kContext = 256;

class TpuRunner : public ::testing::Test {
 protected:
  void SetUp() override {
    auto checkpoint = weights::Checkpoint::open(kTiny);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    checkpoint_.emplace(std::move(*checkpoint));
  }
  void TearDown() override {
    EXPECT_EQ(tpu::violations(), "");
    EXPECT_EQ(tpu::live_objects(), 0);
  }

  // Compiles the step for `rows`, as `gridless compile` does.
  Result<std::filesystem::path> compile(int64_t rows) {
    TRY(const auto model, models::model_of(checkpoint_->config()));
    TRY(const models::Formats formats, model->native_formats(*checkpoint_));
    TRY(const auto sharded, model->on_cores(kCores, {.rows = rows,
                                                     .slots = 1,
                                                     .pages = kContext / 128,
                                                     .slot_pages = kContext / 128,
                                                     .formats = formats}));
    auto program = sharded->program(rows);
    if (!program) return input_error("{}", to_string(program.error()));
    TRY(const tpu::CompiledCall call,
        tpu::compile_kernel(compiler_, std::move(*program), {.shape = {1, 1, 1}}));
    const std::filesystem::path folder = temporary_.path() / std::to_string(rows);
    std::filesystem::create_directory(folder);
    for (const auto& [name, bytes] : tpu::output_files(call, "test"))
      TRY_VOID(write_file((folder / name).string(), std::string_view(bytes)));
    return folder;
  }
  Result<std::unique_ptr<StepRunner>> open(std::initializer_list<int64_t> row_counts) {
    std::vector<std::filesystem::path> folders;
    for (const int64_t rows : row_counts) {
      TRY(std::filesystem::path folder, compile(rows));
      folders.push_back(std::move(folder));
    }
    TRY(TpuPrograms programs, TpuPrograms::read(folders));
    return StepRunner::load(*checkpoint_,
                            {.engine = EngineKind::kTpu,
                             .context = kContext,
                             .programs = std::make_shared<TpuPrograms>(std::move(programs)),
                             .tpu = {.libtpu = tpu::kMockPlugin}});
  }

  std::optional<weights::Checkpoint> checkpoint_;
  tpu::Compiler compiler_{{.libtpu = {.path = tpu::kMockPlugin}}};
  gridless::testing::TemporaryFolder temporary_;
};

std::vector<Row> rows_of(int32_t first, int32_t count) {
  std::vector<Row> rows;
  for (int32_t p = first; p < first + count; ++p)
    rows.push_back({.token = (p * 37 + 5) % 512, .slot = 0, .position = p});
  return rows;
}

TEST_F(TpuRunner, GivesWhatTheCpuEngineGives) {
  auto cpu = StepRunner::load(*checkpoint_, {.cores = kCores, .context = kContext});
  ASSERT_TRUE(cpu) << cpu.error().message;
  auto tpu = open({1, 4});
  ASSERT_TRUE(tpu) << tpu.error().message;
  EXPECT_EQ((*tpu)->options().cores, kCores);
  EXPECT_EQ((*tpu)->options().max_rows, 4);
  const int launches = tpu::launches();
  for (const auto& [first, count] : {std::pair{0, 4}, {4, 4}, {8, 2}, {10, 1}, {11, 1}}) {
    const std::vector<Row> rows = rows_of(first, count);
    const bool ahead = first < 8;  // nobody looks at these
    ASSERT_TRUE(ahead ? (*tpu)->step_ahead(rows) : (*tpu)->step(rows));
    ASSERT_TRUE((*cpu)->step(rows));
    if (ahead) continue;
    std::vector<float> ours(512), theirs(512);
    for (int64_t r = 0; r < count; ++r) {
      EXPECT_EQ((*tpu)->argmax(r), (*cpu)->argmax(r));
      ASSERT_TRUE((*tpu)->logits(r, ours));
      ASSERT_TRUE((*cpu)->logits(r, theirs));
      EXPECT_EQ(ours, theirs) << "position " << first + r;
      EXPECT_TRUE((*tpu)->check_logits(r));
    }
  }
  EXPECT_EQ(tpu::launches() - launches, 5);
}

// More launches than may be in flight; the program in between runs once less.
TEST_F(TpuRunner, AChainFeedsItselfAndGivesWhatTheCpuEngineGives) {
  auto cpu = StepRunner::load(*checkpoint_, {.cores = kCores, .context = kContext});
  ASSERT_TRUE(cpu) << cpu.error().message;
  auto tpu = open({1, 4});
  ASSERT_TRUE(tpu) << tpu.error().message;
  const std::vector<Row> prompt = rows_of(0, 4);
  ASSERT_TRUE((*tpu)->step(prompt));
  ASSERT_TRUE((*cpu)->step(prompt));
  const int launches = tpu::launches();
  Row next = {.token = (*cpu)->argmax(3), .slot = 0, .position = 4};
  for (const int64_t count : {11, 1, 3}) {
    const auto chained = (*tpu)->chain(next, count);
    ASSERT_TRUE(chained) << chained.error().message;
    for (int64_t n = 0; n < count; ++n) {
      ASSERT_TRUE((*cpu)->step({&next, 1}));
      next = {.token = (*cpu)->argmax(0), .slot = 0, .position = next.position + 1};
      EXPECT_EQ((*tpu)->argmax(n), next.token) << "launch " << n << " of " << count;
      EXPECT_TRUE((*tpu)->check_logits(n));
    }
  }
  EXPECT_EQ(tpu::launches() - launches, 11 + 10 + 1 + 3 + 2);
  // And what it left is what the other left.
  ASSERT_TRUE((*tpu)->step({&next, 1}));
  ASSERT_TRUE((*cpu)->step({&next, 1}));
  std::vector<float> ours(512), theirs(512);
  ASSERT_TRUE((*tpu)->logits(0, ours));
  ASSERT_TRUE((*cpu)->logits(0, theirs));
  EXPECT_EQ(ours, theirs);
}

TEST_F(TpuRunner, AChainThatFailsSomewhereIsAnErrorAndLosesTheCaches) {
  for (const int after : {1, 2, 5}) {
    auto runner = open({1});
    ASSERT_TRUE(runner) << runner.error().message;
    tpu::inject(tpu::abi::Slot::kLoadedExecutableExecute, 14, after);
    const auto failed = (*runner)->chain(rows_of(0, 1)[0], 4);
    ASSERT_FALSE(failed) << after;
    EXPECT_THAT(failed.error().message, HasSubstr("failed: UNAVAILABLE"));
    tpu::inject(0, 0);
    const auto later = (*runner)->step(rows_of(1, 1));
    ASSERT_FALSE(later) << after;
    EXPECT_THAT(later.error().message, HasSubstr("the state of llama_step was lost"));
  }
}

TEST_F(TpuRunner, LosesItsCachesWithAFailedLaunch) {
  auto runner = open({1});
  ASSERT_TRUE(runner) << runner.error().message;
  ASSERT_TRUE((*runner)->step(rows_of(0, 1)));
  tpu::inject(tpu::abi::Slot::kLoadedExecutableExecute, 14);
  const auto failed = (*runner)->step(rows_of(1, 1));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("launch 2 of llama_step failed: UNAVAILABLE"));
  const auto later = (*runner)->step(rows_of(1, 1));
  ASSERT_FALSE(later);
  EXPECT_THAT(later.error().message, HasSubstr("the state of llama_step was lost"));
}

TEST_F(TpuRunner, RefusesMoreThanItsProgramsHold) {
  auto folder = compile(1);
  ASSERT_TRUE(folder) << folder.error().message;
  const auto programs = std::make_shared<TpuPrograms>(TpuPrograms::read({*folder}).value());
  EXPECT_THAT(programs->row_counts(), ElementsAre(1));
  const auto load = [&](RunnerOptions options) {
    options.engine = EngineKind::kTpu;
    options.programs = programs;
    options.tpu.libtpu = tpu::kMockPlugin;
    const auto runner = StepRunner::load(*checkpoint_, options);
    return runner ? "" : runner.error().message;
  };
  EXPECT_THAT(load({.context = kContext + 1}), HasSubstr("hold 1 sequences of 256 tokens"));
  EXPECT_THAT(load({.slots = 2, .context = 100}), HasSubstr("needed are 2 of 100"));
  EXPECT_THAT(load({.format = weights::Format::kQ8, .context = 100}),
              HasSubstr("operand weights is"));
}

}  // namespace
}  // namespace gridless::decode
