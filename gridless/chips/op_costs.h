// What operations cost on a core of TPU v7, in slots of its bundles and cycles of latency.
//
// A core issues one bundle per cycle; a bundle has slots for the units. An element-wise operation
// on a vector is done register by register (8 x 128 words of 32 bits): `Slots` says what one
// register of the result takes of each unit, and how long after its operands it is there.
//
// The numbers are not written by hand: bench/calibrate_costs compiles a micro-kernel per operation
// and element format with libtpu and reads them off the schedule (docs/time.md says how to do that
// again for another libtpu). They are in tpu7x_op_costs.inc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gridless::chips {

// Units of a core that the time model keeps apart.
enum class CostUnit : uint8_t { kValu, kEup, kXlu, kLoad, kStore, kPop, kScalar };
inline constexpr int kCostUnits = 7;

// Instructions of each unit that a bundle can hold. EUP operations also take a VALU slot; a unit of
// the XLU takes its next operation only every kUnitInterval cycles.
inline constexpr int kUnitSlots[kCostUnits] = {4, 1, 2, 3, 2, 2, 2};
inline constexpr int kXluInterval = 4;

struct OpCost {
  std::string_view op;    // "arith.addf"
  std::string_view from;  // element format of the first operand, "bf16"
  std::string_view to;    // of the result
  float valu, eup, xlu;   // per register of the wider of operand and result
  float latency;          // cycles from operands to result
};

// The row for an operation, or null: then the operation's class says what to assume.
const OpCost* find_op_cost(std::string_view op, std::string_view from, std::string_view to);
std::span<const OpCost> tpu7x_op_costs();

// Latencies and intervals that belong to units, not to operations, in cycles. Measured the same
// way.
struct UnitCosts {
  int valu_latency, eup_latency, load_latency;
  int store_to_load;         // from a store to a load of what it stored
  int lane_reduce_latency;   // sum, maximum over the lanes of a register
  int lane_permute_latency;  // rotation, broadcast of a lane, gather along lanes
  int transpose_latency;     // of a 128 x 128 block
  int to_scalar_latency;     // an element of a register to the scalar unit
  int scalar_load_latency;
  int mxu_push_interval;     // a register of weights, per MXU
  int mxu_push_to_multiply;  // last push to the first row
  int mxu_latency;           // row in to row out
  int branch_delay;          // bundles behind a branch that are executed in any case
  // Scalar bundles of starting a copy: contiguous; strided, in one row of tiles and in general; to
  // another core. Of the compiler's run-time check of one end of it: a part of an array in HBM, a
  // whole one, anything in VMEM.
  int copy_start, copy_start_strided_row, copy_start_strided, remote_start;
  int check_hbm_part, check_hbm, check_vmem;
  int wait, signal;  // of a wait, of a signal to another core
  int device_id_latency;
  int prng_seed_latency;  // of seeding the random number generator
  int semaphore_check;    // of a semaphore that is scratch of the kernel, at its end
};
const UnitCosts& tpu7x_unit_costs();

}  // namespace gridless::chips
