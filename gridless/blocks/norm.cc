#include "gridless/blocks/norm.h"

namespace gridless::blocks {

void rms_norm(Ref x, Ref w, Ref out, int64_t width, double eps) {
  Kernel& k = *x.kernel();
  const int64_t n = x.dim(0);
  k.composite("rms_norm", {x, w, out}, {{"width", width}, {"eps", eps}, {"rows", x.dim(1)}}, [&] {
    const Vec v = x.load();
    const Vec squares = sum(sum(v * v, 0), 2);  // [1, R, 1]
    const Vec scale = rsqrt(squares * (1.0 / static_cast<double>(width)) + eps);
    out.store(cast(v * scale * reshape(w.load(), {n, 1, kLanes}), Elem::kBf16));
  });
}

}  // namespace gridless::blocks
