// Named scalar sources of a kernel (ir/source.h):
//
//   const Source experts{"expert", 0, 63, {layers, rows, k}, /*distinct=*/true};
//   const Scalar id = source(experts, extract(ids, {0, j}), {layer, row, j});
#pragma once

#include "gridless/ir/source.h"
#include "gridless/lang/kernel.h"

namespace gridless::lang {

using ir::Source;

// `value`, which the author says is value `at` of the source. One name has one declaration.
Scalar source(const Source& s, Scalar value, const std::vector<Scalar>& at,
              Where w = Where::current());

}  // namespace gridless::lang
