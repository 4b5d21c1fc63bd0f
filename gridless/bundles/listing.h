// Listing: one of libtpu's dumps of the code it made for a kernel, as data.
//
// A TPU core executes bundles: very long instruction words with a slot for each functional unit.
// libtpu writes two listings of them in one format (docs/bundles.md describes it):
//   packed-bundles-post-ra.txt  the schedule: one line is one cycle, `{}` is a cycle in which
//                               nothing is issued because an operand is not there yet
//   final_bundles.txt           the code: the empty cycles are gone (the hardware waits by itself),
//                               every bundle is 64 bytes of instruction memory
// Both are straight-line text with branches by address; loops are listed once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"

namespace gridless::bundles {

// What an instruction occupies. Slots per bundle are in slot_capacity().
enum class Unit {
  kNone,    // a note of the compiler: no machine instruction
  kMxu,     // loading weights into a matrix unit, pushing rows through it
  kXlu,     // lane reductions, rotations, transposes: crosses lanes
  kValu,    // element-wise vector arithmetic
  kEup,     // exp2, tanh, reciprocal, ...: issued in a VALU slot, result popped later
  kPop,     // takes a result from an MXU, XLU or EUP
  kLoad,    // vector load from VMEM
  kStore,   // vector store to VMEM, and pushes to the scalar unit
  kScalar,  // scalar arithmetic, SMEM loads and stores, branches
  kDma,     // start of a copy: a scalar slot
  kSync,    // semaphores, waits, fences: a load slot
};
inline constexpr int kUnits = 11;
std::string_view unit_name(Unit unit);  // "mxu", "xlu", ..., "none"

// Instructions of this unit that one bundle can hold. EUP instructions also take a VALU slot, DMA
// starts a scalar slot, synchronisation a load slot.
int slot_capacity(Unit unit);

// The unit of an opcode of the listing, "vmatpush1.bf16.msra.mxu0" for instance. Vector opcodes
// that are not known are VALU, others scalar.
Unit unit_of(std::string_view opcode);

// Index into Listing::places.
using Place = int;

struct Instruction {
  std::string opcode;
  Unit unit = Unit::kNone;
  int unit_index = -1;  // which MXU or XLU, when the opcode says so
  // The listing is in single-assignment form and numbers its values. An instruction without a
  // result has a number too: what it puts into a unit is popped under that number.
  int def = -1;
  std::vector<int> uses;
  int predicate = -1;  // executed only if this value is true (false, if negated)
  bool negated = false;
  int64_t target_address = -1;       // of a branch in the schedule
  int64_t target_region = -1;        // of a branch in either listing
  bool spill = false, fill = false;  // a register written to or read back from a spill slot
  std::vector<Place> places;  // the source lines it was made for; several when shared, none for
                              // what the compiler added by itself
  std::string text;           // without comments
};

struct Bundle {
  int64_t address = 0;
  // Instructions [first, last) of Listing::instructions; notes are kept among them.
  int first = 0, last = 0;
  bool empty = true;              // no machine instruction
  std::vector<int> starts, ends;  // the compiler's regions that begin or end here
};

struct Listing {
  std::vector<Bundle> bundles;
  std::vector<Instruction> instructions;
  std::vector<SourceLoc> places;  // by Place; each once
  int64_t gaps = 0;               // addresses that were left out: the file was shortened by hand

  int instruction_count(const Bundle& b) const { return b.last - b.first; }
  // The bundle at an address or the first one of a region; -1 when there is none.
  int find_address(int64_t address) const;
  int find_region(int64_t region) const;
};

// Lines that are no bundles (the legend of the control keys, remarks) are skipped. Errors name the
// line: a bundle that does not end, a file without any bundle.
Result<Listing> parse_listing(std::string_view text);

}  // namespace gridless::bundles
