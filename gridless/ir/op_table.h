// The op table: one row per op. Every consumer (verifier, emulator, CPU lowering, time model)
// visits this table, so an op without a consumer function does not compile (see visit.h).
//
// Columns: name in C++, MLIR name, least and most operands (-1: any number), results (-1: any
// number), regions, result rule, effect, cost class, required attributes (space separated).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gridless::ir {

// How result types follow from operands. What each rule checks stands in verify_rules.cc.
enum class Rule : uint8_t {
  kAny,  // checked by the op's own function in the verifier
  kNoResult,
  kSame,       // all operands and the result have one type
  kSameFloat,  // kSame, on f32 or bf16 (or f16/f64 in tests)
  kSameInt,    // kSame, on integers
  kCompare,    // operands of one type, result i1 of the same shape
  kSelect,     // (i1 or i1 of the shape, T, T) -> T
  kCastFloat,
  kCastInt,
  kIntToFloat,
  kFloatToInt,
  kBitcast,
  kIndexCast,
  kConstant,  // result type = type of `value`
};

// What an op does to memory and time, for the checker and the time model.
enum class Effect : uint8_t {
  kPure,
  kAlloc,
  kView,
  kReadRef,
  kWriteRef,
  kReadWriteRef,
  kDmaStart,
  kDmaWait,
  kSignal,
  kSemWait,
  kSemRead,
  kControl,
  kTrace,
  kDelay,
  kMxuState,
  kPrngState,
  kCheck,
};

// Which unit pays for it.
enum class Cost : uint8_t {
  kFree,
  kScalar,
  kVpu,
  kEup,
  kXlu,
  kMxu,
  kLoad,
  kStore,
  kDma,
  kSync,
  kControl
};

// clang-format off
#define GRIDLESS_OPS(X) \
  /* structure and control */ \
  X(BuiltinModule,   "builtin.module",   0,  0,  0, 1, kAny,      kControl, kFree, "") \
  X(FuncFunc,        "func.func",        0,  0,  0, 1, kAny,      kControl, kFree, "function_type sym_name") \
  X(FuncReturn,      "func.return",      0, -1,  0, 0, kNoResult, kControl, kFree, "") \
  X(ScfFor,          "scf.for",          3, -1, -1, 1, kAny,      kControl, kControl, "") \
  X(ScfIf,           "scf.if",           1,  1, -1, 2, kAny,      kControl, kControl, "") \
  X(ScfWhile,        "scf.while",        0, -1, -1, 2, kAny,      kControl, kControl, "") \
  X(ScfCondition,    "scf.condition",    1, -1,  0, 0, kNoResult, kControl, kFree, "") \
  X(ScfYield,        "scf.yield",        0, -1,  0, 0, kNoResult, kControl, kFree, "") \
  X(TpuRegion,       "tpu.region",       0,  0, -1, 1, kAny,      kControl, kFree, "") \
  X(TpuYield,        "tpu.yield",        0, -1,  0, 0, kNoResult, kControl, kFree, "") \
  X(CfAssert,        "cf.assert",        1,  1,  0, 0, kNoResult, kCheck,   kScalar, "msg") \
  /* memory, refs, scopes */ \
  X(MemrefAlloca,    "memref.alloca",    0,  0,  1, 0, kAny, kAlloc, kFree, "operandSegmentSizes") \
  X(TpuSemAlloc,     "tpu.sem_alloc",    0,  0,  1, 0, kAny, kAlloc, kFree, "") \
  X(TpuMemrefSlice,  "tpu.memref_slice", 1, -1,  1, 0, kAny, kView,  kScalar, "operandSegmentSizes") \
  X(TpuMemrefSqueeze,"tpu.memref_squeeze",1, 1,  1, 0, kAny, kView,  kFree, "") \
  X(TpuMemrefReshape,"tpu.memref_reshape",1, 1,  1, 0, kAny, kView,  kFree, "") \
  X(TpuMemrefBitcast,"tpu.memref_bitcast",1, 1,  1, 0, kAny, kView,  kFree, "") \
  X(TpuReinterpretCast,"tpu.reinterpret_cast",1,-1,1, 0, kAny, kView, kFree, "") \
  X(TpuEraseMemrefLayout,"tpu.erase_memref_layout",1,1,1,0, kAny, kView, kFree, "") \
  X(TpuAssumeMemrefLayout,"tpu.assume_layout",1,1,1,0, kAny, kView, kFree, "") \
  X(TpuAssumeMultiple,"tpu.assume_multiple",1,1, 1, 0, kSame, kPure, kFree, "multiple") \
  X(MemrefLoad,      "memref.load",      1, -1,  1, 0, kAny, kReadRef,  kScalar, "") \
  X(MemrefStore,     "memref.store",     2, -1,  0, 0, kAny, kWriteRef, kScalar, "") \
  X(VectorLoad,      "vector.load",      1, -1,  1, 0, kAny, kReadRef,  kLoad, "") \
  X(VectorStore,     "vector.store",     2, -1,  0, 0, kAny, kWriteRef, kStore, "") \
  X(TpuVectorLoad,   "tpu.vector_load",  1, -1,  1, 0, kAny, kReadRef,  kLoad, "operandSegmentSizes") \
  X(TpuVectorStore,  "tpu.vector_store", 2, -1,  0, 0, kAny, kWriteRef, kStore, "operandSegmentSizes strides") \
  X(TpuStridedLoad,  "tpu.strided_load", 1, -1,  1, 0, kAny, kReadRef,  kLoad, "strides") \
  X(TpuStridedStore, "tpu.strided_store",2, -1,  0, 0, kAny, kWriteRef, kStore, "strides") \
  /* DMA and semaphores */ \
  X(TpuEnqueueDma,   "tpu.enqueue_dma",  3,  7,  0, 0, kAny, kDmaStart, kDma, "operandSegmentSizes priority strict_ordering") \
  X(TpuWaitDma,      "tpu.wait_dma",     3,  7,  0, 0, kAny, kDmaWait,  kSync, "operandSegmentSizes wait_target") \
  X(TpuSemSignal,    "tpu.sem_signal",   2,  5,  0, 0, kAny, kSignal,   kSync, "operandSegmentSizes") \
  X(TpuSemWait,      "tpu.sem_wait",     2,  2,  0, 0, kAny, kSemWait,  kSync, "") \
  X(TpuSemRead,      "tpu.sem_read",     1,  1,  1, 0, kAny, kSemRead,  kSync, "") \
  X(TpuSemBarrier,   "tpu.sem_barrier",  0,  0,  1, 0, kAny, kAlloc,    kFree, "") \
  X(TpuDeviceId,     "tpu.device_id",    0,  0,  1, 0, kAny, kPure,     kScalar, "") \
  X(TpuDelay,        "tpu.delay",        1,  1,  0, 0, kNoResult, kDelay, kScalar, "") \
  X(TpuIterationBound,"tpu.iteration_bound",0,0, 1, 0, kAny, kPure,     kScalar, "dim") \
  /* MXU */ \
  X(TpuMatmul,       "tpu.matmul",       3,  3,  1, 0, kAny, kPure, kMxu, "dimension_numbers transpose_lhs transpose_lhs_hint transpose_rhs") \
  X(TpuMatmulPushRhs,"tpu.matmul_push_rhs",1,1,  0, 0, kAny, kMxuState, kMxu, "mxu_index") \
  X(TpuMatmulAccLhs, "tpu.matmul_acc_lhs",1, 1,  0, 0, kAny, kMxuState, kMxu, "mxu_index acc") \
  X(TpuMatmulPop,    "tpu.matmul_pop",   0,  0,  1, 0, kAny, kMxuState, kMxu, "mxu_index acc") \
  X(TpuMatmulLhsFifo,"tpu.matmul_lhs_fifo",1,1,  0, 0, kAny, kMxuState, kMxu, "mxu_index") \
  X(TpuMatmulPopFifo,"tpu.matmul_pop_fifo",0,0,  1, 0, kAny, kMxuState, kMxu, "mxu_index") \
  /* vectors: shape and movement */ \
  X(TpuIota,         "tpu.iota",         0,  0,  1, 0, kAny, kPure, kVpu, "dimensions") \
  X(TpuConcatenate,  "tpu.concatenate",  1, -1,  1, 0, kAny, kPure, kXlu, "dimension") \
  X(TpuDynamicRotate,"tpu.dynamic_rotate",2, 2,  1, 0, kAny, kPure, kXlu, "dimension") \
  X(TpuBitcast,      "tpu.bitcast",      1,  1,  1, 0, kAny, kPure, kFree, "") \
  X(TpuTranspose,    "tpu.transpose",    1,  1,  1, 0, kAny, kPure, kXlu, "permutation") \
  X(TpuReduceIndex,  "tpu.reduce_index", 1,  1,  1, 0, kAny, kPure, kXlu, "axis kind") \
  X(TpuDynamicGather,"tpu.dynamic_gather",2, 2,  1, 0, kAny, kPure, kXlu, "dimensions") \
  X(TpuPackElementwise,"tpu.pack_elementwise",1,-1,1,0, kAny, kPure, kVpu, "target_type") \
  X(TpuUnpackElementwise,"tpu.unpack_elementwise",1,1,1,0, kAny, kPure, kVpu, "source_type index") \
  X(TpuStochasticConvert,"tpu.stochastic_convert",2,2,1,0, kAny, kPure, kVpu, "") \
  X(TpuPrngSetSeed32,"tpu.prng_set_seed_32",1,-1,0, 0, kNoResult, kPrngState, kVpu, "") \
  X(TpuPrngRandomBits,"tpu.prng_random_bits",0,0,1, 0, kAny, kPrngState, kVpu, "") \
  X(VectorBroadcast, "vector.broadcast", 1,  1,  1, 0, kAny, kPure, kVpu, "") \
  X(VectorShapeCast, "vector.shape_cast",1,  1,  1, 0, kAny, kPure, kVpu, "") \
  X(VectorExtract,   "vector.extract",   1,  1,  1, 0, kAny, kPure, kXlu, "static_position") \
  X(VectorExtractStridedSlice,"vector.extract_strided_slice",1,1,1,0, kAny, kPure, kVpu, "offsets sizes strides") \
  X(VectorMultiReduction,"vector.multi_reduction",2,2,1,0, kAny, kPure, kXlu, "kind reduction_dims") \
  /* float arithmetic */ \
  X(ArithAddf,     "arith.addf",     2, 2, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(ArithSubf,     "arith.subf",     2, 2, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(ArithMulf,     "arith.mulf",     2, 2, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(ArithDivf,     "arith.divf",     2, 2, 1, 0, kSameFloat, kPure, kEup, "") \
  X(ArithRemf,     "arith.remf",     2, 2, 1, 0, kSameFloat, kPure, kEup, "") \
  X(ArithNegf,     "arith.negf",     1, 1, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(ArithMaximumf, "arith.maximumf", 2, 2, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(ArithMinimumf, "arith.minimumf", 2, 2, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(ArithCmpf,     "arith.cmpf",     2, 2, 1, 0, kCompare,   kPure, kVpu, "predicate") \
  X(ArithExtf,     "arith.extf",     1, 1, 1, 0, kCastFloat, kPure, kVpu, "") \
  X(ArithTruncf,   "arith.truncf",   1, 1, 1, 0, kCastFloat, kPure, kVpu, "") \
  X(ArithSitofp,   "arith.sitofp",   1, 1, 1, 0, kIntToFloat, kPure, kVpu, "") \
  X(ArithUitofp,   "arith.uitofp",   1, 1, 1, 0, kIntToFloat, kPure, kVpu, "") \
  X(ArithFptosi,   "arith.fptosi",   1, 1, 1, 0, kFloatToInt, kPure, kVpu, "") \
  X(ArithFptoui,   "arith.fptoui",   1, 1, 1, 0, kFloatToInt, kPure, kVpu, "") \
  /* integer arithmetic, on scalars and vectors */ \
  X(ArithAddi,  "arith.addi",  2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithSubi,  "arith.subi",  2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithMuli,  "arith.muli",  2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithDivsi, "arith.divsi", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithDivui, "arith.divui", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithRemsi, "arith.remsi", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithRemui, "arith.remui", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithAndi,  "arith.andi",  2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithOri,   "arith.ori",   2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithXori,  "arith.xori",  2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithShli,  "arith.shli",  2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithShrsi, "arith.shrsi", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithShrui, "arith.shrui", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithMaxsi, "arith.maxsi", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithMinsi, "arith.minsi", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithMaxui, "arith.maxui", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithMinui, "arith.minui", 2, 2, 1, 0, kSameInt, kPure, kVpu, "") \
  X(ArithCmpi,  "arith.cmpi",  2, 2, 1, 0, kCompare, kPure, kVpu, "predicate") \
  X(ArithSelect,"arith.select",3, 3, 1, 0, kSelect,  kPure, kVpu, "") \
  X(ArithExtsi, "arith.extsi", 1, 1, 1, 0, kCastInt, kPure, kVpu, "") \
  X(ArithExtui, "arith.extui", 1, 1, 1, 0, kCastInt, kPure, kVpu, "") \
  X(ArithTrunci,"arith.trunci",1, 1, 1, 0, kCastInt, kPure, kVpu, "") \
  X(ArithBitcast,"arith.bitcast",1,1, 1, 0, kBitcast, kPure, kFree, "") \
  X(ArithIndexCast,"arith.index_cast",1,1,1,0, kIndexCast, kPure, kFree, "") \
  X(ArithConstant,"arith.constant",0,0, 1, 0, kConstant, kPure, kFree, "value") \
  /* math */ \
  X(MathExp,   "math.exp",   1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathExp2,  "math.exp2",  1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathLog,   "math.log",   1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathLog2,  "math.log2",  1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathLog1p, "math.log1p", 1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathTanh,  "math.tanh",  1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathTan,   "math.tan",   1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathSin,   "math.sin",   1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathCos,   "math.cos",   1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathRsqrt, "math.rsqrt", 1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathSqrt,  "math.sqrt",  1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathErf,   "math.erf",   1, 1, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathAbsf,  "math.absf",  1, 1, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(MathFloor, "math.floor", 1, 1, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(MathCeil,  "math.ceil",  1, 1, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(MathRound, "math.round", 1, 1, 1, 0, kSameFloat, kPure, kVpu, "") \
  X(MathRoundeven,"math.roundeven",1,1,1,0, kSameFloat, kPure, kVpu, "") \
  X(MathPowf,  "math.powf",  2, 2, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathAtan2, "math.atan2", 2, 2, 1, 0, kSameFloat, kPure, kEup, "") \
  X(MathAbsi,  "math.absi",  1, 1, 1, 0, kSameInt,   kPure, kVpu, "") \
  X(MathCtlz,  "math.ctlz",  1, 1, 1, 0, kSameInt,   kPure, kVpu, "") \
  X(MathCtpop, "math.ctpop", 1, 1, 1, 0, kSameInt,   kPure, kVpu, "") \
  X(TpuLogistic,"tpu.logistic",1,1,1, 0, kSameFloat, kPure, kEup, "") \
  X(TpuReciprocal,"tpu.reciprocal",1,1,1,0, kSameFloat, kPure, kEup, "") \
  X(TpuWeird,  "tpu.weird",  1, 1, 1, 0, kAny,       kPure, kVpu, "") \
  /* tracing */ \
  X(TpuTraceStart,"tpu.trace_start",0,0,0,0, kNoResult, kTrace, kFree, "message") \
  X(TpuTraceStop, "tpu.trace_stop", 0,0,0,0, kNoResult, kTrace, kFree, "") \
  X(TpuTraceValue,"tpu.trace_value",1,1,0,0, kNoResult, kTrace, kFree, "label") \
  X(TpuLog,       "tpu.log",       0,-1,0,0, kNoResult, kTrace, kFree, "") \
  X(TpuLogBuffer, "tpu.log_buffer",1,-1,0,0, kNoResult, kTrace, kFree, "")
// clang-format on

enum class OpCode : uint8_t {
#define GRIDLESS_ENUM(id, ...) k##id,
  GRIDLESS_OPS(GRIDLESS_ENUM)
#undef GRIDLESS_ENUM
};

struct OpInfo {
  const char* name;  // "arith.addf"
  int least_operands, most_operands, results, regions;
  Rule rule;
  Effect effect;
  Cost cost;
  const char* required;  // attribute names, space separated
};

const OpInfo& info(OpCode code);
int num_op_codes();
// "arith.addf" -> its code; nothing for a name that is not in the table.
std::optional<OpCode> op_from_name(std::string_view name);

}  // namespace gridless::ir
