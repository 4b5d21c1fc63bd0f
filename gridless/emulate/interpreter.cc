// The instruction loop.
#include <fmt/format.h>

#include "gridless/emulate/core_ops.h"
#include "gridless/emulate/gate.h"

namespace gridless::emulate {
namespace {

enum class Stop { kBlocked, kHeld, kPoll, kReturned };

class Interpreter {
 public:
  Interpreter(Machine& machine, Core& core, Frame& frame)
      : machine_(machine), core_(core), frame_(frame), ops_{machine, core, frame} {}

  Stop run() {
    const Program& p = *frame_.program;
    for (;;) {
      GRIDLESS_CHECK(frame_.pc < static_cast<int32_t>(p.code.size()),
                     "ran past the function's end");
      const Instr& in = p.code[static_cast<size_t>(frame_.pc)];
      count(in);
      const auto from = p.operands(in), to = p.results(in);
      switch (in.kind) {
        case Instr::Kind::kOp: {
          const Step step = ops_.run(in);
          if (step == Step::kBlocked) return Stop::kBlocked;
          if (step == Step::kHeld) return Stop::kHeld;
          ++frame_.pc;
          if (step == Step::kPoll) return Stop::kPoll;
          continue;
        }
        case Instr::Kind::kMove:
          move(from, to);
          break;
        case Instr::Kind::kJump:
          frame_.pc = in.target;
          continue;
        case Instr::Kind::kJumpUnless:
          decides(in, from.first(1));
          if (integer(from[0]) == 0) {
            frame_.pc = in.target;
            continue;
          }
          break;
        case Instr::Kind::kForEnter: {
          decides(in, from.first(3));
          if (integer(from[2]) <= 0)
            fault(*in.op, "invalid_ir", fmt::format("scf.for with step {}", integer(from[2])),
                  "a loop's step must be positive");
          const RtValue lower = slot(from[0]);
          move(from.subspan(3), to.subspan(1));
          slot(to[0]) = lower;
          break;
        }
        case Instr::Kind::kForTest:
          if (integer(from[0]) >= integer(from[1])) {
            frame_.pc = in.target;
            continue;
          }
          break;
        case Instr::Kind::kForNext: {
          const Scalar iv = scalar(slot(from[0]));
          move(from.subspan(2), to.subspan(1));
          slot(to[0]) = make_int(iv.elem, iv.i + integer(from[1]));
          frame_.pc = in.target;
          continue;
        }
        case Instr::Kind::kFree:
          for (int32_t s : to) slot(s) = std::monostate();
          break;
        case Instr::Kind::kMark:
          if (machine_.gate) machine_.gate->passed(core_, in.target);
          break;
        case Instr::Kind::kScopeEnd:
          if (held({.kind = Event::Kind::kScopeEnd,
                    .op = in.op,
                    .first_site = from[0],
                    .last_site = from[1]}))
            return Stop::kHeld;
          if (machine_.recorder)
            machine_.recorder->end_scope({core_, frame_, in}, from[0], from[1]);
          for (int32_t s = from[0]; s < from[1]; ++s)
            core_.buffers[static_cast<size_t>(s)].poison();
          break;
        case Instr::Kind::kReturn:
          if (held({.kind = Event::Kind::kReturn, .op = in.op})) return Stop::kHeld;
          return Stop::kReturned;
      }
      ++frame_.pc;
    }
  }

 private:
  RtValue& slot(int32_t s) { return frame_.slots[static_cast<size_t>(s)]; }
  int64_t integer(int32_t s) { return scalar(slot(s)).i; }

  void decides(const Instr& in, std::span<const int32_t> from) {
    if (!machine_.recorder && !machine_.gate) return;
    for (int32_t s : from) ops_.decides(*in.op, scalar(slot(s)));
  }

  void move(std::span<const int32_t> from, std::span<const int32_t> to) {
    if (from.size() == 1) {
      if (from[0] != to[0]) slot(to[0]) = slot(from[0]);
      return;
    }
    moved_.clear();
    for (int32_t s : from) moved_.push_back(slot(s));
    for (size_t k = 0; k < to.size(); ++k) slot(to[k]) = std::move(moved_[k]);
  }

  bool held(Event event) {
    if (machine_.gate && !machine_.gate->pass(core_, std::move(event))) return true;
    ++core_.events;
    return false;
  }

  void count(const Instr& in) {
    const Recorder* recorder = machine_.recorder;
    const bool too_many = recorder && recorder->trace.events > machine_.max_events;
    if (++machine_.steps <= machine_.max_steps && !too_many) [[likely]]
      return;
    fault(*in.op, "step_limit",
          fmt::format("stopped after {} {} (core {} was here)",
                      too_many ? machine_.max_events : machine_.max_steps,
                      too_many ? "events" : "operations", core_.id),
          too_many ? "check fewer layers or rows, or raise the limit of events"
                   : "if the loop is meant to be that long, raise the limit of steps");
  }

  Machine& machine_;
  Core& core_;
  Frame& frame_;
  CoreOps ops_;
  std::vector<RtValue> moved_;
};

}  // namespace

bool run_core(Machine& machine, Core& core) {
  const int64_t before = machine.steps;
  const bool was_blocked = core.state == Core::State::kBlocked;
  switch (Interpreter(machine, core, *core.frame).run()) {
    case Stop::kBlocked:
      core.state = Core::State::kBlocked;
      break;
    case Stop::kPoll:
    case Stop::kHeld:
      core.state = Core::State::kReady;
      break;
    case Stop::kReturned:
      core.state = Core::State::kDone;
      break;
  }
  // A blocked core tries its wait again; that alone is no progress.
  return machine.steps - before > 1 || !was_blocked || core.state != Core::State::kBlocked;
}

std::vector<RtValue> run_function(Machine& machine, Core& core, const Program& program,
                                  std::span<const RtValue> arguments) {
  Frame frame(program);
  for (size_t k = 0; k < program.arguments.size(); ++k)
    frame.slots[static_cast<size_t>(program.arguments[k])] = arguments[k];
  Gate* gate = std::exchange(machine.gate, nullptr);
  const int64_t events = core.events;
  const Stop stop = Interpreter(machine, core, frame).run();
  core.events = events;
  machine.gate = gate;
  const Instr& in = program.code[static_cast<size_t>(frame.pc)];
  if (stop != Stop::kReturned) fault(*in.op, "invalid_ir", "a window transform must not wait");
  std::vector<RtValue> results;
  for (int32_t s : program.operands(in)) results.push_back(frame.slots[static_cast<size_t>(s)]);
  return results;
}

}  // namespace gridless::emulate
