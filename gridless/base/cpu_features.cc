#include "gridless/base/cpu_features.h"

#include <cpuid.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace gridless {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"baseline", "avx2", "avx512", "avx512vnni"};

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero (no feature) for a leaf the processor does not know.
Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

// XCR0: the register files the operating system saves. Only legal when CPUID.1:ECX.OSXSAVE is set.
std::uint64_t saved_state() {
  std::uint32_t low = 0, high = 0;
  // As an instruction rather than _xgetbv(), which would need this file compiled with -mxsave.
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

bool all(unsigned word, std::initializer_list<int> bits) {
  for (int bit : bits) {
    if (!((word >> bit) & 1u)) return false;
  }
  return true;
}

Isa detect() {
  // Intel SDM volume 2A, CPUID: leaf 1, leaf 7 subleaf 0 and subleaf 1.
  const Registers one = cpuid(1, 0);
  const Registers seven = cpuid(7, 0);
  const Registers seven_one = cpuid(7, 1);
  constexpr int kFma = 12, kOsxsave = 27, kAvx = 28, kF16c = 29;
  if (!all(one.ecx, {kOsxsave, kAvx, kFma, kF16c})) return Isa::kBaseline;
  const std::uint64_t state = saved_state();
  constexpr std::uint64_t kYmmState = 0x6;   // XMM and YMM
  constexpr std::uint64_t kZmmState = 0xe6;  // and opmask, ZMM high halves, ZMM16-31
  constexpr int kAvx2 = 5;
  if ((state & kYmmState) != kYmmState || !all(seven.ebx, {kAvx2})) return Isa::kBaseline;
  constexpr int kAvx512f = 16, kAvx512dq = 17, kAvx512bw = 30, kAvx512vl = 31;
  if ((state & kZmmState) != kZmmState ||
      !all(seven.ebx, {kAvx512f, kAvx512dq, kAvx512bw, kAvx512vl})) {
    return Isa::kAvx2;
  }
  constexpr int kAvx512vnni = 11, kAvx512bf16 = 5;
  if (!all(seven.ecx, {kAvx512vnni}) || !all(seven_one.eax, {kAvx512bf16})) return Isa::kAvx512;
  return Isa::kAvx512Vnni;
}

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

Result<Isa> parse_isa(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Isa>(i);
  }
  return input_error("unknown instruction set '{}'; use one of {}", name, fmt::join(kNames, ", "));
}

Isa detected_isa() {
  static const Isa isa = detect();
  return isa;
}

Result<Isa> requested_isa() {
  const char* name = std::getenv("GRIDLESS_ISA");
  if (name == nullptr || *name == '\0') return detected_isa();
  const Result<Isa> isa = parse_isa(name);
  if (!isa) return std::unexpected(isa.error().in("GRIDLESS_ISA"));
  if (*isa > detected_isa()) {
    return input_error("GRIDLESS_ISA={} asks for more than this machine has; use {} or lower", name,
                       isa_name(detected_isa()));
  }
  return isa;
}

Isa active_isa() {
  static const Isa isa = requested_isa().value_or(detected_isa());
  return isa;
}

}  // namespace gridless
