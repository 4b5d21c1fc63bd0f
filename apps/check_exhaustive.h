// gridless check --exhaustive: the explorer's word beside the certificate's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gridless/emulate/explore/explore.h"

namespace gridless::apps {

// The findings as Diagnostics, for the report on stderr; a warning where there is no verdict.
Diagnostics diagnostics_of(const emulate::ExploreVerdict& verdict);
nlohmann::json json_of(const emulate::ExploreVerdict& verdict);
// A list of kind, message and location ("" where unknown).
nlohmann::json json_of(const std::vector<emulate::ExploreFinding>& findings);
// "every timing explored: clean (1,375 states)", for people.
std::string summary(const emulate::ExploreVerdict& verdict);
// Their timings, step by step.
std::vector<emulate::Schedule> schedules_of(const emulate::ExploreVerdict& verdict);

}  // namespace gridless::apps
