// Floats as MLIR writes and reads them. One value has one spelling, so that texts can be compared:
// six digits in exponent form when they read back to the same bits ("1.000000e-03"), else as many
// digits as the format needs ("9.99999997E-7", "0.0883883461"), else the bits ("0x7FC00000":
// infinity, NaN, and numbers whose digits would look like an integer).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gridless/ir/type.h"

namespace gridless::ir {

// The bits of `v` in format `e` (rounded to nearest even, once; out of range: infinity, else NaN,
// else the largest), and back. NaN keeps its sign and as much of its payload as fits.
uint64_t float_bits(double v, Elem e);
double float_from_bits(uint64_t bits, Elem e);

// `v` rounded to format `e`.
inline double round_to(double v, Elem e) { return float_from_bits(float_bits(v, e), e); }

std::string print_float(double v, Elem e);

// Decimal digits as MLIR's lexer takes them ("-1.5e3"); rounded to `e`.
double read_float(std::string_view digits, Elem e);

}  // namespace gridless::ir
