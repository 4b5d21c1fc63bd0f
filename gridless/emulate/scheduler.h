// Schedulers: what happens next in a run that goes step by step (stepper.h). Options::scheduler
// takes one; without, cores take turns and copies move when a wait needs them, which is faster.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "gridless/emulate/stepper.h"

namespace gridless::emulate {

class Scheduler : public Witness {
 public:
  // An index into `possible`, which is not empty; none: the run stops here.
  virtual std::optional<size_t> choose(const Stepper& run, std::span<const Choice> possible) = 0;
  void happens(const Core&, const Event&) override {}
  virtual int launches() const { return 1; }
  virtual int copy_parts() const { return 2; }
};

// One run under `scheduler`. Ends when nothing is possible any more.
Report run_steps(const Kernel& kernel, std::span<const CoreMemory> memory, const Options& options,
                 Scheduler& scheduler);

// Program order: every copy is over before anything else happens, and cores take turns in the order
// of their numbers, each until it must wait or has read a count. The checker records this order.
class ProgramOrder : public Scheduler {
 public:
  std::optional<size_t> choose(const Stepper& run, std::span<const Choice> possible) override;
  void happens(const Core& core, const Event& event) override;
  int copy_parts() const override { return 1; }

 private:
  int turn_ = 0;
};

// Random and hostile, the same for the same seed: cores and copies have priorities that change now
// and then, so that one core runs far ahead, a copy lands long after later ones, a source is read
// in part before it changes, bytes are counted before they arrive.
class Adversary : public Scheduler {
 public:
  explicit Adversary(uint64_t seed);
  std::optional<size_t> choose(const Stepper& run, std::span<const Choice> possible) override;

 private:
  uint32_t priority(const Choice& c);

  std::mt19937_64 random_;
  // How copies stand to cores, on the whole.
  enum class Copies : uint8_t { kMixed, kLate, kEarly } copies_ = Copies::kMixed;
  std::map<std::tuple<int, int, int64_t, Choice::Kind>, uint32_t> priorities_;
};

}  // namespace gridless::emulate
