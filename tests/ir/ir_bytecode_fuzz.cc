// The bytecode reader takes any bytes; what it accepts can be verified, printed and read as text.
#include <cstdint>
#include <string_view>

#include "gridless/base/check.h"
#include "gridless/ir/bytecode.h"
#include "gridless/ir/text.h"
#include "gridless/ir/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gridless;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto locations = ir::read_bytecode_locations(bytes, "fuzz.mlirbc");
  GRIDLESS_CHECK(locations.has_value() || !locations.error().empty());
  const auto module = ir::read_bytecode(bytes, "fuzz.mlirbc");
  if (!module) {
    GRIDLESS_CHECK(!module.error().empty());
    return 0;
  }
  ir::verify(*module);
  for (const int version : {13, 18}) {
    const std::string once = ir::print(*module, {.version = version});
    const auto again = ir::parse(once, "again.mlir");
    GRIDLESS_CHECK(again.has_value(), "{}\n{}", to_string(again.error()), once);
    GRIDLESS_CHECK(ir::print(*again, {.version = version}) == once, "{}", once);
  }
  return 0;
}
