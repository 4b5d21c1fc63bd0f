// Vector operations of the language as free functions. Rounding and order: ir/semantics.h.
#pragma once

#include <vector>

#include "gridless/lang/handles.h"

namespace gridless::lang {

// Constants and counters.
Vec zeros(Kernel& k, Elem e, Shape shape, Where w = Where::current());
Vec full(Kernel& k, Elem e, Shape shape, double value, Where w = Where::current());
Vec iota(Kernel& k, Shape shape, int axis, Where w = Where::current());  // i32

// Element-wise.
Vec max(Vec a, VecArg b);
Vec min(Vec a, VecArg b);
Vec neg(Vec a, Where w = Where::current());
Vec abs(Vec a, Where w = Where::current());
Vec exp(Vec a, Where w = Where::current());
Vec exp2(Vec a, Where w = Where::current());
Vec log(Vec a, Where w = Where::current());
Vec tanh(Vec a, Where w = Where::current());
Vec sin(Vec a, Where w = Where::current());
Vec cos(Vec a, Where w = Where::current());
Vec sqrt(Vec a, Where w = Where::current());
Vec rsqrt(Vec a, Where w = Where::current());
Vec round_even(Vec a, Where w = Where::current());
Vec logistic(Vec a, Where w = Where::current());  // 1 / (1 + exp(-a))
Vec where(Vec condition, VecArg then, VecArg otherwise);
Scalar where(Scalar condition, Scalar then, Scalar otherwise, Where w = Where::current());
Vec shift_left(Vec a, VecArg bits);
Vec shift_right_logical(Vec a, VecArg bits);

// Element conversions. float <-> float rounds once to nearest even; to integers truncates toward zero.
Vec cast(Vec a, Elem e, Where w = Where::current());
Vec bitcast(Vec a, Elem e, Where w = Where::current());  // second-minor dimension scales with the width ratio
Scalar cast(Scalar a, Elem e, Where w = Where::current());

// Shape.
Vec broadcast(Vec a, Shape shape, Where w = Where::current());
Vec broadcast(Scalar a, Shape shape, Where w = Where::current());
Vec reshape(Vec a, Shape shape, Where w = Where::current());
Vec slice(Vec a, const Shape& starts, const Shape& sizes, Where w = Where::current());
Vec concat(const std::vector<Vec>& parts, int axis, Where w = Where::current());
Vec transpose(Vec a, Where w = Where::current());  // swaps the two dimensions of a matrix
Vec roll(Vec a, Scalar shift, int axis, Where w = Where::current());  // as numpy.roll

// Reductions keep the reduced dimension as 1.
Vec sum(Vec a, int axis, Where w = Where::current());
Vec max_over(Vec a, int axis, Where w = Where::current());
Vec min_over(Vec a, int axis, Where w = Where::current());
Scalar extract(Vec a, const Shape& position, Where w = Where::current());  // one element

// Matrix product on the MXU: acc + a.b; bf16 (or narrower) operands, f32 accumulator.
Vec dot(Vec a, Vec b, Vec acc, Where w = Where::current());     // [M,K] x [K,N]
Vec dot_nt(Vec a, Vec b, Vec acc, Where w = Where::current());  // [M,K] x [N,K]

}  // namespace gridless::lang
