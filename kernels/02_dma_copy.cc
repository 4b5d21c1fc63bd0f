// Lesson 2: a copy is a start and a wait, and what you do between them is free.
//
// Blocks of an array are written back in reverse order, HBM to VMEM to HBM. All reads are started
// before the first wait: the copy engine works on all of them while the program goes on. Each
// block's write starts as soon as its read has landed, so reads and writes overlap without any
// thread.
//
// A C++ `for` unrolls: the program below has `blocks` starts in a row. That is fine for a handful;
// lesson 3 has the loop that stays a loop.
#include "gridless/lang/kernel.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 16, kColumns = 256;

Built build(const Options& o) {
  const int64_t n = o["blocks"];
  Kernel k("reverse_blocks");
  const Ref x = k.input("x", Elem::kBf16, {n, kRows, kColumns});
  const Ref y = k.output("y", Elem::kBf16, {n, kRows, kColumns});

  k.scope([&] {
    const Ref buffer = k.vmem(Elem::kBf16, {n, kRows, kColumns});
    const Sems read = k.dma_sems(n), written = k.dma_sems(n);

    std::vector<Copy> reads, writes;
    for (int64_t i = 0; i < n; ++i) reads.push_back(k.copy(x.at(i), buffer.at(i), read.at(i)));
    for (int64_t i = 0; i < n; ++i) {
      reads[static_cast<size_t>(i)].wait();
      writes.push_back(k.copy(buffer.at(i), y.at(n - 1 - i), written.at(i)));
    }
    // The scope gives its memory back when it ends, so no copy may still be using it then.
    for (const Copy& c : writes) c.wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  return {{normal(rng, Elem::kBf16, {o["blocks"], kRows, kColumns})}};
}

PerCore reference(const Options& o, const PerCore& in) {
  const int64_t n = o["blocks"];
  Array y(Elem::kBf16, in[0][0].shape);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) y.at({n - 1 - i, r, c}) = in[0][0].at({i, r, c});
  return {{y}};
}

}  // namespace

Lesson lesson_02_dma_copy() {
  return {.name = "02_dma_copy",
          .title = "Starts and waits: many copies in flight",
          .options = {{"blocks", 4, "blocks of 16x256 bf16", 1, 64}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // bytes are moved: exact
}

}  // namespace gridless::kernels
