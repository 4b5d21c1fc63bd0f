// The differences between the serialised versions 1 to 18 of Mosaic modules. All are read; 13 and
// later are written.
//
//    2  enqueue_dma and sem_signal get operand segments (and core_id)
//    3  multi_reduction's reduction_dims become an array; wait_dma(sem, ref) becomes wait_dma2
//    4  enqueue_dma: priority               8  enqueue_dma: strict_ordering
//    5  dynamic_gather: dimension -> dimensions      6  iota: the same
//    7  wait_dma2: operand segments (device, core)   11  tpu.store: add
//   13  matmul: transpose_lhs_hint
//   14  subcore_id: enqueue_dma and wait_dma 6 -> 7 operand segments, sem_signal 4 -> 5
//   15  reinterpret_cast gets operand segments (source, dynamic offset, dynamic sizes)
//   wait_dma2(sem, source, target, [device], [core]) is the older spelling of wait_dma(source,
//   [source_sem], target, [target_sem], [device], [core], [subcore]) {wait_target}. A wait for the
//   local send of a remote copy was written with the refs swapped and dummy zeros for both ids.
//
//   vector.transpose and tpu.repeat are older spellings of tpu.transpose and of a tpu.concatenate
//   of one vector with itself.
//
// In memory there is the newest form only.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::ir {

inline constexpr int kOldestRead = 1;
inline constexpr int kOldestVersion = 13;  // that is written
inline constexpr int kNewestVersion = 18;
inline constexpr std::string_view kStablePrefix = "stable_mosaic.";

// Brings an op that was read under `name` (without prefix) to the newest form, in place. An error
// is a sentence about the op: unknown, or an old form that does not have the shape it should have.
std::expected<void, std::string> upgrade(Op& op, std::string_view name);

// What is wrong with the version of a module that was read.
struct VersionFault {
  std::string message, hint;
  bool at_plain_op = false;  // about the first op without prefix, else about the module
};

// Moves stable_mosaic.version from the attributes of a module that was read to Module::version.
// The counts are those of ops with and without the prefix stable_mosaic., builtin.module apart.
std::vector<VersionFault> settle_version(Module& module, size_t stable_ops, size_t plain_ops);

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
