// Vector operations of the language as free functions. Rounding and order: ir/semantics.h.
#pragma once

#include <optional>
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
Vec erf(Vec a, Where w = Where::current());
Vec log1p(Vec a, Where w = Where::current());
Vec floor(Vec a, Where w = Where::current());
Vec ceil(Vec a, Where w = Where::current());
Vec round_even(Vec a, Where w = Where::current());
Vec pow(Vec a, VecArg b);
Vec remainder(Vec a, VecArg b);    // the sign of a, as C's % and fmod
Vec divide_ints(Vec a, VecArg b);  // toward zero; the chip has no integer divider: slow
Vec reciprocal(Vec a, bool approximate = false, Where w = Where::current());  // f32
Vec logistic(Vec a, Where w = Where::current());                              // 1 / (1 + exp(-a))
Vec where(Vec condition, VecArg then, VecArg otherwise);
Scalar where(Scalar condition, Scalar then, Scalar otherwise, Where w = Where::current());
Scalar max(Scalar a, ScalarArg b);
Scalar min(Scalar a, ScalarArg b);
Vec shift_left(Vec a, VecArg bits);
Vec shift_right_logical(Vec a, VecArg bits);
Vec shift_right(Vec a, VecArg bits);  // the sign fills in
Vec leading_zeros(Vec a, Where w = Where::current());
Vec count_ones(Vec a, Where w = Where::current());

// Element conversions. float <-> float rounds once to nearest even; to integers truncates toward
// zero.
Vec cast(Vec a, Elem e, Where w = Where::current());
Vec bitcast(Vec a, Elem e,
            Where w = Where::current());  // second-minor dimension scales with the width ratio
Scalar cast(Scalar a, Elem e, Where w = Where::current());

// Shape.
Vec broadcast(Vec a, Shape shape, Where w = Where::current());
Vec broadcast(Scalar a, Shape shape, Where w = Where::current());
Vec reshape(Vec a, Shape shape, Where w = Where::current());
Vec slice(Vec a, const Shape& starts, const Shape& sizes, Where w = Where::current());
Vec concat(const std::vector<Vec>& parts, int axis, Where w = Where::current());
Vec transpose(Vec a, Where w = Where::current());  // swaps the two dimensions of a matrix
Vec roll(Vec a, Scalar shift, int axis, Where w = Where::current());  // as numpy.roll

// out[..i..] = a[..indices[..i..]..] along `axis`; indices i32 of the shape of a. Lanes: any;
// rows: 8.
Vec gather(Vec a, Vec indices, int axis, Where w = Where::current());
// Two 32-bit vectors as one i32 vector of 16-bit pairs (floats are rounded to e), and back.
Vec pack_pairs(Vec low, Vec high, Elem e, Where w = Where::current());
Vec unpack_half(Vec pairs, int half, Elem e, Where w = Where::current());

// Reductions keep the reduced dimension as 1.
Vec sum(Vec a, int axis, Where w = Where::current());
Vec max_over(Vec a, int axis, Where w = Where::current());
Vec min_over(Vec a, int axis, Where w = Where::current());
Vec arg_max(Vec a, int axis, Where w = Where::current());  // i32; the first of equals
Vec arg_min(Vec a, int axis, Where w = Where::current());
Scalar extract(Vec a, const Shape& position, Where w = Where::current());  // one element

// Matrix product on the MXU: acc + a.b; bf16 (or narrower) operands, f32 accumulator. f32 operands
// are rounded to bf16 on the way in unless kF32 is asked for (six passes).
enum class Precision { kBf16, kF32 };
Vec dot(Vec a, Vec b, Vec acc, Precision p = Precision::kBf16,
        Where w = Where::current());  // [M,K] x [K,N]
Vec dot_nt(Vec a, Vec b, Vec acc, Precision p = Precision::kBf16,
           Where w = Where::current());  // [M,K] x [N,K]

// The MXU by hand, for kernels that overlap waits with products: push 256x256 weights into a
// staging register, multiply rows by them (`load_staged`: first make the staged weights the current
// ones), pop the sum later. Two MXUs; accumulators are 8-row units, 256 columns of M rows take M /
// 8 * 2 of them.
void mxu_push(Vec rhs, int mxu, int staging, Where w = Where::current());
void mxu_accumulate(Vec lhs, int mxu, int accumulator,
                    std::optional<int> load_staged = std::nullopt, Where w = Where::current());
Vec mxu_pop(Kernel& k, int64_t rows, int mxu, int accumulator, Where w = Where::current());

// The core's random number generator; the numbers differ from chip to chip and from the emulator's.
void seed_random(Kernel& k, Scalar seed, Where w = Where::current());
Vec random_bits(Kernel& k, Shape shape, Where w = Where::current());  // i32
Vec cast_stochastic(Vec a, Vec bits, Elem e,
                    Where w = Where::current());  // rounds up or down at random

}  // namespace gridless::lang
