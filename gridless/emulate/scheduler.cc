#include "gridless/emulate/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/emulate/fault.h"

namespace gridless::emulate {
namespace {

Diagnostic in_flight_at_end(const Transfer& t) {
  return {.kind = "dma_in_flight_at_end",
          .message = fmt::format("the copy of {} to {}, started on core {}, is not over when the "
                                 "last core returns",
                                 t.src.str(), t.dst.str(), t.core),
          .where = t.op->loc,
          .notes = {},
          .hint = "wait for every copy before the kernel ends"};
}

}  // namespace

Report run_steps(const Kernel& kernel, std::span<const CoreMemory> memory, const Options& options,
                 Scheduler& scheduler) {
  Report report;
  Diagnostics late;
  try {
    Stepper stepper(kernel, memory, options, scheduler.launches(), scheduler.copy_parts(),
                    &scheduler);
    bool returned = false;
    std::vector<Choice> possible;
    for (stepper.choices(possible); !possible.empty(); stepper.choices(possible)) {
      const auto choice = scheduler.choose(stepper, possible);
      if (!choice) break;
      stepper.take(possible[*choice]);
      if (returned || !stepper.all_returned()) continue;
      returned = true;
      for (const InFlight& f : stepper.machine().in_flight)
        late.push_back(in_flight_at_end(*f.copy));
    }
    report = stepper.end();
  } catch (Fault& f) {
    report.diagnostics.push_back(std::move(f.diagnostic));
  }
  report.diagnostics.insert(report.diagnostics.begin(), late.begin(), late.end());
  return report;
}

std::optional<size_t> ProgramOrder::choose(const Stepper& run, std::span<const Choice> possible) {
  const int n = static_cast<int>(run.machine().cores.size());
  size_t best = 0;
  int best_turn = n;
  for (size_t k = 0; k < possible.size(); ++k) {
    const Choice& c = possible[k];
    if (c.kind == Choice::Kind::kRead || c.kind == Choice::Kind::kLand) return k;
    if (c.kind != Choice::Kind::kCore) continue;
    const int turn = (c.core - turn_ + n) % n;
    if (turn < best_turn) {
      best_turn = turn;
      best = k;
    }
  }
  turn_ = possible[best].core;
  return best;
}

void ProgramOrder::happens(const Core& core, const Event& event) {
  if (event.kind == Event::Kind::kCount) turn_ = core.id + 1;
}

Adversary::Adversary(uint64_t seed) : random_(seed) {
  copies_ = static_cast<Copies>(random_() % 3);
}

uint32_t Adversary::priority(const Choice& c) {
  const bool core = c.kind == Choice::Kind::kCore;
  const auto [it, fresh] = priorities_.try_emplace({c.core, c.launch, core ? -1 : c.copy, c.kind});
  if (fresh) {
    it->second = static_cast<uint32_t>(random_() >> 34);  // the lower half
    const bool above = core ? copies_ == Copies::kLate : copies_ == Copies::kEarly;
    const bool mixed = copies_ == Copies::kMixed && random_() % 2 == 0;
    if (above || mixed) it->second |= 1u << 31;
  }
  return it->second;
}

std::optional<size_t> Adversary::choose(const Stepper&, std::span<const Choice> possible) {
  constexpr int kChange = 16, kAny = 8;  // one step in so many
  if (random_() % kAny == 0) return random_() % possible.size();
  if (random_() % kChange == 0) {
    const Choice& c = possible[random_() % possible.size()];
    priorities_.erase({c.core, c.launch, c.kind == Choice::Kind::kCore ? -1 : c.copy, c.kind});
  }
  // The first of all, or with very many of some.
  constexpr size_t kMost = 32;
  const size_t begin = possible.size() > kMost ? random_() % possible.size() : 0;
  size_t best = begin;
  for (size_t k = 1; k < std::min(possible.size(), kMost); ++k) {
    const size_t other = (begin + k) % possible.size();
    if (priority(possible[other]) > priority(possible[best])) best = other;
  }
  return best;
}

}  // namespace gridless::emulate
