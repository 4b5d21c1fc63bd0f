// verify(): everything the op table and the ops' own rules require. The messages name the place
// that built the op (the C++ line of the kernel, or the line of the parsed file), what is wrong
// with which shapes, and a hint. An empty list means that every consumer may rely on the rules.
#pragma once

#include "gridless/base/diagnostic.h"
#include "gridless/ir/module.h"

namespace gridless::ir {

Diagnostics verify(const Module& module);

}  // namespace gridless::ir
