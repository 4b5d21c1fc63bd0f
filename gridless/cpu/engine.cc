#include "gridless/cpu/engine.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <chrono>

#include "gridless/base/check.h"
#include "gridless/cpu/lower.h"
#include "gridless/cpu/park.h"
#include "gridless/cpu/team.h"
#include "gridless/emulate/codec.h"
#include "gridless/emulate/fault.h"

namespace gridless::cpu {

namespace {

constexpr size_t kAlignment = 64;
// About a microsecond: the owner of a core that can go on has taken it by then, if it is running.
constexpr int kSpinsBeforeStealing = 30;

// Zeroed memory that costs nothing until touched: the ring slots behind views never are.
class Arena {
 public:
  explicit Arena(size_t bytes) : bytes_(std::max<size_t>(bytes, kAlignment)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GRIDLESS_CHECK(p != MAP_FAILED, "no memory for {} bytes of scratch", bytes_);
    base_ = static_cast<std::byte*>(p);
  }
  ~Arena() { munmap(base_, bytes_); }
  Arena(const Arena&) = delete;
  std::span<std::byte> take(size_t bytes) {
    const size_t at = used_;
    used_ = (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
    GRIDLESS_CHECK(at + bytes <= bytes_);
    return {base_ + at, bytes};
  }

 private:
  std::byte* base_;
  size_t bytes_, used_ = 0;
};

size_t padded(int64_t bytes) {
  return (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t site_bytes(const emulate::Site& s) {
  return emulate::storage_bytes(s.type.elem(), s.type.num_elements());
}

}  // namespace

class Engine::Impl {
 public:
  std::expected<void, Diagnostics> set_up(const ir::Program& program,
                                          std::span<const emulate::CoreMemory> memory,
                                          const EngineOptions& options) {
    auto kernel = emulate::make_kernel(program.module, program.call);
    if (!kernel) return std::unexpected(std::move(kernel).error());
    kernel_ = std::make_unique<emulate::Kernel>(std::move(*kernel));
    if (!kernel_->grid.empty()) {
      return std::unexpected(Diagnostics{{.kind = "invalid_ir",
                                          .message = "the CPU engine runs kernels without a grid",
                                          .where = kernel_->function->loc,
                                          .notes = {},
                                          .hint = "use the emulator (--engine emulate)"}});
    }
    kernels_ = &kernels(options.isa);
    machine_.barrier_site = kernel_->barrier_site();
    machine_.cores.resize(memory.size());
    for (size_t c = 0; c < memory.size(); ++c) set_up_core(static_cast<int>(c), memory[c]);
    const auto start = std::chrono::steady_clock::now();
    tapes_.resize(memory.size());
    runs_.resize(memory.size());
    for (size_t c = 0; c < memory.size(); ++c) {
      auto tape = lower(
          *kernel_, machine_, static_cast<int>(c), *kernels_,
          {.max_unrolled_steps = options.max_unrolled_steps, .hand_kernels = options.hand_kernels});
      if (!tape) return std::unexpected(std::move(tape).error());
      tapes_[c] = std::make_unique<Tape>(std::move(*tape));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const Tape& t = *tapes_[0];
    stats_ = {t.hand_kernels, t.copies, t.views, t.generic, static_cast<int64_t>(t.steps.size()),
              took.count()};
    const int workers = std::clamp<int>(options.threads, 1, static_cast<int>(memory.size()));
    auto team = Team::start({.workers = workers});
    if (!team) {
      return std::unexpected(Diagnostics{{.kind = "invalid_ir", .message = team.error().message}});
    }
    team_ = std::move(*team);
    idle_ = std::vector<std::atomic<uint64_t>>(static_cast<size_t>(workers));
    held_ = std::vector<Held>(memory.size());
    parkers_ = std::vector<Parker>(static_cast<size_t>(workers));
    notify_ = [this](int core) {
      events_.fetch_add(1, std::memory_order_seq_cst);
      parkers_[static_cast<size_t>(core) % parkers_.size()].notify();
    };
    return {};
  }

  std::expected<void, Diagnostics> run() {
    for (size_t c = 0; c < tapes_.size(); ++c) reset(c);
    failed_.store(false);
    diagnostics_.clear();
    for (auto& i : idle_) i.store(kBusy);
    for (Held& h : held_) h.done.store(false);
    unfinished_.store(static_cast<int>(held_.size()));
    team_->run([this](int w) { work(w); });
    if (diagnostics_.empty()) check_semaphores();
    if (!diagnostics_.empty()) return std::unexpected(diagnostics_);
    return {};
  }

  std::expected<std::vector<TraceEvent>, Diagnostics> run_traced() {
    trace_.assign(tapes_.size(), {});
    launch_start_ = std::chrono::steady_clock::now();
    tracing_ = true;
    const auto ok = run();
    tracing_ = false;
    if (!ok) return std::unexpected(ok.error());
    std::vector<TraceEvent> out;
    for (const std::vector<TraceEvent>& t : trace_) out.insert(out.end(), t.begin(), t.end());
    return out;
  }

  const EngineStats& stats() const { return stats_; }

 private:
  static constexpr uint64_t kBusy = UINT64_MAX, kDone = UINT64_MAX - 1;

  void set_up_core(int c, const emulate::CoreMemory& memory) {
    emulate::Core& core = machine_.cores[static_cast<size_t>(c)];
    core.id = c;
    core.buffers.resize(kernel_->sites.size());
    size_t scratch = 0;
    for (size_t s = 0; s < kernel_->sites.size(); ++s) {
      const bool own = s >= kernel_->arguments.size() || kernel_->arguments[s].tensor < 0;
      if (own && !ir::is_semaphore(kernel_->sites[s].type.elem()))
        scratch += padded(site_bytes(kernel_->sites[s]));
    }
    arenas_.push_back(std::make_unique<Arena>(scratch));
    for (size_t s = 0; s < kernel_->sites.size(); ++s) {
      emulate::Buffer& b = core.buffers[s];
      b.core = c;
      b.site = static_cast<int>(s);
      b.type = kernel_->sites[s].type;
      b.name = kernel_->sites[s].name;
      b.where = kernel_->sites[s].where;
      if (b.is_semaphore()) {
        b.allocate();
        continue;
      }
      const emulate::Argument* arg =
          s < kernel_->arguments.size() ? &kernel_->arguments[s] : nullptr;
      if (!arg || arg->tensor < 0) {
        b.data = arenas_.back()->take(static_cast<size_t>(site_bytes(kernel_->sites[s])));
        continue;
      }
      const auto t = static_cast<size_t>(arg->tensor);
      if (arg->role == emulate::Argument::Role::kOutput) {
        b.data = memory.results[t];
      } else {
        const std::span<const std::byte> in = memory.operands[t];
        b.data = {const_cast<std::byte*>(in.data()), in.size()};
        b.read_only = arg->aliased < 0;
        GRIDLESS_CHECK(arg->aliased < 0 ||
                           in.data() == memory.results[static_cast<size_t>(arg->aliased)].data(),
                       "operand {} is aliased to a result but not the same memory", t);
      }
      GRIDLESS_CHECK(static_cast<int64_t>(b.data.size()) == site_bytes(kernel_->sites[s]),
                     "argument {}: {} bytes", arg->name, b.data.size());
    }
  }

  void reset(size_t c) {
    if (!runs_[c]) {
      runs_[c] = std::unique_ptr<CoreRun>(new CoreRun{.tape = tapes_[c].get(),
                                                      .machine = &machine_,
                                                      .core = &machine_.cores[c],
                                                      .kernels = kernels_,
                                                      .notify = &notify_,
                                                      .frame = emulate::Frame(tapes_[c]->program)});
      runs_[c]->frame.slots = tapes_[c]->slots;
    }
    runs_[c]->pc = 0;
  }

  // Runs the core until it blocks (false) or ends (true).
  bool advance(CoreRun& run, bool& progress) {
    const std::vector<Step>& steps = run.tape->steps;
    while (run.pc < steps.size()) {
      const size_t pc = run.pc;
      const int64_t start = tracing_ ? now_ns() : 0;
      switch (steps[pc](run)) {
        case Flow::kNext:
          ++run.pc;
          break;
        case Flow::kJump:
          break;
        case Flow::kBlocked:
          if (tracing_) note(run, pc, start);
          return false;
      }
      if (tracing_) note(run, pc, start);
      progress = true;
    }
    return true;
  }

  int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                launch_start_)
        .count();
  }
  // A step that was tried before (a wait) keeps the start of its first try.
  void note(const CoreRun& run, size_t pc, int64_t start) {
    std::vector<TraceEvent>& events = trace_[static_cast<size_t>(run.core->id)];
    const ir::Op* op = run.tape->ops[pc];
    if (!events.empty() && events.back().op == op && op->info().cost == ir::Cost::kSync) {
      events.back().end_ns = now_ns();
    } else {
      events.push_back({run.core->id, op, start, now_ns()});
    }
  }

  // Runs core `c` until it blocks or ends, unless another worker has it in hand.
  bool try_core(size_t c) {
    Held& held = held_[c];
    if (held.done.load(std::memory_order_acquire) ||
        held.taken.exchange(true, std::memory_order_acquire)) {
      return false;
    }
    bool progress = false;
    if (!held.done.load(std::memory_order_relaxed) && advance(*runs_[c], progress)) {
      held.done.store(true, std::memory_order_release);
      if (unfinished_.fetch_sub(1) == 1) wake();
    }
    held.taken.store(false, std::memory_order_release);
    return progress;
  }

  // Core c belongs to worker c % workers, so its memory stays in one cache. But a worker that has
  // nothing to do and still has the processor takes any core that can go on: on a busy machine the
  // owner may have to wait long for its turn.
  void work(int w) {
    const size_t workers = idle_.size(), mine = static_cast<size_t>(w);
    try {
      while (unfinished_.load() > 0 && !failed_.load(std::memory_order_relaxed)) {
        const uint64_t seen = events_.load(std::memory_order_acquire);
        bool progress = false;
        for (size_t c = mine; c < runs_.size(); c += workers) progress |= try_core(c);
        if (progress) continue;
        for (int spin = 0; spin < kSpinsBeforeStealing && events_.load() == seen; ++spin) {
          __builtin_ia32_pause();
        }
        if (events_.load() != seen) continue;
        for (size_t c = 0; c < runs_.size(); ++c) {
          if (c % workers != mine) progress |= try_core(c);
        }
        if (!progress) wait_for_event(w, seen);
      }
    } catch (emulate::Fault& f) {
      fail(std::move(f.diagnostic));
    }
    idle_[mine].store(kDone);
  }

  void wake() {
    events_.fetch_add(1, std::memory_order_seq_cst);
    for (Parker& p : parkers_) p.notify();
  }

  // Returns when there is a newer event than `seen`, or reports a deadlock.
  void wait_for_event(int w, uint64_t seen) {
    idle_[static_cast<size_t>(w)].store(seen);
    // Nobody can go on when every worker is done or has seen the newest event and found nothing in
    // it.
    bool stuck = events_.load() == seen;
    for (const auto& i : idle_) {
      const uint64_t other = i.load();
      stuck = stuck && (other == seen || other == kDone);
    }
    // The last core may have ended after this worker looked, and before it took note of events.
    const bool over = unfinished_.load() == 0;
    if (stuck && !over) {
      fail(deadlock());
    } else if (!over) {
      parkers_[static_cast<size_t>(w)].wait_until([&] { return events_.load() != seen; });
    }
    idle_[static_cast<size_t>(w)].store(kBusy);
  }

  Diagnostic deadlock() const {
    std::vector<std::string> waiting;
    SourceLoc first;
    for (const auto& run : runs_) {
      if (run->pc >= run->tape->steps.size() || !run->blocked.op) continue;
      if (waiting.empty()) first = run->blocked.op->loc;
      waiting.push_back(fmt::format("core {} at {}: {} needs {}, has {}", run->core->id,
                                    run->blocked.op->loc.str(), run->blocked.op->info().name,
                                    run->blocked.need, run->blocked.have));
    }
    return emulate::deadlock(std::move(waiting), runs_.size(), first);
  }

  void fail(Diagnostic d) {
    if (!failed_.exchange(true)) diagnostics_.push_back(std::move(d));
    wake();
  }

  void check_semaphores() {
    for (const emulate::Core& core : machine_.cores) {
      for (const emulate::Buffer& b : core.buffers) {
        for (size_t i = 0; i < b.semaphores.size(); ++i) {
          if (b.semaphores[i].count == 0) continue;
          diagnostics_.push_back({.kind = "semaphore_not_zero",
                                  .message = fmt::format("{}[{}] of core {} holds {} at the end",
                                                         b.name, i, core.id, b.semaphores[i].count),
                                  .where = b.where,
                                  .notes = {},
                                  .hint = "every signal and every copied byte must be waited for"});
        }
      }
    }
  }

  std::unique_ptr<emulate::Kernel> kernel_;
  const KernelTable* kernels_ = nullptr;
  emulate::Machine machine_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<std::unique_ptr<Tape>> tapes_;
  std::vector<std::unique_ptr<CoreRun>> runs_;
  EngineStats stats_;
  struct Held {
    std::atomic<bool> taken = false;  // a worker is running the core
    std::atomic<bool> done = false;
  };
  std::vector<Held> held_;           // per core
  std::atomic<int> unfinished_ = 0;  // cores

  std::unique_ptr<Team> team_;
  std::function<void(int)> notify_;

  bool tracing_ = false;
  std::chrono::steady_clock::time_point launch_start_;
  std::vector<std::vector<TraceEvent>> trace_;  // per core

  std::atomic<uint64_t> events_ = 0;         // signals to other cores so far
  std::vector<std::atomic<uint64_t>> idle_;  // per worker: the event it waits after, kBusy or kDone
  std::vector<Parker> parkers_;              // where each worker sleeps
  std::atomic<bool> failed_ = false;
  Diagnostics diagnostics_;  // written by the one that set failed_
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

std::expected<std::unique_ptr<Engine>, Diagnostics> Engine::create(
    const ir::Program& program, std::span<const emulate::CoreMemory> memory,
    const EngineOptions& options) {
  auto impl = std::make_unique<Impl>();
  if (auto ok = impl->set_up(program, memory, options); !ok)
    return std::unexpected(std::move(ok).error());
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

std::expected<void, Diagnostics> Engine::run() { return impl_->run(); }
std::expected<std::vector<TraceEvent>, Diagnostics> Engine::run_traced() {
  return impl_->run_traced();
}
const EngineStats& Engine::stats() const { return impl_->stats(); }

}  // namespace gridless::cpu
