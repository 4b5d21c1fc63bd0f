// The sum of an all-reduce (composite add_sum). Plain loops: it moves a few kilobytes, so one
// version serves all instruction sets.
#pragma once

#include <cstdint>

namespace gridless::cpu {

struct AddSumArgs {
  float* x = nullptr;            // [elements]
  const float* boxes = nullptr;  // [cores, elements]
  int64_t elements = 0;
  int64_t cores = 0;
};

// x = x + (((boxes[0] + boxes[1]) + boxes[2]) + ...).
void add_sum(const AddSumArgs& args);

}  // namespace gridless::cpu
