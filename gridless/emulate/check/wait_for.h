// The wait-for graph of a deadlock: which core waits where and for what, and which core would have
// sent it.
//
// Who would have sent it is not guessed from the text of the program (device ids are computed): the
// run is repeated, and where it hangs every waiting core is given what it lacks and goes on.
// Whoever then adds to a semaphore that a core hung on is whom that core waited for. Where nobody
// does (a signal that was forgotten, or went elsewhere) the cores that have not added to it are
// named as candidates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gridless/emulate/check/garbage.h"

namespace gridless::emulate {

struct WaitForGraph {
  struct Node {
    int core = 0;
    bool waits = false;    // else: has returned
    std::string at;        // place of the wait
    std::string for_what;  // "3 on SEMAPHORE, which holds 2"
  };
  struct Edge {
    int from = 0, to = 0;    // cores: the one that waits, and whom it waits for
    std::string at;          // where `to` would add to the semaphore
    bool candidate = false;  // never seen to add to it
    bool in_cycle = false;
  };
  int cores = 0;
  std::vector<Node> nodes;  // by core: those that wait, and those that an edge leads to
  std::vector<Edge> edges;
  std::vector<int> cycle;  // a shortest one, its cores in order; empty: none

  bool empty() const { return nodes.empty(); }
  // "core 1 would add to it at FILE:LINE, but waits itself", for the core's edges; may be empty.
  std::string whom(int core) const;
};

// Of a run that hung (`run.recorder->trace.stuck`), repeated on the same inputs.
WaitForGraph wait_for_graph(const Emulator& emulator, int cores, const CheckInputs& inputs,
                            const GarbageRun& run, const Options& options);

// A drawing that needs nothing else: a row per core, an arc per edge, the cycle in red.
std::string to_svg(const WaitForGraph& graph, const std::string& title);

}  // namespace gridless::emulate
