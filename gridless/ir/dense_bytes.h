// Elements as bytes: how dense<"0x...">, bytecode and resources hold them.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/ir/attr.h"

namespace gridless::ir {

// The low bits of `bits` as an integer of format `e`: signless and signed ones keep their sign.
int64_t integer_from_bits(uint64_t bits, Elem e);

// dense<...>; equal elements become the one form that MLIR has for them, the splat.
Attr make_dense(Type type, std::vector<int64_t> ints, std::vector<double> reals);

// `bytes` hold all elements of `type`, little end first, or one for all; each in whole bytes, i1
// also as packed bits. An error is a sentence.
std::expected<Attr, std::string> dense_from_bytes(Type type, std::string_view bytes);

// Whether `type` can be that of dense<...>: a vector or tensor of static shape.
bool can_be_dense(Type type);

}  // namespace gridless::ir
