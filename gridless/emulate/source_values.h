// Values of named scalar sources (ir/source.h) for a run whose vectors have none, or whose data are
// made up: from a file, or from a pattern. check, time and exec take them from here, so that the
// same seed means the same values everywhere.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridless/ir/source.h"

namespace gridless::emulate {

class SourceValues {
 public:
  // Seeds 1 to kPatterns are a pattern each, what routing and acceptance look like at their worst;
  // the others are random.
  enum class Pattern {
    kRandom,     // any value
    kLowest,     // the smallest everywhere (distinct: the smallest ones): nothing accepted
    kHighest,    // the largest
    kSame,       // one value everywhere: all rows go to one expert
    kOneGroup,   // all in one core's share of the range
    kSpread,     // one after another, as even as can be
    kEnds,       // the smallest or the largest, at random
    kTileEdges,  // multiples of 8 and 128 and their neighbours
  };
  static constexpr int kPatterns = 8;
  static SourceValues of_seed(int seed);

  struct Tensor {
    ir::Shape shape;  // the source's extents; with several groups of cores, the group in front
    std::vector<int64_t> values;
  };
  // By name of source; sources that have none stay unknown.
  static SourceValues of_tensors(std::map<std::string, Tensor> tensors);

  // What is wrong with the tensors for these sources, or empty.
  std::string problem(std::span<const ir::Source> sources, int cores) const;

  // The value at `index`, which lies in the extents, for the group of `core` among `cores`.
  std::optional<int64_t> at(const ir::Source& source, int core, int cores,
                            std::span<const int64_t> index) const;
  std::string str() const;  // "the file", "seed 2, pattern lowest"

 private:
  int seed_ = 0;  // 0: the tensors
  Pattern pattern_ = Pattern::kRandom;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace gridless::emulate
