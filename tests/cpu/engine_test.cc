// The CPU engine runs every program as the emulator does, to the bit, on any number of workers.
#include "gridless/cpu/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "gridless/base/mapped_file.h"
#include "gridless/ir/call_json.h"
#include "gridless/ir/text.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/weights/safetensors.h"
#include "kernels/gallery.h"
#include "tests/cpu/run_program.h"

namespace gridless::cpu {
namespace {

namespace fs = std::filesystem;

void expect_engines_agree(const ir::Program& program, const PerCoreBytes& inputs) {
  for (const int launches : {1, 2}) {
    const Ran expected = run_emulated(program, inputs, launches);
    ASSERT_EQ(to_string(expected.diagnostics), "");
    for (const int threads : {1, 2}) {
      EXPECT_TRUE(same_results(expected, run_cpu(program, inputs, {.threads = threads}, launches)))
          << threads << " workers, " << launches << " launches";
      // Loops that stay loops.
      for (const int64_t cap : {0, 300}) {
        const EngineOptions options{.threads = threads, .max_unrolled_steps = cap};
        EXPECT_TRUE(same_results(expected, run_cpu(program, inputs, options, launches)))
            << threads << " workers, unrolling up to " << cap;
      }
    }
  }
}

class GalleryOnCpu : public testing::TestWithParam<std::string> {};

TEST_P(GalleryOnCpu, GivesTheBitsOfTheEmulator) {
  const kernels::Lesson& lesson = **kernels::find_lesson(GetParam());
  const auto options = lesson.with();
  const kernels::Built program = lesson.build(*options);
  ASSERT_TRUE(program) << to_string(program.error());
  PerCoreBytes inputs;
  for (const auto& core : lesson.inputs(*options, 3)) {
    inputs.emplace_back();
    for (const kernels::Array& a : core) inputs.back().push_back(a.bytes());
  }
  expect_engines_agree(*program, inputs);
}

std::vector<std::string> lesson_names() {
  std::vector<std::string> out;
  for (const kernels::Lesson& l : kernels::lessons()) out.push_back(l.name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Lessons, GalleryOnCpu, testing::ValuesIn(lesson_names()),
                         [](const auto& info) { return info.param; });

fs::path corpus() { return fs::path(GRIDLESS_TEST_DATA) / "corpus"; }

// Clean kernels of the corpus without a grid (the engine refuses grids, see below).
std::vector<std::string> corpus_names(bool with_grid) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(corpus())) {
    if (!fs::exists(entry.path() / "meta.json")) continue;
    if (nlohmann::json::parse(read_text_file(entry.path() / "meta.json").value())["verdict"] !=
        "clean")
      continue;
    const auto module =
        ir::parse(read_text_file(entry.path() / "module.mlir").value(), "module.mlir");
    bool grid = false;
    ir::walk(*module->top,
             [&](const ir::Op& op) { grid |= op.find("iteration_bounds") != nullptr; });
    if (grid == with_grid) out.push_back(entry.path().filename());
  }
  std::ranges::sort(out);
  return out;
}

struct CorpusKernel {
  ir::Program program;
  PerCoreBytes inputs;

  explicit CorpusKernel(const std::string& name) {
    auto module = ir::parse(read_text_file(corpus() / name / "module.mlir").value(), "module.mlir");
    program.module = std::move(*module);
    program.call = *ir::parse_call_json(read_text_file(corpus() / name / "call.json").value());
    const std::string data = read_text_file(corpus() / name / "data.safetensors").value();
    const auto tensors =
        weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    const auto cores = static_cast<size_t>(program.call.cores);
    inputs.resize(cores);
    for (size_t i = 0; i < program.call.operands.size(); ++i) {
      const auto* t = tensors->find("in" + std::to_string(i));
      const auto* begin = reinterpret_cast<const std::byte*>(t->stored.data());
      const size_t each = t->stored.size() / cores;
      for (size_t c = 0; c < cores; ++c)
        inputs[c].emplace_back(begin + c * each, begin + (c + 1) * each);
    }
  }
};

class CorpusOnCpu : public testing::TestWithParam<std::string> {};

TEST_P(CorpusOnCpu, GivesTheBitsOfTheEmulator) {
  const CorpusKernel kernel(GetParam());
  expect_engines_agree(kernel.program, kernel.inputs);
}
INSTANTIATE_TEST_SUITE_P(Clean, CorpusOnCpu, testing::ValuesIn(corpus_names(false)),
                         [](const auto& info) { return info.param; });

TEST(Engine, RefusesAGrid) {
  const std::vector<std::string> names = corpus_names(true);
  ASSERT_FALSE(names.empty());
  const CorpusKernel kernel(names[0]);
  const Ran ran = run_cpu(kernel.program, kernel.inputs);
  ASSERT_EQ(ran.diagnostics.size(), 1u);
  EXPECT_THAT(ran.diagnostics[0].message, testing::HasSubstr("without a grid"));
}

// Programs that go wrong: the report is that of the emulator, on any number of workers.
using namespace lang;  // NOLINT: kernels read in the language

struct Wrong {
  std::function<void(Kernel&, Ref table)> body;
  int cores = 2;
};

std::vector<std::string> kinds(const Diagnostics& list) {
  std::vector<std::string> out;
  for (const Diagnostic& d : list) out.push_back(d.kind);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

void expect_report(const Wrong& wrong, const std::string& kind) {
  Kernel k("wrong", wrong.cores);
  const Ref table = k.input("table", Elem::kI32, {8}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, {8, 128});
  if (wrong.cores > 1) k.barrier_all();
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {8, 128});
    const Sem done = k.dma_sem();
    a.store(zeros(k, Elem::kF32, {8, 128}));
    k.copy(a, y, done).wait();
    wrong.body(k, table);
  });
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  const Bytes numbers = bytes_of(std::vector<int32_t>{0, 1, 2, 3, 1000, -1, 6, 7});
  const PerCoreBytes inputs(static_cast<size_t>(wrong.cores), {numbers});
  EXPECT_THAT(kinds(run_emulated(*program, inputs).diagnostics), testing::ElementsAre(kind));
  for (const int threads : {1, 2}) {
    const Ran ran = run_cpu(*program, inputs, {.threads = threads});
    EXPECT_THAT(kinds(ran.diagnostics), testing::ElementsAre(kind)) << threads << " workers";
    for (const Diagnostic& d : ran.diagnostics) EXPECT_TRUE(d.where.known()) << d.str();
  }
}

TEST(Engine, ReportsAWaitForASignalThatNeverComes) {
  expect_report({[](Kernel& k, Ref) { k.wait(k.sem()); }}, "deadlock");
  // One core has ended, the other waits.
  expect_report({[](Kernel& k, Ref) {
                  const Sem s = k.sem();
                  k.if_(k.core() == 1, [&] { k.wait(s); });
                }},
                "deadlock");
  // Each waits for the other.
  expect_report({[](Kernel& k, Ref) {
                  const Sem s = k.sem();
                  k.wait(s);
                  k.signal(s, 1, 1 - k.core());
                }},
                "deadlock");
  // Three of four get theirs.
  expect_report({[](Kernel& k, Ref) {
                   const Sem s = k.sem();
                   k.if_(k.core() != 3, [&] { k.signal(s, 1, k.core()); });
                   k.wait(s);
                 },
                 4},
                "deadlock");
}

TEST(Engine, ReportsSignalsThatNobodyWaitedFor) {
  expect_report({[](Kernel& k, Ref) { k.signal(k.sem(), 3); }}, "semaphore_not_zero");
}

TEST(Engine, ReportsAnIndexOutOfBounds) {
  expect_report({[](Kernel& k, Ref table) {
                  const Ref a = k.vmem(Elem::kF32, {8, 128}), b = k.vmem(Elem::kF32, {1, 128});
                  a.store(zeros(k, Elem::kF32, {8, 128}));
                  b.store(a.load({table.get({4}), 0}, {1, 128}));
                }},
                "out_of_bounds");
  expect_report({[](Kernel& k, Ref table) {
                  const Ref a = k.vmem(Elem::kF32, {8, 128});
                  a.rows(table.get({5}), 1).store(zeros(k, Elem::kF32, {1, 128}));
                }},
                "out_of_bounds");
  expect_report({[](Kernel& k, Ref table) { k.signal(k.sem(), 1, table.get({4})); }},
                "out_of_bounds");
  expect_report({[](Kernel& k, Ref table) {
                  const Ref a = k.smem(Elem::kI32, {8});
                  a.set({table.get({4})}, 1);
                }},
                "out_of_bounds");
}

}  // namespace
}  // namespace gridless::cpu
