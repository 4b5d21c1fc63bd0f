// The router of a mixture of experts with sigmoid scores (DeepSeek-V3, 2024): of each row the k
// experts of largest sigmoid(logit) + bias, equal ones the smaller id first, with the weights
// sigmoid(logit) / (the sum over those k). The bias decides who is chosen, not what they weigh.
#pragma once

#include "gridless/blocks/step_rows.h"
#include "gridless/lang/source.h"

namespace gridless::blocks {

struct RouterShape {
  int64_t experts = 0;  // of the model
  int64_t chosen = 0;   // k, per row; at most 128
};

// logits: f32 [P, R, 128], P panels of the experts; bias: f32 [P, 128]; gates: f32 [P, R, 128], the
// weights by expert, zero where not chosen; ids: i32 [R, 128], the chosen in lanes 0 .. k-1 in
// descending order of the scores.
void route(Ref logits, Ref bias, const RouterShape& s, Ref gates, Ref ids);

// A run of experts that a core holds, and those of them that the rows of a launch chose.
class ChosenExperts {
 public:
  // Tables in SMEM, from the scope around. `layers`: with a router of their own; their choices are
  // the named source "expert", [layers, R, k].
  ChosenExperts(Kernel& k, const StepRows& rows, const RouterShape& s, int64_t layers, Scalar first,
                int64_t count);

  // Takes the choices of a layer. From then on:
  void take(Scalar layer, Ref ids);
  Scalar size() const { return size_; }
  // The i-th of the experts that an active row chose, each once, ascending, counted from `first`.
  Scalar local(Scalar i) const { return list_.get({i}); }
  Scalar id(Scalar i) const { return first_ + local(i); }

 private:
  Kernel& k_;
  const StepRows& rows_;
  RouterShape shape_;
  lang::Source source_;
  Scalar first_, size_;
  int64_t count_;
  Ref ids_;    // i32 [R, 128]
  Ref marks_;  // i32 [count + 1]: the number of the last layer that chose it, plus one
  Ref list_;   // i32 [count]
  Sem done_;
};

}  // namespace gridless::blocks
