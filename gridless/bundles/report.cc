#include "gridless/bundles/report.h"

#include <algorithm>

namespace gridless::bundles {

const CriticalPath* Report::costliest_path() const {
  const CriticalPath* costliest = nullptr;
  double most = 0;
  for (const CriticalPath& path : critical_paths) {
    if (path.begin < 0) continue;
    double cost = path.cycles;
    for (int l = analysis.structure.loop_of[path.begin]; l >= 0;
         l = analysis.structure.loops[l].parent) {
      cost *= static_cast<double>(analysis.structure.loops[l].trips.value_or(1));
    }
    if (cost <= most) continue;
    most = cost;
    costliest = &path;
  }
  return costliest;
}

int64_t Report::code_bytes() const { return code ? code->total.bundles * kBundleBytes : 0; }

Result<Report> make_report(const Dump& dump) {
  const auto analysis = [](const std::string& text, std::string_view file) -> Result<Analysis> {
    auto listing = parse_listing(text);
    if (!listing) return std::unexpected(listing.error().in(file));
    return analyse(std::move(*listing));
  };
  if (dump.schedule.empty() && dump.code.empty()) {
    return input_error("{}: neither a schedule nor code", dump.kernel);
  }
  Report out;
  out.kernel = dump.kernel;
  out.vmem = dump.vmem;
  out.estimated_cycles = dump.estimated_cycles;
  out.critical_paths = parse_critical_paths(dump.critical_path);
  out.has_schedule = !dump.schedule.empty();
  if (!dump.code.empty()) {
    TRY(out.code, analysis(dump.code, kCodeFile));
  }
  if (out.has_schedule) {
    TRY(out.analysis, analysis(dump.schedule, kScheduleFile));
    place_critical_paths(out.analysis.listing, out.critical_paths);
  } else {
    out.analysis = *out.code;
  }
  return out;
}

std::string place_name(const SourceLoc& where) {
  return where.known() ? fmt::format("{}:{}", where.file, where.line) : "(compiler)";
}

}  // namespace gridless::bundles
