// Which instruction-set level this process may use. Hand kernels come in one file per level
// (foo_avx2.cc, foo_avx512.cc, foo_avx512vnni.cc) and are picked by active_isa() at run time, so
// one binary runs on any x86-64 machine.
#pragma once

#include <string_view>

#include "gridless/base/error.h"

namespace gridless {

// Each level includes the ones before it.
enum class Isa {
  kBaseline,    // x86-64 with SSE2: the scalar reference kernels
  kAvx2,        // AVX2, FMA, F16C
  kAvx512,      // AVX-512 F, BW, VL, DQ
  kAvx512Vnni,  // AVX-512 VNNI and BF16
};

// "baseline", "avx2", "avx512", "avx512vnni": also the values of GRIDLESS_ISA.
std::string_view isa_name(Isa isa);
Result<Isa> parse_isa(std::string_view name);

// What the processor has and the operating system saves on a context switch.
Isa detected_isa();

// The level named by the environment variable GRIDLESS_ISA, or the detected one when it is not set.
// An unknown name, or a level this machine does not have, is an input error.
Result<Isa> requested_isa();

// The level to run with: requested_isa(), read once per process; the detected one if that is an
// error (the command refuses to start in that case, a library user may go on).
Isa active_isa();

}  // namespace gridless
