// The differences between the serialised versions 13 to 18 of Mosaic modules.
//
//   14  subcore_id: enqueue_dma and wait_dma 6 -> 7 operand segments, sem_signal 4 -> 5
//   15  reinterpret_cast gets operand segments (source, dynamic offset, dynamic sizes)
//   wait_dma2(sem, source, target, [device], [core]) is the older spelling of wait_dma(source,
//   [source_sem], target, [target_sem], [device], [core], [subcore]) {wait_target}. A wait for the
//   local send of a remote copy was written with the refs swapped and dummy zeros for both ids.
//
// In memory there is the newest form only.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::ir {

inline constexpr int kOldestVersion = 13;
inline constexpr int kNewestVersion = 18;

// Brings an op that was read under `name` (without prefix) to the newest form, in place. An error
// is a sentence about the op: unknown, or an old form that does not have the shape it should have.
std::expected<void, std::string> upgrade(Op& op, std::string_view name);

// How an op is spelled at a version.
struct Spelling {
  std::string_view name;
  std::vector<const Value*> operands;
  std::vector<NamedAttr> attrs;
  // The last two operands are a zero that must be written in front of the op (null in `operands`).
  bool dummy_zero = false;
};
Spelling spell(const Op& op, int version);

// Whether spell() at this version will ask for a zero.
bool wants_dummy_zero(const Op& op, int version);

}  // namespace gridless::ir
