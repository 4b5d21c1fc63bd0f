// Small things that all measurements print.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridless::apps {

// CPU time of all threads of this process so far.
double cpu_ms();
double median(std::vector<double> values);  // not empty
// "1 row", "2 rows"
std::string counted(int64_t n, std::string_view what);

}  // namespace gridless::apps
