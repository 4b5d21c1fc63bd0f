#include "gridless/cpu/add_sum.h"

#include <algorithm>

namespace gridless::cpu {

void add_sum(const AddSumArgs& args) {
  constexpr int64_t kBlock = 256;  // stays in registers and L1
  float sum[kBlock];
  for (int64_t i = 0; i < args.elements; i += kBlock) {
    const int64_t n = std::min(kBlock, args.elements - i);
    const float* box = args.boxes + i;
    std::copy_n(box, n, sum);
    for (int64_t c = 1; c < args.cores; ++c) {
      box += args.elements;
      for (int64_t j = 0; j < n; ++j) sum[j] += box[j];
    }
    for (int64_t j = 0; j < n; ++j) args.x[i + j] += sum[j];
  }
}

}  // namespace gridless::cpu
