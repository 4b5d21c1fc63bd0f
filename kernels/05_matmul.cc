// Lesson 5: the MXU, and a loop that carries a vector.
//
// C = A.B with bf16 operands and f32 sums. `dot(a, b, acc)` is the matrix unit: it multiplies bf16
// exactly, adds in f32, and adds the result to `acc`. K is walked in chunks so that a big A and B
// need not be registers at once; the sum travels from one iteration to the next as the loop's
// carried value. (A value made inside a loop body cannot be used after it: carrying is how it gets
// out.)
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kM = 64, kN = 256, kChunk = 256;

Built build(const Options& o) {
  const int64_t size_k = o["k"];
  Kernel k("matmul");
  const Ref a = k.input("a", Elem::kBf16, {kM, size_k});
  const Ref b = k.input("b", Elem::kBf16, {size_k, kN});
  const Ref c = k.output("c", Elem::kF32, {kM, kN});

  k.scope([&] {
    const Ref va = k.vmem(Elem::kBf16, {kM, size_k});
    const Ref vb = k.vmem(Elem::kBf16, {size_k, kN});
    const Ref vc = k.vmem(Elem::kF32, {kM, kN});
    const Sems done = k.dma_sems(2);
    const Copy copy_a = k.copy(a, va, done.at(0));
    const Copy copy_b = k.copy(b, vb, done.at(1));
    copy_a.wait();
    copy_b.wait();

    const Vec product =
        k.loop(0, size_k / kChunk, zeros(k, Elem::kF32, {kM, kN}), [&](Scalar i, Vec acc) {
          const Scalar at = i * kChunk;  // a multiple of 128 lanes of A and of 8 rows of B
          return dot(va.load({0, at}, {kM, kChunk}), vb.load({at, 0}, {kChunk, kN}), acc);
        });
    vc.store(product);
    k.copy(vc, c, done.at(0)).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array a = normal(rng, Elem::kBf16, {kM, o["k"]}), b = normal(rng, Elem::kBf16, {o["k"], kN});
  return {{std::move(a), std::move(b)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  Array c(Elem::kF32, {kM, kN});
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j)
      for (int64_t x = 0; x < o["k"]; ++x)
        c.at({i, j}) += in[0][0].at({i, x}) * in[0][1].at({x, j});
  return {{c}};
}

}  // namespace

Lesson lesson_05_matmul() {
  return {.name = "05_matmul",
          .title = "dot() on the MXU, and a loop that carries its sum",
          .options = {{"k", 1024, "inner dimension", 256, 16384, 256}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // Products are exact; k sums of f32: a walk of k roundings of 2^-24 of sums of size
          // sqrt(k), below 2^-24 * k for every k here.
          .absolute = 1024 * 6e-8 * 4,
          .relative = 1e-5};
}

}  // namespace gridless::kernels
