// The mock plugin in this process: its path and its control functions.
#pragma once

#include <dlfcn.h>

#include <string>

#include "gridless/tpu/pjrt_abi.h"
#include "tests/tpu/plugins/mock_control.h"

namespace gridless::tpu {

inline constexpr const char* kMockPlugin = GRIDLESS_TEST_PLUGINS "/mock_pjrt.so";

template <typename F>
F* mock_symbol(const char* name) {
  static void* library = dlopen(kMockPlugin, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(library, name));
}
inline void inject(abi::Slot slot, int code, int skip = 0) {
  mock_symbol<decltype(MockInject)>("MockInject")(static_cast<int>(slot), code, skip);
}
inline void inject(int slot, int code, int skip = 0) {
  mock_symbol<decltype(MockInject)>("MockInject")(slot, code, skip);
}
inline void forget_objects() { mock_symbol<decltype(MockForget)>("MockForget")(); }
inline std::string violations() {
  return mock_symbol<decltype(MockViolations)>("MockViolations")();
}
inline int live_objects() { return mock_symbol<decltype(MockLive)>("MockLive")(); }
inline int launches() { return mock_symbol<decltype(MockLaunches)>("MockLaunches")(); }

}  // namespace gridless::tpu
