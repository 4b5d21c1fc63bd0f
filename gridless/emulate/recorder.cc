#include "gridless/emulate/recorder.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless::emulate {

Recorder::Recorder(const Kernel& kernel, int cores) : kernel_(kernel) {
  trace.cores = cores;
  trace.kernel = &kernel;
  trace.sites = static_cast<int>(kernel.sites.size());
  trace.iterations = {0, 0};  // number 0: outside of all loops
  trace.last.assign(static_cast<size_t>(cores), 0);
  trace.event_numbers.resize(static_cast<size_t>(cores));
  for (const Site& site : kernel.sites) {
    const bool semaphores = site.type.is_memref() && ir::is_semaphore(site.type.elem());
    trace.semaphore_base.push_back(semaphores ? trace.semaphores_per_core : -1);
    if (semaphores) trace.semaphores_per_core += static_cast<int32_t>(site.type.num_elements());
  }
  trace.semaphores.resize(static_cast<size_t>(trace.semaphores_per_core * cores));
  trace.lives.resize(static_cast<size_t>(trace.sites * cores));
  for (int s = 0; s < trace.sites; ++s) {
    canonical_.push_back(s);
    if (s >= static_cast<int>(kernel.arguments.size())) continue;
    const Argument& output = kernel.arguments[static_cast<size_t>(s)];
    if (output.role != Argument::Role::kOutput || output.aliased < 0 || output.is_window) continue;
    for (int k = 0; k < s; ++k) {
      const Argument& in = kernel.arguments[static_cast<size_t>(k)];
      if (in.role != Argument::Role::kOutput && in.aliased == output.tensor && !in.is_window)
        canonical_.back() = k;
    }
  }
  for (const Argument& arg : kernel.arguments)
    shared_tensor_.push_back(arg.tensor >= 0 && arg.aliased >= 0);
  trace.steps.resize(static_cast<size_t>(cores));
  cores_.resize(static_cast<size_t>(cores));
  seen_.resize(static_cast<size_t>(cores));
  for (PerCore& c : cores_) c.life.assign(kernel.sites.size(), -1);
}

void Recorder::mix(uint64_t value) {
  fingerprint = (fingerprint ^ value) * 0x9e3779b97f4a7c15u;
  fingerprint ^= fingerprint >> 32;
}

Node Recorder::next(const Core& core) {
  PerCore& c = cores_[static_cast<size_t>(core.id)];
  ++trace.events;
  ++seq_;
  trace.last[static_cast<size_t>(core.id)] = ++c.pos;
  trace.event_numbers[static_cast<size_t>(core.id)].push_back(core.events);
  return {core.id, c.pos, c.waits};
}

Code Recorder::code(const At& at) {
  // The place in the grid, then the counters of the loops, outermost first.
  static thread_local std::vector<int64_t> values;
  values.assign(at.core.grid.begin(), at.core.grid.end());
  const size_t first = values.size();
  for (int32_t l = at.instr.loop; l >= 0;) {
    const Loop& loop = at.frame.program->loops[static_cast<size_t>(l)];
    const RtValue& v = at.frame.slots[static_cast<size_t>(loop.counter)];
    values.push_back(std::holds_alternative<Scalar>(v) ? std::get<Scalar>(v).i : 0);
    l = loop.parent;
  }
  std::reverse(values.begin() + static_cast<std::ptrdiff_t>(first), values.end());
  int32_t& last = cores_[static_cast<size_t>(at.core.id)].iteration;
  if (values.empty()) {
    last = 0;
  } else if (!std::ranges::equal(trace.counters_of(last), values)) {
    last = static_cast<int32_t>(trace.iterations.size()) - 1;
    trace.counters.insert(trace.counters.end(), values.begin(), values.end());
    trace.iterations.push_back(static_cast<uint32_t>(trace.counters.size()));
  }
  return {at.instr.op, last};
}

int32_t Recorder::life(int core, int32_t site) const {
  return std::max(0, cores_[static_cast<size_t>(core)].life[static_cast<size_t>(site)]);
}

void Recorder::enter(const Core& core) {
  const Node node = next(core);
  for (size_t s = 0; s <= kernel_.arguments.size(); ++s) {  // and the barrier semaphore
    trace.lives[static_cast<size_t>(trace.memory(core.id, static_cast<int>(s)))].push_back(
        {node, {}});
    cores_[static_cast<size_t>(core.id)].life[s] = 0;
  }
}

// Whatever has not ended yet ends with the kernel.
void Recorder::leave(const Core& core) {
  const Node node = next(core);
  for (int s = 0; s < trace.sites; ++s) {
    auto& lives = trace.lives[static_cast<size_t>(trace.memory(core.id, s))];
    if (!lives.empty() && !lives.back().end.known()) lives.back().end = node;
  }
}

void Recorder::new_window(const Core& core, int site) {
  const Node node = next(core);
  ++cores_[static_cast<size_t>(core.id)].epoch;
  auto& lives = trace.lives[static_cast<size_t>(trace.memory(core.id, site))];
  if (!lives.empty()) lives.back().end = node;
  lives.push_back({node, {}});
  cores_[static_cast<size_t>(core.id)].life[static_cast<size_t>(site)] =
      static_cast<int32_t>(lives.size()) - 1;
}

void Recorder::grid_step(const Core& core) {
  auto& steps = trace.steps[static_cast<size_t>(core.id)];
  if (std::ranges::find(shared_tensor_, true) == shared_tensor_.end()) return;
  steps.push_back({next(core), core.grid});
}

void Recorder::window_copy(const Core& core, size_t argument, const View& tensor, bool in) {
  if (!shared_tensor_[argument]) return;
  trace.windows.push_back(
      {.core = core.id,
       .argument = static_cast<int32_t>(argument),
       .footprint = trace.footprints.intern(region_of(tensor), tensor.buffer->type.shape()),
       .step = static_cast<int32_t>(trace.steps[static_cast<size_t>(core.id)].size()) - 1,
       .in = in});
}

void Recorder::unwritten_block(const Core& core, size_t argument, const Shape& block) {
  const auto k = static_cast<int32_t>(argument);
  const auto same = [&](const UnwrittenBlock& b) { return b.argument == k; };
  if (std::ranges::none_of(trace.unwritten, same)) trace.unwritten.push_back({k, core.id, block});
}

void Recorder::allocate(const At& at) {
  const Node node = next(at.core);
  const int site = at.instr.target;
  trace.lives[static_cast<size_t>(trace.memory(at.core.id, site))].push_back({node, {}});
  ++cores_[static_cast<size_t>(at.core.id)].life[static_cast<size_t>(site)];
}

void Recorder::end_scope(const At& at, int first_site, int last_site) {
  const Node node = next(at.core);
  ++cores_[static_cast<size_t>(at.core.id)].epoch;
  for (int s = first_site; s < last_site; ++s) {
    auto& lives = trace.lives[static_cast<size_t>(trace.memory(at.core.id, s))];
    if (!lives.empty() && !lives.back().end.known()) lives.back().end = node;
  }
}

int32_t Recorder::access(const At& at, const View& v, const Region& region, bool write,
                         int32_t copy, Node node) {
  const int32_t site = canonical_[static_cast<size_t>(v.buffer->site)];
  trace.accesses.push_back({.at = node,
                            .seq = seq_,
                            .memory = trace.memory(v.buffer->core, site),
                            .life = life(at.core.id, site),
                            .footprint = trace.footprints.intern(region, v.buffer->type.shape()),
                            .copy = copy,
                            .write = write,
                            .code = code(at)});
  return static_cast<int32_t>(trace.accesses.size()) - 1;
}

void Recorder::own_access(const At& at, const View& v, const Region& region, bool write) {
  const int32_t f = trace.footprints.intern(region, v.buffer->type.shape());
  // Equal regions of two buffers of one shape share a number, so the site is part of the key.
  const int64_t key = (static_cast<int64_t>(v.buffer->site) << 33) | int64_t{f} << 1 | write;
  const int32_t epoch = cores_[static_cast<size_t>(at.core.id)].epoch;
  mix(static_cast<uint64_t>(key));
  const auto [last, fresh] = seen_[static_cast<size_t>(at.core.id)].try_emplace(key, epoch);
  if (!fresh && last->second == epoch) return;
  last->second = epoch;
  access(at, v, region, write, -1, next(at.core));
}

Origin Recorder::load(const At& at, const View& v, const Region& region, bool masked) {
  own_access(at, v, region, false);
  const Found found = inspect(*v.buffer, region);
  if (found.some_garbage && !masked)
    suspect(at, Suspect::What::kUninitialised, v,
            found.all_garbage ? "was never written" : "was written only in part");
  return found.origin;
}

void Recorder::store(const At& at, const View& v, const Region& region, Content content,
                     std::span<const int32_t> mask) {
  own_access(at, v, region, true);
  mark(*v.buffer, region, content, mask);
}

void Recorder::suspect(const At& at, Suspect::What what, const View& v, std::string detail) {
  if (!suspected_.try_emplace({at.instr.op, static_cast<int>(what)}, true).second) return;
  suspects.push_back({what, code(at), at.core.id, v.buffer->site, std::move(detail)});
}

void Recorder::out_of_bounds_load(const At& at, const View& v, std::string problem) {
  suspect(at, Suspect::What::kOutOfBounds, v, std::move(problem));
}

void Recorder::broken_promise(const At& at, std::string problem) {
  const auto same = [&](const BrokenPromise& p) { return p.code.op == at.instr.op; };
  if (std::ranges::any_of(trace.promises, same)) return;
  trace.promises.push_back({code(at), at.core.id, std::move(problem)});
}

int32_t Recorder::increment(const View& ref, int on_core, int64_t amount, int from_core,
                            int32_t copy, Node node, Code code) {
  if (amount == 0) return -1;
  const int32_t s = trace.semaphore(on_core, ref.buffer->site, ref.offset);
  const auto id = static_cast<int32_t>(trace.increments.size());
  trace.increments.push_back({.semaphore = s,
                              .life = life(from_core, ref.buffer->site),
                              .copy = copy,
                              .amount = amount,
                              .issue = node,
                              .seq = seq_,
                              .code = code});
  SemaphoreLog& log = trace.semaphores[static_cast<size_t>(s)];
  log.increments.push_back(id);
  log.left += amount;
  mix(static_cast<uint64_t>(s) << 32 | static_cast<uint64_t>(amount & 0xffffffff));
  return id;
}

void Recorder::copy(const At& at, const Transfer& t) {
  if (t.bytes == 0) return;
  const Node node = next(at.core);
  ++cores_[static_cast<size_t>(at.core.id)].epoch;
  const auto id = static_cast<int32_t>(trace.copies.size());
  CopyEvent c{.start = node, .to_core = t.dst.buffer->core, .bytes = t.bytes, .code = code(at)};
  const Region from = region_of(t.src), to = region_of(t.dst);
  c.source = access(at, t.src, from, false, id, node);
  c.target = access(at, t.dst, to, true, id, node);
  mix(static_cast<uint64_t>(trace.accesses[static_cast<size_t>(c.source)].footprint) << 32 |
      static_cast<uint64_t>(trace.accesses[static_cast<size_t>(c.target)].footprint));
  if (t.sent) c.sent = increment(t.sent_ref, at.core.id, t.bytes, at.core.id, id, node, c.code);
  c.arrived = increment(t.arrived_ref, c.to_core, t.bytes, at.core.id, id, node, c.code);
  trace.copies.push_back(c);
  const Found found = inspect(*t.src.buffer, from);
  if (found.all_garbage)
    suspect(at, Suspect::What::kUninitialised, t.src, "was never written, and is copied");
}

void Recorder::signal(const At& at, const View& ref, int to_core, int64_t amount) {
  const Node node = next(at.core);
  ++cores_[static_cast<size_t>(at.core.id)].epoch;
  increment(ref, to_core, amount, at.core.id, -1, node, code(at));
}

void Recorder::wait(const At& at, const View& ref, int64_t amount) {
  const int32_t s = trace.semaphore(at.core.id, ref.buffer->site, ref.offset);
  SemaphoreLog& log = trace.semaphores[static_cast<size_t>(s)];
  log.left -= amount;
  PerCore& core = cores_[static_cast<size_t>(at.core.id)];
  ++core.waits;
  ++core.epoch;
  const Node node = next(at.core);
  const int64_t before =
      log.waits.empty() ? 0 : trace.waits[static_cast<size_t>(log.waits.back())].total;
  log.waits.push_back(static_cast<int32_t>(trace.waits.size()));
  trace.waits.push_back({.at = node,
                         .semaphore = s,
                         .amount = amount,
                         .total = before + amount,
                         .seq = seq_,
                         .code = code(at)});
  trace.snapshots.insert(trace.snapshots.end(), trace.last.begin(), trace.last.end());
  mix(static_cast<uint64_t>(s) << 32 | static_cast<uint64_t>(amount & 0xffffffff));
}

void Recorder::read(const At& at, const View& ref) {
  ++cores_[static_cast<size_t>(at.core.id)].epoch;
  trace.reads.push_back({.at = next(at.core),
                         .semaphore = trace.semaphore(at.core.id, ref.buffer->site, ref.offset),
                         .seq = seq_,
                         .code = code(at)});
}

void Recorder::decides(const ir::Op& op, const Scalar& s) {
  if (s.origin == Origin::kKnown || op.code == ir::OpCode::kTpuPrngSetSeed32) return;
  Origin& o = decisions[&op];
  o = std::max(o, s.origin);
}

void Recorder::stuck(const Core& core) {
  const Waiting& w = core.waiting;
  const Instr& in = core.frame->program->code[static_cast<size_t>(core.frame->pc)];
  trace.stuck.push_back({core.id, w.op, code({core, *core.frame, in}).iteration,
                         trace.semaphore(core.id, w.site, w.index), w.need});
}

void Recorder::settle(int32_t& life, int32_t memory, Node wait) const {
  const auto& lives = trace.lives[static_cast<size_t>(memory)];
  for (size_t k = lives.size(); k-- > 0;)
    if (lives[k].begin.pos < wait.pos && (!lives[k].end.known() || wait.pos < lives[k].end.pos)) {
      life = static_cast<int32_t>(k);
      return;
    }
}

void Recorder::settle_lives() {
  for (size_t s = 0; s < trace.semaphores.size(); ++s) {
    const SemaphoreLog& log = trace.semaphores[s];
    const auto semaphore = static_cast<int32_t>(s);
    const int owner = trace.owner(semaphore);
    int64_t total = 0;
    size_t w = 0;
    for (const int32_t id : log.increments) {
      Increment& e = trace.increments[static_cast<size_t>(id)];
      total += e.amount;
      while (w < log.waits.size() && trace.waits[static_cast<size_t>(log.waits[w])].total < total)
        ++w;
      if (w == log.waits.size()) break;
      if (e.issue.core == owner) continue;
      const Node wait = trace.waits[static_cast<size_t>(log.waits[w])].at;
      settle(e.life, trace.memory(owner, trace.semaphore_site_of(semaphore)), wait);
      if (e.copy < 0) continue;
      Access& target =
          trace.accesses[static_cast<size_t>(trace.copies[static_cast<size_t>(e.copy)].target)];
      settle(target.life, target.memory, wait);
    }
  }
}

void Recorder::result(int core, int result, std::shared_ptr<Content[]> contents) {
  results[{core, result}] = std::move(contents);
}

}  // namespace gridless::emulate
