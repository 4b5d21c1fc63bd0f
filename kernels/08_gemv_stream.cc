// Lesson 8: a weight stream. Decoding is this loop.
//
// y = x.W for a few rows of x and a W that is read once from HBM: the time is that of reading W, so
// the read must never stop. A ring of `depth` slots keeps depth - 1 chunks in flight: when chunk i
// has been used, its slot is refilled with chunk i + depth. The prologue fills the ring; there is
// no other special case.
//
// W is stored as i32 words, each the bf16 weights of two neighbouring rows. bf16 arrays are tiled
// differently in HBM and in VMEM, so copying them as bf16 would be a strided copy at a fifth of the
// rate; words are copied as they lie, and `bitcast` gives the bf16 rows back for free.
//
// A chunk is 512 columns wide, so that both matrix units of the core have work on it.
#include <algorithm>

#include "gridless/base/numerics.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kChunkColumns = 512;

Built build(const Options& o) {
  const int64_t size_k = o["k"], chunks = o["chunks"], depth = o["depth"];
  Kernel k("gemv_stream");
  const Ref x = k.input("x", Elem::kBf16, {kRows, size_k});
  const Ref w = k.input("w", Elem::kI32, {chunks, size_k / 2, kChunkColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, chunks * kChunkColumns});

  k.scope([&] {
    const Ref vx = k.vmem(Elem::kBf16, {kRows, size_k});
    const Ref vy = k.vmem(Elem::kF32, {kRows, chunks * kChunkColumns});
    const Ref ring = k.vmem(Elem::kI32, {depth, size_k / 2, kChunkColumns});
    const Sems arrived = k.dma_sems(depth);
    const Sem done = k.dma_sem();
    const auto start = [&](Scalar chunk) {
      k.copy(w.at(chunk), ring.at(chunk % depth), arrived.at(chunk % depth));
    };

    for (int64_t i = 0; i < std::min(depth, chunks); ++i) start(i);
    k.copy(x, vx, done).wait();
    k.loop(0, chunks, [&](Scalar i) {
      const Scalar slot = i % depth;
      k.wait(w.at(i), ring.at(slot), arrived.at(slot));
      const Vec weights = bitcast(ring.at(slot).load(), Elem::kBf16);
      const Vec product = dot(vx.load(), weights, zeros(k, Elem::kF32, {kRows, kChunkColumns}));
      vy.store(product, {0, i * kChunkColumns});
      // The slot has been read: the load above is over before anything below it starts.
      k.if_(i + depth < chunks, [&] { start(i + depth); });
    });
    k.copy(vy, y, done).wait();
  });
  return k.finish();
}

// The word of rows 2r (low half) and 2r + 1 (high half).
double pack(double low, double high) {
  const uint32_t word = to_bf16(static_cast<float>(low)).bits |
                        static_cast<uint32_t>(to_bf16(static_cast<float>(high)).bits) << 16;
  return static_cast<int32_t>(word);
}
double unpack(double word, int64_t half) {
  const auto bits = static_cast<uint32_t>(static_cast<int32_t>(word));
  return to_f32(bf16{static_cast<uint16_t>(bits >> (16 * half))});
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array x = normal(rng, Elem::kBf16, {kRows, o["k"]});
  Array w(Elem::kI32, {o["chunks"], o["k"] / 2, kChunkColumns});
  std::normal_distribution<double> draw;
  for (double& word : w.values) word = pack(draw(rng), draw(rng));
  return {{std::move(x), std::move(w)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  const Array &x = in[0][0], &w = in[0][1];
  Array y(Elem::kF32, {kRows, o["chunks"] * kChunkColumns});
  for (int64_t i = 0; i < o["chunks"]; ++i)
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t z = 0; z < o["k"]; ++z)
        for (int64_t c = 0; c < kChunkColumns; ++c)
          y.at({r, i * kChunkColumns + c}) += x.at({r, z}) * unpack(w.at({i, z / 2, c}), z % 2);
  return {{y}};
}

}  // namespace

Lesson lesson_08_gemv_stream() {
  return {.name = "08_gemv_stream",
          .title = "A ring of slots keeps the weights coming",
          .options = {{"k", 512, "inner dimension", 128, 8192, 128},
                      {"chunks", 6, "chunks of 512 output columns", 1, 64},
                      {"depth", 3, "slots of the ring", 1, 16}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // k products of size 1, summed in f32: k roundings of 2^-24 of sums of size sqrt(k).
          .absolute = 1e-3,
          .relative = 1e-5};
}

}  // namespace gridless::kernels
