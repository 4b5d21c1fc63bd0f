// Rows of one sequence stand together in a launch, in ascending positions: a run. Models with
// recurrent state go through the rows in order and need to know where runs begin and end
// (docs/launch_contract.md).
//
// The state of a slot is what all rows but its last few left (committed), and the factors that
// these few would add (pending): the host says by `keep` how many of them count, and the next
// launch of the slot adds those and forgets the rest. So a verified draft that is rejected has
// never touched the state, and nothing is copied for rows that may not survive.
#pragma once

#include "gridless/blocks/step_rows.h"

namespace gridless::blocks {

// The last rows of a run that stay pending: as many as a verification may have.
inline constexpr int64_t kPendingRows = 8;

class RowRuns {
 public:
  // Fills four SMEM tables in the current scope.
  explicit RowRuns(const StepRows& rows);

  Scalar first(Scalar r) const { return first_.get({r}); }  // the first row of r's run
  Scalar after(Scalar r) const { return after_.get({r}); }  // rows of the run that follow r
  // The first row of r's run that stays pending. (Before it the state is committed.)
  Scalar first_pending(Scalar r) const;

  Scalar count() const { return count_; }                     // of runs
  Scalar begin(Scalar i) const { return begin_.get({i}); }    // the first row of run i
  Scalar number(Scalar r) const { return number_.get({r}); }  // of the run of active row r

  Ref first_table() const { return first_; }  // i32 [R]
  Ref after_table() const { return after_; }
  Ref begin_table() const { return begin_; }
  Ref number_table() const { return number_; }

 private:
  Ref first_, after_, begin_, number_;
  Scalar count_;
};

}  // namespace gridless::blocks
