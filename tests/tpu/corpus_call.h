// The calls of the corpus in the terms of XLA.
#pragma once

#include <string_view>

#include "gridless/ir/call_json.h"
#include "gridless/tpu/compile_kernel.h"

namespace gridless::tpu {

inline Result<CallSpec> parse_call_json(std::string_view json) {
  TRY(const ir::Call call, ir::parse_call_json(json));
  return call_spec(call);
}

}  // namespace gridless::tpu
