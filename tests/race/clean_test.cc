// What must be proved clean: the gallery, and the steps of the models, at several numbers of cores.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "gridless/emulate/check/check.h"
#include "gridless/emulate/explore/explore.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/models/llama/model.h"
#include "gridless/models/qwen3_8/model.h"
#include "kernels/gallery.h"

namespace gridless {
namespace {

std::string why(const emulate::CheckReport& report) {
  return to_string(report.diagnostics()) + fmt::format("{}", fmt::join(report.notes, "\n"));
}

struct LessonCase {
  const kernels::Lesson* lesson;
  int cores;
};
void PrintTo(const LessonCase& c, std::ostream* out) { *out << c.lesson->name << "_" << c.cores; }

std::vector<LessonCase> lesson_cases() {
  std::vector<LessonCase> out;
  for (const kernels::Lesson& lesson : kernels::lessons()) {
    const bool several = std::ranges::any_of(
        lesson.options, [](const kernels::Option& o) { return o.key == "cores"; });
    for (int cores : {1, 2, 4, 8})
      if (cores == 1 || several) out.push_back({&lesson, cores});
  }
  return out;
}

class Gallery : public testing::TestWithParam<LessonCase> {};

TEST_P(Gallery, HasACertificate) {
  const auto& [lesson, cores] = GetParam();
  std::map<std::string, std::string> keys;
  for (const kernels::Option& o : lesson->options) {
    if (o.key != "cores") continue;
    if (cores < o.least) GTEST_SKIP() << "for at least " << o.least << " cores";
    keys["cores"] = std::to_string(cores);
  }
  const auto options = lesson->with(keys);
  ASSERT_TRUE(options) << options.error().message;
  const auto program = lesson->build(*options);
  ASSERT_TRUE(program) << to_string(program.error());
  std::vector<std::vector<std::byte>> data(program->call.operands.size());
  for (const auto& core : lesson->inputs(*options, 7))
    for (size_t k = 0; k < data.size(); ++k) {
      const std::vector<std::byte> bytes = core[k].bytes();
      data[k].insert(data[k].end(), bytes.begin(), bytes.end());
    }
  const std::vector<std::span<const std::byte>> spans(data.begin(), data.end());
  const auto report = emulate::check(program->module, program->call, cores, spans);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->findings, testing::IsEmpty()) << why(*report);
  // The loop of lesson 13 ends when a vector says so: right for this data, no proof for all.
  EXPECT_EQ(report->certificate, lesson->name != "13_while") << why(*report);
}

INSTANTIATE_TEST_SUITE_P(Each, Gallery, testing::ValuesIn(lesson_cases()), [](const auto& info) {
  return fmt::format("L{}_{}", info.param.lesson->name, info.param.cores);
});

struct StepCase {
  int cores, rows;
};
void PrintTo(const StepCase& c, std::ostream* out) { *out << c.cores << "_" << c.rows; }
class Step : public testing::TestWithParam<StepCase> {};

// bf16 pairs of magnitude 0.03 to 0.06 and both signs.
std::vector<std::byte> weights(int64_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  for (size_t k = 0; k + 1 < out.size(); k += 2) {
    const uint32_t x = random();
    out[k] = static_cast<std::byte>(x & 0x7f);
    out[k + 1] = static_cast<std::byte>(0x3d | (x >> 8 & 0x80));
  }
  return out;
}

void expect_certificate(const models::Model& model, const StepCase& c) {
  const auto [cores, rows] = c;
  const auto sharded = model.on_cores(cores, {.slots = 2, .pages = 6, .slot_pages = 3});
  ASSERT_TRUE(sharded) << sharded.error().message;
  const auto program = (*sharded)->program(rows);
  ASSERT_TRUE(program) << to_string(program.error());
  const ir::Call& call = program->call;
  std::vector<std::vector<std::byte>> data(call.operands.size());
  for (size_t k = 0; k < data.size(); ++k) {
    const std::string& name = call.operands[k].name;
    std::vector<int32_t> table;
    if (name == "rows") {
      // Consecutive tokens over the end of a page in slot 1, then slot 0, then an inactive row.
      const std::vector<std::vector<int32_t>> fields = {
          {5, 9, 17, 0}, {1, 1, 0, 0}, {127, 128, 3, 0}, {1, 1, 1, 0}};
      for (const auto& f : fields) table.insert(table.end(), f.begin(), f.begin() + rows);
    } else if (name == "pages") {
      table = {4, 1, 0, 2, 5, 3};
    } else if (name == "keep") {
      table = {0, 2};
    } else if (name == "weights") {
      data[k] = weights(emulate::tensor_bytes(call.operands[k]) * cores, 3);
      continue;
    }
    const auto bytes = std::as_bytes(std::span(table));
    for (int c = 0; c < cores && !table.empty(); ++c)
      data[k].insert(data[k].end(), bytes.begin(), bytes.end());
  }
  const std::vector<std::span<const std::byte>> spans(data.begin(), data.end());
  const auto report = emulate::check(program->module, call, cores, spans);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->findings, testing::IsEmpty()) << why(*report);
  EXPECT_TRUE(report->certificate) << why(*report);
}

TEST_P(Step, OfALlamaHasACertificate) {
  models::LlamaConfig config;
  config.layers = 3;
  config.hidden = 192;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 32;
  config.ffn = 256;
  config.vocab = 512;
  config.context = 384;
  expect_certificate(*models::llama_model(config), GetParam());
}

TEST_P(Step, OfAQwenHasACertificate) {
  models::Qwen38Config config;
  config.layers = 3;
  config.hidden = 192;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 32;
  config.rotary_dims = 8;
  config.key_heads = 8;
  config.value_heads = 16;
  config.key_dim = config.value_dim = 16;
  config.period = {false, false, true};
  config.ffn = 256;
  config.vocab = 512;
  config.context = 384;
  expect_certificate(*models::qwen38_model(config), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Each, Step,
                         testing::Values(StepCase{1, 1}, StepCase{1, 4}, StepCase{2, 1},
                                         StepCase{2, 4}, StepCase{4, 1}, StepCase{4, 4},
                                         StepCase{8, 1}, StepCase{8, 4}),
                         [](const auto& info) {
                           return fmt::format("Cores{}Rows{}", info.param.cores, info.param.rows);
                         });

// Cores that exchange in a scope that each has entered another number of times, in all (core 0 in
// rounds 0 and 1, core 1 in round 1) or only before (core 1 in rounds 1 and 2): which of its scopes
// an access belongs to is the owner's to count. The explorer says the same.
ir::Program uneven_scopes(bool barrier, int last_of_core_1) {
  using namespace lang;  // NOLINT: one program in the language
  Kernel k("uneven", 2);
  const Ref y = k.output("y", Elem::kF32, {8, 128});
  k.loop(k.core(), k.core() * (last_of_core_1 - 1) + 2, [&](lang::Scalar round) {
    k.scope([&] {
      const Ref mine = k.vmem(Elem::kF32, {8, 128}), theirs = k.vmem(Elem::kF32, {8, 128});
      const Sem sent = k.dma_sem(), received = k.dma_sem();
      mine.store(full(k, Elem::kF32, {8, 128}, 1));
      k.if_(round == 1, [&] {
        if (barrier) k.barrier_all();
        const Copy c = k.copy_to(1 - k.core(), mine, theirs, sent, received);
        c.wait();
        c.wait_sent();
        k.copy(theirs, y, sent).wait();
      });
    });
  });
  auto program = k.finish();
  if (!program) throw std::runtime_error(to_string(program.error()));
  return std::move(*program);
}

TEST(Scopes, MayBeEnteredAnotherNumberOfTimesByTheSender) {
  for (const int last : {1, 2})
    for (const bool barrier : {true, false}) {
      SCOPED_TRACE(fmt::format("core 1 up to round {}, barrier {}", last, barrier));
      const ir::Program program = uneven_scopes(barrier, last);
      const auto report = emulate::check(program.module, program.call, 2, {});
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->certificate, barrier) << why(*report);
      for (const Diagnostic& d : report->diagnostics())
        EXPECT_EQ(d.kind, "missing_barrier") << d.str();
      EXPECT_EQ(report->findings.empty(), barrier);
      const auto explored = emulate::explore(program.module, program.call, 2, {});
      ASSERT_TRUE(explored) << explored.error().message;
      EXPECT_TRUE(explored->exhausted) << explored->stopped;
      EXPECT_EQ(explored->kinds().contains("missing_barrier"), !barrier);
      EXPECT_EQ(explored->clean(), barrier) << fmt::format("{}", fmt::join(explored->kinds(), " "));
    }
}

}  // namespace
}  // namespace gridless
