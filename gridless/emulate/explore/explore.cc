#include "gridless/emulate/explore/explore.h"

#include <fmt/format.h>

#include <unordered_set>

#include "gridless/emulate/explore/reduction.h"
#include "gridless/emulate/explore/state.h"
#include "gridless/emulate/fault.h"

namespace gridless::emulate {
namespace {

// One step of the search: a core's next event, or the next step of a copy under way.
struct Move {
  int core = -1;
  size_t copy = 0;  // if core < 0: of Machine::in_flight
};

class Search {
 public:
  Search(const Kernel& kernel, std::span<const CoreMemory> memory, const ExploreOptions& options,
         int launches, ExploreVerdict& verdict)
      : options_(options),
        run_options_{.max_steps = options.max_steps},
        verdict_(verdict),
        watch_(kernel, static_cast<int>(memory.size())),
        stepper_(kernel, memory, run_options_, launches, /*copy_parts=*/1, &watch_),
        keeper_(stepper_, watch_),
        reduction_(stepper_, kernel) {
    watch_.in_second_launch = launches > 1;
    watch_.by_position.assign(kernel.sites.size(), true);
  }

  void run() {
    visit();
    while (!stack_.empty() && verdict_.stopped.empty()) {
      Node& node = stack_.back();
      if (node.next == node.moves.size()) {
        stack_.pop_back();
        continue;
      }
      keeper_.restore(node.state);
      path_.resize(node.steps);
      if (take(node.moves[node.next++])) visit();
    }
    for (ExploreFinding& f : watch_.findings) verdict_.findings.push_back(std::move(f));
  }

 private:
  struct Node {
    State state;
    std::vector<Move> moves;
    size_t next = 0;
    size_t steps = 0;  // that led here
  };

  // Goes on as long as one core's next step is enough, then notes the state unless it is known.
  void visit() {
    const int budget = options_.reduce ? kLongestChain : 0;
    for (int k = 0; k < budget; ++k) {
      const auto core = reduction_.one_core(stepper_, watch_);
      if (!core) break;
      if (!take({.core = *core})) return;
    }
    State state = keeper_.save();
    if (!seen_.insert(state.hash).second) return;
    if (++verdict_.states >= options_.max_states)
      verdict_.stopped = fmt::format("stopped after {} states", verdict_.states);
    if (options_.stop_at_first && !watch_.findings.empty())
      verdict_.stopped = "stopped at the first fault";
    std::vector<Move> moves = moves_here();
    if (moves.empty()) {
      if (stepper_.all_returned()) ++verdict_.ends;
      watch_.end(stepper_, keeper_.results());
      explain_new_findings();
      return;
    }
    stack_.push_back({.state = std::move(state), .moves = std::move(moves), .steps = path_.size()});
  }

  std::vector<Move> moves_here() const {
    std::vector<Move> moves;
    if (options_.reduce) {
      for (size_t k : reduction_.own_copies(stepper_, watch_)) moves.push_back({.copy = k});
      if (!moves.empty()) return moves;
    }
    for (const Core& core : stepper_.machine().cores)
      if (stepper_.can_go_on(core.id)) moves.push_back({.core = core.id});
    for (size_t k = 0; k < stepper_.machine().in_flight.size(); ++k) moves.push_back({.copy = k});
    return moves;
  }

  // False: the timing ends here.
  bool take(const Move& move) {
    ++verdict_.transitions;
    if (move.core < 0) {
      move_copy(move.copy);
      return true;
    }
    try {
      path_.push_back({.core = move.core});
      go_on(move.core);
      explain_new_findings();
      return true;
    } catch (Fault& f) {
      // The machine is in the middle of a step: nothing of it is as it was saved.
      for (const Core& core : stepper_.machine().cores) keeper_.touched_all_of(core.id);
      if (f.diagnostic.kind == "step_limit") {
        verdict_.stopped = f.diagnostic.message;
      } else {
        watch_.stopped(f.diagnostic, move.core);
        explain_new_findings();
      }
      return false;
    }
  }

  void explain_new_findings() {
    for (; explained_ < watch_.findings.size(); ++explained_)
      watch_.findings[explained_].steps = path_;
  }

  // A copy within a core moves in one step, one between cores reads, then lands.
  void move_copy(size_t k) {
    InFlight& f = stepper_.machine().in_flight[k];
    const auto step = [&](Choice::Kind kind) {
      path_.push_back({kind, f.copy->core, f.launch, f.number});
    };
    const bool local = f.copy->dst.buffer->core == f.copy->core && !f.copy->sent;
    if (f.read == 0) {
      step(Choice::Kind::kRead);
      f.read_part();
      watch_.read_over(k);
      if (!local) return;
    }
    step(Choice::Kind::kLand);
    f.land_part();
    keeper_.touched(f.copy->dst.buffer->data.data());
    watch_.landed(k);
    auto& all = stepper_.machine().in_flight;
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(k));
  }

  void go_on(int core) {
    const Event& event = *stepper_.next(core);
    const Event::Kind kind = event.kind;
    const std::byte* memory = event.buffer ? event.buffer->data.data() : nullptr;
    const ir::Op* op = event.op;
    const bool step_ends = kind == Event::Kind::kReturn && !event.leaves;
    Grid* grid = stepper_.launch().grid(static_cast<size_t>(core));
    const Grid::Position before = step_ends ? grid->position() : Grid::Position();
    keeper_.touched(core);
    if (kind == Event::Kind::kStore) keeper_.touched(memory);
    if (kind == Event::Kind::kEnter || kind == Event::Kind::kReturn ||
        kind == Event::Kind::kScopeEnd)
      keeper_.touched_all_of(core);
    stepper_.take({.core = core});
    if (kind == Event::Kind::kCopy) {
      auto& all = stepper_.machine().in_flight;
      if (!all.empty() && all.back().copy->bytes > 1 && all.back().arrived == 0) {
        const InFlight& f = all.back();
        path_.push_back({Choice::Kind::kCount, f.copy->core, f.launch, f.number});
        all.back().count_early();
      }
    }
    if (!step_ends) return;
    const Grid::Position after = grid->position();
    for (size_t k = 0; k < after.blocks.size(); ++k)
      if (before.blocks[k] != after.blocks[k])
        watch_.new_window(stepper_.machine().cores[static_cast<size_t>(core)], k, op);
  }

  // Enough to jump over what cannot matter; short enough to meet the limits in an endless loop.
  static constexpr int kLongestChain = 1000;

  const ExploreOptions& options_;
  Options run_options_;
  ExploreVerdict& verdict_;
  Watch watch_;
  Stepper stepper_;
  Keeper keeper_;
  Reduction reduction_;
  std::unordered_set<Hash, HashOfHash> seen_;
  std::vector<Node> stack_;
  std::vector<Choice> path_;  // from the start to where the stepper stands
  size_t explained_ = 0;      // findings that have their steps
};

void search(const Emulator& emulator, int cores, std::span<const std::span<const std::byte>> inputs,
            const ExploreOptions& options, int launches, ExploreVerdict& verdict) {
  const auto memory = launch_memory(emulator.call(), cores, inputs);
  try {
    Search(emulator.kernel(), memory->cores, options, launches, verdict).run();
  } catch (Fault& f) {
    verdict.findings.push_back({.kind = f.diagnostic.kind, .message = f.diagnostic.message});
  }
}

}  // namespace

SourceLoc ExploreFinding::where() const {
  const ir::Op* op = second ? second : first;
  return op ? op->loc : place;
}

std::set<std::string> ExploreVerdict::kinds() const {
  std::set<std::string> out;
  for (const ExploreFinding& f : findings) out.insert(f.kind);
  return out;
}

Result<ExploreVerdict> explore(const ir::Module& module, const ir::Call& call, int cores,
                               std::span<const std::span<const std::byte>> inputs,
                               const ExploreOptions& options) {
  TRY_VOID(launch_memory(call, cores, inputs));
  ExploreVerdict verdict;
  const auto emulator = Emulator::create(module, call);
  if (!emulator) {
    for (const Diagnostic& d : emulator.error())
      verdict.findings.push_back({.kind = d.kind, .message = d.message});
    return verdict;
  }
  search(*emulator, cores, inputs, options, 1, verdict);
  if (verdict.findings.empty() && verdict.stopped.empty() && cores > 1 &&
      uses_barrier(emulator->kernel()))
    search(*emulator, cores, inputs, options, 2, verdict);
  verdict.exhausted = verdict.stopped.empty();
  return verdict;
}

}  // namespace gridless::emulate
