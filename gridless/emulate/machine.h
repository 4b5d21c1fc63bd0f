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
  std::map<int64_t, Vector> staged;                    // by staging register; K x N
  Vector weights;                                      // in the array
  std::map<int64_t, std::vector<float>> accumulators;  // by number; M x N
  std::deque<std::vector<float>> results;              // of lhs_fifo
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
  State state = State::kReady;
  Waiting waiting;              // while kBlocked
  std::vector<Buffer> buffers;  // by site
  std::unique_ptr<Frame> frame;
  std::map<int64_t, Mxu> mxus;
  uint64_t prng_key = 0, prng_count = 0;
  Shape grid;  // this step's place in the grid
};

class Recorder;  // recorder.h

struct Machine {
  Recorder* recorder = nullptr;        // null in plain runs
  bool scalars_only = false;           // vectors have no values (scalars_only.h)
  Fill out_of_bounds = Fill::kPoison;  // what loads beyond a ref's end give under a recorder
  std::vector<Core> cores;
  DmaEngine dma;
  int barrier_site = 0;
  Shape grid_bounds;
  int64_t steps = 0;
  int64_t max_steps = 0;
};

// Runs `core` until it blocks (kBlocked), polls a semaphore (kReady) or returns from its function
// (kDone). True if it executed anything. Throws Fault.
bool run_core(Machine& machine, Core& core);

// Runs a function that neither blocks nor allocates (a window transform) to its end.
std::vector<RtValue> run_function(Machine& machine, Core& core, const Program& program,
                                  std::span<const RtValue> arguments);

}  // namespace gridless::emulate
