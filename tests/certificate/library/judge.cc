#include "tests/certificate/library/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/base/check.h"
#include "gridless/emulate/check/check.h"
#include "gridless/emulate/check/garbage.h"
#include "gridless/emulate/explore/explore.h"
#include "gridless/ir/verifier.h"

namespace gridless::certificate {
namespace {

using emulate::Fill;
using emulate::GarbageRun;
using Outputs = std::vector<std::vector<std::byte>>;

constexpr int64_t kMostSteps = 2'000'000;
constexpr int64_t kMostStates = 2'000, kMostExploredSteps = 200'000;

// Calls f(core, result, element, bits of an element, written) for each element of the results.
template <typename F>
void for_each_element(const ir::Call& call, const GarbageRun& run, const F& f) {
  for (size_t c = 0; c < run.memory.cores.size(); ++c)
    for (size_t r = 0; r < call.results.size(); ++r) {
      const auto it = run.recorder->results.find({static_cast<int>(c), static_cast<int>(r)});
      const emulate::Content* contents =
          it == run.recorder->results.end() ? nullptr : it->second.get();
      const int bits = emulate::storage_bits(call.results[r].type.elem());
      for (int64_t k = 0; k < call.results[r].type.num_elements(); ++k)
        f(c, r, k, bits, !contents || contents[k] != emulate::Content::kGarbage);
    }
}

uint32_t element(const ir::Call& call, const Outputs& outputs, size_t core, size_t result,
                 int64_t k, int bits) {
  const int64_t bytes = emulate::tensor_bytes(call.results[result]);
  return emulate::get_bits(outputs[result].data() + static_cast<int64_t>(core) * bytes, k, bits);
}

// Elements that `run` wrote are not those of `other`.
bool written_differ(const ir::Call& call, const GarbageRun& run, const Outputs& other) {
  bool differ = false;
  for_each_element(call, run, [&](size_t c, size_t r, int64_t k, int bits, bool written) {
    differ |= written && element(call, run.memory.outputs, c, r, k, bits) !=
                             element(call, other, c, r, k, bits);
  });
  return differ;
}

}  // namespace

const char* name(Fate fate) {
  constexpr const char* kNames[kFates] = {"refused",   "killed",  "MISSED",
                                          "by values", "flagged", "equivalent"};
  return kNames[static_cast<size_t>(fate)];
}

Judge::Judge(const Subject& subject) : subject_(subject), program_(subject.make()) {
  auto run = emulate::run_call(program_.module, program_.call, subject.cores, subject.views());
  GRIDLESS_CHECK(run && run->report.finished && run->report.diagnostics.empty(), "{}: {}",
                 subject.name, run ? to_string(run->report.diagnostics) : run.error().message);
  emulator_.emplace(emulate::Emulator::create(program_.module, program_.call).value());
  original_ = record(*emulator_, Fill::kPositive);
  std::set<std::string> none;
  explorable_ = true;
  explorable_ = explore(program_, none);
  GRIDLESS_CHECK(none.empty(), "{}: {}", subject.name, fmt::join(none, " "));
}

GarbageRun Judge::record(const emulate::Emulator& emulator, Fill fill) const {
  const auto inputs =
      emulate::complete_inputs(emulator.call(), subject_.cores, subject_.views(), true).value();
  return run_recorded(emulator, subject_.cores, inputs, {.max_steps = kMostSteps, .fill = fill});
}

// Runs it in several ways; true if it gives other outputs than the original.
bool Judge::run(const ir::Program& program, std::set<std::string>& faults) const {
  const auto late = emulate::run_call(program.module, program.call, subject_.cores,
                                      subject_.views(), {.max_steps = kMostSteps});
  for (const Diagnostic& d : late->report.diagnostics) faults.insert(d.kind);
  const auto emulator = emulate::Emulator::create(program.module, program.call);
  if (!emulator) return false;
  const GarbageRun early = record(*emulator, Fill::kPositive);
  const GarbageRun other = record(*emulator, Fill::kNegative);
  for (const Diagnostic& d : early.report.diagnostics) faults.insert(d.kind);
  if (early.report.finished != other.report.finished ||
      early.recorder->fingerprint != other.recorder->fingerprint)
    faults.insert("garbage decides");
  if (!early.report.finished || !late->report.finished) return true;
  if (written_differ(program.call, early, other.memory.outputs))
    faults.insert("garbage in outputs");
  if (written_differ(program.call, early, late->outputs)) faults.insert("outputs differ by timing");
  return written_differ(program.call, original_, early.memory.outputs) ||
         written_differ(program.call, original_, late->outputs);
}

// Under every timing, if they are few; true if these were all.
bool Judge::explore(const ir::Program& program, std::set<std::string>& faults) const {
  if (!explorable_) return false;
  const auto verdict =
      emulate::explore(program.module, program.call, subject_.cores, subject_.views(),
                       {.max_states = kMostStates, .max_steps = kMostExploredSteps});
  const std::set<std::string> kinds = verdict->kinds();
  faults.insert(kinds.begin(), kinds.end());
  return verdict->exhausted;
}

Judgement Judge::operator()(const Mutation& mutation) const {
  ir::Program program = subject_.make();
  apply(program.module, mutation, subject_.cores);
  Judgement out;
  if (const Diagnostics wrong = ir::verify(program.module); has_errors(wrong)) {
    out.fate = Fate::kRefused;
    out.details = to_string(wrong);
    return out;
  }
  const auto report = emulate::check(program.module, program.call, subject_.cores, subject_.views(),
                                     {.max_steps = kMostSteps});
  for (const Diagnostic& d : report->diagnostics()) out.found.insert(d.kind);
  out.details = to_string(report->diagnostics());
  const bool changed = run(program, out.faults);
  out.explored = explore(program, out.faults);
  const bool found = !out.found.empty(), fault = !out.faults.empty();
  out.fate = fault     ? (found ? Fate::kKilled : Fate::kMissed)
             : changed ? (found ? Fate::kKilled : Fate::kKilledByValues)
             : found   ? Fate::kFlagged
                       : Fate::kEquivalent;
  return out;
}

}  // namespace gridless::certificate
