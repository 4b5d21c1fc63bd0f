// One function per pure op, declared from the op table: an op that none of the ops_*.cc files
// defines does not link. Op functions throw Fault; eval.cc is the boundary.
#pragma once

#include <string>

#include "gridless/emulate/fault.h"
#include "gridless/emulate/value.h"

namespace gridless::emulate {

#define GRIDLESS_NOT_PURE(id)
#define GRIDLESS_IF_kPure(id) RtValue id(const ir::Op& op) const;
#define GRIDLESS_IF_kAlloc GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kView GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kReadRef GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kWriteRef GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kReadWriteRef GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kDmaStart GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kDmaWait GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kSignal GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kSemWait GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kSemRead GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kControl GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kTrace GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kDelay GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kMxuState GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kPrngState GRIDLESS_NOT_PURE
#define GRIDLESS_IF_kCheck GRIDLESS_NOT_PURE

struct PureOps {
  Args args;

  // Calls the function of op.code, which must be pure.
  RtValue run(const ir::Op& op) const;

#define GRIDLESS_DECLARE(id, name, least, most, results, regions, rule, effect, ...) \
  GRIDLESS_IF_##effect(id)
  GRIDLESS_OPS(GRIDLESS_DECLARE)
#undef GRIDLESS_DECLARE
#undef GRIDLESS_IF_kPure
};

// tpu.assume_multiple promises what the compiler then relies on: what is wrong with that for `s`,
// or empty.
std::string broken_promise(const ir::Op& op, const Scalar& s);
inline constexpr const char* kPromiseHint =
    "promise only what holds for every value (pl.multiple_of, assume_multiple)";

// Products for tpu.matmul and the explicit MXU ops: acc[m, n] += sum over k of lhs[m, k] * rhs[k,
// n], all row-major f32 with k ascending and one fma per step. The same bits on every machine.
void matmul_accumulate(int64_t m, int64_t n, int64_t k, const float* lhs, const float* rhs,
                       float* acc);

}  // namespace gridless::emulate
