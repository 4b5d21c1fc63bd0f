#include "gridless/ir/float_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "gridless/base/check.h"
#include "gridless/base/float8.h"
#include "gridless/base/numerics.h"

namespace gridless::ir {
namespace {

// Significant bits of a format, the implicit one included.
int precision(Elem e) {
  switch (e) {
    case Elem::kF64:
      return 53;
    case Elem::kF32:
      return 24;
    case Elem::kF16:
      return 11;
    case Elem::kBf16:
      return 8;
    case Elem::kF8E4M3FN:
      return 4;
    case Elem::kF8E5M2:
      return 3;
    case Elem::kF4E2M1FN:
      return 2;
    default:
      return 1;
  }
}

// A double rounded to odd in float32: a later rounding to at most 22 bits is then correct, which
// two roundings to nearest would not be.
float to_odd_f32(double v) {
  auto f = static_cast<float>(v);
  if (!std::isfinite(f) || static_cast<double>(f) == v) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(v)) f = std::nextafter(f, 0.0F);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | 1U);
}

uint64_t nan_bits(double v, int total, int mantissa) {
  const auto u = std::bit_cast<uint64_t>(v);
  const uint64_t exponent = ((uint64_t{1} << (total - 1 - mantissa)) - 1) << mantissa;
  uint64_t payload = (u & 0xfffffffffffffU) >> (52 - mantissa);
  if (payload == 0) payload = uint64_t{1} << (mantissa - 1);
  return (u >> 63 << (total - 1)) | exponent | payload;
}

double nan_from_bits(uint64_t bits, int total, int mantissa) {
  const uint64_t payload = bits & ((uint64_t{1} << mantissa) - 1);
  const uint64_t sign = (bits >> (total - 1)) & 1;
  return std::bit_cast<double>(sign << 63 | 0x7ff0000000000000U | payload << (52 - mantissa));
}

struct Digits {
  std::string digits;  // most significant first, no trailing zeros
  int exponent = 0;    // value = digits * 10^exponent
};

// At most `most` digits of |v|, cut as LLVM cuts them: |v| is written as integer * 10^-k, as many
// decimal places are dropped as leave enough bits for `most` digits, and what is still too long is
// rounded half up. (So 9.99999997E-7 does not become 1.000000e-06, although that would read back to
// the same float.) v is finite and not zero.
Digits decimal_digits(double v, int most) {
  // The integer: m odd, |v| = m * 2^binary; below zero times 10^-binary makes m * 5^-binary.
  int binary = 0;
  double m = std::frexp(std::fabs(v), &binary);
  while (m != std::floor(m)) {
    m *= 2;
    --binary;
  }
  // 767 digits hold every double exactly.
  const std::string exact = fmt::format("{:.766e}", std::fabs(v));
  const size_t e = exact.find('e');
  Digits d;
  d.digits = exact.substr(0, 1) + exact.substr(2, e - 2);
  int length = std::atoi(exact.c_str() + e + 1) + 1;  // digits of the integer
  long double bits = std::ilogb(v) + 1;
  if (binary < 0) {
    length -= binary;
    bits = std::floor(std::log2(static_cast<long double>(m)) - binary * std::log2(5.0L)) + 1;
  }
  d.exponent = std::min(binary, 0);
  d.digits.resize(static_cast<size_t>(length), '0');
  // 196/59 is a little more than log2(10).
  const int spare = static_cast<int>(bits) - (most * 196 + 58) / 59;
  if (const int cut = spare > 0 ? spare * 59 / 196 : 0) {
    d.digits.resize(d.digits.size() - static_cast<size_t>(cut));
    d.exponent += cut;
  }
  const auto shorten = [&](size_t size) {
    d.exponent += static_cast<int>(d.digits.size() - size);
    d.digits.resize(size);
  };
  const auto keep = static_cast<size_t>(most);
  if (d.digits.size() > keep) {
    const bool up = d.digits[keep] >= '5';
    shorten(keep);
    size_t i = keep;
    while (up && i > 0 && d.digits[i - 1] == '9') --i;
    if (up && i == 0) {
      d.digits.insert(0, 1, '1');
    } else if (up) {
      ++d.digits[i - 1];
    }
    if (up)
      std::fill(d.digits.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(i, 1)),
                d.digits.end(), '0');
  }
  shorten(d.digits.find_last_not_of('0') + 1);
  return d;
}

std::string exponent_form(double v) {
  std::string out = std::signbit(v) ? "-" : "";
  if (v == 0) return out + "0.000000e+00";
  const Digits d = decimal_digits(v, 6);
  const int power = d.exponent + static_cast<int>(d.digits.size()) - 1;
  std::string fraction = d.digits.substr(1);
  fraction.resize(6, '0');
  return out + fmt::format("{}.{}e{}{:02}", d.digits[0], fraction, power < 0 ? '-' : '+',
                           std::abs(power));
}

// LLVM's natural form: plain digits unless that needs more than three zeros or shows digits that
// the format does not have.
std::string natural_form(double v, Elem e) {
  const int most = 2 + precision(e) * 59 / 196;
  const Digits d = decimal_digits(v, most);
  const int count = static_cast<int>(d.digits.size());
  const int power = d.exponent + count - 1;
  std::string out = std::signbit(v) ? "-" : "";
  bool scientific = false;
  if (d.exponent >= 0) {
    scientific = d.exponent > 3 || count + d.exponent > most;
  } else if (power < 0) {
    scientific = -power > 3;
  }
  if (scientific) {
    out += d.digits[0];
    out += '.';
    out += count == 1 ? "0" : d.digits.substr(1);
    return out + fmt::format("E{}{}", power < 0 ? '-' : '+', std::abs(power));
  }
  if (d.exponent >= 0) return out + d.digits + std::string(static_cast<size_t>(d.exponent), '0');
  const int whole = d.exponent + count;
  if (whole <= 0) return out + "0." + std::string(static_cast<size_t>(-whole), '0') + d.digits;
  return out + d.digits.substr(0, static_cast<size_t>(whole)) + "." +
         d.digits.substr(static_cast<size_t>(whole));
}

}  // namespace

uint64_t float_bits(double v, Elem e) {
  switch (e) {
    case Elem::kF64:
      return std::bit_cast<uint64_t>(v);
    case Elem::kF32:
      if (std::isnan(v)) return nan_bits(v, 32, 23);
      return std::bit_cast<uint32_t>(static_cast<float>(v));
    case Elem::kF16:
      return std::isnan(v) ? nan_bits(v, 16, 10) : to_f16(to_odd_f32(v)).bits;
    case Elem::kBf16:
      return std::isnan(v) ? nan_bits(v, 16, 7) : to_bf16(to_odd_f32(v)).bits;
    case Elem::kF8E4M3FN:
      return to_f8e4m3(to_odd_f32(v), Overflow::kIeee).bits;
    case Elem::kF8E5M2:
      return std::isnan(v) ? nan_bits(v, 8, 2) : to_f8e5m2(to_odd_f32(v), Overflow::kIeee).bits;
    case Elem::kF8E8M0FNU:
      return to_f8e8m0(to_odd_f32(v)).bits;
    case Elem::kF4E2M1FN:
      return to_f4e2m1(to_odd_f32(v)).bits;
    default:
      GRIDLESS_CHECK(false, "{} is not a float format", spelling(e));
  }
  return 0;
}

double float_from_bits(uint64_t bits, Elem e) {
  double v = 0;
  switch (e) {
    case Elem::kF64:
      return std::bit_cast<double>(bits);
    case Elem::kF32:
      v = std::bit_cast<float>(static_cast<uint32_t>(bits));
      return std::isnan(v) ? nan_from_bits(bits, 32, 23) : v;
    case Elem::kF16:
      v = to_f32(f16{static_cast<uint16_t>(bits)});
      return std::isnan(v) ? nan_from_bits(bits, 16, 10) : v;
    case Elem::kBf16:
      v = to_f32(bf16{static_cast<uint16_t>(bits)});
      return std::isnan(v) ? nan_from_bits(bits, 16, 7) : v;
    case Elem::kF8E4M3FN:
      v = to_f32(f8e4m3{static_cast<uint8_t>(bits)});
      return std::isnan(v) ? std::copysign(v, bits & 0x80 ? -1.0 : 1.0) : v;
    case Elem::kF8E5M2:
      v = to_f32(f8e5m2{static_cast<uint8_t>(bits)});
      return std::isnan(v) ? nan_from_bits(bits, 8, 2) : v;
    case Elem::kF8E8M0FNU:
      return to_f32(f8e8m0{static_cast<uint8_t>(bits)});
    case Elem::kF4E2M1FN:
      return to_f32(f4e2m1{static_cast<uint8_t>(bits & 0xf)});
    default:
      GRIDLESS_CHECK(false, "{} is not a float format", spelling(e));
  }
  return v;
}

std::string print_float(double v, Elem e) {
  const uint64_t bits = float_bits(v, e);
  v = float_from_bits(bits, e);
  if (std::isfinite(v)) {
    std::string text = exponent_form(v);
    if (float_bits(read_float(text, e), e) == bits) return text;
    text = natural_form(v, e);
    if (text.find('.') != std::string::npos) return text;
  }
  return fmt::format("0x{:X}", bits);
}

double read_float(std::string_view digits, Elem e) {
  return round_to(std::strtod(std::string(digits).c_str(), nullptr), e);
}

}  // namespace gridless::ir
