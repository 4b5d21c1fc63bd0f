// The named scalar sources of one run: gives their values, and holds them to their declarations.
#pragma once

#include <map>
#include <unordered_map>

#include "gridless/emulate/source_values.h"
#include "gridless/emulate/value.h"
#include "gridless/ir/module.h"

namespace gridless::emulate {

class SourceRun {
 public:
  // `values` (must outlive the run) go before what the program computes; null: there are none.
  SourceRun(const SourceValues* values, int cores, bool scalars_only)
      : values_(values), cores_(cores), scalars_only_(scalars_only) {}

  // The scalar that source op `op` gives on `core`, where the program computed `own`. Faults: an
  // index outside of the extents (out_of_bounds); a value outside of its range, not distinct in
  // its row, or not the one that another core of the group or an earlier read has (assertion).
  Scalar give(const ir::Op& op, int core, std::span<const int64_t> index, const Scalar& own);

  // Per source that was read: "source NAME, 0 to 63: 128 values read, of this run".
  std::vector<std::string> summary() const;

 private:
  struct Known {
    ir::Source source;
    std::unordered_map<int64_t, int64_t> values;          // by group and place
    std::map<std::pair<int64_t, int64_t>, int64_t> rows;  // by row and value, its place in the row
    bool given = false;
  };
  Known& known(const ir::Op& op);
  void hold(const ir::Op& op, Known& k, int core, std::span<const int64_t> index, int64_t value);

  const SourceValues* values_;
  int cores_;
  bool scalars_only_;
  std::unordered_map<const ir::Op*, size_t> by_op_;
  std::vector<Known> all_;
};

}  // namespace gridless::emulate
