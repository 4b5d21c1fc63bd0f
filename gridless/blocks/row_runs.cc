#include "gridless/blocks/row_runs.h"

namespace gridless::blocks {

RowRuns::RowRuns(const StepRows& rows) {
  Kernel& k = *rows.table.kernel();
  const int64_t count = rows.count;
  first_ = k.smem(Elem::kI32, {count});
  after_ = k.smem(Elem::kI32, {count});
  begin_ = k.smem(Elem::kI32, {count});
  number_ = k.smem(Elem::kI32, {count});
  first_.set({0}, 0);
  after_.set({count - 1}, 0);
  // Row r continues the run of the row before it.
  const auto continues = [&](Scalar r) {
    return rows.slot(r) == rows.slot(r - 1) && rows.active(r) && rows.active(r - 1);
  };
  k.loop(1, count, [&](Scalar r) { first_.set({r}, where(continues(r), first_.get({r - 1}), r)); });
  k.loop(1, count, [&](Scalar i) {
    const Scalar r = (count - 1) - i;
    after_.set({r}, where(continues(r + 1), after_.get({r + 1}) + 1, 0));
  });
  count_ = k.loop(0, count, Scalar(0), [&](Scalar r, Scalar before) {
    begin_.set({before}, r);  // stands if r begins a run
    const Scalar until = before + where(rows.active(r) && first_.get({r}) == r, Scalar(1), 0);
    number_.set({r}, until - 1);
    return until;
  });
}

Scalar RowRuns::first_pending(Scalar r) const {
  return max(first(r), r + after(r) + (1 - kPendingRows));
}

}  // namespace gridless::blocks
