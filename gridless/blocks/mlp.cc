#include "gridless/blocks/mlp.h"

namespace gridless::blocks {

void swiglu(Ref y, Ref out) {
  Kernel& k = *y.kernel();
  const int64_t half = y.dim(0) / 2;
  k.composite("swiglu", {y, out}, {{"panels", y.dim(0)}, {"rows", y.dim(1)}}, [&] {
    const Vec gate = y.load({0, 0, 0}, {half, y.dim(1), kLanes});
    const Vec up = y.load({half, 0, 0}, {half, y.dim(1), kLanes});
    out.store(cast(silu(gate) * up, Elem::kBf16));
  });
}

Vec situ(Vec gate, Vec up, const Situ& s) {
  const auto bounded = [](Vec v, double by) { return tanh(v * (1.0 / by)) * by; };
  gate = round_to_bf16(gate);
  up = round_to_bf16(up);
  if (s.linear > 0) up = bounded(up, s.linear);
  return bounded(gate, s.beta) * logistic(gate) * up;
}

void situ(Ref y, const Situ& s, Ref out) {
  const int64_t half = y.dim(0) / 2;
  const Vec gate = y.load({0, 0, 0}, {half, y.dim(1), kLanes});
  const Vec up = y.load({half, 0, 0}, {half, y.dim(1), kLanes});
  out.store(cast(situ(gate, up, s), Elem::kBf16));
}

Ref gated_mlp(WeightStream& w, const std::string& gate_up, const std::string& down, Ref x,
              const std::function<void(Ref y, Ref out)>& gated) {
  const weights::MatrixLayout& m = w.matrix(gate_up);
  const int64_t chunk = m.panels_per_chunk / 2;
  const Ref inner = x.kernel()->vmem(Elem::kBf16, {m.panels / 2, x.dim(1), kLanes});
  w.project_groups(gate_up, x, [&](Scalar g, Ref y) { gated(y, inner.rows(g * chunk, chunk)); });
  return w.project(down, inner);
}

}  // namespace gridless::blocks
