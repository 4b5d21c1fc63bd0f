// Where an op comes from, with the calls that led there.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/ir/module.h"

namespace gridless::ir {

struct Location {
  std::string name;                // of a name location: a parameter, or the JAX primitive ("get:")
  SourceLoc loc;                   // the innermost place that has a file
  std::vector<SourceLoc> callers;  // from there outwards, at most kMostCallers
};

inline constexpr size_t kMostCallers = 32;

// Gives the ops and block arguments of `module` their locations. Order: pre-order over the ops from
// the module on; at each op first its own, then those of the block arguments of all its regions.
// Ops keep the place they have where theirs is unknown. An error is a sentence: another number of
// locations than ops and arguments.
std::expected<void, std::string> apply_locations(Module& module,
                                                 const std::vector<Location>& locations);

}  // namespace gridless::ir
