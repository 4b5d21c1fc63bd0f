// The value of one pure op, independent of any interpreter: what other engines call for the ops
// they have no code of their own for, and what their own code is tested against.
//
// Rounding (the contract; ir/semantics.h is the page that binds everybody):
//   arithmetic on f32     one IEEE operation, round to nearest even; denormals kept
//   on bf16, f16          computed in f32, rounded once
//   exp, log, tanh, ...   computed in double, rounded to f32 once (then to the format): the f32
//   result
//                         is correctly rounded in all but a few cases in 2^28
//   tpu.matmul            acc = fma(x_k, w_k, acc) in f32, k ascending from the accumulator's
//   value;
//                         f32 operands are rounded to bf16 first unless precision is fp32 (or
//                         bf16x3); integer operands: exact, modulo 2^32
//   multi_reduction       f32, from the accumulator on, in row-major order of the reduced indices;
//                         bf16 is accumulated in f32 and rounded once, at the end
//   float to integer      toward zero, saturating, NaN to 0
//   integers              wrap at their width; a shift by the width or more gives 0 (shrsi: the
//   sign);
//                         division by 0 is a Diagnostic, INT_MIN / -1 wraps
#pragma once

#include <expected>

#include "gridless/base/diagnostic.h"
#include "gridless/emulate/value.h"
#include "gridless/ir/module.h"

namespace gridless::emulate {

// True for the ops eval_pure computes: Effect::kPure without device_id and iteration_bound, which
// need to know the core they run on.
bool is_evaluable(ir::OpCode code);

// `args`: the operands in order. Thread-safe.
std::expected<RtValue, Diagnostic> eval_pure(const ir::Op& op, Args args);

}  // namespace gridless::emulate
