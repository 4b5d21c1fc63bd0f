#include "gridless/emulate/check/garbage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gridless/emulate/ref_sites.h"

namespace gridless::emulate {
namespace {

// Elements of results that were written count; what never was is nobody's value.
bool results_differ(const Emulator& emulator, const GarbageRun& a, const GarbageRun& b) {
  const ir::Call& call = emulator.call();
  for (size_t r = 0; r < call.results.size(); ++r) {
    if (a.memory.outputs[r] == b.memory.outputs[r]) continue;
    const int bits = storage_bits(call.results[r].type.elem());
    const int64_t n = call.results[r].type.num_elements();
    for (size_t c = 0; c < a.memory.cores.size(); ++c) {
      const auto find = [&](const GarbageRun& run) -> const Content* {
        const auto it = run.recorder->results.find({static_cast<int>(c), static_cast<int>(r)});
        return it == run.recorder->results.end() ? nullptr : it->second.get();
      };
      const Content *x = find(a), *y = find(b);
      for (int64_t k = 0; k < n; ++k) {
        if ((x && x[k] == Content::kGarbage) || (y && y[k] == Content::kGarbage)) continue;
        if (get_bits(a.memory.cores[c].results[r].data(), k, bits) !=
            get_bits(b.memory.cores[c].results[r].data(), k, bits))
          return true;
      }
    }
  }
  return false;
}

bool differ(const Emulator& emulator, const GarbageRun& a, const GarbageRun& b) {
  if (a.report.finished != b.report.finished ||
      a.recorder->fingerprint != b.recorder->fingerprint ||
      a.report.diagnostics.size() != b.report.diagnostics.size())
    return true;
  if (emulator.kernel().scalars_only()) return false;
  return a.report.finished && results_differ(emulator, a, b);
}

// Some access of this run writes the buffer that the suspect read.
bool ever_written(const Trace& trace, const Suspect& s) {
  return std::ranges::any_of(trace.accesses, [&](const Access& a) {
    return a.write && trace.core_of(a.memory) == s.core && trace.site_of(a.memory) == s.site;
  });
}

// Under scalars only, the operands that are given and no results.
LaunchMemory memory_of(const Emulator& emulator, int cores, const CheckInputs& inputs) {
  if (!emulator.kernel().scalars_only())
    return launch_memory(emulator.call(), cores, inputs.operands).value();
  LaunchMemory memory;
  for (int c = 0; c < cores; ++c) {
    CoreMemory& core = memory.cores.emplace_back();
    for (const std::span<const std::byte> all : inputs.operands) {
      const size_t bytes = all.size() / static_cast<size_t>(cores);
      core.operands.push_back(all.subspan(static_cast<size_t>(c) * bytes, bytes));
    }
  }
  return memory;
}

}  // namespace

GarbageRun run_recorded(const Emulator& emulator, int cores, const CheckInputs& inputs,
                        Options options) {
  GarbageRun run{.recorder = std::make_unique<Recorder>(emulator.kernel(), cores),
                 .report = {},
                 .memory = memory_of(emulator, cores, inputs)};
  options.recorder = run.recorder.get();
  options.not_given = inputs.not_given;
  run.report = emulator.run(run.memory.cores, options);
  run.recorder->trace.finished = run.report.finished;
  if (run.report.finished) run.recorder->settle_lives();
  return run;
}

std::vector<Finding> judge_suspects(const Emulator& emulator, int cores, const CheckInputs& inputs,
                                    const GarbageRun& first, const Options& options,
                                    int& harmless) {
  std::vector<Finding> out;
  harmless = 0;
  const std::vector<Suspect>& suspects = first.recorder->suspects;
  if (suspects.empty()) return out;
  // Whose garbage it is: buffers one by one, then what lies beyond a ref's end. NaN comes last:
  // where nothing else shows, the finding says so.
  constexpr Fill kOthers[] = {Fill::kNegative, Fill::kZero, Fill::kPoison};
  struct Judgement {
    bool matters = false, only_nan = false;
  };
  const auto judge = [&](int site) -> Judgement {
    for (const Fill other : kOthers) {
      Options again = options;
      again.other_fill = other;
      again.other_site = site;
      if (differ(emulator, first, run_recorded(emulator, cores, inputs, again)))
        return {.matters = true, .only_nan = other == Fill::kPoison};
    }
    return {};
  };
  std::map<int, Judgement> judged;
  const std::vector<bool> with_other_data = RefSites(emulator.kernel()).written_for_some_data();
  const Trace& trace = first.recorder->trace;
  for (const Suspect& s : suspects) {
    const bool beyond = s.what == Suspect::What::kOutOfBounds;
    const int site = beyond ? Options::kBeyond : s.site;
    // What becomes of a vector without values nobody can tell.
    const bool untold =
        emulator.kernel().scalars_only() && s.code.op->code != ir::OpCode::kMemrefLoad;
    if (!untold && !judged.contains(site)) judged[site] = judge(site);
    const Judgement verdict = untold ? Judgement() : judged.at(site);
    const bool guilty = verdict.matters;
    const std::string name = trace.memory_name(trace.memory(s.core, s.site));
    if (beyond) {
      Diagnostic d{
          .severity = guilty ? Diagnostic::Severity::kError : Diagnostic::Severity::kWarning,
          .kind = "out_of_bounds",
          .message = fmt::format("{} on core {} reads beyond {}: {}", s.code.op->info().name,
                                 s.core, name, s.detail),
          .where = s.code.op->loc,
          .notes = {},
          .hint = "check the index against the ref's shape before using it"};
      if (untold) {
        d.notes.push_back("whether the value is used needs a run with values");
      } else if (!guilty) {
        d.notes.push_back("the value is never used: no result depends on it");
      }
      d.notes.push_back("at " + trace.where(s.code));
      out.push_back({std::move(d), {s.core}, std::nullopt});
    } else if (guilty) {
      Diagnostic d{.kind = "uninitialised_read",
                   .message = fmt::format("{} on core {} reads {}, which {}, and it matters",
                                          s.code.op->info().name, s.core, name, s.detail),
                   .where = s.code.op->loc,
                   .notes = {"first read at " + trace.where(s.code),
                             "two runs with other garbage in this buffer differ in a result, an "
                             "address or a branch"},
                   .hint = "write the buffer before reading it (scratch starts as garbage)"};
      if (verdict.only_nan) {
        d.notes.push_back(
            "with NaN in it, that is: a product with zero is NaN then, and garbage may hold any "
            "bits");
        d.hint = "choose with where (select), which drops what it does not choose, or write it";
      }
      out.push_back({std::move(d), {s.core}, std::nullopt});
    } else if (s.detail.ends_with("is copied")) {
      // A copy keeps garbage garbage, so no comparison of written elements can see it.
      Diagnostic d{.kind = "uninitialised_read",
                   .message = fmt::format("the copy started by core {} takes {}, which {}", s.core,
                                          name, s.detail),
                   .where = s.code.op->loc,
                   .notes = {"at " + trace.where(s.code)},
                   .hint = "write the buffer before copying it"};
      if (!ever_written(trace, s) && with_other_data[static_cast<size_t>(s.site)]) {
        d.severity = Diagnostic::Severity::kWarning;
        d.notes.push_back("the kernel writes it for other data: a table, say, that is empty here");
      }
      out.push_back({std::move(d), {s.core}, std::nullopt});
    } else if (untold && s.detail == "was never written") {
      Diagnostic d{.severity = Diagnostic::Severity::kWarning,
                   .kind = "uninitialised_read",
                   .message = fmt::format("{} on core {} reads {}, which {}",
                                          s.code.op->info().name, s.core, name, s.detail),
                   .where = s.code.op->loc,
                   .notes = {"first read at " + trace.where(s.code),
                             "whether the value matters needs a run with values"},
                   .hint = "write the buffer before reading it (scratch starts as garbage)"};
      out.push_back({std::move(d), {s.core}, std::nullopt});
    } else if (!untold) {
      ++harmless;
    }
  }
  return out;
}

}  // namespace gridless::emulate
