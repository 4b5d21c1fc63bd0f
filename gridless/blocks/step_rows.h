// The launch contract (docs/launch_contract.md): what a launch gets to know about its rows.
#pragma once

#include "gridless/blocks/activations.h"

namespace gridless::blocks {

inline constexpr int64_t kPageTokens = 128;

// Which row of the row table holds what.
enum RowField : int {
  kRowToken = 0,
  kRowSlot = 1,
  kRowPosition = 2,
  kRowActive = 3,
  kRowFields = 4
};

struct StepRows {
  int64_t count = 1;  // R
  Ref table;          // i32 SMEM [4, R]: token, sequence slot, position, active
  Ref pages;          // i32 SMEM [S, max pages]: page of tokens 128 i .. 128 i + 127 of a slot

  Scalar token(Scalar r) const { return table.get({kRowToken, r}); }
  Scalar slot(Scalar r) const { return table.get({kRowSlot, r}); }
  Scalar position(Scalar r) const { return table.get({kRowPosition, r}); }
  Scalar active(Scalar r) const { return table.get({kRowActive, r}) != 0; }
};

// Operands `rows` and `pages`.
StepRows declare_rows(Kernel& k, int64_t rows, int64_t slots, int64_t slot_pages);

// x[:, r] = row `token(r)` of `embedding` (f32 [V, n, 128] in HBM), for all rows; x: f32 [n, R,
// 128].
void embed(const StepRows& rows, Ref embedding, Ref x);

}  // namespace gridless::blocks
