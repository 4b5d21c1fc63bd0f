#include "gridless/emulate/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "gridless/emulate/check/alignment.h"
#include "gridless/emulate/check/capacity.h"
#include "gridless/emulate/check/collectives.h"
#include "gridless/emulate/check/garbage.h"

namespace gridless::emulate {
namespace {

constexpr std::string_view kAssumptions[] = {
    "A1 only the owner waits on and reads a semaphore; counts never wrap",
    "A2 a core's stores, copy starts and signals take effect in program order, as seen through "
    "semaphores",
    "A3 the last unit of a copy's receive count comes after all its data, of its send count after "
    "all of the source is read",
    "A4 every copy and signal arrives in the end",
    "A5 addresses are static and the same on all cores",
    "A6 a grid's pipeline fetches a block while the step before runs at the earliest, and has "
    "written one back when the step after ends at the latest",
    "A7 launches on a core run in order; barrier semaphores start at zero",
    "A8 the data is as given: all timings, not all inputs",
    "A9 nothing outside the kernel touches its memory; operands do not overlap unless aliased",
    "A10 additions to a semaphore are atomic",
};

// An unrolled loop gives the same words once per round.
void drop_repeated(std::vector<Finding>& findings) {
  std::vector<Finding> kept;
  std::set<std::string> seen;
  for (Finding& f : findings)
    if (seen.insert(f.diagnostic.str()).second) kept.push_back(std::move(f));
  findings = std::move(kept);
}

Finding finding(Diagnostic d) { return {std::move(d), {}, std::nullopt}; }

// Findings of the rules that hold for any prefix of the run, then those about its end.
void apply_rules(const Trace& trace, std::vector<Finding>& out, CheckReport& report) {
  Rules rules(trace);
  rules.races();
  rules.windows();
  rules.entries();
  rules.timing_reads();
  if (trace.finished) {
    rules.lifetimes();
    rules.semaphores_left();
    rules.never_written();
  }
  rules.deadlock(report.wait_for);
  report.passes = rules.passes();
  if (!rules.exact())
    report.notes.push_back(
        "too many pairs needed an exact replay: some findings may be false alarms");
  for (Finding& f : rules.take()) out.push_back(std::move(f));
}

// R9: launches share the barrier semaphore, so a second one follows at once.
bool needs_second_launch(const Trace& trace) {
  if (!trace.finished || trace.cores == 1) return false;
  for (size_t s = 0; s < trace.semaphores.size(); ++s) {
    if (!trace.is_barrier(static_cast<int32_t>(s))) continue;
    if (trace.semaphores[s].left != 0) return false;
    if (!trace.semaphores[s].waits.empty()) return true;
  }
  return false;
}

// A run without an end that got far: to look at all of it would take long, for little.
bool stopped_late(const GarbageRun& run) {
  constexpr int64_t kFar = 1'000'000;
  return run.recorder->trace.events > kFar &&
         std::ranges::any_of(run.report.diagnostics,
                             [](const Diagnostic& d) { return d.kind == "step_limit"; });
}

bool depends_on_missing(const Recorder& recorder) {
  return std::ranges::any_of(recorder.decisions,
                             [](const auto& d) { return d.second == Origin::kNotGiven; });
}

// Where a value was made up: nobody gave its operand, or a run without values does not know it.
class MadeUp {
 public:
  MadeUp(const Recorder& recorder, bool scalars_only)
      : recorder_(recorder), scalars_only_(scalars_only) {}

  // A place, an amount, a condition or a way through the program that follows from such a value may
  // be wrong because of what was made up: a warning, as there is no proof either way.
  void excuse(Finding& f) const {
    Diagnostic& d = f.diagnostic;
    if (d.severity != Diagnostic::Severity::kError) return;
    const bool by_place =
        d.kind == "out_of_bounds" || d.kind == "misaligned" || d.kind == "assertion";
    const bool made_up =
        (by_place && std::ranges::any_of(
                         recorder_.decisions,
                         [&](const auto& v) { return counts(v) && v.first->loc == d.where; })) ||
        std::ranges::any_of(f.accesses, [&](const ir::Op* op) { return touches_made_up(*op); });
    if (made_up) {
      d.severity = Diagnostic::Severity::kWarning;
      d.notes.push_back(
          "its place follows from a value that is not known: other values may show nothing");
      return;
    }
    // What was not written, waited for or taken may be so because of the way that was taken.
    const bool by_way = d.kind == "uninitialised_read" || d.kind == "dma_in_flight_at_end" ||
                        d.kind == "use_after_scope" || d.kind == "semaphore_not_zero";
    const auto decision =
        std::ranges::find_if(recorder_.decisions, [&](const auto& v) { return counts(v); });
    if (!by_way || decision == recorder_.decisions.end()) return;
    d.severity = Diagnostic::Severity::kWarning;
    d.notes.push_back(
        fmt::format("{} at {} went by a value that is not known: other values may show nothing",
                    decision->first->info().name, decision->first->loc.str()));
  }

 private:
  bool counts(const std::pair<const ir::Op* const, Origin>& decision) const {
    return scalars_only_ || decision.second == Origin::kNotGiven;
  }
  bool decided(const ir::Op* op) const {
    const auto it = recorder_.decisions.find(op);
    return it != recorder_.decisions.end() && counts(*it);
  }
  // The place of one of its refs, or an index of its own.
  bool touches_made_up(const ir::Op& op) const {
    if (decided(&op)) return true;
    for (const ir::Value* v : op.operands)
      for (; v->op && v->op->info().effect == ir::Effect::kView; v = v->op->operands[0])
        if (decided(v->op)) return true;
    return false;
  }

  const Recorder& recorder_;
  bool scalars_only_;
};

// What control flow depends on beside what was given.
bool explain_decisions(const Recorder& recorder, bool scalars_only, CheckReport& report) {
  bool proof = true;
  for (const auto& [op, origin] : recorder.decisions) {
    const std::string what = fmt::format("{} at {}", op->info().name, op->loc.str());
    if (scalars_only && origin == Origin::kVector) {
      Diagnostic d{
          .severity = Diagnostic::Severity::kWarning,
          .kind = "unknown_scalar",
          .message = what + " depends on a scalar that comes from vectors (taken as zero)",
          .where = op->loc,
          .notes = {},
          .hint = "name the scalar as a source (gridless/lang/source.h), or check with values"};
      report.findings.push_back(finding(std::move(d)));
    } else if (origin == Origin::kVector) {
      report.notes.push_back(what + " depends on what vectors hold: the verdict is for this data");
    } else {
      Diagnostic d{
          .severity = Diagnostic::Severity::kWarning,
          .kind = "unknown_scalar",
          .message = op->code == ir::OpCode::kFuncFunc
                         ? "a bound of the grid is an operand that was not given (taken as 1)"
                         : what + " depends on an operand that was not given (taken as zeros)",
          .where = op->loc,
          .notes = {},
          .hint = "give the operands' values"};
      report.findings.push_back(finding(std::move(d)));
    }
    proof = false;
  }
  return proof;
}

}  // namespace

std::span<const std::string_view> assumptions() { return kAssumptions; }

bool CheckReport::clean() const {
  return std::ranges::none_of(findings, [](const Finding& f) {
    return f.diagnostic.severity == Diagnostic::Severity::kError;
  });
}

Diagnostics CheckReport::diagnostics() const {
  Diagnostics out;
  for (const Finding& f : findings) out.push_back(f.diagnostic);
  return out;
}

Result<CheckReport> check(const ir::Module& module, const ir::Call& call, int cores,
                          std::span<const std::span<const std::byte>> given,
                          const CheckOptions& options) {
  TRY(const CheckInputs inputs, complete_inputs(call, cores, given, !options.scalars_only));
  const auto start = std::chrono::steady_clock::now();
  CheckReport report{.cores = cores};
  const auto done = [&] {
    drop_repeated(report.findings);
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (std::string_view a : kAssumptions) report.notes.push_back(fmt::format("assumes {}", a));
    return report;
  };
  auto emulator = Emulator::create(module, call, options.scalars_only);
  if (!emulator) {
    for (Diagnostic& d : emulator.error()) report.findings.push_back(finding(std::move(d)));
    return done();
  }
  const Kernel& kernel = emulator->kernel();
  const Usage used = usage(kernel);
  report.vmem_peak_bytes = used.vmem_bytes;
  report.smem_peak_bytes = used.smem_bytes;
  report.semaphores = used.semaphores;
  for (Diagnostic& d : check_capacity(kernel, used))
    report.findings.push_back(finding(std::move(d)));
  if (far_beyond_chip(used)) {
    report.notes.push_back("not run: it needs many times the memory that a core has");
    return done();
  }
  const Options run_options{.max_steps = options.max_steps,
                            .max_events = options.max_events,
                            .fill = Fill::kPositive,
                            .sources = options.sources};
  const GarbageRun run = run_recorded(*emulator, cores, inputs, run_options);
  const Trace& trace = run.recorder->trace;
  if (!trace.stuck.empty())
    report.wait_for = wait_for_graph(*emulator, cores, inputs, run, run_options);
  for (Diagnostic d : run.report.diagnostics) {
    // A loop whose end depends on data that nobody gave is not the kernel's fault.
    if (d.kind == "step_limit" && depends_on_missing(*run.recorder))
      d.severity = Diagnostic::Severity::kWarning;
    report.findings.push_back(finding(std::move(d)));
  }
  report.events = trace.events;
  const auto take = [&](std::vector<Finding> found) {
    for (Finding& f : found) report.findings.push_back(std::move(f));
  };
  take(check_collectives(trace));
  if (stopped_late(run)) {
    report.notes.push_back("stopped after too many events: not looked at for races and the like");
    return done();
  }
  if (needs_second_launch(trace)) {
    apply_rules(trace.twice(), report.findings, report);
  } else {
    apply_rules(trace, report.findings, report);
  }
  take(misaligned(trace));
  int harmless = 0;
  take(judge_suspects(*emulator, cores, inputs, run, run_options, harmless));
  if (harmless > 0)
    report.notes.push_back(fmt::format(
        "{} loads of uninitialised memory: no result, address or branch depends on them",
        harmless));

  report.notes.insert(report.notes.end(), run.report.sources.begin(), run.report.sources.end());
  if (options.scalars_only)
    report.notes.push_back(
        "without values: uninitialised reads are looked for only where nothing was written at all");

  bool proof = explain_decisions(*run.recorder, options.scalars_only, report);
  const MadeUp made_up(*run.recorder, options.scalars_only);
  for (Finding& f : report.findings) made_up.excuse(f);
  if (!trace.finished) {
    proof = false;
    report.notes.push_back("the run did not end: what comes after is not checked");
  }
  const auto rests_on = [&](std::string_view kind, const char* note) {
    if (std::ranges::none_of(report.findings,
                             [&](const Finding& f) { return f.diagnostic.kind == kind; }))
      return;
    proof = false;
    if (report.clean()) report.notes.push_back(note);
  };
  rests_on("order_assumption", "clean only if copies of one pair of cores land in order");
  rests_on("missing_barrier", "clean only if the compiler puts its barrier before the kernel");
  if (options.scalars_only)
    rests_on("out_of_bounds", "clean only if what is read beyond a ref's end is thrown away");
  report.certificate = proof && report.clean();
  return done();
}

}  // namespace gridless::emulate
