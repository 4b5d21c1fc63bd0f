// The result rules of the op table, and the helpers that all rules share.
#include <algorithm>

#include "gridless/ir/text.h"
#include "gridless/ir/verify_ops.h"

namespace gridless::ir {
namespace {

// What arithmetic computes in. The 8- and 4-bit floats only exist in memory and at the MXU.
bool computes(Elem e) {
  return e == Elem::kF32 || e == Elem::kBf16 || e == Elem::kF16 || e == Elem::kF64;
}

bool is_data(Type t) { return t.is_scalar() || t.is_vector(); }
bool floats(Type t) { return is_data(t) && is_float(t.elem()); }
bool integers(Type t) { return is_data(t) && is_integer(t.elem()); }

// Scalars of one kind or vectors of one shape.
bool alike(Type a, Type b) { return a.is_vector() == b.is_vector() && a.shape() == b.shape(); }

}  // namespace

OpVerifier::OpVerifier(const Module& module, Diagnostics& out) : module_(module), out_(out) {
  walk(*module.top, [&](const Op& op) { used_.insert(op.operands.begin(), op.operands.end()); });
}

void OpVerifier::error(const Op& op, std::string kind, std::string message, std::string hint) {
  out_.push_back({.kind = std::move(kind),
                  .message = fmt::format("{}: {}", op.info().name, message),
                  .where = op.loc,
                  .hint = std::move(hint)});
}

void OpVerifier::warning(const Op& op, std::string kind, std::string message, std::string hint) {
  error(op, std::move(kind), std::move(message), std::move(hint));
  out_.back().severity = Diagnostic::Severity::kWarning;
}

bool OpVerifier::same_shape(const Op& op, Type a, Type b) {
  return expect(
      op, alike(a, b), "shape_mismatch",
      [&] { return fmt::format("shapes differ: {} and {}", a.str(), b.str()); },
      "broadcast or shape_cast one of them to the other's shape");
}

bool OpVerifier::vector_operands(const Op& op) {
  for (const Value* v : op.operands) {
    if (!expect(
            op, v->type.is_vector(), "invalid_ir",
            [&] { return fmt::format("needs vectors, got {}", v->type.str()); },
            "broadcast a scalar to a vector first"))
      return false;
  }
  for (const auto& r : op.results) {
    if (!expect(op, r->type.is_vector(), "invalid_ir",
                [&] { return fmt::format("gives a vector, not {}", r->type.str()); }))
      return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> OpVerifier::ints(const Op& op, std::string_view name) {
  const Attr* a = op.find(name);
  if (a && a->kind() == AttrKind::kDenseArray && !is_float((*a)->elem)) return (*a)->ints;
  error(op, "invalid_ir", fmt::format("'{}' must be array<iN: ...>", name));
  return std::nullopt;
}

std::optional<int64_t> OpVerifier::integer(const Op& op, std::string_view name) {
  const Attr* a = op.find(name);
  if (a && a->kind() == AttrKind::kInt) return (*a)->ints[0];
  error(op, "invalid_ir", fmt::format("'{}' must be an integer", name));
  return std::nullopt;
}

std::optional<int64_t> OpVerifier::dimension(const Op& op, std::string_view name, int64_t rank) {
  const auto d = integer(op, name);
  if (!d) return d;
  if (*d >= 0 && *d < rank) return d;
  error(op, "invalid_ir", fmt::format("{} {} of a vector of rank {}", name, *d, rank),
        "dimensions count from 0");
  return std::nullopt;
}

bool OpVerifier::dimensions(const Op& op, const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> sorted = dims;
  std::ranges::sort(sorted);
  const bool distinct = std::ranges::adjacent_find(sorted) == sorted.end();
  const bool inside = sorted.empty() || (sorted.front() >= 0 && sorted.back() < rank);
  return expect(
      op, distinct && inside, "invalid_ir",
      [&] {
        return fmt::format("dimensions [{}] of a vector of rank {}", fmt::join(dims, ", "), rank);
      },
      "each dimension once, counted from 0");
}

void OpVerifier::rule_same(const Op& op) {
  for (const Value* v : op.operands) {
    if (v->type == op.result()->type) continue;
    const bool shapes =
        is_data(v->type) && is_data(op.result()->type) && !alike(v->type, op.result()->type);
    error(op, shapes ? "shape_mismatch" : "invalid_ir",
          fmt::format("operands and result must have one type, got {} and {}", v->type.str(),
                      op.result()->type.str()),
          shapes ? "broadcast the smaller one" : "convert one of them");
    return;
  }
}

void OpVerifier::rule_same_float(const Op& op) {
  const Type t = op.result()->type;
  if (!expect(
          op, floats(t) && computes(t.elem()), "invalid_ir",
          [&] { return fmt::format("computes in f32 or bf16, not {}", t.str()); },
          "extend or convert the operands to f32 first"))
    return;
  rule_same(op);
}

void OpVerifier::rule_same_int(const Op& op) {
  const Type t = op.result()->type;
  if (expect(
          op, integers(t), "invalid_ir",
          [&] { return fmt::format("computes on integers, not {}", t.str()); },
          "use the float op (arith.addf for arith.addi) or convert"))
    rule_same(op);
}

void OpVerifier::rule_compare(const Op& op) {
  const Type a = op.operands[0]->type, b = op.operands[1]->type, r = op.result()->type;
  const bool real = op.code == OpCode::kArithCmpf;
  if (!expect(
          op, a == b, alike(a, b) ? "invalid_ir" : "shape_mismatch",
          [&] { return fmt::format("compares {} with {}", a.str(), b.str()); },
          "convert or broadcast one"))
    return;
  expect(
      op, real ? floats(a) : integers(a), "invalid_ir",
      [&] { return fmt::format("cannot compare {}", a.str()); },
      "cmpf compares floats, cmpi integers");
  expect(op, is_data(r) && r.elem() == Elem::kI1 && alike(a, r), "shape_mismatch", [&] {
    return fmt::format("the result must be i1 of the operands' shape, got {} for {}", r.str(),
                       a.str());
  });
  const int64_t most = real ? 15 : 9;
  if (const auto p = integer(op, "predicate")) {
    expect(op, *p >= 0 && *p <= most, "invalid_ir",
           [&] { return fmt::format("predicate {} is not one of 0 to {}", *p, most); });
  }
}

void OpVerifier::rule_select(const Op& op) {
  const Type c = op.operands[0]->type, a = op.operands[1]->type, b = op.operands[2]->type;
  const Type r = op.result()->type;
  expect(
      op, a == b && a == r, "shape_mismatch",
      [&] {
        return fmt::format("chooses between {} and {} to give {}", a.str(), b.str(), r.str());
      },
      "both alternatives and the result have one type");
  const bool mask = is_data(c) && c.elem() == Elem::kI1 && (!c.is_vector() || alike(c, r));
  expect(op, mask, "shape_mismatch", [&] {
    return fmt::format("the condition {} is neither i1 nor an i1 vector of the shape of {}",
                       c.str(), r.str());
  });
}

void OpVerifier::rule_cast_float(const Op& op) {
  const Type a = op.operands[0]->type, r = op.result()->type;
  const bool widen = op.code == OpCode::kArithExtf;
  if (!expect(op, floats(a) && floats(r), "invalid_ir",
              [&] { return fmt::format("converts floats, not {} to {}", a.str(), r.str()); }) ||
      !same_shape(op, a, r))
    return;
  const int from = bit_width(a.elem()), to = bit_width(r.elem());
  expect(
      op, widen ? to > from : to < from, "invalid_ir",
      [&] {
        return fmt::format("{} to {} is not {}", a.str(), r.str(), widen ? "wider" : "narrower");
      },
      widen ? "use arith.truncf" : "use arith.extf");
}

void OpVerifier::rule_cast_int(const Op& op) {
  const Type a = op.operands[0]->type, r = op.result()->type;
  const bool widen = op.code != OpCode::kArithTrunci;
  const auto proper = [](Type t) { return integers(t) && t.elem() != Elem::kIndex; };
  if (!expect(
          op, proper(a) && proper(r), "invalid_ir",
          [&] { return fmt::format("converts integers, not {} to {}", a.str(), r.str()); },
          "use arith.index_cast for index") ||
      !same_shape(op, a, r))
    return;
  const int from = bit_width(a.elem()), to = bit_width(r.elem());
  expect(op, widen ? to > from : to < from, "invalid_ir", [&] {
    return fmt::format("{} to {} is not {}", a.str(), r.str(), widen ? "wider" : "narrower");
  });
}

void OpVerifier::rule_int_to_float(const Op& op) {
  const Type a = op.operands[0]->type, r = op.result()->type;
  if (expect(op, integers(a) && floats(r), "invalid_ir", [&] {
        return fmt::format("converts an integer to a float, not {} to {}", a.str(), r.str());
      }))
    same_shape(op, a, r);
}

void OpVerifier::rule_float_to_int(const Op& op) {
  const Type a = op.operands[0]->type, r = op.result()->type;
  if (expect(op, floats(a) && integers(r), "invalid_ir", [&] {
        return fmt::format("converts a float to an integer, not {} to {}", a.str(), r.str());
      }))
    same_shape(op, a, r);
}

void OpVerifier::rule_bitcast(const Op& op) {
  const Type a = op.operands[0]->type, r = op.result()->type;
  if (!expect(op, is_data(a) && is_data(r), "invalid_ir",
              [&] { return fmt::format("cannot reinterpret {} as {}", a.str(), r.str()); }) ||
      !same_shape(op, a, r))
    return;
  expect(
      op, bit_width(a.elem()) == bit_width(r.elem()), "invalid_ir",
      [&] { return fmt::format("{} and {} have different widths", a.str(), r.str()); },
      "tpu.bitcast changes the width together with the shape");
}

void OpVerifier::rule_index_cast(const Op& op) {
  const Type a = op.operands[0]->type, r = op.result()->type;
  const bool ok =
      integers(a) && integers(r) && (a.elem() == Elem::kIndex) != (r.elem() == Elem::kIndex);
  if (expect(op, ok, "invalid_ir", [&] {
        return fmt::format("converts between index and an integer, not {} to {}", a.str(), r.str());
      }))
    same_shape(op, a, r);
}

void OpVerifier::rule_constant(const Op& op) {
  const Attr& value = *op.find("value");
  const Type r = op.result()->type;
  Type t;
  switch (value.kind()) {
    case AttrKind::kBool:
      t = Type::scalar(Elem::kI1);
      break;
    case AttrKind::kInt:
    case AttrKind::kFloat:
    case AttrKind::kDense:
      t = value->type;
      break;
    default:
      break;
  }
  expect(op, t && t == r && is_data(r), "invalid_ir", [&] {
    return fmt::format("the value {} is not of the result's type {}", print(value).substr(0, 80),
                       r.str());
  });
}

std::optional<int64_t> constant_of(const Value* v) {
  // A few casts at most stand between a constant and its use.
  for (int i = 0; i < 8 && v->op; ++i) {
    const Op& op = *v->op;
    if (op.code == OpCode::kArithConstant) {
      const Attr* a = op.find("value");
      if (!a || (a->kind() != AttrKind::kInt && a->kind() != AttrKind::kBool)) return std::nullopt;
      return (*a)->ints[0];
    }
    const bool keeps = op.code == OpCode::kArithIndexCast || op.code == OpCode::kTpuAssumeMultiple;
    if (!keeps || op.operands.empty() || !op.operands[0]) return std::nullopt;
    v = op.operands[0];
  }
  return std::nullopt;
}

std::vector<Type> types_of(const std::vector<std::unique_ptr<Value>>& values) {
  std::vector<Type> out;
  out.reserve(values.size());
  for (const auto& v : values) out.push_back(v->type);
  return out;
}

std::string types_str(const std::vector<Type>& types) {
  std::string out = "(";
  for (size_t i = 0; i < types.size(); ++i) out += (i ? ", " : "") + types[i].str();
  return out + ")";
}

}  // namespace gridless::ir
