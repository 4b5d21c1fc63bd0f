// The parser of listings and all that is computed from them take any bytes; the bill adds up.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "gridless/base/check.h"
#include "gridless/bundles/analysis.h"
#include "gridless/bundles/critical_path.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gridless;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  bundles::parse_critical_paths(text);
  auto listing = bundles::parse_listing(text);
  if (!listing) {
    GRIDLESS_CHECK(!listing.error().message.empty());
    return 0;
  }
  const bundles::Analysis analysis = bundles::analyse(std::move(*listing));
  double lines = 0;
  for (const bundles::LineCost& line : analysis.lines) lines += line.cost.cycles;
  const auto cycles = static_cast<double>(analysis.listing.bundles.size());
  GRIDLESS_CHECK(std::abs(lines - cycles) < 1e-6 * (1 + cycles), "{} of {}", lines, cycles);
  GRIDLESS_CHECK(analysis.total.cycles == cycles);
  return 0;
}
