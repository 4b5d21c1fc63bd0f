// Allocation, views, loads and stores.
#include <fmt/format.h>

#include "gridless/emulate/codec.h"
#include "gridless/emulate/core_ops.h"

namespace gridless::emulate {

std::vector<size_t> segments(const ir::Op& op) {
  std::vector<size_t> begins{0};
  for (int64_t n : op.ints_attr("operandSegmentSizes"))
    begins.push_back(begins.back() + static_cast<size_t>(n));
  return begins;
}

Shape CoreOps::indices(size_t begin, size_t end) const {
  Shape out;
  for (size_t k = begin; k < end; ++k) out.push_back(integer(k));
  return out;
}

void CoreOps::check_block(const ir::Op& op, const View& v, const Shape& starts, const Shape& sizes,
                          const Shape& steps) const {
  if (starts.size() != v.shape.size() || sizes.size() != v.shape.size()) {
    fault(op, "shape_mismatch",
          fmt::format("{}: {} indices for a ref of rank {}", op.info().name, starts.size(),
                      v.shape.size()));
  }
  const std::string problem = outside(v, starts, sizes, steps);
  if (problem.empty()) return;
  fault(op, "out_of_bounds",
        fmt::format("{} on core {}: {} ({})", op.info().name, core.id, problem, v.str()),
        "check the index against the ref's shape before using it");
}

void CoreOps::check_writable(const ir::Op& op, const View& v) const {
  if (!v.buffer->read_only) return;
  fault(op, "invalid_ir", fmt::format("{} writes to {}, an input", op.info().name, v.buffer->name),
        "alias the input to an output, or copy it to scratch");
}

void CoreOps::check_size(const ir::Op& op, const Shape& sizes) const {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t elements = 1;
  for (const int64_t n : sizes) {
    if (n < 0 || (n > 0 && elements > kMost / n))
      fault(op, "out_of_bounds",
            fmt::format("{} on core {}: no wait is for {} elements", op.info().name, core.id,
                        ir::shape_str(sizes)),
            "check the size that is waited for");
    elements *= n;
  }
}

Step CoreOps::view_or_fault(const ir::Op& op, std::string problem, View v) {
  if (!problem.empty()) fault(op, "shape_mismatch", fmt::format("{}: {}", op.info().name, problem));
  set(std::move(v));
  return Step::kNext;
}

Step CoreOps::MemrefAlloca(const ir::Op&) {
  if (machine.recorder) machine.recorder->allocate(at());
  if (machine.gate)
    machine.gate->pass(
        core, {.kind = Event::Kind::kAllocate, .op = instr->op, .first_site = instr->target});
  set(whole(core.buffers[static_cast<size_t>(instr->target)]));
  return Step::kNext;
}
Step CoreOps::TpuSemAlloc(const ir::Op& op) { return MemrefAlloca(op); }
Step CoreOps::TpuSemBarrier(const ir::Op&) {
  set(whole(core.buffers[static_cast<size_t>(machine.barrier_site)]));
  return Step::kNext;
}

Step CoreOps::TpuMemrefSlice(const ir::Op& op) {
  const auto begins = segments(op);
  const View& v = ref(0);
  const Shape starts = indices(begins[1], begins[2]);
  Shape sizes = op.result()->type.shape();
  size_t next = begins[2];
  for (int64_t& s : sizes)
    if (s == ir::kDynamic) s = integer(next++);
  if (instr->target == Instr::kSizeOnly) {
    check_size(op, sizes);
  } else {
    check_block(op, v, starts, sizes, {});
  }
  set(slice(v, starts, sizes));
  return Step::kNext;
}

// A result shape may repeat the dynamic sizes of the ref it comes from.
Step CoreOps::TpuMemrefSqueeze(const ir::Op& op) {
  Shape shape = op.result()->type.shape();
  const View& v = ref(0);
  size_t from = 0;
  for (int64_t& s : shape) {
    while (from < v.shape.size() && s != ir::kDynamic && v.shape[from] != s) ++from;
    if (s == ir::kDynamic) {
      const Shape& declared = op.operands[0]->type.shape();
      while (from < v.shape.size() && declared[from] != ir::kDynamic) ++from;
      if (from < v.shape.size()) s = v.shape[from];
    }
    ++from;
  }
  View out;
  std::string problem = squeeze(v, shape, out);
  return view_or_fault(op, std::move(problem), std::move(out));
}
Step CoreOps::TpuMemrefReshape(const ir::Op& op) {
  View out;
  std::string problem = reshape(ref(0), op.result()->type.shape(), out);
  return view_or_fault(op, std::move(problem), std::move(out));
}
Step CoreOps::TpuMemrefBitcast(const ir::Op& op) {
  View out;
  const Type type = op.result()->type;
  std::string problem = bitcast(ref(0), type.elem(), type.shape(), out);
  return view_or_fault(op, std::move(problem), std::move(out));
}
// The same bytes under another shape: a reshape when the element count stays, else a window on the
// start of a contiguous ref.
Step CoreOps::TpuReinterpretCast(const ir::Op& op) {
  const View& v = ref(0);
  const Type type = op.result()->type;
  View out = v;
  if (type.elem() != v.elem) return TpuMemrefBitcast(op);
  if (type.num_elements() == v.num_elements()) return TpuMemrefReshape(op);
  if (!v.contiguous() || type.num_elements() > v.num_elements())
    return view_or_fault(op, "the result does not lie in the ref", {});
  out.shape = type.shape();
  out.stride = row_major(type.shape());
  return view_or_fault(op, {}, std::move(out));
}
Step CoreOps::TpuEraseMemrefLayout(const ir::Op&) {
  set(*args[0]);
  return Step::kNext;
}
Step CoreOps::TpuAssumeMemrefLayout(const ir::Op&) {
  set(*args[0]);
  return Step::kNext;
}

Step CoreOps::MemrefLoad(const ir::Op& op) {
  const View& v = ref(0);
  const Shape index = indices(1, args.size());
  const Shape ones(index.size(), 1);
  if (lenient(v, index, ones, {}, false)) {
    set(RtValue(read_or_garbage(v, index)));
    return Step::kNext;
  }
  check_block(op, v, index, ones, {});
  if (held_access(Event::Kind::kLoad, op, v, index, ones, {})) return Step::kHeld;
  Scalar s = v.buffer->absent ? unknown(v.elem, Origin::kKnown) : read_scalar(v, index);
  if (machine.recorder) {
    s.origin = machine.recorder->load(at(), v, region_of(v, index, ones, {}), false);
  } else if (machine.scalars_only) {
    s.origin = inspect(*v.buffer, region_of(v, index, ones, {})).origin;
  }
  if (machine.scalars_only && s.origin != Origin::kKnown) s = unknown(s.elem, s.origin);
  set(RtValue(s));
  return Step::kNext;
}
Step CoreOps::MemrefStore(const ir::Op& op) {
  const View& v = ref(1);
  const Shape index = indices(2, args.size());
  const Shape ones(index.size(), 1);
  check_block(op, v, index, ones, {});
  check_writable(op, v);
  if (held_access(Event::Kind::kStore, op, v, index, ones, {})) return Step::kHeld;
  const Scalar& s = scalar(*args[0]);
  if (!v.buffer->absent) write_scalar(v, index, s);
  if (machine.recorder)
    machine.recorder->store(at(), v, region_of(v, index, ones, {}), content_of(s.origin), {});
  else if (machine.scalars_only)
    mark(*v.buffer, region_of(v, index, ones, {}), content_of(s.origin));
  return Step::kNext;
}

std::optional<Origin> CoreOps::lenient(const View& v, const Shape& starts, const Shape& sizes,
                                       const Shape& steps, bool masked) {
  if (!machine.recorder || starts.size() != v.shape.size() || sizes.size() != v.shape.size())
    return std::nullopt;
  std::string problem = outside(v, starts, sizes, steps);
  if (problem.empty()) return std::nullopt;
  machine.recorder->out_of_bounds_load(at(), v, std::move(problem));
  Shape first = starts, count = sizes;
  if (!clip(v, first, count, steps)) return Origin::kKnown;
  held_access(Event::Kind::kLoad, *instr->op, v, first, count, steps);  // there is no gate
  return machine.recorder->load(at(), v, region_of(v, first, count, steps), masked);
}

Scalar CoreOps::read_or_garbage(const View& v, const Shape& place) const {
  if (outside(v, place, Shape(place.size(), 1), {}).empty()) return read_scalar(v, place);
  const uint32_t bits = fill_bits(v.elem, machine.out_of_bounds);
  if (ir::is_float(v.elem)) return make_float(v.elem, float_from_bits(v.elem, bits));
  return make_int(v.elem, wrap(v.elem, bits));
}

namespace {
// Sizes of the block that a vector of `shape` covers in a ref of `rank` dimensions.
Shape block_sizes(const Shape& shape, size_t rank) {
  if (shape.size() > rank) return shape;
  Shape sizes(rank - shape.size(), 1);
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return sizes;
}
Shape steps_of(const ir::Op& op) {
  const ir::Attr* a = op.find("strides");
  return a ? (*a)->ints : Shape();
}
}  // namespace

Step CoreOps::load(const ir::Op& op, const View& v, Shape starts, Shape steps,
                   const RtValue* mask) {
  const bool masked = mask != nullptr;
  const Type type = op.result()->type;
  const Shape sizes = block_sizes(type.shape(), v.shape.size());
  if (machine.scalars_only) {
    if (lenient(v, starts, sizes, steps, masked)) return Step::kNext;
    check_block(op, v, starts, sizes, steps);
    ++core.events;
    if (machine.recorder)
      machine.recorder->load(at(), v, region_of(v, starts, sizes, steps), masked);
    return Step::kNext;
  }
  if (const auto origin = lenient(v, starts, sizes, steps, masked)) {
    Vector out(type);
    inherit(out, *origin, mask);
    Shape index(sizes.size(), 0);
    for (size_t k = 0; k < static_cast<size_t>(out.size()); ++k) {
      Shape place = starts;
      for (size_t d = 0; d < place.size(); ++d)
        place[d] += index[d] * (steps.empty() ? 1 : steps[d]);
      const Scalar s = read_or_garbage(v, place);
      if (out.is_float()) {
        out.mutable_f()[k] = s.f;
      } else {
        out.mutable_i()[k] = static_cast<int32_t>(s.i);
      }
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < sizes[d]) break;
        index[d] = 0;
      }
    }
    set(RtValue(std::move(out)));
    return Step::kNext;
  }
  check_block(op, v, starts, sizes, steps);
  if (held_access(Event::Kind::kLoad, op, v, starts, sizes, steps)) return Step::kHeld;
  Vector out = read_vector(v, starts, steps, type);
  if (machine.recorder)
    inherit(out, machine.recorder->load(at(), v, region_of(v, starts, sizes, steps), masked), mask);
  if (masked) {  // lanes that are off read as zero
    const auto on = vector(*mask).i();
    for (size_t k = 0; k < on.size(); ++k) {
      if (on[k]) continue;
      if (out.is_float()) {
        out.mutable_f()[k] = 0;
      } else {
        out.mutable_i()[k] = 0;
      }
    }
  }
  set(RtValue(std::move(out)));
  return Step::kNext;
}

// What is loaded from there, where `mask` has its say.
void CoreOps::inherit(Vector& out, Origin loaded, const RtValue* mask) {
  if (loaded == Origin::kNotGiven || (mask && made_up(*mask))) out.set_origin(Origin::kNotGiven);
}

// on: the elements of the mask, or empty for all.
void CoreOps::record_store(const View& v, const Region& region, const RtValue* mask,
                           std::span<const int32_t> on, bool add) {
  Content content = made_up(*args[0]) ? Content::kNotGiven : Content::kVector;
  if (add && machine.recorder->load(at(), v, region, mask != nullptr) == Origin::kNotGiven)
    content = Content::kNotGiven;
  if (mask && made_up(*mask)) {
    spoil(*v.buffer, region);
    content = Content::kNotGiven;
  }
  machine.recorder->store(at(), v, region, content, on);
}

Step CoreOps::store(const ir::Op& op, const View& v, Shape starts, Shape steps, const RtValue* mask,
                    bool add) {
  const Shape sizes = block_sizes(op.operands[0]->type.shape(), v.shape.size());
  check_block(op, v, starts, sizes, steps);
  check_writable(op, v);
  if (held_access(Event::Kind::kStore, op, v, starts, sizes, steps)) return Step::kHeld;
  // Under scalars only nobody knows the mask: any of the elements may be written.
  const auto on = mask && !machine.scalars_only ? vector(*mask).i() : std::span<const int32_t>();
  if (machine.recorder) {
    record_store(v, region_of(v, starts, sizes, steps), mask, on, add);
  } else if (machine.scalars_only && v.buffer->contents) {
    mark(*v.buffer, region_of(v, starts, sizes, steps), Content::kVector);
  }
  if (machine.scalars_only) return Step::kNext;
  const Vector& value = vector(*args[0]);
  if (!add) {
    write_vector(v, starts, steps, value, on);
    return Step::kNext;
  }
  Vector sum = read_vector(v, starts, steps, value.type());
  for (size_t k = 0; k < static_cast<size_t>(sum.size()); ++k) {
    if (sum.is_float()) {
      sum.mutable_f()[k] = round_to(sum.elem(), sum.f()[k] + value.f()[k]);
    } else {
      sum.mutable_i()[k] =
          static_cast<int32_t>(wrap(sum.elem(), int64_t{sum.i()[k]} + value.i()[k]));
    }
  }
  write_vector(v, starts, steps, sum, on);
  return Step::kNext;
}

Step CoreOps::VectorLoad(const ir::Op& op) {
  return load(op, ref(0), indices(1, args.size()), {}, nullptr);
}
Step CoreOps::VectorStore(const ir::Op& op) {
  return store(op, ref(1), indices(2, args.size()), {}, nullptr, false);
}
Step CoreOps::TpuVectorLoad(const ir::Op& op) {
  const auto at = segments(op);
  const RtValue* mask = at.size() > 3 && at[3] > at[2] ? args[at[2]] : nullptr;
  return load(op, ref(0), indices(at[1], at[2]), steps_of(op), mask);
}
Step CoreOps::TpuVectorStore(const ir::Op& op) {
  const auto at = segments(op);
  const RtValue* mask = at.size() > 4 && at[4] > at[3] ? args[at[3]] : nullptr;
  return store(op, ref(1), indices(at[2], at[3]), steps_of(op), mask,
               op.bool_attr_or("add", false));
}
Step CoreOps::TpuStridedLoad(const ir::Op& op) {
  return load(op, ref(0), indices(1, args.size()), steps_of(op), nullptr);
}
Step CoreOps::TpuStridedStore(const ir::Op& op) {
  return store(op, ref(1), indices(2, args.size()), steps_of(op), nullptr, false);
}

}  // namespace gridless::emulate
