// How often a loop of a listing runs, read off its exit test. Internal to structure.cc.
//
// libtpu writes a counted loop as: %iv = sphi %start, %next at the top; %next = sadd.s32 step, %iv;
// %exit = scmp.ge.s32 %next, bound; sbr.rel (!%exit) back. Constants may pass through smov and
// through spill slots.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gridless/bundles/listing.h"

namespace gridless::bundles {

struct TripCount {
  std::optional<int64_t> trips;
  std::string why_unknown;
};

class TripCounter {
 public:
  explicit TripCounter(const Listing& listing);
  TripCount count(const Instruction& branch) const;

 private:
  // The instruction that defines the value, followed through copies and spill slots; null when it
  // is not in the listing or has several.
  const Instruction* definition(int value) const;
  // An operand of the text, "12" or "%s5_s1", as a constant.
  std::optional<int64_t> constant(const std::string& operand) const;

  const Listing& listing_;
  std::map<int, int> defs_;                 // value -> instruction
  std::map<std::string, int> spill_slots_;  // "[smem:[#allocation9_spill]]" -> value; -1: several
};

}  // namespace gridless::bundles
