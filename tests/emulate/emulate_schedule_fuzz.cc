// The reader of schedule files takes any bytes; what it accepts is written and read again alike.
#include <cstdint>
#include <string_view>

#include "gridless/base/check.h"
#include "gridless/emulate/schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gridless::emulate;
  const auto file = parse_schedules({reinterpret_cast<const char*>(data), size});
  if (!file) {
    GRIDLESS_CHECK(!file.error().message.empty());
    return 0;
  }
  const std::string once = to_json(*file);
  const auto again = parse_schedules(once);
  GRIDLESS_CHECK(again.has_value(), "{}\n{}", again.error().message, once);
  GRIDLESS_CHECK(to_json(*again) == once, "{}", once);
  return 0;
}
