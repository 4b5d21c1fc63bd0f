#include "apps/bench_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace gridless::apps {

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

std::string counted(int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace gridless::apps
