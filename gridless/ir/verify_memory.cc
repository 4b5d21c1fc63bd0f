// Refs and what loads from them and stores to them.
#include <algorithm>

#include "gridless/ir/verify_ops.h"

namespace gridless::ir {
namespace {

bool is_index(Type t) { return t.kind() == TypeKind::kIndex; }
bool is_i32_or_index(Type t) { return is_index(t) || t == Type::scalar(Elem::kI32); }
bool dynamic(const Shape& s) { return std::ranges::find(s, kDynamic) != s.end(); }

}  // namespace

bool OpVerifier::ref_operand(const Op& op, const Value* v, std::string_view what) {
  return expect(op, v->type.is_memref(), "invalid_ir",
                [&] { return fmt::format("{} must be a ref, got {}", what, v->type.str()); });
}

bool OpVerifier::i32_operand(const Op& op, const Value* v, std::string_view what) {
  return expect(op, v->type == Type::scalar(Elem::kI32), "invalid_ir",
                [&] { return fmt::format("{} must be an i32, got {}", what, v->type.str()); });
}

bool OpVerifier::same_space_and_elem(const Op& op, Type from, Type to, bool elem) {
  if (!expect(op, to.is_memref(), "invalid_ir",
              [&] { return fmt::format("gives a ref, not {}", to.str()); }))
    return false;
  return expect(
      op, from.space() == to.space() && (!elem || from.elem() == to.elem()), "invalid_ir",
      [&] { return fmt::format("a view of {} cannot be {}", from.str(), to.str()); },
      "a view keeps the memory space and the element type");
}

// A load whose value nobody uses is left over from a read-modify-write form and does no harm.
void OpVerifier::out_of_bounds(const Op& op, std::string message, std::string hint) {
  const bool dead = !op.results.empty() && !used_.contains(op.result());
  if (dead) {
    warning(op, "out_of_bounds", std::move(message), std::move(hint));
  } else {
    error(op, "out_of_bounds", std::move(message), std::move(hint));
  }
}

void OpVerifier::MemrefAlloca(const Op& op) {
  const Type t = op.result()->type;
  if (!expect(op, t.is_memref(), "invalid_ir",
              [&] { return fmt::format("allocates a ref, not {}", t.str()); }))
    return;
  expect(
      op, !dynamic(t.shape()), "invalid_ir",
      [&] { return fmt::format("scratch of dynamic shape {}", t.str()); },
      "allocate the largest shape");
  expect(
      op, t.space() == Space::kVmem || t.space() == Space::kSmem, "invalid_ir",
      [&] { return fmt::format("scratch must be in vmem or smem, got {}", t.str()); },
      "semaphores come from tpu.sem_alloc");
  expect(
      op, !is_semaphore(t.elem()), "invalid_ir",
      [&] { return fmt::format("semaphores in {}", t.str()); }, "use tpu.sem_alloc");
}

void OpVerifier::TpuSemAlloc(const Op& op) {
  const Type t = op.result()->type;
  expect(op,
         t.is_memref() && is_semaphore(t.elem()) && t.space() == Space::kSemaphore &&
             !dynamic(t.shape()),
         "invalid_ir", [&] {
           return fmt::format("allocates semaphores of static shape in semaphore_mem, not {}",
                              t.str());
         });
}

void OpVerifier::TpuMemrefSlice(const Op& op) {
  if (!ref_operand(op, op.operands[0], "the source")) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  if (!same_space_and_elem(op, from, to, true)) return;
  const std::vector<Value*> starts = op.segment(1), sizes = op.segment(2);
  const auto rank = static_cast<size_t>(from.rank());
  if (!expect(
          op, starts.size() == rank && to.rank() == from.rank(), "shape_mismatch",
          [&] {
            return fmt::format("{} starts and a result {} for {} of rank {}", starts.size(),
                               to.str(), from.str(), rank);
          },
          "one start per dimension; drop dimensions with memref_squeeze"))
    return;
  for (size_t i = 1; i < op.operands.size(); ++i) {
    if (!expect(op, is_i32_or_index(op.operands[i]->type), "invalid_ir", [&] {
          return fmt::format("starts and sizes must be i32, got {}", op.operands[i]->type.str());
        }))
      return;
  }
  const auto unknown = std::ranges::count(to.shape(), kDynamic);
  expect(
      op, unknown == static_cast<int64_t>(sizes.size()), "shape_mismatch",
      [&] { return fmt::format("{} dynamic sizes for {}", sizes.size(), to.str()); },
      "one per ? in the result");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t n = to.shape()[i], have = from.shape()[i];
    if (n == kDynamic || have == kDynamic) continue;
    // A start that is not known can only be checked when the kernel runs.
    const int64_t start = constant_of(starts[i]).value_or(0);
    if (start < 0 || n > have || start > have - n) {
      error(op, "out_of_bounds",
            fmt::format("dimension {}: {} elements from {} of {}", i, n, start, from.str()),
            fmt::format("the start can be at most {}", have - n));
    }
  }
}

void OpVerifier::TpuMemrefSqueeze(const Op& op) {
  if (!ref_operand(op, op.operands[0], "the source")) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  if (!same_space_and_elem(op, from, to, true)) return;
  // The result's dimensions in order among the source's; what is passed over must be 1.
  size_t kept = 0;
  bool ok = true;
  for (int64_t d : from.shape()) {
    if (kept < to.shape().size() && to.shape()[kept] == d) {
      ++kept;
    } else {
      ok = ok && d == 1;
    }
  }
  expect(
      op, ok && kept == to.shape().size(), "shape_mismatch",
      [&] {
        return fmt::format("{} with dimensions of 1 removed is not {}", from.str(), to.str());
      },
      "only dimensions of size 1 can be dropped");
}

void OpVerifier::TpuMemrefReshape(const Op& op) {
  if (!ref_operand(op, op.operands[0], "the source")) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  if (!same_space_and_elem(op, from, to, true)) return;
  if (dynamic(from.shape()) || dynamic(to.shape())) return;
  expect(op, from.num_elements() == to.num_elements(), "shape_mismatch", [&] {
    return fmt::format("{} has {} elements, {} has {}", from.str(), from.num_elements(), to.str(),
                       to.num_elements());
  });
}

void OpVerifier::width_scaling(const Op& op, Type from, Type to) {
  const int64_t a = bit_width(from.elem()), b = bit_width(to.elem());
  bool ok = from.rank() == to.rank() && (from.rank() >= 2 || a == b);
  for (int64_t i = 0; ok && i < from.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t x = from.shape()[d], y = to.shape()[d];
    // The second-minor dimension is packed: two bf16 rows make one i32 row.
    const bool packed = i == from.rank() - 2;
    if (x == kDynamic || y == kDynamic) {
      ok = x == y || packed;
    } else {
      ok = packed ? x * a == y * b : x == y;
    }
  }
  expect(
      op, ok, "shape_mismatch",
      [&] { return fmt::format("{} cannot be seen as {}", from.str(), to.str()); },
      "the second-last dimension grows as the elements shrink; all others stay");
}

void OpVerifier::TpuMemrefBitcast(const Op& op) {
  if (!ref_operand(op, op.operands[0], "the source")) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  if (same_space_and_elem(op, from, to, false)) width_scaling(op, from, to);
}

void OpVerifier::TpuReinterpretCast(const Op& op) {
  if (ref_operand(op, op.operands[0], "the source"))
    same_space_and_elem(op, op.operands[0]->type, op.result()->type, false);
}

void OpVerifier::TpuEraseMemrefLayout(const Op& op) {
  if (!ref_operand(op, op.operands[0], "the source")) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  if (same_space_and_elem(op, from, to, true)) same_shape(op, from, to);
}

void OpVerifier::TpuAssumeMemrefLayout(const Op& op) { TpuEraseMemrefLayout(op); }

bool OpVerifier::index_operands(const Op& op, Type ref, const std::vector<Value*>& indices) {
  if (!expect(
          op, static_cast<int64_t>(indices.size()) == ref.rank(), "shape_mismatch",
          [&] {
            return fmt::format("{} indices for {} of rank {}", indices.size(), ref.str(),
                               ref.rank());
          },
          "one index per dimension of the ref"))
    return false;
  for (const Value* v : indices) {
    if (!expect(
            op, is_index(v->type), "invalid_ir",
            [&] { return fmt::format("an index of type {}", v->type.str()); },
            "convert with arith.index_cast"))
      return false;
  }
  return true;
}

void OpVerifier::scalar_access(const Op& op, const Value* ref, size_t first_index, Type value) {
  if (!ref_operand(op, ref, "the ref")) return;
  const Type t = ref->type;
  expect(
      op, t.space() == Space::kSmem, "invalid_ir",
      [&] { return fmt::format("scalars live in smem, not in {}", t.str()); },
      "load a vector and extract from it, or copy the table to smem");
  expect(op, value.is_scalar() && value.elem() == t.elem(), "invalid_ir",
         [&] { return fmt::format("a value {} of {}", value.str(), t.str()); });
  const std::vector<Value*> indices(op.operands.begin() + static_cast<std::ptrdiff_t>(first_index),
                                    op.operands.end());
  if (!index_operands(op, t, indices)) return;
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto at = constant_of(indices[i]);
    const int64_t have = t.shape()[i];
    if (at && have != kDynamic && (*at < 0 || *at >= have))
      out_of_bounds(op, fmt::format("index {} of dimension {} of {}", *at, i, t.str()),
                    fmt::format("the last one is {}", have - 1));
  }
}

void OpVerifier::MemrefLoad(const Op& op) {
  scalar_access(op, op.operands[0], 1, op.result()->type);
}

void OpVerifier::MemrefStore(const Op& op) {
  scalar_access(op, op.operands[1], 2, op.operands[0]->type);
}

void OpVerifier::access(const Op& op, const Value* ref, const std::vector<Value*>& indices,
                        Type value, const std::vector<int64_t>& strides) {
  if (!ref_operand(op, ref, "the ref")) return;
  const Type t = ref->type;
  if (!expect(
          op, t.space() == Space::kVmem, "invalid_ir",
          [&] { return fmt::format("Expected base memref to be in VMEM, got {}", t.str()); },
          t.space() == Space::kSmem ? "smem is read by memref.load, one scalar at a time"
                                    : "copy to vmem by DMA and wait first") ||
      !expect(op, value.is_vector(), "invalid_ir",
              [&] { return fmt::format("moves vectors, not {}", value.str()); }) ||
      !expect(
          op, value.elem() == t.elem(), "invalid_ir",
          [&] { return fmt::format("a vector {} of {}", value.str(), t.str()); },
          "convert the vector; refs keep their element type") ||
      !index_operands(op, t, indices))
    return;
  // A vector of lower rank has leading dimensions of 1.
  if (!expect(
          op, value.rank() <= t.rank(), "shape_mismatch",
          [&] {
            return fmt::format("a vector {} of {} of rank {}", value.str(), t.str(), t.rank());
          },
          "use vector.shape_cast"))
    return;
  const auto missing = static_cast<size_t>(t.rank() - value.rank());
  if (!expect(op, strides.empty() || static_cast<int64_t>(strides.size()) == t.rank(),
              "shape_mismatch", [&] {
                return fmt::format("{} strides for {} of rank {}", strides.size(), t.str(),
                                   t.rank());
              }))
    return;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t stride = strides.empty() ? 1 : strides[i];
    if (!expect(
            op, stride >= 1 && stride <= INT32_MAX, "invalid_ir",
            [&] { return fmt::format("stride {}", stride); }, "strides count from 1"))
      return;
    const int64_t n = i < missing ? 1 : value.shape()[i - missing];
    const int64_t have = t.shape()[i];
    if (have == kDynamic || n == 0) continue;
    const int64_t start = constant_of(indices[i]).value_or(0);
    const bool fits = n <= have && n - 1 <= (have - 1) / stride;
    if (!fits || start < 0 || start > have - ((n - 1) * stride + 1)) {
      out_of_bounds(
          op,
          fmt::format("dimension {}: {} elements{} from {} of {}", i, n,
                      stride > 1 ? fmt::format(" at stride {}", stride) : "", start, t.str()),
          "the vector must lie inside the ref");
    }
  }
}

void OpVerifier::VectorLoad(const Op& op) {
  access(op, op.operands[0], {op.operands.begin() + 1, op.operands.end()}, op.result()->type, {});
}

void OpVerifier::VectorStore(const Op& op) {
  access(op, op.operands[1], {op.operands.begin() + 2, op.operands.end()}, op.operands[0]->type,
         {});
}

void OpVerifier::TpuVectorLoad(const Op& op) {
  std::vector<int64_t> strides;
  if (op.find("strides")) strides = ints(op, "strides").value_or(strides);
  access(op, op.operands[0], op.segment(1), op.result()->type, strides);
  for (const Value* mask : op.segment(2)) {
    expect(op, mask->type.is_vector() && mask->type.elem() == Elem::kI1, "invalid_ir",
           [&] { return fmt::format("the mask must be an i1 vector, got {}", mask->type.str()); });
    same_shape(op, mask->type, op.result()->type);
  }
}

void OpVerifier::TpuVectorStore(const Op& op) {
  const Type value = op.operands[0]->type;
  access(op, op.operands[1], op.segment(2), value,
         ints(op, "strides").value_or(std::vector<int64_t>()));
  for (const Value* mask : op.segment(3)) {
    expect(op, mask->type.is_vector() && mask->type.elem() == Elem::kI1, "invalid_ir",
           [&] { return fmt::format("the mask must be an i1 vector, got {}", mask->type.str()); });
    same_shape(op, mask->type, value);
    expect(
        op, bit_width(value.elem()) == 32, "invalid_ir",
        [&] { return fmt::format("a masked store of {}", value.str()); },
        "only 32-bit elements can be stored under a mask: load, select and store all");
  }
}

void OpVerifier::TpuStridedLoad(const Op& op) {
  access(op, op.operands[0], {op.operands.begin() + 1, op.operands.end()}, op.result()->type,
         ints(op, "strides").value_or(std::vector<int64_t>()));
}

void OpVerifier::TpuStridedStore(const Op& op) {
  access(op, op.operands[1], {op.operands.begin() + 2, op.operands.end()}, op.operands[0]->type,
         ints(op, "strides").value_or(std::vector<int64_t>()));
}

}  // namespace gridless::ir
