// The dimension numbers of tpu.matmul, read from the attribute's text:
// #tpu.dot_dimension_numbers<[lhs contracting], [rhs contracting], [lhs free], [rhs free],
// [0 or 1, dim, ...], [lhs batch], [rhs batch]>. `output` names the result's dimensions in order as
// (operand, dimension of that operand) pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gridless::ir {

struct DotDims {
  std::vector<int64_t> lhs_contracting, rhs_contracting, lhs_free, rhs_free, output, lhs_batch,
      rhs_batch;
};

// Nothing when the text is not of that form.
std::optional<DotDims> parse_dot_dims(std::string_view attribute);

}  // namespace gridless::ir
