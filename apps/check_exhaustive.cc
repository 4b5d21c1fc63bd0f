#include "apps/check_exhaustive.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gridless::apps {

using emulate::ExploreFinding;
using emulate::ExploreVerdict;

Diagnostics diagnostics_of(const ExploreVerdict& verdict) {
  Diagnostics out;
  for (const ExploreFinding& f : verdict.findings)
    out.push_back(
        {.kind = f.kind,
         .message = f.message,
         .where = f.where(),
         .notes = {fmt::format("seen by the exhaustive explorer after {} steps", f.steps.size())},
         .hint = ""});
  if (!verdict.exhausted)
    out.push_back({.severity = Diagnostic::Severity::kWarning,
                   .kind = "step_limit",
                   .message = fmt::format("not every timing was explored: {}", verdict.stopped),
                   .where = {},
                   .notes = {"this is no verdict of the explorer"},
                   .hint = "explore a smaller case: fewer cores, fewer rounds; or --max-states"});
  return out;
}

nlohmann::json json_of(const std::vector<ExploreFinding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const ExploreFinding& f : findings)
    list.push_back(
        {{"kind", f.kind}, {"message", f.message}, {"location", f.where().str_if_known()}});
  return list;
}

nlohmann::json json_of(const ExploreVerdict& verdict) {
  return {{"exhausted", verdict.exhausted},
          {"verdict", !verdict.findings.empty() ? "findings"
                      : verdict.exhausted       ? "clean"
                                                : "none"},
          {"findings", json_of(verdict.findings)},
          {"states", verdict.states},
          {"steps", verdict.transitions}};
}

std::string summary(const ExploreVerdict& verdict) {
  const std::string what = verdict.findings.empty()
                               ? verdict.exhausted ? "clean" : "no verdict"
                               : fmt::format("{} fault{}", verdict.findings.size(),
                                             verdict.findings.size() > 1 ? "s" : "");
  return fmt::format("{}: {} ({} states, {} steps)",
                     verdict.exhausted ? "every timing explored" : "not every timing explored",
                     what, verdict.states, verdict.transitions);
}

std::vector<emulate::Schedule> schedules_of(const ExploreVerdict& verdict) {
  std::vector<emulate::Schedule> out;
  for (const ExploreFinding& f : verdict.findings)
    out.push_back({.kind = f.kind,
                   .message = f.message,
                   .location = f.where().str_if_known(),
                   .launches = f.launches,
                   .hold = std::nullopt,
                   .steps = f.steps});
  return out;
}

}  // namespace gridless::apps
