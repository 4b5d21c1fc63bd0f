// BundleSlots: which cycle of a straight line of code each instruction goes to.
//
// A list schedule without lookahead: instructions are placed in the order of the program, each in
// the first cycle from its operands on whose bundle has a slot of its unit left. So an instruction
// may fill a gap before earlier ones, as in libtpu's schedules.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "gridless/chips/op_costs.h"

namespace gridless::time {

using chips::CostUnit;

class BundleSlots {
 public:
  static constexpr int kXlus = chips::kUnitSlots[static_cast<size_t>(CostUnit::kXlu)];

  // Loads and stores of less than a register's rows: as many of them as a bundle has room for
  // (their masks and strides are immediates).
  static constexpr int kNarrow = 3;

  // The cycle in which an instruction is issued, `ready` or later. `narrow`: it is such an access.
  int place(CostUnit unit, int ready, bool narrow = false);
  // Cycles up to the last instruction.
  int length() const { return length_; }

 private:
  // Per cycle the slots taken, and from each full cycle a jump to one that may not be.
  struct Track {
    std::vector<uint8_t> taken;
    std::vector<int> next;
  };
  int find(Track& track, int cycle, int capacity);
  void take(Track& track, int cycle, int capacity);

  int place_on_xlu(int ready);
  // In the first cycle from `at` on in which both have room.
  int place_on_both(Track& a, int of_a, Track& b, int of_b, int at);

  Track narrow_;
  std::array<Track, chips::kCostUnits> tracks_;
  // Per XLU the cycles in which it cannot take an operation, as intervals [begin, end) with gaps
  // that are wide enough for one.
  std::array<std::map<int, int>, kXlus> xlu_busy_;
  int length_ = 0;
};

// One of the two matrix units: weights go in, rows go through, sums come out.
struct MxuState {
  int push_free = 0;      // from here on the next register of weights can be pushed
  int multiply_free = 0;  // from here on the next rows
  int last_push = 0;
};

}  // namespace gridless::time
