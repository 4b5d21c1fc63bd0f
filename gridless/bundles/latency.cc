#include "gridless/bundles/latency.h"

#include <algorithm>

#include "gridless/bundles/listing.h"

namespace gridless::bundles {
namespace {

struct Rule {
  std::string_view prefix;
  int cycles;
};

// The first that fits.
constexpr Rule kRules[] = {
    {"vmatmul", 211},  // 204 when both sides are fp8
    {"vrot.lane", 127}, {"vperm.lane", 127}, {"vxpose", 68}, {"vpush", 49},  // to the spop
    {"sld", 6},         {"int_to_ptr", 0},   {"smul", 2},    {"scmp", 2},    // to predicate logic
    {"pnand", 2},       {"por", 2},          {"pand", 2},    {"pneg", 2},   {"sdivrem", 9},
    {"vsyncmov", 3},    {"vweird", 4},       {"vcmp", 1},    {"vld", 1},    {"vpop", 1},
};

}  // namespace

int result_latency(std::string_view opcode) {
  if (opcode.find(".xlane") != std::string_view::npos) {
    return opcode.starts_with("vpop") ? 1 : 141;
  }
  const auto rule =
      std::ranges::find_if(kRules, [&](const Rule& r) { return opcode.starts_with(r.prefix); });
  if (rule != std::end(kRules)) return rule->cycles;
  switch (unit_of(opcode)) {
    case Unit::kEup:
      return 10;
    case Unit::kValu:
      return 2;
    case Unit::kXlu:
      return 127;
    case Unit::kNone:
      return 0;
    default:
      return 1;
  }
}

}  // namespace gridless::bundles
