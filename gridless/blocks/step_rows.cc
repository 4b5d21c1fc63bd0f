#include "gridless/blocks/step_rows.h"

namespace gridless::blocks {

StepRows declare_rows(Kernel& k, int64_t rows, int64_t slots, int64_t slot_pages) {
  StepRows out{.count = rows};
  out.table = k.input("rows", Elem::kI32, {kRowFields, rows}, Space::kSmem);
  out.pages = k.input("pages", Elem::kI32, {slots, slot_pages}, Space::kSmem);
  return out;
}

void embed(const StepRows& rows, Ref embedding, Ref x) {
  Kernel& k = *x.kernel();
  const int64_t n = x.dim(0), count = rows.count;
  k.scope([&] {
    // One contiguous row per copy into a row-major buffer; the turn to panel-major is made in
    // registers.
    const Ref staged = k.vmem(Elem::kF32, {count, n, kLanes});
    const Sem done = k.dma_sem();
    k.loop(0, count, [&](Scalar r) { k.copy(embedding.at(rows.token(r)), staged.at(r), done); });
    k.loop(0, count, [&](Scalar r) { k.wait(embedding.at(rows.token(r)), staged.at(r), done); });
    for (int64_t p = 0; p < n; ++p) {
      const Vec panel = reshape(staged.load({0, p, 0}, {count, 1, kLanes}), {count, kLanes});
      x.store(reshape(panel, {1, count, kLanes}), {p, 0, 0});
    }
  });
}

}  // namespace gridless::blocks
