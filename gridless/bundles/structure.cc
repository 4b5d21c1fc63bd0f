#include "gridless/bundles/structure.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "gridless/bundles/trip_count.h"

namespace gridless::bundles {
namespace {

struct Branch {
  int bundle = 0, target = -1;  // target -1: not in this listing
  int instruction = 0;
};

std::vector<Branch> find_branches(const Listing& listing) {
  std::vector<Branch> out;
  for (int b = 0; b < std::ssize(listing.bundles); ++b) {
    for (int i = listing.bundles[b].first; i < listing.bundles[b].last; ++i) {
      const Instruction& instruction = listing.instructions[i];
      if (!instruction.opcode.starts_with("sbr")) continue;
      const int target = instruction.target_address >= 0
                             ? listing.find_address(instruction.target_address)
                             : listing.find_region(instruction.target_region);
      out.push_back({b, target, i});
    }
  }
  return out;
}

int behind_delay_slots(const Listing& listing, int bundle) {
  return static_cast<int>(
      std::min(std::ssize(listing.bundles), bundle + std::ptrdiff_t{1} + kDelaySlots));
}

// Two branches back to one bundle are one loop.
std::vector<Loop> find_loops(const Listing& listing, const std::vector<Branch>& branches) {
  std::map<int, Branch> last;  // by target
  for (const Branch& branch : branches) {
    if (branch.target >= 0 && branch.target <= branch.bundle) last[branch.target] = branch;
  }
  const TripCounter counter(listing);
  std::vector<Loop> loops;
  for (const auto& [target, branch] : last) {
    Loop& loop = loops.emplace_back();
    loop.begin = target;
    loop.end = behind_delay_slots(listing, branch.bundle);
    const Instruction& instruction = listing.instructions[branch.instruction];
    if (!instruction.places.empty()) loop.place = instruction.places[0];
    const TripCount count = counter.count(instruction);
    loop.trips = count.trips;
    loop.why_unknown = count.why_unknown;
  }
  // The nearest loop before it that contains it. std::map gave them by begin, so outer come first.
  for (size_t i = 0; i < loops.size(); ++i) {
    for (size_t j = i; j-- > 0;) {
      if (loops[j].end < loops[i].end) continue;
      loops[i].parent = static_cast<int>(j);
      loops[i].depth = loops[j].depth + 1;
      break;
    }
  }
  return loops;
}

std::optional<Region::End> waits(const Listing& listing, const Bundle& bundle) {
  for (int i = bundle.first; i < bundle.last; ++i) {
    const std::string& opcode = listing.instructions[i].opcode;
    if (opcode.starts_with("dma.done.wait") || opcode.starts_with("vwait")) {
      return Region::End::kWait;
    }
    if (opcode == "inlined_call") return Region::End::kCall;
  }
  return std::nullopt;
}

// Where regions end: behind bundle e, for the reason.
std::map<int, Region::End> find_ends(const Listing& listing, const std::vector<Branch>& branches) {
  std::map<int, Region::End> ends;
  const int n = static_cast<int>(listing.bundles.size());
  for (int b = 0; b < n; ++b) {
    if (const auto end = waits(listing, listing.bundles[b])) ends[b + 1] = *end;
  }
  for (const Branch& branch : branches) {
    if (branch.target > 0) ends[branch.target] = Region::End::kTarget;
  }
  for (const Branch& branch : branches) {
    ends[behind_delay_slots(listing, branch.bundle)] = Region::End::kBranch;
  }
  ends[n] = Region::End::kEnd;
  return ends;
}

std::optional<int64_t> runs_of(const std::vector<Loop>& loops, int loop) {
  int64_t runs = 1;
  for (; loop >= 0; loop = loops[loop].parent) {
    // More than any kernel runs; also keeps the product in range for a made-up listing.
    constexpr int64_t kMost = int64_t{1} << 40;
    if (!loops[loop].trips || *loops[loop].trips > kMost / runs) return std::nullopt;
    runs *= std::max<int64_t>(*loops[loop].trips, 1);
  }
  return runs;
}

}  // namespace

std::string_view end_name(Region::End end) {
  static constexpr std::array<std::string_view, 5> kNames = {"branch", "target", "wait", "call",
                                                             "end"};
  return kNames[static_cast<size_t>(end)];
}

Structure find_structure(const Listing& listing) {
  Structure out;
  const std::vector<Branch> branches = find_branches(listing);
  out.loops = find_loops(listing, branches);
  const size_t n = listing.bundles.size();
  out.loop_of.assign(n, -1);
  for (size_t l = 0; l < out.loops.size(); ++l) {  // inner ones come later and overwrite
    for (int b = out.loops[l].begin; b < out.loops[l].end; ++b) {
      out.loop_of[b] = static_cast<int>(l);
    }
  }
  out.region_of.assign(n, -1);
  int begin = 0;
  for (const auto& [end, why] : find_ends(listing, branches)) {
    if (end <= begin) continue;
    const int loop = out.loop_of[begin];
    std::fill(out.region_of.begin() + begin, out.region_of.begin() + end,
              static_cast<int>(out.regions.size()));
    out.regions.push_back({begin, end, loop, why, runs_of(out.loops, loop)});
    begin = end;
  }
  return out;
}

}  // namespace gridless::bundles
