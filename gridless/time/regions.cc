#include "gridless/time/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "gridless/chips/slice.h"
#include "gridless/time/uses.h"

namespace gridless::time {
namespace {

using emulate::Instr;
using Kind = Instr::Kind;

bool is_event(const Instr& in) {
  if (in.kind != Kind::kOp) return false;
  switch (in.op->info().effect) {
    case ir::Effect::kDmaStart:
    case ir::Effect::kDmaWait:
    case ir::Effect::kSignal:
    case ir::Effect::kSemWait:
    case ir::Effect::kSemRead:
      return true;
    default:
      return false;
  }
}

bool on_vectors(const ir::Op& op) {
  const auto vector = [](const auto& v) { return v->type.is_vector(); };
  return std::ranges::any_of(op.results, vector) || std::ranges::any_of(op.operands, vector);
}

bool may_wait(const Instr& in) {
  return is_event(in) && in.op->info().effect != ir::Effect::kDmaStart &&
         in.op->info().effect != ir::Effect::kSignal;
}

// Operations of a branch that is short. One with a copy or a signal in it is scheduled together
// with what is around it only when it is shorter still.
constexpr int kPredicated = 24, kPredicatedWithEvent = 16;

// A branch with nothing in it, which the compiler drops.
bool is_empty_branch(const Instr& in) {
  const bool branch = in.kind == Kind::kJumpUnless || in.kind == Kind::kJump;
  if (!branch || in.op->code != ir::OpCode::kScfIf || !in.op->results.empty()) return false;
  return in.op->body(0).ops.size() == 1 && in.op->body(1).ops.size() == 1;
}

// A scalar that the compiler computes: a constant, or arithmetic of such.
bool is_folded(const ir::Value* v) {
  if (!v->op || v->op->info().effect != ir::Effect::kPure || v->type.is_vector()) return false;
  if (v->op->operands.empty()) return v->op->code == ir::OpCode::kArithConstant;
  return std::ranges::all_of(v->op->operands, is_folded);
}

// The value of one that is a constant or a sum, difference or product of such.
std::optional<int64_t> folded_value(const ir::Value* v) {
  if (!is_folded(v)) return std::nullopt;
  const ir::Op& op = *v->op;
  if (op.code == ir::OpCode::kArithConstant) {
    const std::vector<int64_t>& ints = (*op.find("value"))->ints;
    return ints.size() == 1 ? std::optional(ints[0]) : std::nullopt;
  }
  std::vector<int64_t> in;
  for (const ir::Value* operand : op.operands) {
    const auto value = folded_value(operand);
    if (!value) return std::nullopt;
    in.push_back(*value);
  }
  switch (op.code) {
    case ir::OpCode::kArithIndexCast:
      return in[0];
    case ir::OpCode::kArithAddi:
      return in[0] + in[1];
    case ir::OpCode::kArithSubi:
      return in[0] - in[1];
    case ir::OpCode::kArithMuli:
      return in[0] * in[1];
    default:
      return std::nullopt;
  }
}

// Whether a loop is known to have one round, or none: to the compiler it is no loop.
enum class Rounds { kNone, kOne, kOther };
Rounds rounds_of(const ir::Op& loop) {
  const auto from = folded_value(loop.operands[0]), to = folded_value(loop.operands[1]);
  const auto step = folded_value(loop.operands[2]);
  if (!from || !to || !step || *step <= 0) return Rounds::kOther;
  if (*from >= *to) return Rounds::kNone;
  return *to - *from <= *step ? Rounds::kOne : Rounds::kOther;
}

// Whether the cores, neighbours beside each other, are numbered otherwise than their devices.
bool is_renumbered(int cores) {
  const auto slice = chips::smallest_slice(cores);
  if (!slice) return false;
  const std::vector<int> order = slice->core_order(cores);
  return !std::ranges::is_sorted(order);
}

class Cutter {
 public:
  Cutter(emulate::Kernel& kernel, const IsFree& is_free)
      : kernel_(kernel),
        is_free_(is_free),
        facts_(*kernel.function),
        uses_(kernel.body, *kernel.function),
        code_(kernel.body.code),
        marks_(code_.size(), -1) {
    facts_.bounds_checks = kernel.call.bounds_checks;
    facts_.renumbered = is_renumbered(kernel.call.cores);
    is_target_.assign(code_.size() + 1, false);
    out_.loops.resize(kernel.body.loops.size());
    is_loop_.assign(kernel.body.loops.size(), true);
    for (const Instr& in : code_) {
      if (in.kind != Kind::kForNext || in.loop < 0) continue;
      out_.loops[static_cast<size_t>(in.loop)] = in.op->loc;
      is_loop_[static_cast<size_t>(in.loop)] = rounds_of(*in.op) == Rounds::kOther;
    }
    merge_end_.assign(code_.size(), 0);
    merged_.assign(code_.size(), false);
    for (size_t k = code_.size(); k-- > 0;) {  // what is inside another comes before it
      if (code_[k].kind == Kind::kForEnter && rounds_of(*code_[k].op) != Rounds::kOther) {
        merged_[k + 1] = merged_[static_cast<size_t>(code_[k + 1].target) - 1] = true;
        continue;
      }
      merge_end_[k] = merge_end(k);
      if (merge_end_[k] == 0) continue;
      merged_[k] = merged_[static_cast<size_t>(code_[k].target) - 1] = true;
    }
    for (size_t k = 0; k < code_.size(); ++k)
      if (emulate::jumps(code_[k]) && !is_empty_branch(code_[k]) && !merged_[k])
        is_target_[static_cast<size_t>(code_[k].target)] = true;
  }

  Regions cut() {
    for (size_t k = 0; k < code_.size();) k = region(k);
    emulate::insert_marks(kernel_.body, marks_);
    return std::move(out_);
  }

 private:
  // The region that starts at instruction `first`; where the next one starts.
  size_t region(size_t first) {
    RegionSchedule schedule(facts_);
    schedule.follow(recent_);
    Region region;
    std::vector<std::pair<size_t, int>> stretches = {{first, 0}};  // start, cycle
    std::vector<std::pair<size_t, double>> delays;
    if (first == 0) entry(schedule);
    size_t k = first;
    // Merged branches that the loop is in, the innermost last: where each ends, and the cycle of
    // the last event in them.
    std::vector<std::pair<size_t, const ir::Op*>> inside;
    int event = 0;
    for (bool ends = false; !ends && k < code_.size(); ++k) {
      for (; !inside.empty() && inside.back().first == k; inside.pop_back()) {
        schedule.choose(*inside.back().second);
        // Whether the branch is taken is only known when it runs: what is in it is paid before it.
        if (inside.size() == 1 && event > stretches.back().second) stretches.emplace_back(k, event);
      }
      if (k > first && is_target_[k]) {
        if (code_[k].kind == Kind::kForTest) enter_loop(*code_[k].op, schedule);
        break;
      }
      const Instr& in = code_[k];
      if (in.kind == Kind::kOp) {
        note(region, *in.op);
        if (const auto ns = delay(*in.op)) delays.emplace_back(stretches.size() - 1, *ns);
      }
      if (is_event(in)) {
        if (may_wait(in)) schedule.finish(wanted(first, k + 1));
        const int cycle = schedule.add_event(*in.op);
        // An event happens at the end of its stretch: what follows it is the next one.
        if (may_wait(in)) {
          ends = region.waits = true;
          region.wait = in.op->loc;
        } else if (!inside.empty()) {
          event = cycle;
        } else {
          stretches.emplace_back(k + 1, cycle);
        }
      } else if (in.kind == Kind::kOp) {
        if (is_free_ && is_free_(*in.op)) {
          schedule.add_free(*in.op);
        } else {
          schedule.add(*in.op);
        }
        region.vector = region.vector || on_vectors(*in.op);
      } else if (in.kind == Kind::kForEnter && merged_[k + 1]) {
        k = enter_merged(k, schedule);
      } else if (in.kind == Kind::kForTest && merged_[k]) {
        continue;
      } else if (in.kind == Kind::kForNext && merged_[k]) {
        const ir::Op& yield = *in.op->body().ops.back();
        schedule.rename({yield.operands.begin(), yield.operands.end()}, in.op->results);
      } else if (merge_end_[k] > 0) {
        inside.emplace_back(merge_end_[k], in.op);
      } else if (!inside.empty()) {
        continue;  // the way round a branch that is none, and what it yields
      } else if (!is_empty_branch(in)) {
        ends = branch(in, k, schedule);
        if (in.kind == Kind::kReturn) {
          schedule.finish(wanted(first, k + 1));
          exit(schedule);
        }
      }
    }
    schedule.finish(wanted(first, k));
    for (const ir::Op* op : schedule.unmeasured()) warn_guessed(*op);
    region.loop = unmerged_loop(code_[first].loop);
    region.cycles = schedule.length();
    recent_ = schedule.recent_stores();
    const int number = static_cast<int>(out_.regions.size());
    // The event of the last stretch may be the region's own end.
    for (size_t s = 0; s < stretches.size(); ++s) {
      const int from = stretches[s].second;
      const int to = s + 1 < stretches.size() ? stretches[s + 1].second : region.cycles;
      Stretch stretch{.cycles = schedule.split(from, std::max(from, to)), .region = number};
      for (const auto& [at, ns] : delays)
        if (at == s) stretch.delay_ns += ns;
      if (stretch.cycles.total() == 0 && stretch.delay_ns == 0) continue;
      if (stretches[s].first >= k) {
        // Nothing stands behind the last event to pay for what was scheduled behind it.
        if (s > 0) pay(stretches[s - 1].first, stretch);
        continue;
      }
      marks_[stretches[s].first] = static_cast<int32_t>(out_.stretches.size());
      out_.stretches.push_back(stretch);
    }
    out_.regions.push_back(region);
    return k;
  }

  // A loop that is none begins at instruction k: the last instruction that is dealt with.
  size_t enter_merged(size_t k, RegionSchedule& schedule) const {
    const ir::Op& loop = *code_[k].op;
    std::vector<const ir::Value*> values(loop.operands.begin() + 3, loop.operands.end());
    if (rounds_of(loop) == Rounds::kNone) {
      schedule.rename(values, loop.results);
      return static_cast<size_t>(code_[k + 1].target) - 1;
    }
    values.insert(values.begin(), loop.operands[0]);
    schedule.rename(values, loop.body().args);
    return k;
  }

  // The innermost loop around it that is one in the schedule too.
  int unmerged_loop(int32_t loop) const {
    while (loop >= 0 && !is_loop_[static_cast<size_t>(loop)])
      loop = kernel_.body.loops[static_cast<size_t>(loop)].parent;
    return loop;
  }

  // Values that something outside of a region reads.
  std::function<bool(const ir::Value*)> wanted(size_t first, size_t last) const {
    return [this, first, last](const ir::Value* v) { return uses_.outside(v, first, last); };
  }

  void warn_guessed(const ir::Op& op) {
    const ir::Type from = (op.operands.empty() ? op.result() : op.operands[0])->type;
    std::string what = fmt::format("{} from {} to {}", op.info().name, ir::spelling(from.elem()),
                                   ir::spelling(op.result()->type.elem()));
    if (!guessed_.insert(what).second) return;
    out_.warnings.push_back(
        {.severity = Diagnostic::Severity::kWarning,
         .kind = "guessed_cost",
         .message = "the cost of " + what + " has not been measured: it is guessed from its class",
         .where = op.loc,
         .notes = {},
         .hint = "bench/calibrate_costs_bench measures; give it a kernel for this operation"});
  }

  void pay(size_t at, const Stretch& more) {
    if (marks_[at] < 0) {
      marks_[at] = static_cast<int32_t>(out_.stretches.size());
      out_.stretches.push_back(more);
      return;
    }
    Stretch& s = out_.stretches[static_cast<size_t>(marks_[at])];
    s.cycles.mxu += more.cycles.mxu;
    s.cycles.vector += more.cycles.vector;
    s.cycles.scalar += more.cycles.scalar;
    s.delay_ns += more.delay_ns;
  }

  // What the compiler puts around the body: tables come to SMEM before it, results in VMEM leave
  // (of a kernel on several cores XLA brings them out itself) and semaphores are looked at behind
  // it. A table of one element is an argument like any scalar.
  void entry(RegionSchedule& schedule) const {
    for (const emulate::Argument& a : kernel_.arguments)
      if (a.tensor >= 0 && !a.is_window && a.type.is_memref() &&
          a.type.space() == ir::Space::kSmem && a.type.num_elements() > 1)
        schedule.add_table_copy();
  }
  void exit(RegionSchedule& schedule) const {
    const chips::UnitCosts& u = chips::tpu7x_unit_costs();
    for (const emulate::Argument& a : kernel_.arguments)
      if (a.role == emulate::Argument::Role::kOutput && !a.in_place() && kernel_.call.cores == 1)
        schedule.add_result_copy();
    if (kernel_.call.semaphore_checks)
      schedule.add_scalar(static_cast<int>(scratch_semaphores()) * u.semaphore_check);
  }
  int64_t scratch_semaphores() const {
    int64_t n = 0;
    for (const emulate::Argument& a : kernel_.arguments)
      if (a.role == emulate::Argument::Role::kScratch && a.type.is_memref() &&
          ir::is_semaphore(a.type.elem()))
        n += a.type.num_elements();
    return n;
  }

  // What the region's last instruction adds; false when it only moves values.
  bool branch(const Instr& in, size_t k, RegionSchedule& schedule) const {
    switch (in.kind) {
      case Kind::kForNext:
        schedule.end_with_branch(nullptr);
        return true;
      case Kind::kJumpUnless:
        if (!predicated(in, k))
          schedule.end_with_branch(in.op->code == ir::OpCode::kScfIf ? in.op->operands[0]
                                                                     : nullptr);
        return true;
      case Kind::kForTest:
      case Kind::kJump:
      case Kind::kReturn:
        return true;
      default:
        return false;
    }
  }

  // Constants that the loop carries are put into registers. A loop that may have no round at all is
  // jumped over, and its results are put there for that case too.
  static void enter_loop(const ir::Op& loop, RegionSchedule& schedule) {
    const std::vector<const ir::Value*> carried(loop.operands.begin() + 3, loop.operands.end());
    schedule.put_constants(carried);
    if (is_folded(loop.operands[0]) && is_folded(loop.operands[1])) return;
    schedule.put_constants(carried);
    schedule.end_with_branch(loop.operands[1]);
  }

  // A short branch is executed under a predicate instead, waits too.
  bool predicated(const Instr& in, size_t k) const {
    return operations(k + 1, static_cast<size_t>(in.target)) <= kPredicated;
  }
  int64_t operations(size_t first, size_t last) const {
    return std::count_if(code_.begin() + static_cast<ptrdiff_t>(first),
                         code_.begin() + static_cast<ptrdiff_t>(last),
                         [](const Instr& in) { return in.kind == Kind::kOp; });
  }

  // Where the branch at instruction k ends, if it is executed under a predicate and the compiler
  // schedules it together with what is around it: both ways are short, nothing waits in them, and
  // what comes out are scalars. Else 0.
  size_t merge_end(size_t k) const {
    const Instr& in = code_[k];
    if (in.kind != Kind::kJumpUnless || in.op->code != ir::OpCode::kScfIf || is_empty_branch(in) ||
        std::ranges::any_of(in.op->results, [](const auto& v) { return v->type.is_vector(); }))
      return 0;
    const auto last = static_cast<size_t>(in.target) - 1;
    const auto end = static_cast<size_t>(code_[last].target);
    bool has_event = false;
    for (size_t j = k + 1; j < end; ++j) {
      has_event = has_event || is_event(code_[j]);
      const bool delays = code_[j].kind == Kind::kOp && code_[j].op->code == ir::OpCode::kTpuDelay;
      const bool jumps = emulate::jumps(code_[j]) && j != last && !merged_[j];
      if (jumps || may_wait(code_[j]) || delays) return 0;
    }
    if (operations(k + 1, end) > (has_event ? kPredicatedWithEvent : kPredicated)) return 0;
    return end;
  }

  static std::optional<double> delay(const ir::Op& op) {
    if (op.code != ir::OpCode::kTpuDelay) return std::nullopt;
    const ir::Op* constant = op.operands[0]->op;
    if (!constant || constant->code != ir::OpCode::kArithConstant) return std::nullopt;
    return static_cast<double>((*constant->find("value"))->ints.at(0));
  }

  static void note(Region& region, const ir::Op& op) {
    ++region.operations;
    if (!op.loc.known()) return;
    if (!region.first.known()) region.first = op.loc;
    region.last = op.loc;
  }

  emulate::Kernel& kernel_;
  const IsFree& is_free_;
  FunctionFacts facts_;
  const Uses uses_;
  const std::vector<Instr>& code_;
  std::vector<int32_t> marks_;
  std::vector<bool> is_target_;
  std::vector<size_t> merge_end_;  // by instruction: see merge_end()
  std::vector<bool> merged_;       // by instruction: a jump that is none in the schedule
  std::vector<bool> is_loop_;      // by loop: it has more than one round, as far as is known
  std::set<std::string> guessed_;
  std::vector<RegionSchedule::Recent> recent_;  // of the region before
  Regions out_;
};

}  // namespace

Regions cut_into_regions(emulate::Kernel& kernel, const IsFree& is_free) {
  return Cutter(kernel, is_free).cut();
}

}  // namespace gridless::time
