#include "gridless/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace gridless {

void check_failed(const char* condition, const std::string& message, std::source_location where) {
  fmt::print(stderr, "{}:{}: internal error: CHECK({}) failed{}{}\n", where.file_name(),
             where.line(), condition, message.empty() ? "" : ": ", message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace gridless
