// The per-op rules of the verifier: one function per row of the op table. Rows with a result rule
// use that rule; the others (kAny) have a function of their own in verify_*.cc. A row without one
// does not link. Before these run, verifier.cc has checked the row itself: counts, regions and
// their terminators, required attributes, operand segments.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gridless/ir/module.h"
#include "gridless/ir/source.h"

namespace gridless::ir {

class OpVerifier {
 public:
  OpVerifier(const Module& module, Diagnostics& out);

#define GRIDLESS_DECLARE_kAny(id) void id(const Op& op);
#define GRIDLESS_DECLARE_kNoResult(id) void id(const Op& op);
#define GRIDLESS_DECLARE_RULE(id, rule) \
  void id(const Op& op) { rule_##rule(op); }
#define GRIDLESS_DECLARE_kSame(id) GRIDLESS_DECLARE_RULE(id, same)
#define GRIDLESS_DECLARE_kSameFloat(id) GRIDLESS_DECLARE_RULE(id, same_float)
#define GRIDLESS_DECLARE_kSameInt(id) GRIDLESS_DECLARE_RULE(id, same_int)
#define GRIDLESS_DECLARE_kCompare(id) GRIDLESS_DECLARE_RULE(id, compare)
#define GRIDLESS_DECLARE_kSelect(id) GRIDLESS_DECLARE_RULE(id, select)
#define GRIDLESS_DECLARE_kCastFloat(id) GRIDLESS_DECLARE_RULE(id, cast_float)
#define GRIDLESS_DECLARE_kCastInt(id) GRIDLESS_DECLARE_RULE(id, cast_int)
#define GRIDLESS_DECLARE_kIntToFloat(id) GRIDLESS_DECLARE_RULE(id, int_to_float)
#define GRIDLESS_DECLARE_kFloatToInt(id) GRIDLESS_DECLARE_RULE(id, float_to_int)
#define GRIDLESS_DECLARE_kBitcast(id) GRIDLESS_DECLARE_RULE(id, bitcast)
#define GRIDLESS_DECLARE_kIndexCast(id) GRIDLESS_DECLARE_RULE(id, index_cast)
#define GRIDLESS_DECLARE_kConstant(id) GRIDLESS_DECLARE_RULE(id, constant)
#define GRIDLESS_DECLARE(id, name, least, most, results, regions, rule, ...) \
  GRIDLESS_DECLARE_##rule(id)
  GRIDLESS_OPS(GRIDLESS_DECLARE)
#undef GRIDLESS_DECLARE

  // Records an error of `kind` at the op; the message gets the op's name in front.
  void error(const Op& op, std::string kind, std::string message, std::string hint = "");
  void warning(const Op& op, std::string kind, std::string message, std::string hint = "");

 private:
  void rule_same(const Op& op);
  void rule_same_float(const Op& op);
  void rule_same_int(const Op& op);
  void rule_compare(const Op& op);
  void rule_select(const Op& op);
  void rule_cast_float(const Op& op);
  void rule_cast_int(const Op& op);
  void rule_int_to_float(const Op& op);
  void rule_float_to_int(const Op& op);
  void rule_bitcast(const Op& op);
  void rule_index_cast(const Op& op);
  void rule_constant(const Op& op);

  // Shared checks; false after an error.
  bool expect(const Op& op, bool ok, std::string_view kind, std::string_view message,
              std::string_view hint = "") {
    if (!ok) error(op, std::string(kind), std::string(message), std::string(hint));
    return ok;
  }
  // The same with a message that is made only where it is needed: most checks pass.
  template <std::invocable Message>
  bool expect(const Op& op, bool ok, std::string_view kind, const Message& message,
              std::string_view hint = "") {
    return ok || expect(op, false, kind, message(), hint);
  }
  bool same_shape(const Op& op, Type a, Type b);
  bool vector_operands(const Op& op);  // every operand and result is a vector
  bool ref_operand(const Op& op, const Value* v, std::string_view what);
  bool i32_operand(const Op& op, const Value* v, std::string_view what);
  bool semaphore(const Op& op, const Value* v, std::string_view what, bool dma_only,
                 bool regular_only);
  bool same_space_and_elem(const Op& op, Type from, Type to, bool elem);
  // array<iN: ...> and integer attributes; an error when missing or of another kind.
  std::optional<std::vector<int64_t>> ints(const Op& op, std::string_view name);
  std::optional<int64_t> integer(const Op& op, std::string_view name);
  std::optional<int64_t> dimension(const Op& op, std::string_view name, int64_t rank);
  // Distinct dimensions, each below rank.
  bool dimensions(const Op& op, const std::vector<int64_t>& dims, int64_t rank);

  // Loads and stores: `shape` elements from `ref` at `indices`, every `strides`-th (empty: each).
  void access(const Op& op, const Value* ref, const std::vector<Value*>& indices, Type value,
              const std::vector<int64_t>& strides);
  bool index_operands(const Op& op, Type ref, const std::vector<Value*>& indices);
  void out_of_bounds(const Op& op, std::string message, std::string hint);
  void scalar_access(const Op& op, const Value* ref, size_t first_index, Type value);
  void width_scaling(const Op& op, Type from, Type to);  // both bitcasts
  bool dma_refs(const Op& op, const Value* source, const Value* target);
  void matmul_operands(const Op& op, Type lhs, Type rhs, Type acc);
  void yields(const Op& op, const Op& terminator, size_t first, const std::vector<Type>& types,
              std::string_view what);
  void composite(const Op& op);
  void source(const Op& op);

  const Module& module_;
  Diagnostics& out_;
  std::unordered_set<const Value*> used_;
  std::map<std::string, Source> sources_;  // seen so far
};

// The value of a constant integer, looking through casts that keep it.
std::optional<int64_t> constant_of(const Value* v);

std::vector<Type> types_of(const std::vector<std::unique_ptr<Value>>& values);
std::string types_str(const std::vector<Type>& types);

}  // namespace gridless::ir
