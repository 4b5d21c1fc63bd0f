// What a call of a collective takes, predicted: a kernel that calls it in a loop, timed.
#pragma once

#include "bench/figure_programs.h"
#include "gridless/blocks/collectives/collective.h"

namespace gridless::bench {

struct CollectiveCall {
  blocks::CollectiveKind kind = blocks::CollectiveKind::kAllReduce;
  blocks::Algorithm algorithm = blocks::Algorithm::kDirect;
  int cores = 8;
  int64_t rows = 8, panels = 1;  // of a part: panels x rows x 128 f32

  int64_t part_bytes() const { return panels * rows * 512; }
  int64_t parts_in() const {
    return kind == blocks::CollectiveKind::kReduceScatter ||
                   kind == blocks::CollectiveKind::kAllToAll
               ? cores
               : 1;
  }
};

// Nanoseconds per call, without the barrier before the first; 0 where it does not fit into VMEM.
// Calls of a loop, but for broadcasts, whose root would run ahead.
inline double call_ns(const CollectiveCall& c, const chips::TimeParameters& p) {
  const bool once = c.kind == blocks::CollectiveKind::kBroadcast;
  const int calls[2] = {once ? 0 : 2, once ? 1 : 6};
  double ns[2];
  for (int which = 0; which < 2; ++which) {
    Kernel k("collective", c.cores);
    k.barrier_all();
    k.scope([&] {
      blocks::Collective exchange(k, {.kind = c.kind,
                                      .algorithm = c.algorithm,
                                      .group = {c.cores},
                                      .part = {c.panels, c.rows, 128}});
      const Ref in = k.vmem(Elem::kF32, {c.parts_in() * c.panels, c.rows, 128});
      k.loop(0, calls[which], [&](Scalar call) { exchange.run(in, call); });
    });
    k.set_vmem_limit(60 * kMi);
    auto program = k.finish();
    if (!program) return 0;
    const auto kernel = time::TimedKernel::create(program->module, program->call);
    if (!kernel) return 0;
    const auto slice = chips::smallest_slice(c.cores);
    if (!slice) return 0;
    const auto prediction = kernel->predict(time::place(*slice, c.cores), {}, {.parameters = p});
    if (!prediction) return 0;
    ns[which] = prediction->kernel_ns;
  }
  return (ns[1] - ns[0]) / (calls[1] - calls[0]);
}

}  // namespace gridless::bench
