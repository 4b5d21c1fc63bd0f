// Lesson 1: data lives in HBM, the vector unit works on VMEM, and copies join the two.
//
// A kernel is one sequential program. Its operands are refs into HBM, which no instruction can
// read: a ref is a window, not a value. To add two arrays we make room in VMEM, start a copy of
// each operand into it, wait until the bytes are there, load them as vectors, add, and send the
// result back.
//
// The C++ below runs once and *records* that program. `x + y` does not add anything now.
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT: a lesson reads as its reader would write it

namespace {

Built build(const Options& o) {
  const Shape shape = {o["rows"], 1024};
  Kernel k("add");
  const Ref x = k.input("x", Elem::kF32, shape);
  const Ref y = k.input("y", Elem::kF32, shape);
  const Ref z = k.output("z", Elem::kF32, shape);

  // What is allocated in a scope lives until the scope ends: no allocator, no free, no garbage.
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, shape);
    const Ref b = k.vmem(Elem::kF32, shape);
    // One semaphore per copy that may be in flight at the same time: it counts arrived bytes, and
    // two copies on one semaphore could not be told apart.
    const Sems done = k.dma_sems(2);

    const Copy copy_x = k.copy(x, a, done.at(0));  // both copies run from here on
    const Copy copy_y = k.copy(y, b, done.at(1));
    copy_x.wait();
    copy_y.wait();

    a.store(a.load() + b.load());  // the whole array at once: libtpu cuts it into registers
    k.copy(a, z, done.at(0)).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  const Shape shape = {o["rows"], 1024};
  Array x = normal(rng, Elem::kF32, shape), y = normal(rng, Elem::kF32, shape);
  return {{std::move(x), std::move(y)}};
}

PerCore reference(const Options&, const PerCore& in) {
  const Array &x = in[0][0], &y = in[0][1];
  Array z(Elem::kF32, x.shape);
  for (size_t i = 0; i < z.values.size(); ++i)
    z.values[i] = rounded(Elem::kF32, x.values[i] + y.values[i]);
  return {{z}};
}

}  // namespace

Lesson lesson_01_add() {
  return {.name = "01_add",
          .title = "Operands in HBM, work in VMEM, copies between them",
          .options = {{"rows", 8, "rows of 1024 numbers", 1, 2048}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // one correctly rounded addition: exact
}

}  // namespace gridless::kernels
