#include "gridless/bundles/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace gridless::bundles {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

double or_zero(double value) { return std::isnan(value) ? 0 : value; }

// Names with a number on either side, matched by name.
class Matcher {
 public:
  void before(const std::string& name, double value) { entry(name).before = value; }
  void after(const std::string& name, double value) { entry(name).after = value; }
  std::vector<Change> in_order() { return std::move(changes_); }
  std::vector<Change> largest_first() {
    std::ranges::stable_sort(changes_, [](const Change& a, const Change& b) {
      return std::abs(or_zero(a.after) - or_zero(a.before)) >
             std::abs(or_zero(b.after) - or_zero(b.before));
    });
    return std::move(changes_);
  }

 private:
  Change& entry(const std::string& name) {
    const auto [at, added] = index_.try_emplace(name, changes_.size());
    if (added) changes_.push_back({name, kAbsent, kAbsent});
    return changes_[at->second];
  }
  std::vector<Change> changes_;
  std::map<std::string, size_t> index_;
};

// The same numbers of both reports: read(report, emit), emit(name, value).
template <typename Read>
Matcher match(const Report& before, const Report& after, Read read) {
  Matcher matcher;
  read(before, [&](const std::string& name, double value) { matcher.before(name, value); });
  read(after, [&](const std::string& name, double value) { matcher.after(name, value); });
  return matcher;
}

template <typename Emit>
void totals(const Report& r, Emit emit) {
  const Cost& total = r.analysis.total;
  emit("cycles", total.cycles);
  emit("empty_cycles", total.stalls);
  emit("run_cycles", total.run_cycles);
  emit("run_empty_cycles", total.run_stalls);
  emit("instructions", static_cast<double>(total.instructions));
  emit("spills", static_cast<double>(total.spills));
  emit("fills", static_cast<double>(total.fills));
  if (r.code) emit("code_bytes", static_cast<double>(r.code_bytes()));
  if (r.vmem.bytes > 0) emit("vmem_bytes", static_cast<double>(r.vmem.bytes));
  if (r.estimated_cycles) emit("estimated_cycles", static_cast<double>(*r.estimated_cycles));
}

template <typename Emit>
void loops(const Report& r, Emit emit) {
  std::map<std::string, int> seen;
  const Analysis& a = r.analysis;
  for (size_t l = 0; l < a.structure.loops.size(); ++l) {
    const Place place = a.structure.loops[l].place;
    const std::string where = place < 0 ? "(compiler)" : place_name(a.listing.places[place]);
    const int n = ++seen[where];
    emit(n == 1 ? where : fmt::format("{} #{}", where, n), a.loops[l].cycles);
  }
}

std::string number(double value) { return std::isnan(value) ? "-" : fmt::format("{:.0f}", value); }

std::string table(std::string_view title, const std::vector<Change>& changes, int rows) {
  std::string out;
  int n = 0;
  for (const Change& change : changes) {
    if (change.by() == 0) continue;
    if (++n > rows) {
      out += "        ...\n";
      break;
    }
    const double before = or_zero(change.before);
    out += fmt::format("{:>10} {:>10} {:>+10.0f} {:>8}  {}\n", number(change.before),
                       number(change.after), change.by(),
                       before > 0 ? fmt::format("{:+.1f} %", 100 * change.by() / before) : "",
                       change.name);
  }
  if (out.empty()) return fmt::format("\n{}: no difference\n", title);
  return fmt::format("\n    before      after     change           {}\n{}", title, out);
}

}  // namespace

double Change::by() const { return or_zero(after) - or_zero(before); }

Diff compare(const Report& before, const Report& after) {
  Diff out{.before = before.kernel, .after = after.kernel};
  out.totals = match(before, after, [](const Report& r, auto emit) { totals(r, emit); }).in_order();
  out.units = match(before, after, [](const Report& r, auto emit) {
                for (int u = 1; u < kUnits; ++u) {
                  emit(std::string(unit_name(static_cast<Unit>(u))),
                       static_cast<double>(r.analysis.total.issued[u]));
                }
              }).in_order();
  out.causes =
      match(before, after, [](const Report& r, auto emit) {
        for (int c = 0; c < kStallCauses; ++c) {
          emit(std::string(cause_name(static_cast<StallCause>(c))), r.analysis.run_stall_cycles[c]);
        }
      }).in_order();
  out.lines = match(before, after, [](const Report& r, auto emit) {
                for (const LineCost& line : r.analysis.lines) {
                  emit(place_name(line.where), line.cost.run_cycles);
                }
              }).largest_first();
  out.loops = match(before, after, [](const Report& r, auto emit) { loops(r, emit); }).in_order();
  return out;
}

std::string to_text(const Diff& diff, int rows) {
  return fmt::format("before  {}\nafter   {}\n", diff.before, diff.after) +
         table("total", diff.totals, 100) + table("source line, cycles x trips", diff.lines, rows) +
         table("loop, cycles of one trip", diff.loops, rows) +
         table("empty cycles x trips, waiting for", diff.causes, rows) +
         table("instructions issued", diff.units, rows);
}

nlohmann::ordered_json to_json(const Diff& diff) {
  using Json = nlohmann::ordered_json;
  const auto value = [](double v) { return std::isnan(v) ? Json() : Json(v); };
  const auto list = [&](const std::vector<Change>& changes) {
    Json out = Json::array();
    for (const Change& change : changes) {
      out.push_back({{"name", change.name},
                     {"before", value(change.before)},
                     {"after", value(change.after)},
                     {"change", change.by()}});
    }
    return out;
  };
  return {{"format", 1},
          {"before", diff.before},
          {"after", diff.after},
          {"totals", list(diff.totals)},
          {"units", list(diff.units)},
          {"empty_causes", list(diff.causes)},
          {"lines", list(diff.lines)},
          {"loops", list(diff.loops)}};
}

}  // namespace gridless::bundles
