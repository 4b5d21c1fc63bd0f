// The rest of a core's state: explicit MXU ops, random bits, asserts, traces; and ops that
// flatten() has turned into jumps.
#include <fmt/format.h>

#include "gridless/emulate/codec.h"
#include "gridless/emulate/core_ops.h"
#include "gridless/emulate/source_run.h"

namespace gridless::emulate {

Step CoreOps::pure(const ir::Op& op) {
  if (op.code == ir::OpCode::kTpuDeviceId) {
    set(RtValue(make_int(Elem::kI32, core.id)));
  } else if (op.code == ir::OpCode::kTpuIterationBound) {
    const auto d = static_cast<size_t>(op.int_attr("dim"));
    if (d >= machine.grid_bounds.size())
      fault(op, "invalid_ir", "tpu.iteration_bound outside the grid");
    Scalar bound = make_int(Elem::kI32, machine.grid_bounds[d]);
    if (d < machine.bound_origins.size()) bound.origin = machine.bound_origins[d];
    set(RtValue(bound));
  } else if (op.code == ir::OpCode::kTpuAssumeMultiple && machine.recorder) {
    check_promise(op);
    set(*args[0]);
  } else if (machine.scalars_only) {
    const Origin origin = origin_of_operands(op);
    set(origin == Origin::kKnown ? PureOps{args}.run(op)
                                 : RtValue(unknown(op.result()->type.elem(), origin)));
  } else {
    set(PureOps{args}.run(op));
    if (machine.recorder) inherit_origin(op);
  }
  return Step::kNext;
}

void CoreOps::check_promise(const ir::Op& op) {
  const auto* s = std::get_if<Scalar>(args[0]);
  if (!s || (machine.scalars_only && s->origin != Origin::kKnown)) return;
  std::string problem = broken_promise(op, *s);
  if (problem.empty()) return;
  machine.recorder->decides(op, *s);
  machine.recorder->broken_promise(at(), std::move(problem));
}

Origin CoreOps::origin_of_operands(const ir::Op& op) const {
  const auto origin = [](const RtValue& v) {
    if (const auto* s = std::get_if<Scalar>(&v)) return s->origin;
    const auto* x = std::get_if<Vector>(&v);  // without vectors their slots are empty
    return x ? std::max(Origin::kVector, x->origin()) : Origin::kVector;
  };
  // What a known condition did not choose does not matter.
  if (op.code == ir::OpCode::kArithSelect && origin(*args[0]) == Origin::kKnown)
    return origin(*args[scalar(*args[0]).i != 0 ? 1 : 2]);
  Origin worst = Origin::kKnown;
  for (const RtValue* arg : args) worst = std::max(worst, origin(*arg));
  return worst;
}

void CoreOps::inherit_origin(const ir::Op& op) {
  RtValue& result = frame.slots[static_cast<size_t>(frame.program->results(*instr)[0])];
  const Origin origin = origin_of_operands(op);
  if (auto* s = std::get_if<Scalar>(&result)) s->origin = origin;
  if (auto* v = std::get_if<Vector>(&result); v && origin == Origin::kNotGiven)
    v->set_origin(origin);
}

// A staged operand is K x N as f32; bf16 and narrower floats are exact, f32 rounds to bf16 as in
// tpu.matmul at the default precision.
Step CoreOps::TpuMatmulPushRhs(const ir::Op& op) {
  const Vector& in = vector(*args[0]);
  const bool transpose = op.bool_attr_or("transpose", false);
  const int64_t rows = in.shape().at(0), cols = in.shape().at(1);
  Vector w(Type::vector(transpose ? Shape{cols, rows} : Shape{rows, cols}, Elem::kF32));
  w.set_origin(in.origin());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const float x = in.f()[static_cast<size_t>(r * cols + c)];
      w.mutable_f()[static_cast<size_t>(transpose ? c * rows + r : r * cols + c)] =
          in.elem() == Elem::kF32 ? round_to(Elem::kBf16, x) : x;
    }
  core.mxus[op.int_attr("mxu_index")].staged[op.int_attr_or("staging_register", 0)] = std::move(w);
  return Step::kNext;
}

namespace {
// lhs times the weights in the array, added to `out` (empty: zeros).
void mxu_multiply(const ir::Op& op, Mxu& mxu, const Vector& lhs, Mxu::Products& out) {
  if (const ir::Attr* load = op.find("load_staged_rhs")) {
    const auto it = mxu.staged.find((*load)->ints.at(0));
    if (it == mxu.staged.end())
      fault(op, "uninitialised_read",
            fmt::format("{}: nothing was pushed to staging register {}", op.info().name,
                        (*load)->ints[0]));
    mxu.weights = it->second;
  }
  const int64_t m = lhs.shape().at(0), k = lhs.shape().at(1);
  if (mxu.weights.size() == 0 || mxu.weights.shape()[0] != k)
    fault(op, "shape_mismatch",
          fmt::format("{}: {} does not match the weights in the array", op.info().name,
                      lhs.type().str()));
  const int64_t n = mxu.weights.shape()[1];
  std::vector<float> x(lhs.f().begin(), lhs.f().end());
  if (lhs.elem() == Elem::kF32) round_to(Elem::kBf16, x);
  out.sum.resize(static_cast<size_t>(m * n), 0.0f);
  matmul_accumulate(m, n, k, x.data(), mxu.weights.f().data(), out.sum.data());
  out.origin = std::max(out.origin, std::max(lhs.origin(), mxu.weights.origin()));
}

Vector as_result(const ir::Op& op, const Mxu::Products& products) {
  const std::vector<float>& sum = products.sum;
  Vector out(op.result()->type);
  out.set_origin(products.origin);
  if (sum.size() != static_cast<size_t>(out.size()))
    fault(op, "shape_mismatch",
          fmt::format("{}: {} values for {}", op.info().name, sum.size(), out.type().str()));
  std::ranges::copy(sum, out.mutable_f().begin());
  round_to(out.elem(), out.mutable_f());
  return out;
}
}  // namespace

Step CoreOps::TpuMatmulAccLhs(const ir::Op& op) {
  Mxu& mxu = core.mxus[op.int_attr("mxu_index")];
  mxu_multiply(op, mxu, vector(*args[0]), mxu.accumulators[op.int_attr("acc")]);
  return Step::kNext;
}
// Reading an accumulator empties it: the next product starts from zero.
Step CoreOps::TpuMatmulPop(const ir::Op& op) {
  auto& accumulators = core.mxus[op.int_attr("mxu_index")].accumulators;
  const auto it = accumulators.find(op.int_attr("acc"));
  if (it == accumulators.end())
    fault(op, "uninitialised_read", "tpu.matmul_pop of an accumulator that holds nothing");
  set(RtValue(as_result(op, it->second)));
  accumulators.erase(it);
  return Step::kNext;
}
Step CoreOps::TpuMatmulLhsFifo(const ir::Op& op) {
  Mxu& mxu = core.mxus[op.int_attr("mxu_index")];
  Mxu::Products products;
  mxu_multiply(op, mxu, vector(*args[0]), products);
  mxu.results.push_back(std::move(products));
  return Step::kNext;
}
Step CoreOps::TpuMatmulPopFifo(const ir::Op& op) {
  Mxu& mxu = core.mxus[op.int_attr("mxu_index")];
  if (mxu.results.empty())
    fault(op, "uninitialised_read", "tpu.matmul_pop_fifo of an empty result queue");
  set(RtValue(as_result(op, mxu.results.front())));
  mxu.results.pop_front();
  return Step::kNext;
}

// Not the chip's generator: SplitMix64 (Steele, Lea, Flood 2014) of key and counter, reproducible.
Step CoreOps::TpuPrngSetSeed32(const ir::Op&) {
  core.prng_key = 0x9e3779b97f4a7c15u;
  core.prng_origin = Origin::kKnown;
  for (size_t k = 0; k < args.size(); ++k) {
    core.prng_key = core.prng_key * 0x100000001b3u + static_cast<uint32_t>(integer(k));
    core.prng_origin = std::max(core.prng_origin, scalar(*args[k]).origin);
  }
  core.prng_count = 0;
  return Step::kNext;
}
Step CoreOps::TpuPrngRandomBits(const ir::Op& op) {
  Vector out(op.result()->type);
  if (core.prng_origin == Origin::kNotGiven) out.set_origin(core.prng_origin);
  for (int32_t& v : out.mutable_i()) {
    uint64_t z = core.prng_key + ++core.prng_count * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    v = static_cast<int32_t>(wrap(out.elem(), static_cast<int64_t>(z ^ (z >> 31))));
  }
  set(RtValue(std::move(out)));
  return Step::kNext;
}

Step CoreOps::CfAssert(const ir::Op& op) {
  if (integer(0)) return Step::kNext;
  fault(op, "assertion",
        fmt::format("assertion failed on core {}: {}", core.id, op.text_attr("msg")));
}

// A named scalar source; other regions are flattened. Operands: the value, its indices.
Step CoreOps::TpuRegion(const ir::Op& op) {
  const Shape index = indices(1, args.size());
  for (size_t k = 0; k < args.size(); ++k)
    frame.slots[static_cast<size_t>(frame.program->results(*instr)[k])] = *args[k];
  if (machine.sources) set(RtValue(machine.sources->give(op, core.id, index, scalar(*args[0]))));
  return Step::kNext;
}

// Time and traces have no values.
Step CoreOps::TpuDelay(const ir::Op&) { return Step::kNext; }
Step CoreOps::TpuTraceStart(const ir::Op&) { return Step::kNext; }
Step CoreOps::TpuTraceStop(const ir::Op&) { return Step::kNext; }
Step CoreOps::TpuTraceValue(const ir::Op&) { return Step::kNext; }
Step CoreOps::TpuLog(const ir::Op&) { return Step::kNext; }
Step CoreOps::TpuLogBuffer(const ir::Op&) { return Step::kNext; }

#define GRIDLESS_FLATTENED(id)                                         \
  Step CoreOps::id(const ir::Op& op) {                                 \
    GRIDLESS_CHECK(false, "{} is not an instruction", op.info().name); \
    return Step::kNext;                                                \
  }
GRIDLESS_FLATTENED(BuiltinModule)
GRIDLESS_FLATTENED(FuncFunc)
GRIDLESS_FLATTENED(FuncReturn)
GRIDLESS_FLATTENED(ScfFor)
GRIDLESS_FLATTENED(ScfIf)
GRIDLESS_FLATTENED(ScfWhile)
GRIDLESS_FLATTENED(ScfCondition)
GRIDLESS_FLATTENED(ScfYield)
GRIDLESS_FLATTENED(TpuYield)
#undef GRIDLESS_FLATTENED

}  // namespace gridless::emulate
