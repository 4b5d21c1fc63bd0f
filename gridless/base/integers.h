// Division and rounding of counts and sizes: not negative, the divisor positive.
#pragma once

#include <cstdint>

namespace gridless {

constexpr int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
constexpr int64_t round_up(int64_t n, int64_t to) { return ceil_div(n, to) * to; }

}  // namespace gridless
