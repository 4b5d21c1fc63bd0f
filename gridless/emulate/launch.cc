#include "gridless/emulate/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gridless/emulate/fault.h"
#include "gridless/emulate/recorder.h"
#include "gridless/emulate/scalars_only.h"

namespace gridless::emulate {
namespace {

std::span<std::byte> writable(std::span<const std::byte> s) {
  // Operands that are not aliased are read_only buffers: every store and copy checks that first.
  return {const_cast<std::byte*>(s.data()), s.size()};
}

}  // namespace

Launch::Launch(const Kernel& kernel, std::span<const CoreMemory> memory, const Options& options)
    : kernel_(kernel),
      memory_(memory),
      options_(options),
      sources_(options.sources, static_cast<int>(memory.size()), kernel.scalars_only()),
      tensors_(memory.size()),
      grids_(memory.size()) {
  machine_.max_steps = options.max_steps;
  machine_.max_events = options.max_events;
  machine_.sources = &sources_;
  machine_.recorder = options.recorder;
  machine_.scalars_only = kernel.scalars_only();
  machine_.out_of_bounds =
      options.other_site == Options::kBeyond ? options.other_fill : options.fill;
  machine_.barrier_site = kernel.barrier_site();
  machine_.cores.resize(memory.size());
  for (size_t c = 0; c < memory.size(); ++c) set_up(c);
}

Report Launch::run() {
  Report report;
  try {
    set_grid_bounds();
    for (Core& core : machine_.cores) enter(core);
    report.finished = schedule(report.diagnostics);
    if (report.finished) {
      if (!machine_.recorder) finish_copies(report.diagnostics);
      for (Core& core : machine_.cores) write_results(core);  // after late copies
      if (!machine_.recorder) check_semaphores(report.diagnostics);
    }
  } catch (Fault& f) {
    report.diagnostics.push_back(std::move(f.diagnostic));
  }
  report.steps = machine_.steps;
  report.sources = sources_.summary();
  if (machine_.recorder) tell_results();
  return report;
}

void Launch::done(Core& core) {
  core.state = Core::State::kDone;
  if (machine_.recorder) machine_.recorder->leave(core);
}

void Launch::enter(Core& core) {
  const auto c = static_cast<size_t>(core.id);
  core.events = core.copies = 0;
  core.state = Core::State::kReady;
  grids_[c] = std::make_unique<Grid>(kernel_, machine_, core, tensors_[c]);
  if (machine_.recorder) machine_.recorder->enter(core);
  if (!grids_[c]->next()) done(core);
}

void Launch::after_return(Core& core) {
  Grid& grid = *grids_[static_cast<size_t>(core.id)];
  // The step after the last stays for write_results(): copies may still be in flight.
  if (grid.at_end()) return done(core);
  grid.next();
  core.state = Core::State::kReady;
}

void Launch::write_results(Core& core) {
  const auto c = static_cast<size_t>(core.id);
  grids_[c]->next();
  if (kernel_.scalars_only()) return;
  for (size_t k = 0; k < kernel_.arguments.size(); ++k) {
    const Argument& arg = kernel_.arguments[k];
    if (arg.role != Argument::Role::kOutput || arg.is_window || arg.in_place()) continue;
    const auto from = core.buffers[k].data;
    std::memcpy(memory_[c].results[static_cast<size_t>(arg.tensor)].data(), from.data(),
                from.size());
  }
}

// Starts a buffer's contents.
void Launch::prepare(Buffer& b, Content all) const {
  if (machine_.recorder && !b.is_semaphore()) b.track(all);
}

Content Launch::given(const Argument& arg) const {
  if (arg.role == Argument::Role::kOutput && arg.aliased < 0) return Content::kGarbage;
  const auto operand =
      static_cast<size_t>(arg.role == Argument::Role::kOutput ? arg.aliased : arg.tensor);
  const bool missing = operand < options_.not_given.size() && options_.not_given[operand];
  return missing ? Content::kNotGiven : Content::kKnown;
}

void Launch::tell_results() {
  for (const Core& core : machine_.cores)
    for (size_t k = 0; k < kernel_.arguments.size(); ++k) {
      const Argument& arg = kernel_.arguments[k];
      if (arg.role != Argument::Role::kOutput) continue;
      const auto c = static_cast<size_t>(core.id);
      machine_.recorder->result(
          core.id, arg.tensor,
          arg.is_window && grids_[c] ? grids_[c]->contents(k) : core.buffers[k].contents);
    }
}

void Launch::name(Buffer& b, int core, size_t site) const {
  b.core = core;
  b.site = static_cast<int>(site);
  b.type = kernel_.sites[site].type;
  b.name = kernel_.sites[site].name;
  b.where = kernel_.sites[site].where;
  if (machine_.recorder)
    b.fill = b.site == options_.other_site ? options_.other_fill : options_.fill;
}

void Launch::set_up(size_t c) {
  Core& core = machine_.cores[c];
  const CoreMemory& memory = memory_[c];
  core.id = static_cast<int>(c);
  core.buffers.resize(kernel_.sites.size());
  for (size_t s = 0; s < kernel_.sites.size(); ++s) name(core.buffers[s], core.id, s);
  tensors_[c] = tensors(c);
  if (kernel_.scalars_only()) return set_up_scalars(kernel_, memory.operands, core);
  check_sizes(memory);
  for (const auto& [result, operand] : kernel_.call.aliases) {
    const auto from = memory.operands[static_cast<size_t>(operand)];
    const auto to = memory.results[static_cast<size_t>(result)];
    if (from.data() != to.data() && !from.empty()) std::memcpy(to.data(), from.data(), from.size());
  }
  for (size_t s = 0; s < kernel_.sites.size(); ++s) {
    Buffer& b = core.buffers[s];
    if (!b.type.is_memref()) continue;  // a grid index
    const Argument* arg = s < kernel_.arguments.size() ? &kernel_.arguments[s] : nullptr;
    if (arg && arg->tensor >= 0 && !arg->is_window) {
      set_up_argument(c, s, b);
    } else if (b.semaphores.empty()) {
      prepare(b, Content::kGarbage);
      b.allocate();
    }
  }
}

void Launch::set_up_argument(size_t c, size_t s, Buffer& b) {
  const Argument& arg = kernel_.arguments[s];
  const Tensor& tensor = tensors_[c][s];
  const bool output = arg.role == Argument::Role::kOutput;
  b.read_only = arg.in_place() && !output && arg.aliased < 0;
  if (arg.in_place()) {
    b.data = tensor.data;
    b.contents = tensor.contents;
    if (output && arg.aliased < 0) b.poison();
    return;
  }
  const Argument* input = output ? aliased_input(arg) : nullptr;
  if (input && !input->is_window && !input->in_place()) {  // which has made a copy
    const Buffer& other =
        machine_.cores[c].buffers[static_cast<size_t>(input - &kernel_.arguments[0])];
    b.data = other.data;
    b.contents = other.contents;
    return;
  }
  prepare(b, given(arg));
  b.owned.assign(tensor.data.begin(), tensor.data.end());
  b.data = b.owned;
  if (output && arg.aliased < 0) b.poison();
}

const Argument* Launch::aliased_input(const Argument& output) const {
  if (output.aliased < 0) return nullptr;
  for (const Argument& in : kernel_.arguments)
    if (in.role != Argument::Role::kOutput && in.tensor >= 0 && in.aliased == output.tensor)
      return &in;
  return nullptr;
}

std::vector<Tensor> Launch::tensors(size_t c) const {
  std::vector<Tensor> out;
  for (const Argument& arg : kernel_.arguments) {
    out.emplace_back();
    if (arg.tensor < 0) continue;
    out.back().data = data_of(c, arg);
    if (!machine_.recorder || kernel_.scalars_only()) continue;
    const bool output = arg.role == Argument::Role::kOutput;
    if (const Argument* input = output ? aliased_input(arg) : nullptr) {
      out.back().contents = out[static_cast<size_t>(input - &kernel_.arguments[0])].contents;
      continue;
    }
    const Content content = given(arg);
    // What is given and only read is known.
    if (content == Content::kKnown && arg.is_window && arg.aliased < 0) continue;
    const auto& specs = output ? kernel_.call.results : kernel_.call.operands;
    out.back().contents =
        track(specs[static_cast<size_t>(arg.tensor)].type.num_elements(), content);
  }
  return out;
}

std::span<std::byte> Launch::data_of(size_t c, const Argument& arg) const {
  const auto t = static_cast<size_t>(arg.tensor);
  if (kernel_.scalars_only()) {
    if (arg.role == Argument::Role::kOutput || arg.aliased >= 0) return {};
    return writable(memory_[c].operands[t]);
  }
  if (arg.role == Argument::Role::kOutput) return memory_[c].results[t];
  if (arg.aliased >= 0) return memory_[c].results[static_cast<size_t>(arg.aliased)];
  return writable(memory_[c].operands[t]);
}

void Launch::check_sizes(const CoreMemory& memory) const {
  const ir::Call& call = kernel_.call;
  GRIDLESS_CHECK(memory.operands.size() == call.operands.size());
  GRIDLESS_CHECK(memory.results.size() == call.results.size());
  for (size_t k = 0; k < call.operands.size(); ++k)
    GRIDLESS_CHECK(
        static_cast<int64_t>(memory.operands[k].size()) == tensor_bytes(call.operands[k]),
        "operand {}", k);
  for (size_t k = 0; k < call.results.size(); ++k)
    GRIDLESS_CHECK(static_cast<int64_t>(memory.results[k].size()) == tensor_bytes(call.results[k]),
                   "result {}", k);
}

Diagnostic Launch::bound_not_given(size_t operand) const {
  return {.severity = Diagnostic::Severity::kWarning,
          .kind = "unknown_scalar",
          .message = fmt::format("operand {}, a bound of the grid, is not given", operand),
          .where = kernel_.function->loc,
          .notes = {},
          .hint = "give the operand's value"};
}

// Dynamic bounds are the call's first operands. They must agree on all cores. One that is not given
// counts as 1: then at least a step runs.
void Launch::set_grid_bounds() {
  machine_.grid_bounds = kernel_.grid;
  size_t operand = 0;
  for (int64_t& b : machine_.grid_bounds) {
    if (b == ir::kDynamic) {
      int32_t value = 0;
      const auto given = memory_[0].operands[operand];
      if (given.size() < sizeof(value)) throw Fault{bound_not_given(operand)};
      std::memcpy(&value, given.data(), sizeof(value));
      if (operand < options_.not_given.size() && options_.not_given[operand]) {
        if (machine_.recorder)
          machine_.recorder->decides(*kernel_.function, {.origin = Origin::kNotGiven});
        value = 1;
        machine_.bound_origins.resize(machine_.grid_bounds.size(), Origin::kKnown);
        machine_.bound_origins[static_cast<size_t>(&b - machine_.grid_bounds.data())] =
            Origin::kNotGiven;
      }
      b = std::max(value, 0);
      ++operand;
    }
  }
}

// Round robin until all are done. False, with a Diagnostic, when nobody can go on.
bool Launch::schedule(Diagnostics& diagnostics) {
  for (;;) {
    bool progress = false, all_done = true;
    for (Core& core : machine_.cores) {
      if (core.state == Core::State::kDone) continue;
      progress |= run_core(machine_, core);
      if (core.state == Core::State::kDone) after_return(core);
      all_done &= core.state == Core::State::kDone;
    }
    if (all_done) return true;
    if (!progress) {
      if (!options_.past_deadlock) break;
      give_what_is_lacking();
    }
  }
  if (machine_.recorder) {
    for (const Core& core : machine_.cores)
      if (core.state != Core::State::kDone) machine_.recorder->stuck(core);
  } else {
    diagnostics.push_back(deadlock());
  }
  return false;
}

void Launch::give_what_is_lacking() {
  for (Core& core : machine_.cores) {
    if (core.state != Core::State::kBlocked) continue;
    const Waiting& w = core.waiting;
    Semaphore& s =
        core.buffers[static_cast<size_t>(w.site)].semaphores[static_cast<size_t>(w.index)];
    s.count = std::max(s.count, w.need);
  }
}

Diagnostic Launch::deadlock() const {
  std::vector<std::string> waiting;
  SourceLoc first;
  for (const Core& core : machine_.cores) {
    if (core.state == Core::State::kDone) continue;
    const Waiting& w = core.waiting;
    if (waiting.empty()) first = w.op->loc;
    waiting.push_back(fmt::format("core {} at {}: {} on {} needs {}, has {}", core.id,
                                  w.op->loc.str(), w.op->info().name, w.name, w.need,
                                  w.semaphore->count));
  }
  return emulate::deadlock(std::move(waiting), machine_.cores.size(), first);
}

void Launch::finish_copies(Diagnostics& diagnostics) {
  std::vector<const ir::Op*> reported;
  for (const Transfer* t : machine_.dma.finish()) {
    if (std::ranges::find(reported, t->op) != reported.end()) continue;
    reported.push_back(t->op);
    diagnostics.push_back(
        {.kind = "dma_in_flight_at_end",
         .message = fmt::format("no wait covers the copy of {} to {}, started on core {}",
                                t->src.str(), t->dst.str(), t->core),
         .where = t->op->loc,
         .notes = {},
         .hint = "wait for every copy before the kernel ends"});
  }
}

void Launch::check_semaphores(Diagnostics& diagnostics) const {
  for (size_t s = 0; s < kernel_.sites.size(); ++s) {
    if (!machine_.cores[0].buffers[s].is_semaphore()) continue;
    std::string where;
    for (const Core& core : machine_.cores)
      for (size_t k = 0; k < core.buffers[s].semaphores.size(); ++k)
        if (const int64_t n = core.buffers[s].semaphores[k].count; n != 0)
          where +=
              fmt::format("{}[{}] of core {} holds {}", where.empty() ? "" : ", ", k, core.id, n);
    if (where.empty()) continue;
    diagnostics.push_back(
        {.kind = "semaphore_not_zero",
         .message = fmt::format("{} is not zero at the end: {}", kernel_.sites[s].name, where),
         .where = kernel_.sites[s].where,
         .notes = {},
         .hint = "every signal and every copied byte must be waited for"});
  }
}

}  // namespace gridless::emulate
