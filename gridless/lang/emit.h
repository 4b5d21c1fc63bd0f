// Private to this room: what the files that append ops share.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "gridless/lang/kernel.h"

namespace gridless::lang {

// Attributes that MLIR requires on float and on wrapping integer arithmetic.
ir::NamedAttr fastmath();
ir::NamedAttr overflow_flags();
ir::NamedAttr segments(std::vector<int64_t> sizes);

// numpy's rule; nothing when the shapes do not broadcast.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

// Brings both operands to one shape and element; reports mismatches (and then returns the first
// twice).
std::pair<Vec, Vec> unify(Vec a, const VecArg& b);

// One binary op; `on_float` for float elements, `on_int` (if there is one) for integers.
Vec binary(ir::OpCode on_float, std::optional<ir::OpCode> on_int, Vec a, const VecArg& b);
// Integers and i1 only.
Vec bitwise(ir::OpCode code, Vec a, const VecArg& b);

// The largest number that is known to divide the scalar whatever its value: 128 for i * 128, the
// constant itself for a constant (0 for 0: everything divides it), 1 when nothing is known. libtpu
// refuses a dynamic slice whose start it cannot prove to be aligned; this is the same proof,
// earlier.
int64_t known_divisor(const Scalar& s);

// Reports dimension `d` of an access that starts at `start` in a ref of `type` when the tiles of
// HBM and VMEM do not allow it. `what`: "slice", "load", "store". Accesses by the vector unit
// (loads and stores) may start anywhere at a constant; copies may not.
bool check_alignment(Kernel& k, ir::Type type, const std::vector<Scalar>& starts,
                     const Shape& sizes, bool is_copy, const char* what, Where w);

}  // namespace gridless::lang
