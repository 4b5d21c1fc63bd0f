#include "gridless/blocks/gated_attention.h"

namespace gridless::blocks {

namespace {

// 1 / sqrt(mean over the head's lanes + eps) in every lane of the head; lo, hi: [R, half].
Vec head_scales(Vec lo, Vec hi, const HeadShape& h, double eps) {
  Kernel& k = *lo.kernel();
  const Vec squares = lo * lo + hi * hi;
  const Vec lane = iota(k, lo.shape(), 1);
  const int64_t width = h.head_dim / 2;
  const double share = 1.0 / static_cast<double>(h.head_dim);
  Vec out;
  for (int64_t j = 0; j < h.heads; ++j) {
    const Vec mine =
        (lane >= static_cast<int>(j * width)) & (lane < static_cast<int>((j + 1) * width));
    const Vec of_head = h.heads == 1 ? squares : where(mine, squares, 0.0);
    const Vec scale = broadcast(rsqrt(sum(of_head, 1) * share + eps), lo.shape());
    out = j == 0 ? scale : where(mine, scale, out);
  }
  return out;
}

}  // namespace

void qkv_norm_rope(Ref y, Ref norms, const RopeTable& rope, const HeadShape& h, double eps,
                   Ref qkv) {
  Kernel& k = *y.kernel();
  const int64_t rows = y.dim(1), half = h.half();
  const auto body = [&] {
    const auto put = [&](int64_t i, Vec v) {
      const Vec row = cast(pad_lanes(v, h.padded()), Elem::kBf16);
      qkv.store(reshape(row, {1, rows, h.padded()}), {i, 0, 0});
    };
    const Vec c = slice(rope.cos.load(), {0, 0}, {rows, half});
    const Vec s = slice(rope.sin.load(), {0, 0}, {rows, half});
    for (int64_t i = 0; i < h.groups + 1; ++i) {
      const Vec a = columns(y, i * h.width(), half), b = columns(y, i * h.width() + half, half);
      const Vec scale = head_scales(a, b, h, eps);
      const auto weight = [&](int64_t which) {
        return reshape(norms.load({i < h.groups ? 0 : 1, which, 0}, {1, 1, half}), {1, half});
      };
      const Vec lo = a * scale * weight(0), hi = b * scale * weight(1);
      put(i, concat({lo * c - hi * s, hi * c + lo * s}, 1));
    }
    put(h.groups + 1, columns(y, (h.groups + 1) * h.width(), h.width()));
  };
  k.composite("qkv_norm_rope", {y, norms, rope.cos, rope.sin, qkv},
              {{"groups", h.groups},
               {"heads", h.heads},
               {"width", h.width()},
               {"rows", rows},
               {"eps", eps}},
              body);
}

void gate_context(Ref context, Ref gate) {
  Kernel& k = *context.kernel();
  k.composite("gate_context", {context, gate}, {}, [&] {
    const Vec open = logistic(gate.load({0, 0, 0}, context.shape()));
    context.store(cast(cast(context.load(), Elem::kF32) * open, Elem::kBf16));
  });
}

}  // namespace gridless::blocks
