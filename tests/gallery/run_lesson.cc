#include "tests/gallery/run_lesson.h"

#include <gtest/gtest.h>

#include "gridless/cpu/run_call.h"
#include "gridless/emulate/emulator.h"

namespace gridless::kernels {

bool run_lesson(const Lesson& lesson, const std::map<std::string, std::string>& options,
                uint64_t seed, LessonRun& run) {
  const Result<Options> set = lesson.with(options);
  if (!set) {
    ADD_FAILURE() << set.error().message;
    return false;
  }
  Built built = lesson.build(*set);
  if (!built) {
    ADD_FAILURE() << to_string(built.error());
    return false;
  }
  run.program = std::move(*built);
  EXPECT_EQ(to_string(run.program.warnings), "");
  run.inputs = lesson.inputs(*set, seed);
  run.want = lesson.reference(*set, run.inputs);

  const ir::Call& call = run.program.call;
  const auto cores = static_cast<size_t>(call.cores);
  if (run.inputs.size() != cores || run.want.size() != cores) {
    ADD_FAILURE() << "inputs for " << run.inputs.size() << " cores, program for " << cores;
    return false;
  }
  // Per operand, the cores one after another.
  std::vector<std::vector<std::byte>> data(call.operands.size());
  for (const std::vector<Array>& core : run.inputs) {
    for (size_t i = 0; i < data.size(); ++i) {
      EXPECT_EQ(core[i].shape, call.operands[i].type.shape()) << call.operands[i].name;
      const std::vector<std::byte> bytes = core[i].bytes();
      data[i].insert(data[i].end(), bytes.begin(), bytes.end());
    }
  }
  const std::vector<std::span<const std::byte>> spans(data.begin(), data.end());
  auto result = emulate::run_call(run.program.module, call, call.cores, spans);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return false;
  }
  if (!result->report.finished || !result->report.diagnostics.empty()) {
    ADD_FAILURE() << to_string(result->report.diagnostics);
    return false;
  }
  const auto fast = cpu::run_call(run.program, call.cores, spans);
  if (!fast) {
    ADD_FAILURE() << fast.error().message;
    return false;
  }
  EXPECT_EQ(to_string(fast->report.diagnostics), "") << "on the CPU engine";
  EXPECT_TRUE(fast->outputs == result->outputs) << "the CPU engine gives other bytes";
  run.got.assign(cores, {});
  for (size_t c = 0; c < cores; ++c) {
    for (size_t i = 0; i < call.results.size(); ++i) {
      const std::span<const std::byte> all = result->outputs[i];
      const size_t bytes = all.size() / cores;
      run.got[c].push_back(Array::from_bytes(call.results[i].type.elem(),
                                             call.results[i].type.shape(),
                                             all.subspan(c * bytes, bytes)));
    }
  }
  return true;
}

}  // namespace gridless::kernels
