// State: a stepper with its watch at one moment, to be compared with others and gone back to.
// Parts that did not change since are shared between states.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gridless/emulate/explore/hash.h"
#include "gridless/emulate/explore/watch.h"
#include "gridless/emulate/stepper.h"

namespace gridless::emulate {

// All of a core but its memory.
struct CoreState {
  std::optional<Frame> frame;
  Core::State state = Core::State::kReady;
  int launch = 0;
  int64_t events = 0, copies = 0;
  std::map<int64_t, Mxu> mxus;
  uint64_t prng_key = 0, prng_count = 0;
  Shape grid;
  Grid::Position position;
  std::optional<Event> next;
  Lives lives;
};

struct MemoryState {
  std::vector<std::byte> bytes;
  Hash hash;
};

struct State {
  std::vector<std::shared_ptr<const CoreState>> cores;
  std::vector<std::shared_ptr<const MemoryState>> memories;
  std::vector<int64_t> counts;
  std::vector<InFlight> in_flight;
  std::vector<Flight> flights;
  std::vector<Early> early;
  Hash hash;
};

class Keeper {
 public:
  Keeper(Stepper& stepper, Watch& watch);

  // What a step changed, beside counts and copies: to be told before the next save().
  void touched(int core);
  void touched(const std::byte* memory);
  void touched_all_of(int core);

  State save();
  void restore(const State& state);
  Hash results() const;

 private:
  struct Memory {
    std::span<std::byte> bytes;
    int core = 0;
    bool result = false;  // the caller's
  };
  std::shared_ptr<const CoreState> save_core(size_t c) const;
  void restore_core(size_t c, const CoreState& from);
  Hash hash(const State& state) const;

  Stepper& stepper_;
  Watch& watch_;
  std::vector<Memory> memories_;        // each once, all that may be written
  std::vector<Semaphore*> semaphores_;  // of all cores
  // What the stepper stands at, null where it has moved on since.
  std::vector<std::shared_ptr<const CoreState>> cores_;
  std::vector<std::shared_ptr<const MemoryState>> saved_;
};

}  // namespace gridless::emulate
