#include "gridless/emulate/check/inputs.h"

#include "gridless/emulate/buffer.h"

namespace gridless::emulate {
namespace {

// Floats in [-1, 1), in steps that every format has or rounds; integers zero. Zero is the index
// that every table allows.
std::vector<std::byte> made_up(ir::Type type, int64_t bytes, uint64_t seed) {
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  const Elem e = type.elem();
  if (!ir::is_float(e)) return out;
  const int bits = storage_bits(e);
  const int64_t n = bytes * 8 / bits;
  uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
  for (int64_t k = 0; k < n; ++k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const float x = static_cast<float>(static_cast<int64_t>(state >> 57) - 64) / 64.0f;
    set_bits(out.data(), k, bits, e == Elem::kF8E8M0FNU ? 127 : float_bits(e, x));
  }
  return out;
}

}  // namespace

Result<CheckInputs> complete_inputs(const ir::Call& call, int cores,
                                    std::span<const std::span<const std::byte>> given,
                                    bool make_up) {
  if (given.size() != call.operands.size())
    return input_error("the call has {} operands, {} inputs are given", call.operands.size(),
                       given.size());
  CheckInputs in;
  in.made_up.resize(given.size());
  for (size_t k = 0; k < given.size(); ++k) {
    const int64_t bytes = tensor_bytes(call.operands[k]) * cores;
    in.not_given.push_back(given[k].empty() && bytes > 0);
    if (in.not_given.back()) {
      if (make_up) in.made_up[k] = made_up(call.operands[k].type, bytes, k);
      in.operands.emplace_back(in.made_up[k]);
      continue;
    }
    if (static_cast<int64_t>(given[k].size()) != bytes)
      return input_error("input {} has {} bytes; {} cores of shape {} need {}", k, given[k].size(),
                         cores, ir::shape_str(call.operands[k].type.shape()), bytes);
    in.operands.push_back(given[k]);
  }
  return in;
}

}  // namespace gridless::emulate
