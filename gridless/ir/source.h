// Named scalar sources: scalars that a kernel reads from vector data - an expert's id, an accepted
// count, an argmax, a page - with what their author knows of them. A run without vector data
// (emulate/scalars_only.h) takes their values from a file or a pattern; a run with values holds the
// data to the declaration.
//
// A source is a tpu.region with the attribute gridless.source = "name" (libtpu ignores it) and
// nothing inside but its tpu.yield: results and yielded values are the scalar, then its indices
// into the source, all i32. Further attributes:
//   gridless.range    = array<i64: lo, hi>   both ends belong to it
//   gridless.extents  = array<i64: ...>      of the indices
//   gridless.distinct                        unit: values that differ in the last index only differ
//   gridless.alike    = n : i64              groups of n cores in a row have the same values; 0:
//   all
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::ir {

inline constexpr std::string_view kSourceAttr = "gridless.source";

struct Source {
  std::string name;
  int64_t lo = 0, hi = 0;
  Shape extents = {};     // empty: one value
  bool distinct = false;  // along the last index
  int64_t alike = 0;  // cores that share their values: groups of so many in a row; 0: all of them

  int64_t num_values() const;
  // The group of a core.
  int64_t group(int core) const { return alike == 0 ? 0 : core / alike; }
  int64_t groups(int cores) const { return alike == 0 ? 1 : (cores + alike - 1) / alike; }
  bool operator==(const Source&) const = default;
};

// What is wrong with a declaration, or empty.
std::string problem(const Source& source);

bool is_source(const Op& op);
// Of an op that the verifier has passed.
Source source_of(const Op& op);
std::vector<NamedAttr> attributes(const Source& source);

// All sources of a module, each once, in the order of the program.
std::vector<Source> sources(const Module& module);

}  // namespace gridless::ir
