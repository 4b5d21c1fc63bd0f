// The candidate selector of DFlash2: which of a draft's likeliest tokens follow each other. Row i
// of a block (i >= 1) has candidates with logits; along the block, from the anchor on,
//
//   condition = predecessor[last token] * hidden_i            (element-wise, `rank` numbers)
//   score     = logit + successor[candidate] . condition      for each candidate
//
// and the candidate with the best score (of equals the likelier one) is the row's token.
#pragma once

#include "gridless/blocks/collectives/collective.h"
#include "gridless/blocks/head.h"
#include "gridless/blocks/step_rows.h"

namespace gridless::blocks {

struct SelectorOutputs {
  Ref candidates;  // i32 HBM [R, 128]: ids of a row's candidates, the likeliest first, then zeros
  Ref drafts;      // i32 HBM [1, 128]: lane i is the token of row i + 1; then zeros
};
SelectorOutputs declare_selector(Kernel& k, int64_t rows);

struct SelectorInputs {
  Ref predecessor, successor;  // f32 HBM [V, rank panels, 128]
  Ref hidden;                  // f32 [rank panels, R, 128]
};

// What the cores tell each other: make it where the kernel begins.
Collective gather_candidates(Kernel& k, int64_t rows);

// `head`: what lm_head() left of this core's shard of `shard` tokens, at least `keep` candidates
// per row or all there are. All cores select the same.
void select_candidates(const SelectorInputs& in, const HeadOutputs& head, int64_t shard,
                       int64_t keep, const StepRows& rows, Collective& gather,
                       const SelectorOutputs& out);

}  // namespace gridless::blocks
