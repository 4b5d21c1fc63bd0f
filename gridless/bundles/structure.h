// Loops and straight-line regions of a listing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gridless/bundles/listing.h"

namespace gridless::bundles {

// Bundles behind a branch that are executed whether it is taken or not.
inline constexpr int kDelaySlots = 6;

// A backward branch and what lies between. Indices are into Listing::bundles, [begin, end); the
// delay slots of the branch belong to the loop.
struct Loop {
  int begin = 0, end = 0;
  int parent = -1;   // the loop around it, an index into Structure::loops
  int depth = 1;     // 1: in no other loop
  Place place = -1;  // source line of the branch; -1: a loop that the compiler made by itself
  // How often the body runs each time the loop is entered, when start, step and bound are constants
  // of the code; else `why_unknown` says what is not.
  std::optional<int64_t> trips;
  std::string why_unknown;
};

// Bundles [begin, end) that are always executed together, one after the other, and whose time is
// known: nothing branches into or out of it (a branch and its delay slots are the end of a region)
// and the core can wait for no copy and no semaphore, but at its last bundle. In the schedule its
// cycles are end - begin.
struct Region {
  enum class End {
    kBranch,
    kTarget,
    kWait,
    kCall,
    kEnd
  };  // why it ends: a branch; the next bundle
      // is branched to; a wait; a call
  int begin = 0, end = 0;
  int loop = -1;  // innermost
  End ends = End::kEnd;
  // Times it runs in one run of the kernel: the product of the trips of the loops around it, with
  // every branch that skips code not taken. None when a loop's trips are unknown.
  std::optional<int64_t> runs;
  int cycles() const { return end - begin; }
};
std::string_view end_name(Region::End end);  // "branch", "target", "wait", "call", "end"

struct Structure {
  std::vector<Loop> loops;      // outer before inner, in order of the listing
  std::vector<Region> regions;  // in order; together they are the whole listing
  // Bundle -> region and innermost loop (-1: none).
  std::vector<int> region_of, loop_of;
};

Structure find_structure(const Listing& listing);

}  // namespace gridless::bundles
