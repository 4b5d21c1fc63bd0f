#include "gridless/bundles/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gridless::bundles {
namespace {

class Accountant {
 public:
  explicit Accountant(Analysis& out) : out_(out) {}

  void run() {
    out_.regions.resize(out_.structure.regions.size());
    out_.loops.resize(out_.structure.loops.size());
    for (const Loop& loop : out_.structure.loops) out_.all_trips_known &= loop.trips.has_value();
    for (int b = 0; b < std::ssize(out_.listing.bundles); ++b) {
      if (!out_.listing.bundles[b].empty) issue(b);
    }
    for (const Stall& stall : out_.stalls) wait(stall);
    collect_lines();
  }

 private:
  const Region& region(int bundle) const {
    return out_.structure.regions[out_.structure.region_of[bundle]];
  }
  // Loops whose trips are unknown count once.
  double runs(int bundle) const {
    double runs = 1;
    for (int l = out_.structure.loop_of[bundle]; l >= 0; l = out_.structure.loops[l].parent) {
      runs *= static_cast<double>(out_.structure.loops[l].trips.value_or(1));
    }
    return runs;
  }

  // Applies f to every cost that the bundle counts for, lines apart.
  template <typename F>
  void totals(int bundle, F f) {
    f(out_.total);
    f(out_.regions[out_.structure.region_of[bundle]]);
    for (int l = out_.structure.loop_of[bundle]; l >= 0; l = out_.structure.loops[l].parent) {
      f(out_.loops[l]);
    }
  }

  static void count(const Instruction& instruction, Cost& cost) {
    ++cost.instructions;
    ++cost.issued[static_cast<size_t>(instruction.unit)];
    cost.spills += instruction.spill;
    cost.fills += instruction.fill;
  }

  // The lines of an instruction; the unknown line when it has none.
  std::vector<Cost*> lines_of(const Instruction& instruction) {
    std::vector<Cost*> out;
    for (const Place place : instruction.places) {
      const SourceLoc& loc = out_.listing.places[place];
      Cost* cost = &lines_[{loc.file, loc.line}];
      if (std::ranges::find(out, cost) == out.end()) out.push_back(cost);
    }
    if (out.empty()) out.push_back(&lines_[{"", 0}]);
    return out;
  }

  void issue(int b) {
    const Bundle& bundle = out_.listing.bundles[b];
    const double n = runs(b);
    totals(b, [&](Cost& cost) {
      cost.cycles += 1;
      cost.run_cycles += n;
      ++cost.bundles;
    });
    int real = 0;
    for (int i = bundle.first; i < bundle.last; ++i) {
      real += out_.listing.instructions[i].unit != Unit::kNone;
    }
    std::set<Cost*> present;
    for (int i = bundle.first; i < bundle.last; ++i) {
      const Instruction& instruction = out_.listing.instructions[i];
      if (instruction.unit == Unit::kNone) continue;
      totals(b, [&](Cost& cost) { count(instruction, cost); });
      const std::vector<Cost*> lines = lines_of(instruction);
      const double share = 1.0 / real / static_cast<double>(lines.size());
      for (Cost* cost : lines) {
        cost->cycles += share;
        cost->run_cycles += share * n;
        count(instruction, *cost);
        present.insert(cost);
      }
    }
    for (Cost* cost : present) ++cost->bundles;
  }

  void wait(const Stall& stall) {
    const double n = runs(stall.begin), cycles = stall.cycles();
    const auto add = [&](Cost& cost, double share) {
      cost.cycles += cycles * share;
      cost.stalls += cycles * share;
      cost.run_cycles += cycles * share * n;
      cost.run_stalls += cycles * share * n;
    };
    totals(stall.begin, [&](Cost& cost) { add(cost, 1); });
    out_.stall_cycles[static_cast<size_t>(stall.cause)] += cycles;
    out_.run_stall_cycles[static_cast<size_t>(stall.cause)] += cycles * n;
    static const Instruction kNobody;
    const std::vector<Cost*> lines =
        lines_of(stall.waiting < 0 ? kNobody : out_.listing.instructions[stall.waiting]);
    for (Cost* cost : lines) add(*cost, 1.0 / static_cast<double>(lines.size()));
  }

  void collect_lines() {
    for (const auto& [key, cost] : lines_) {
      out_.lines.push_back({SourceLoc(key.first, key.second), cost});
    }
    std::ranges::stable_sort(out_.lines, [](const LineCost& a, const LineCost& b) {
      return a.cost.run_cycles > b.cost.run_cycles;
    });
  }

  Analysis& out_;
  std::map<std::pair<std::string, int>, Cost> lines_;
};

}  // namespace

Analysis analyse(Listing listing) {
  Analysis out;
  out.listing = std::move(listing);
  out.structure = find_structure(out.listing);
  out.stalls = find_stalls(out.listing, out.structure);
  Accountant(out).run();
  return out;
}

}  // namespace gridless::bundles
