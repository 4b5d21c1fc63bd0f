// The virtual machine: cores with their memories and control state, and the copies in flight.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "gridless/emulate/program.h"
#include "gridless/emulate/view.h"

namespace gridless::emulate {

// One copy, from its start on. Values move when a wait needs them (DmaEngine::advance).
struct Transfer {
  View src, dst;              // each on the core whose memory it is
  Semaphore* sent = nullptr;  // remote copies: the sender's semaphore
  Semaphore* arrived = nullptr;
  View sent_ref, arrived_ref;  // as the program names them
  int64_t bytes = 0;
  const ir::Op* op = nullptr;
  int core = 0;  // that started it
  bool done = false;
};

// A copy under a gate (gate.h): from its start until all of it has landed and is counted.
struct InFlight {
  std::shared_ptr<const Transfer> copy;
  int launch = 0;
  int64_t number = 0;              // in the order of starts on its core and in its launch
  int parts = 1;                   // in which it reads and lands: rows of the first dimension
  int read = 0, landed = 0;        // parts
  int64_t sent = 0, arrived = 0;   // bytes counted so far
  std::shared_ptr<Buffer> staged;  // what was read

  bool over() const { return landed == parts; }
  // Counts all but the last byte (hardware may count a copy while it runs).
  void count_early();
  // Reads the next part; with the last one the send count is complete.
  void read_part();
  // Lands the next part that was read; with the last one the receive count is complete.
  void land_part();
};

// Copies in flight. A copy is performed at the first wait that needs it, in the order of starts on
// that semaphore: a program whose waits are in order sees exactly its own data, one that reads too
// early sees what was there before.
class DmaEngine {
 public:
  void start(Transfer t);
  // Performs the copy at once (runs under a Recorder).
  void run_now(Transfer t) { perform(t); }
  // Performs copies that add to `s`, oldest first, until it holds `need` or none is left.
  void advance(Semaphore& s, int64_t need);
  // Performs and returns what no wait asked for.
  std::vector<const Transfer*> finish();
  // Forgets what is done. Called between runs.
  void clear() { transfers_.clear(); }

 private:
  void perform(Transfer& t);
  std::deque<Transfer> transfers_;  // by id; stable addresses
};

// The state behind the explicit matmul ops, per MXU.
struct Mxu {
  struct Products {
    std::vector<float> sum;  // M x N
    Origin origin = Origin::kKnown;
  };
  std::map<int64_t, Vector> staged;          // by staging register; K x N
  Vector weights;                            // in the array
  std::map<int64_t, Products> accumulators;  // by number
  std::deque<Products> results;              // of lhs_fifo
};

// A frame: one activation of a program.
struct Frame {
  const Program* program = nullptr;
  std::vector<RtValue> slots;
  int32_t pc = 0;

  explicit Frame(const Program& p) : program(&p), slots(p.initial) {}
};

struct Waiting {
  const ir::Op* op = nullptr;
  const Semaphore* semaphore = nullptr;
  std::string name;
  int64_t need = 0;
  int site = 0;  // of the semaphore, and which of its array
  int64_t index = 0;
};

struct Core {
  enum class State { kReady, kBlocked, kDone };
  int id = 0;
  int launch = 0;
  int64_t events = 0;  // visible ones (gate.h) of this launch: numbered alike in every timing
  int64_t copies = 0;  // started in this launch
  State state = State::kReady;
  Waiting waiting;              // while kBlocked
  std::vector<Buffer> buffers;  // by site
  std::unique_ptr<Frame> frame;
  std::map<int64_t, Mxu> mxus;
  uint64_t prng_key = 0, prng_count = 0;
  Origin prng_origin = Origin::kKnown;  // under a recorder
  Shape grid;                           // this step's place in the grid
};

class Recorder;   // recorder.h
class Gate;       // gate.h
class SourceRun;  // source_run.h

struct Machine {
  Recorder* recorder = nullptr;        // null in plain runs
  bool scalars_only = false;           // vectors have no values (scalars_only.h)
  Gate* gate = nullptr;                // null in plain runs
  std::vector<InFlight> in_flight;     // under a gate
  int copy_parts = 1;                  // under a gate: in how many parts copies move
  Fill out_of_bounds = Fill::kPoison;  // what loads beyond a ref's end give under a recorder
  SourceRun* sources = nullptr;        // null: sources give what the program computes
  std::vector<Core> cores;
  DmaEngine dma;
  int barrier_site = 0;
  Shape grid_bounds;
  std::vector<Origin> bound_origins;  // where each is from; shorter: known
  int64_t steps = 0;
  int64_t max_steps = 0;
  int64_t max_events = 0;  // under a recorder
};

// Runs `core` until it blocks (kBlocked), polls a semaphore or is held at a gate (kReady) or
// returns from its function (kDone). True if it executed anything. Throws Fault.
bool run_core(Machine& machine, Core& core);

// Runs a function that neither blocks nor allocates (a window transform) to its end.
std::vector<RtValue> run_function(Machine& machine, Core& core, const Program& program,
                                  std::span<const RtValue> arguments);

}  // namespace gridless::emulate
