#include "gridless/bundles/stalls.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "gridless/bundles/latency.h"

namespace gridless::bundles {
namespace {

struct Names {
  std::string_view name, text;
};
constexpr std::array<Names, kStallCauses> kNames = {{
    {"mxu_result", "results of a matrix product"},
    {"mxu_busy", "a matrix unit that is busy"},
    {"xlu", "lane reductions, rotations or transposes"},
    {"eup", "exp2, reciprocal and their like"},
    {"to_scalar", "vector elements for the scalar unit"},
    {"scalar_load", "scalars from SMEM"},
    {"vector", "vector arithmetic or loads"},
    {"scalar", "scalar arithmetic"},
    {"branch", "branches, their delay slots unfilled"},
    {"other", "something else (order of memory accesses, semaphores)"},
}};

StallCause cause_of(const Instruction& producer) {
  switch (producer.unit) {
    case Unit::kMxu:
      return StallCause::kMxuResult;
    case Unit::kXlu:
      return StallCause::kXlu;
    case Unit::kEup:
      return StallCause::kEup;
    case Unit::kStore:  // vpush: a store has no result
      return StallCause::kToScalar;
    case Unit::kScalar:
      return producer.opcode.starts_with("sld") ? StallCause::kScalarLoad : StallCause::kScalar;
    case Unit::kValu:
    case Unit::kPop:
    case Unit::kLoad:
      return StallCause::kVector;
    default:
      return StallCause::kOther;
  }
}

// Where the values of the listing come from, seen from a point in it; moves forward only.
class Producers {
 public:
  explicit Producers(const Listing& listing) : listing_(listing) {}

  void enter(int bundle) {
    for (int i = listing_.bundles[bundle].first; i < listing_.bundles[bundle].last; ++i) {
      const Instruction& instruction = listing_.instructions[i];
      if (instruction.def >= 0) defs_[instruction.def] = {bundle, i};
      if (instruction.unit_index < 0 || instruction.unit == Unit::kPop) continue;
      last_[{instruction.unit, instruction.unit_index}] = {bundle, i};
      if (const int entry = result_entry(instruction); entry >= 0) {
        products_[{instruction.unit_index, entry}] = {bundle, i};
      }
    }
  }

  struct At {
    int bundle = -1, instruction = -1;
  };
  At value(int number) const {
    const auto at = defs_.find(number);
    return at == defs_.end() ? At{} : at->second;
  }
  // The product that "vpop.f32.mrb[5].mxu0" takes a part of: the one with the highest entry up to
  // 5.
  At product(const Instruction& pop) const {
    const int entry = result_entry(pop);
    auto at = products_.upper_bound({pop.unit_index, entry});
    if (entry < 0 || at == products_.begin()) return {};
    --at;
    return at->first.first == pop.unit_index ? at->second : At{};
  }
  At last(const Instruction& same_unit) const {
    const auto at = last_.find({same_unit.unit, same_unit.unit_index});
    return at == last_.end() ? At{} : at->second;
  }

 private:
  static int result_entry(const Instruction& instruction) {
    const size_t at = instruction.opcode.find(".mrb[");
    if (at == std::string::npos) return -1;
    int entry = -1;
    std::from_chars(instruction.opcode.data() + at + 5,
                    instruction.opcode.data() + instruction.opcode.size(), entry);
    return entry;
  }

  const Listing& listing_;
  std::map<int, At> defs_;
  std::map<std::pair<Unit, int>, At> last_;
  std::map<std::pair<int, int>, At> products_;  // (MXU, entry of its result buffer)
};

// The reason for one gap: of everything that the bundle behind it needs, what is ready last.
class Explainer {
 public:
  Explainer(const Listing& listing, const Producers& producers, Stall& stall)
      : listing_(listing), producers_(producers), stall_(stall) {}

  void explain() {
    const Bundle& next = listing_.bundles[stall_.end];
    for (int i = next.first; i < next.last; ++i) {
      const Instruction& instruction = listing_.instructions[i];
      if (instruction.unit == Unit::kNone) continue;
      if (stall_.waiting < 0) stall_.waiting = i;
      for (const int use : instruction.uses) operand(i, producers_.value(use));
      if (instruction.unit == Unit::kPop) operand(i, producers_.product(instruction));
      if (instruction.unit_index >= 0) busy(i, producers_.last(instruction));
    }
  }

 private:
  void operand(int waiting, Producers::At at) {
    if (at.instruction < 0) return;
    const Instruction& producer = listing_.instructions[at.instruction];
    candidate(waiting, at, at.bundle + result_latency(producer.opcode), cause_of(producer));
  }
  void busy(int waiting, Producers::At at) {
    if (at.instruction < 0 || listing_.instructions[waiting].unit == Unit::kPop) return;
    const bool mxu = listing_.instructions[waiting].unit == Unit::kMxu;
    candidate(waiting, at, at.bundle + kUnitInterval,
              mxu ? StallCause::kMxuBusy : StallCause::kXlu);
  }
  void candidate(int waiting, Producers::At at, int ready, StallCause cause) {
    if (ready <= std::max(stall_.begin, latest_)) return;  // no reason to wait
    latest_ = ready;
    stall_.cause = cause;
    stall_.waiting = waiting;
    stall_.producer = at.instruction;
  }

  const Listing& listing_;
  const Producers& producers_;
  Stall& stall_;
  int latest_ = -1;
};

bool after_branch(const Listing& listing, const Region& region, int bundle) {
  if (region.ends != Region::End::kBranch) return false;
  for (int b = std::max(region.begin, bundle - kDelaySlots); b < bundle; ++b) {
    for (int i = listing.bundles[b].first; i < listing.bundles[b].last; ++i) {
      if (listing.instructions[i].opcode.starts_with("sbr")) return true;
    }
  }
  return false;
}

}  // namespace

std::string_view cause_name(StallCause cause) { return kNames[static_cast<size_t>(cause)].name; }
std::string_view cause_text(StallCause cause) { return kNames[static_cast<size_t>(cause)].text; }

std::vector<Stall> find_stalls(const Listing& listing, const Structure& structure) {
  std::vector<Stall> out;
  Producers producers(listing);
  for (const Region& region : structure.regions) {
    for (int b = region.begin; b < region.end;) {
      if (!listing.bundles[b].empty) {
        producers.enter(b++);
        continue;
      }
      Stall stall{.begin = b};
      while (b < region.end && listing.bundles[b].empty) ++b;
      stall.end = b;
      if (after_branch(listing, region, stall.begin)) {
        stall.cause = StallCause::kBranch;
      } else if (b < std::ssize(listing.bundles)) {
        Explainer(listing, producers, stall).explain();
      }
      out.push_back(stall);
    }
  }
  return out;
}

}  // namespace gridless::bundles
