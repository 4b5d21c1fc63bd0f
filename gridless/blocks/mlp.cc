#include "gridless/blocks/mlp.h"

namespace gridless::blocks {

void swiglu(Ref y, Ref out) {
  Kernel& k = *y.kernel();
  const int64_t half = y.dim(0) / 2;
  k.composite("swiglu", {y, out}, {{"panels", y.dim(0)}, {"rows", y.dim(1)}}, [&] {
    const Vec gate = y.load({0, 0, 0}, {half, y.dim(1), kLanes});
    const Vec up = y.load({half, 0, 0}, {half, y.dim(1), kLanes});
    const Vec silu = gate / (exp(neg(gate)) + 1.0);
    out.store(cast(silu * up, Elem::kBf16));
  });
}

}  // namespace gridless::blocks
