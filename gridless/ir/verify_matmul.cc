// The matrix unit: tpu.matmul and the explicit pushes and pops.
#include <algorithm>

#include "gridless/ir/dot_dims.h"
#include "gridless/ir/verify_ops.h"

namespace gridless::ir {
namespace {

// Whether the three lists name every dimension of an operand once.
bool covers(int64_t rank, const std::vector<int64_t>& a, const std::vector<int64_t>& b,
            const std::vector<int64_t>& c) {
  std::vector<int64_t> all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  std::ranges::sort(all);
  if (static_cast<int64_t>(all.size()) != rank) return false;
  for (int64_t i = 0; i < rank; ++i) {
    if (all[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

bool sizes_agree(Type lhs, Type rhs, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lhs.shape()[static_cast<size_t>(a[i])] != rhs.shape()[static_cast<size_t>(b[i])])
      return false;
  }
  return true;
}

}  // namespace

void OpVerifier::matmul_operands(const Op& op, Type lhs, Type rhs, Type acc) {
  const bool real = is_float(lhs.elem()) && is_float(rhs.elem());
  const bool whole = is_integer(lhs.elem()) && is_integer(rhs.elem());
  expect(
      op, real || whole, "invalid_ir",
      [&] { return fmt::format("multiplies {} by {}", lhs.str(), rhs.str()); },
      "convert the integers to bf16");
  expect(
      op, acc.elem() == (real ? Elem::kF32 : Elem::kI32), "invalid_ir",
      [&] { return fmt::format("accumulates in {}", acc.str()); },
      "the accumulator is f32 (i32 for integers); truncate afterwards");
}

void OpVerifier::TpuMatmul(const Op& op) {
  if (!vector_operands(op)) return;
  const Type lhs = op.operands[0]->type, rhs = op.operands[1]->type, acc = op.operands[2]->type;
  expect(op, acc == op.result()->type, "shape_mismatch", [&] {
    return fmt::format("the accumulator is {} and the result {}", acc.str(),
                       op.result()->type.str());
  });
  matmul_operands(op, lhs, rhs, acc);
  for (const char* name : {"transpose_lhs", "transpose_rhs"}) {
    expect(
        op, !op.bool_attr_or(name, false), "invalid_ir",
        [&] { return fmt::format("{} = true", name); },
        "say it in dimension_numbers: A * B^T contracts [1] with [1]");
  }
  const auto d = parse_dot_dims(op.text_attr("dimension_numbers"));
  if (!expect(op, d.has_value(), "invalid_ir", "dimension_numbers cannot be read",
              "A * B: #tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"))
    return;
  const std::string shapes = fmt::format("{} times {}", lhs.str(), rhs.str());
  if (!expect(op,
              covers(lhs.rank(), d->lhs_contracting, d->lhs_free, d->lhs_batch) &&
                  covers(rhs.rank(), d->rhs_contracting, d->rhs_free, d->rhs_batch),
              "invalid_ir", [&] {
                return fmt::format("the dimension numbers do not name each dimension of {} once",
                                   shapes);
              }))
    return;
  if (!expect(
          op, sizes_agree(lhs, rhs, d->lhs_contracting, d->rhs_contracting), "shape_mismatch",
          [&] {
            return fmt::format("contracting dimensions differ: {} over [{}] and [{}]", shapes,
                               fmt::join(d->lhs_contracting, ", "),
                               fmt::join(d->rhs_contracting, ", "));
          },
          "the contracted dimensions must have one size") ||
      !expect(op, sizes_agree(lhs, rhs, d->lhs_batch, d->rhs_batch), "shape_mismatch",
              [&] { return fmt::format("batch dimensions differ: {}", shapes); }))
    return;
  Shape want;
  std::vector<int64_t> seen[2];
  bool ok = true;
  for (size_t i = 0; ok && i < d->output.size(); i += 2) {
    const int64_t side = d->output[i], dim = d->output[i + 1];
    ok = (side == 0 || side == 1) && dim < (side ? rhs : lhs).rank();
    if (!ok) break;
    want.push_back((side ? rhs : lhs).shape()[static_cast<size_t>(dim)]);
    seen[side].push_back(dim);
  }
  // A batch dimension appears once, from the left operand.
  ok = ok && covers(lhs.rank(), seen[0], d->lhs_contracting, {}) &&
       covers(rhs.rank(), seen[1], d->rhs_contracting, d->rhs_batch);
  if (!expect(
          op, ok, "invalid_ir",
          [&] {
            return fmt::format("output dimensions [{}] of {}", fmt::join(d->output, ", "), shapes);
          },
          "pairs of (0 = lhs or 1 = rhs, dimension): batch and free ones, each once"))
    return;
  expect(op, want == acc.shape(), "shape_mismatch", [&] {
    return fmt::format("{} gives {}, but the accumulator is {}", shapes, shape_str(want),
                       acc.str());
  });
}

void OpVerifier::TpuMatmulPushRhs(const Op& op) {
  const Type t = op.operands[0]->type;
  integer(op, "mxu_index");
  expect(op, t.is_vector() && t.rank() == 2, "invalid_ir",
         [&] { return fmt::format("pushes a 2-D vector, not {}", t.str()); });
}

void OpVerifier::TpuMatmulAccLhs(const Op& op) {
  TpuMatmulPushRhs(op);
  integer(op, "acc");
}

void OpVerifier::TpuMatmulPop(const Op& op) {
  integer(op, "acc");
  TpuMatmulPopFifo(op);
}

void OpVerifier::TpuMatmulLhsFifo(const Op& op) { TpuMatmulPushRhs(op); }

void OpVerifier::TpuMatmulPopFifo(const Op& op) {
  const Type t = op.result()->type;
  integer(op, "mxu_index");
  expect(op, t.is_vector() && t.rank() == 2, "invalid_ir",
         [&] { return fmt::format("pops a 2-D vector, not {}", t.str()); });
}

}  // namespace gridless::ir
