// Opcode -> unit. Checked against libtpu's own table of slot use (listing_test.cc).
#include <algorithm>
#include <array>

#include "gridless/bundles/listing.h"

namespace gridless::bundles {
namespace {

constexpr std::array<std::string_view, kUnits> kNames = {
    "none", "mxu", "xlu", "valu", "eup", "pop", "load", "store", "scalar", "dma", "sync"};
// From the header of libtpu's utilization table: MATPUSH 2, XLU 2, VALU 4, EUP 1, VPOP 2, VLOAD 3,
// VSTORE 2, SALU 2.
constexpr std::array<int, kUnits> kCapacity = {0, 2, 2, 4, 1, 2, 3, 2, 2, 2, 3};

struct Rule {
  std::string_view prefix;
  Unit unit;
};

// The first that fits; prefixes end where a name may go on with a type.
constexpr Rule kRules[] = {
    {"inlined_call_operand", Unit::kNone},
    {"int_to_ptr", Unit::kNone},
    {"sphi", Unit::kNone},
    {"vphi", Unit::kNone},
    {"vmphi", Unit::kNone},
    {"pphi", Unit::kNone},
    {"control", Unit::kNone},
    {"dma.done.wait", Unit::kSync},
    {"dma.", Unit::kDma},
    {"vsync", Unit::kSync},
    {"vwait", Unit::kSync},
    {"vtrace", Unit::kSync},
    {"vdelay", Unit::kSync},
    {"vrng", Unit::kLoad},
    // Mask arithmetic takes a load slot, or a VALU slot where those are full.
    {"vmmov", Unit::kLoad},
    {"vmor", Unit::kLoad},
    {"vmand", Unit::kLoad},
    {"vmxor", Unit::kLoad},
    {"vmneg", Unit::kLoad},
    {"vmpackc", Unit::kLoad},
    {"vmul.u32.u64.high", Unit::kNone},  // the second result of the .low before it
    {"vmat", Unit::kMxu},
    {"vpop", Unit::kPop},
    {"vpush", Unit::kStore},
    {"vsetiar", Unit::kStore},
    {"vsetrngseed", Unit::kStore},
    {"vsetperm", Unit::kXlu},
    {"vld", Unit::kLoad},
    {"vst", Unit::kStore},
    {"vexp2", Unit::kEup},
    {"vlog2", Unit::kEup},
    {"vrcp", Unit::kEup},
    {"vrsqrt", Unit::kEup},
    {"vtanh", Unit::kEup},
    {"vsigmoid", Unit::kEup},
    {"vsigshft", Unit::kEup},
    {"verf", Unit::kEup},
    {"vsinq", Unit::kEup},
    {"vcosq", Unit::kEup},
};

bool crosses_lanes(std::string_view opcode) {
  return opcode.find(".xlu") != std::string_view::npos ||
         opcode.find(".xlane") != std::string_view::npos || opcode.starts_with("vxpose");
}

}  // namespace

std::string_view unit_name(Unit unit) { return kNames[static_cast<size_t>(unit)]; }
int slot_capacity(Unit unit) { return kCapacity[static_cast<size_t>(unit)]; }

Unit unit_of(std::string_view opcode) {
  // "vstv" fills a register from a scalar: no store.
  if (opcode == "vstv") return Unit::kValu;
  const auto rule =
      std::ranges::find_if(kRules, [&](const Rule& r) { return opcode.starts_with(r.prefix); });
  if (rule != std::end(kRules)) return rule->unit;
  if (!opcode.starts_with('v')) return Unit::kScalar;
  return crosses_lanes(opcode) ? Unit::kXlu : Unit::kValu;
}

}  // namespace gridless::bundles
