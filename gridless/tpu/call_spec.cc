#include "gridless/tpu/call_spec.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace gridless::tpu {
namespace {

constexpr std::array<std::string_view, 4> kSpaceNames = {"any", "hbm", "vmem", "smem"};

// Bits per element of every type that XLA takes as an operand on TPU.
const std::map<std::string_view, int>& type_bits() {
  static const std::map<std::string_view, int> bits = {
      {"f32", 32},   {"bf16", 16},  {"f16", 16},      {"f8E4M3FN", 8}, {"f8E5M2", 8},
      {"f8E4M3", 8}, {"f8E3M4", 8}, {"f8E8M0FNU", 8}, {"f4E2M1FN", 4}, {"i32", 32},
      {"i16", 16},   {"i8", 8},     {"i4", 4},        {"i2", 2},       {"i1", 8},
      {"ui32", 32},  {"ui16", 16},  {"ui8", 8},       {"ui4", 4},      {"ui2", 2}};
  return bits;
}

}  // namespace

std::string_view space_name(Space space) { return kSpaceNames[static_cast<size_t>(space)]; }

std::vector<int> kernel_results(const CallSpec& spec) {
  std::vector<int> out;
  for (int i = 0; i < std::ssize(spec.results); ++i) {
    const auto through = [&](const Alias& a) { return a.result == i && a.through_operand; };
    if (std::ranges::none_of(spec.aliases, through)) out.push_back(i);
  }
  return out;
}

Result<int64_t> byte_size(const OperandSpec& operand) {
  const auto bits = type_bits().find(operand.dtype);
  if (bits == type_bits().end()) {
    std::string known;
    for (const auto& [name, unused] : type_bits())
      known += (known.empty() ? "" : ", ") + std::string(name);
    return input_error("element type '{}' (known: {})", operand.dtype, known);
  }
  if (operand.shape.empty()) return input_error("the shape is empty: write 1 for a single element");
  // No core holds 2^40 elements; the bound keeps the product in range.
  int64_t elements = 1;
  for (const int64_t n : operand.shape) {
    if (n < 1 || n > (int64_t{1} << 40) / elements) {
      return input_error("shape {}: dimensions must be positive and their product at most 2^40",
                         fmt::join(operand.shape, "x"));
    }
    elements *= n;
  }
  return (elements * bits->second + 7) / 8;
}

Result<void> validate(const CallSpec& spec) {
  if (spec.kernel_name.empty()) return input_error("the call has no kernel_name");
  if (spec.cores < 1)
    return input_error("the call has {} cores; it needs at least one", spec.cores);
  for (const auto* list : {&spec.operands, &spec.results}) {
    const std::string_view what = list == &spec.operands ? "operand" : "result";
    for (size_t i = 0; i < list->size(); ++i) {
      if (const auto bytes = byte_size((*list)[i]); !bytes) {
        return std::unexpected(bytes.error().in(fmt::format("{} {}", what, i)));
      }
    }
  }
  std::set<int> operands, results;
  for (const Alias& alias : spec.aliases) {
    if (alias.operand < 0 || alias.operand >= std::ssize(spec.operands) || alias.result < 0 ||
        alias.result >= std::ssize(spec.results)) {
      return input_error(
          "alias of result {} with operand {}: the call has {} results and {} operands",
          alias.result, alias.operand, spec.results.size(), spec.operands.size());
    }
    const OperandSpec& a = spec.operands[alias.operand];
    const OperandSpec& b = spec.results[alias.result];
    if (a.shape != b.shape || a.dtype != b.dtype) {
      return input_error("alias of result {} ({}x{}) with operand {} ({}x{}): they must be alike",
                         alias.result, fmt::join(b.shape, "x"), b.dtype, alias.operand,
                         fmt::join(a.shape, "x"), a.dtype);
    }
    if (!operands.insert(alias.operand).second || !results.insert(alias.result).second) {
      return input_error("alias of result {} with operand {}: one of them is aliased twice",
                         alias.result, alias.operand);
    }
  }
  return {};
}

}  // namespace gridless::tpu
