// Trace: what one run did, as the certificate wants it. Per core the events stand in program order
// and are numbered (`pos`); between cores only semaphores make order, and what order they make in
// every timing is for check/order.h to say. `seq` is the order of this one run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gridless/emulate/check/footprint.h"
#include "gridless/emulate/kernel.h"
#include "gridless/emulate/schedule.h"

namespace gridless::emulate {

// An event of a core. Two nodes of one core are ordered by pos.
struct Node {
  int32_t core = -1;
  int32_t pos = 0;
  int32_t waits = 0;  // completed on this core up to and with this event
  bool known() const { return core >= 0; }
};

// The op of an event and the loop iteration it belongs to (Trace::iteration).
struct Code {
  const ir::Op* op = nullptr;
  int32_t iteration = 0;
};

// Memory is named by core and site (Trace::memory): buffers of one site are at one address on all
// cores. Sites that are aliased arguments count as one.
struct Access {
  Node at;  // of a copy: its start
  int64_t seq = 0;
  int32_t memory = 0;
  int32_t life = 0;  // which of the memory's lives (Trace::lives)
  int32_t footprint = 0;
  int32_t copy = -1;  // or a load or store of the owner
  bool write = false;
  Code code;
};

struct Increment {
  int32_t semaphore = 0;
  int32_t life = 0;
  int32_t copy = -1;  // or a signal
  int64_t amount = 0;
  Node issue;
  int64_t seq = 0;
  Code code;
};

struct CopyEvent {
  Node start;
  int32_t source = 0, target = 0;   // accesses
  int32_t sent = -1, arrived = -1;  // increments; -1: no bytes
  int32_t to_core = 0;
  int64_t bytes = 0;
  Code code;
};

struct WaitEvent {
  Node at;
  int32_t semaphore = 0;
  int64_t amount = 0;
  int64_t total = 0;  // of this and the owner's earlier waits on the semaphore
  int64_t seq = 0;
  Code code;
};

struct SemaphoreRead {
  Node at;
  int32_t semaphore = 0;
  int64_t seq = 0;
  Code code;
};

// An assume_multiple that does not hold, the first per op.
struct BrokenPromise {
  Code code;
  int core = 0;
  std::string problem;
};

struct SemaphoreLog {
  std::vector<int32_t> increments, waits;  // in the order of the run
  int64_t left = 0;                        // at the end
};

// From the event after which the address belongs to it to the end of its scope; unknown: not
// reached.
struct Life {
  Node begin, end;
};

// Where a step of the grid begins on its core; the last one is behind all steps.
struct StepBegin {
  Node at;
  std::vector<int64_t> grid;
};

// A block between its tensor and its window, where a run in program order moves it: before step
// `step`, an output after the step before. The chip's pipeline fetches it while the step before
// runs, and writes it back while the next one does (check/windows.cc).
struct WindowCopy {
  int core = 0;
  int32_t argument = 0;
  int32_t footprint = 0;  // in the tensor
  int32_t step = 0;       // Trace::steps
  bool in = false;
};

// A block of a result that went out although nothing had been stored in its window.
struct UnwrittenBlock {
  int32_t argument = 0;
  int core = 0;
  Shape block;
};

// A core that did not return.
struct Stuck {
  int core = 0;
  const ir::Op* op = nullptr;
  int32_t iteration = 0;
  int32_t semaphore = 0;
  int64_t need = 0;
};

struct Trace {
  int cores = 0;
  int sites = 0;  // per core
  const Kernel* kernel = nullptr;
  Footprints footprints;
  std::vector<Access> accesses;
  std::vector<CopyEvent> copies;
  std::vector<Increment> increments;
  std::vector<WaitEvent> waits;  // in the order of the run
  std::vector<SemaphoreRead> reads;
  std::vector<BrokenPromise> promises;
  std::vector<SemaphoreLog> semaphores;  // by number
  std::vector<std::vector<Life>> lives;  // by memory
  std::vector<int32_t> last;             // per core, pos of its last event
  // Per core, of the event at pos + 1: its number among the visible ones (Core::events).
  std::vector<std::vector<int64_t>> event_numbers;
  std::vector<int32_t> snapshots;  // per wait, per core: pos reached when it completed
  // Loop counters of iteration k: counters[iterations[k]] up to counters[iterations[k + 1]].
  std::vector<int64_t> counters;
  std::vector<uint32_t> iterations;
  std::span<const int64_t> counters_of(int32_t k) const {
    const auto i = static_cast<size_t>(k);
    return std::span(counters).subspan(iterations[i], iterations[i + 1] - iterations[i]);
  }
  // Per core, and the blocks of tensors that more than one argument can reach.
  std::vector<std::vector<StepBegin>> steps;
  std::vector<WindowCopy> windows;
  std::vector<UnwrittenBlock> unwritten;  // the first of each argument
  std::vector<Stuck> stuck;               // a deadlock, if not empty
  bool finished = false;                  // every core returned
  int64_t events = 0;
  int launches = 1;

  // This launch, and the same once more right after it on every core: memory and semaphores of
  // their own, but for the barrier semaphore, which launches share (R9).
  Trace twice() const;

  // Where a node is, for a schedule.
  Point point(Node n) const;

  // Numbers.
  std::vector<int32_t> semaphore_base;  // by site; -1: no semaphores
  int32_t semaphores_per_core = 0;
  int32_t memory(int core, int site) const { return core * sites + site; }
  int site_of(int32_t memory) const { return memory % sites; }
  int core_of(int32_t memory) const { return memory / sites % cores; }
  int32_t semaphore(int core, int site, int64_t index) const {
    return core * semaphores_per_core + semaphore_base[static_cast<size_t>(site)] +
           static_cast<int32_t>(index);
  }
  int owner(int32_t semaphore) const { return semaphore / semaphores_per_core % cores; }
  int semaphore_site_of(int32_t semaphore) const;
  bool is_barrier(int32_t semaphore) const;

  // For messages: "argument 2", "sem_alloc[3] of core 1", "iteration (3, 0)", "file:12".
  std::string semaphore_name(int32_t semaphore) const;
  std::string memory_name(int32_t memory) const;
  std::string iteration(int32_t iteration) const;
  std::string where(const Code& code) const;
};

}  // namespace gridless::emulate
