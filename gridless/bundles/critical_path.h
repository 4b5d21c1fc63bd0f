// libtpu's own critical paths: per basic block, the chain of instructions whose latencies add up to
// the most. A block that takes hardly more cycles than its chain is bound by latency; one that
// takes far more is bound by slots and units.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/bundles/listing.h"

namespace gridless::bundles {

struct ChainLink {
  int to_end = 0;           // cycles from here to the end of the block, at least
  std::string instruction;  // without comments
  SourceLoc where;          // unknown for what the compiler added
};

struct CriticalPath {
  int region = -1;  // libtpu's number, as in Bundle::starts
  int cycles = 0;   // of the whole chain
  std::vector<ChainLink> chain;
  // Where the chain lies in the schedule, [begin, end) of Listing::bundles; -1 until it is placed.
  int begin = -1, end = -1;
};

// Blocks without a chain are left out, lines that are neither are skipped: an empty list for
// another text.
std::vector<CriticalPath> parse_critical_paths(std::string_view text);

// Finds the chains in the schedule, by the numbers of their instructions. Copies that the register
// allocator removed are not there; a chain of which nothing is left stays unplaced.
void place_critical_paths(const Listing& listing, std::vector<CriticalPath>& paths);

}  // namespace gridless::bundles
