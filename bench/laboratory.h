// What libtpu makes of a kernel, for the calibration programs.
#pragma once

#include <optional>

#include "gridless/bundles/listing.h"
#include "gridless/tpu/compile_kernel.h"

namespace gridless {

class Laboratory {
 public:
  explicit Laboratory(tpu::Compiler& compiler) : compiler_(compiler) {}

  // The schedule, one bundle a cycle; none: libtpu does not compile the kernel.
  std::optional<bundles::Listing> schedule(ir::Program program) {
    const auto slice = chips::smallest_slice(program.call.cores);
    if (!slice) return std::nullopt;
    const auto call = tpu::compile_kernel(compiler_, std::move(program), *slice);
    if (!call || !call->result.compiled || !call->result.compiled->schedule) return std::nullopt;
    auto listing = bundles::parse_listing(call->result.compiled->schedule->dump.schedule);
    if (!listing) return std::nullopt;
    return std::move(*listing);
  }

 private:
  tpu::Compiler& compiler_;
};

}  // namespace gridless
