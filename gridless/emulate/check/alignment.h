// Tiles. HBM and VMEM are arrays of tiles, 128 lanes wide; where elements are narrower than 32 bits
// several rows share a word: copies take whole words, and vector accesses reach rows in groups
// of 8. The compiler refuses a place that it cannot prove to lie on a tile; a promise of the kernel
// (assume_multiple) it believes.
#pragma once

#include "gridless/emulate/check/rules.h"

namespace gridless::emulate {

// Findings of kind misaligned: parts of a ref that a copy, or a load or store at a computed place,
// touches although they do not lie on tiles. Judged by the places of this run, so what is only
// hard to prove is not accused. And promises of the kernel (assume_multiple) that do not hold.
std::vector<Finding> misaligned(const Trace& trace);

}  // namespace gridless::emulate
