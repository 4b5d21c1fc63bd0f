#include "gridless/ir/location.h"

#include <fmt/format.h>

namespace gridless::ir {
namespace {

// Calls f(op) and f(argument) in the order of the locations.
template <typename OnOp, typename OnArg>
void each_place(Op& op, const OnOp& on_op, const OnArg& on_arg) {
  on_op(op);
  for (const auto& region : op.regions) {
    for (const auto& block : region->blocks) {
      for (const auto& arg : block->args) on_arg(*arg);
    }
  }
  for (const auto& region : op.regions) {
    for (const auto& block : region->blocks) {
      for (const auto& inner : block->ops) each_place(*inner, on_op, on_arg);
    }
  }
}

}  // namespace

std::expected<void, std::string> apply_locations(Module& module,
                                                 const std::vector<Location>& locations) {
  size_t places = 0;
  each_place(*module.top, [&](Op&) { ++places; }, [&](Value&) { ++places; });
  if (places != locations.size()) {
    return std::unexpected(
        fmt::format("{} locations for {} ops and block arguments", locations.size(), places));
  }
  auto next = locations.begin();
  each_place(
      *module.top,
      [&](Op& op) {
        const Location& l = *next++;
        if (l.loc.known()) op.loc = l.loc;
        if (!l.callers.empty()) module.callers[&op] = l.callers;
      },
      [&](Value& arg) {
        const Location& l = *next++;
        if (!l.name.empty()) arg.name = l.name;
      });
  return {};
}

}  // namespace gridless::ir
