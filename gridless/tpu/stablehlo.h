// Body text + CallSpec -> StableHLO text, the program that PJRT_Compile takes.
//
// One core: a @main that calls tpu_custom_call. Several cores: @main's arguments and results are
// the cores' shards one after the other along their first axis, sharded over the Shardy mesh axis
// "core", and the call sits in a manual computation over that mesh, where it sees its own shard. So
// every buffer of a device has exactly the kernel's shape. (A separate leading axis, as JAX's
// shard_map writes it, costs copies: libtpu lays a 1x100000 array out differently from a 100000
// one.) Aliased operands are donated: the caller's buffer becomes the result. Where the kernel
// writes through its operand, the program returns the operand itself.
#pragma once

#include <string>
#include <string_view>

#include "gridless/base/error.h"
#include "gridless/tpu/call_spec.h"

namespace gridless::tpu {

// `body` is Mosaic MLIR text. If its ops carry the prefix "stable_mosaic." it is the versioned
// form; else it is taken as plain dialect text, which libtpu parses at its own newest level. Input
// errors: what validate(spec) refuses, and a body with no module in it.
Result<std::string> stablehlo_text(const CallSpec& spec, std::string_view body);

// A program that gives every core the shards of all of them, one after the other along the first
// axis: with several hosts, how one learns what the others' cores found.
std::string gather_text(const OperandSpec& shard, int cores);

// The backend_config JSON of the call, without StableHLO's string escapes.
std::string backend_config(const CallSpec& spec, std::string_view body);

}  // namespace gridless::tpu
