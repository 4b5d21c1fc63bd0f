#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gridless/bundles/report.h"

namespace gridless::bundles {
namespace {

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string head(const Report& r) {
  const Analysis& a = r.analysis;
  std::string out = fmt::format("kernel      {}\n", r.kernel);
  if (r.has_schedule) {
    out += fmt::format(
        "schedule    {} cycles, {} of them empty ({:.0f} %); {:.0f} with loops counted{}\n",
        a.total.cycles, a.total.stalls, percent(a.total.stalls, a.total.cycles), a.total.run_cycles,
        a.all_trips_known ? "" : ", at least");
  } else {
    out += "schedule    not given: cycles below are bundles of code\n";
  }
  if (r.estimated_cycles) {
    out += fmt::format("estimate    {} cycles, copies included (libtpu's own simulation)\n",
                       *r.estimated_cycles);
  }
  if (r.code) {
    out += fmt::format("code        {} bundles, {} bytes\n", r.code->total.bundles, r.code_bytes());
  }
  if (r.vmem.bytes > 0) {
    out += fmt::format("vmem        {} bytes, {} of them spilled registers\n", r.vmem.bytes,
                       r.vmem.spill_bytes);
  }
  out += fmt::format("spills      {} registers written, {} read back\n", a.total.spills,
                     a.total.fills);
  if (a.listing.gaps > 0) {
    out += fmt::format("note        the listing skips addresses {} times: it is not whole\n",
                       a.listing.gaps);
  }
  return out;
}

std::string slots(const Report& r) {
  const Analysis& a = r.analysis;
  std::string out = "\nunit        issued   slots used\n";
  for (int u = 1; u < kUnits; ++u) {
    const int64_t issued = a.total.issued[u];
    if (issued == 0) continue;
    const Unit unit = static_cast<Unit>(u);
    out += fmt::format("{:<10} {:>7} {:>10.1f} %\n", unit_name(unit), issued,
                       percent(static_cast<double>(issued), slot_capacity(unit) * a.total.cycles));
  }
  return out;
}

std::string stalls(const Report& r) {
  const Analysis& a = r.analysis;
  std::string out;
  for (int c = 0; c < kStallCauses; ++c) {
    if (a.stall_cycles[c] == 0) continue;
    out += fmt::format("{:>7.0f} {:>10.0f}  {}\n", a.stall_cycles[c], a.run_stall_cycles[c],
                       cause_text(static_cast<StallCause>(c)));
  }
  return out.empty() ? "" : "\n  empty  x trips  waiting for\n" + out;
}

std::string lines(const Report& r, int rows) {
  const Analysis& a = r.analysis;
  std::string out = "\n cycles  empty  x trips   share  source line\n";
  int n = 0;
  for (const LineCost& line : a.lines) {
    if (++n > rows) {
      out += fmt::format("{:>36} more lines\n", std::ssize(a.lines) - rows);
      break;
    }
    out += fmt::format("{:>7.0f} {:>6.0f} {:>8.0f} {:>5.1f} %  {}\n", line.cost.cycles,
                       line.cost.stalls, line.cost.run_cycles,
                       percent(line.cost.run_cycles, a.total.run_cycles), place_name(line.where));
  }
  return out;
}

std::string loops(const Report& r) {
  const Analysis& a = r.analysis;
  if (a.structure.loops.empty()) return "";
  std::string out = "\n cycles  empty  trips  loop\n";
  for (size_t l = 0; l < a.structure.loops.size(); ++l) {
    const Loop& loop = a.structure.loops[l];
    const std::string where =
        loop.place < 0 ? "(compiler)" : place_name(a.listing.places[loop.place]);
    out += fmt::format("{:>7.0f} {:>6.0f} {:>6}  {}{}{}\n", a.loops[l].cycles, a.loops[l].stalls,
                       loop.trips ? fmt::format("{}", *loop.trips) : "?",
                       std::string(2 * static_cast<size_t>(loop.depth - 1), ' '), where,
                       loop.trips ? "" : ": " + loop.why_unknown);
  }
  return out;
}

std::string instruction_text(const Analysis& a, int instruction) {
  if (instruction < 0) return "the end";
  const Instruction& i = a.listing.instructions[instruction];
  return fmt::format("{} ({})", i.opcode,
                     i.places.empty() ? "compiler" : place_name(a.listing.places[i.places[0]]));
}

std::string gaps(const Report& r, int rows) {
  const Analysis& a = r.analysis;
  std::vector<Stall> longest = a.stalls;
  std::ranges::stable_sort(longest,
                           [](const Stall& x, const Stall& y) { return x.cycles() > y.cycles(); });
  if (std::ssize(longest) > rows) longest.resize(static_cast<size_t>(rows));
  std::string out;
  for (const Stall& stall : longest) {
    out += fmt::format("{:>7} {:>#8x}  {}{}\n", stall.cycles(),
                       a.listing.bundles[stall.begin].address, instruction_text(a, stall.waiting),
                       stall.producer < 0 ? "" : " after " + instruction_text(a, stall.producer));
  }
  return out.empty() ? "" : "\n  empty  address  what waits\n" + out;
}

// The chain that costs most, and how much longer its stretch of the schedule is.
std::string critical(const Report& r, int rows) {
  const CriticalPath* path = r.costliest_path();
  if (path == nullptr) return "";
  std::string out = fmt::format(
      "\nThe costliest chain of instructions: {} cycles at least, {} in the schedule ({:#x} to "
      "{:#x})\n",
      path->cycles, path->end - path->begin, r.analysis.listing.bundles[path->begin].address,
      r.analysis.listing.bundles[path->end - 1].address);
  int n = 0;
  for (const ChainLink& link : path->chain) {
    if (++n > rows) break;
    out += fmt::format("{:>7}  {}  {}\n", link.to_end, link.instruction,
                       link.where.known() ? place_name(link.where) : "");
  }
  return out;
}

}  // namespace

std::string to_text(const Report& report, int rows) {
  std::string out = head(report) + slots(report) + lines(report, rows) + loops(report);
  if (!report.has_schedule) return out;
  return out + stalls(report) + gaps(report, rows) + critical(report, rows);
}

}  // namespace gridless::bundles
