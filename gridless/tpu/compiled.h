// What one compilation produced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gridless/bundles/dump.h"

namespace gridless::tpu {

// Device memory of one core, bytes, as the compiler counts it (padded to tiles).
struct MemoryStats {
  int64_t code = 0;
  int64_t arguments = 0;
  int64_t results = 0;
  int64_t aliased = 0;    // results that live in arguments
  int64_t temporary = 0;  // 0 for a kernel whose operands need no copy
  int64_t peak = 0;       // 0 when the plugin does not say
};

// The kernel's schedule as libtpu dumped it, and its size. gridless/bundles explains the texts.
struct Schedule {
  bundles::Dump dump;
  // Lines of the schedule: one is one cycle, stalls included, every loop counted once. Not a run
  // time: trip counts and waits for copies are not in it.
  int64_t cycles = 0;
  int64_t bundles = 0;  // of these, the ones with an instruction
};

struct Compiled {
  std::string executable;  // serialized; loads with the same libtpu build on the same topology
  int64_t code_bytes = 0;  // generated machine code
  MemoryStats memory;
  std::map<std::string, double> cost;  // XLA's cost analysis; knows little about a custom call
  // XLA's text for each operand: how it has to lie in a device's memory. Empty when the plugin does
  // not say.
  std::vector<std::string> operand_layouts;
  double seconds = 0;
  std::optional<Schedule> schedule;  // when CompilerOptions::schedule asked for it
};

}  // namespace gridless::tpu
