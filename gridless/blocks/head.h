// LM head outputs: f32 logits in HBM, and the k best candidates of every row, kept while the chunks
// of the head stream by.
#pragma once

#include "gridless/blocks/weight_stream.h"

namespace gridless::blocks {

struct HeadOutputs {
  Ref logits;            // f32 HBM [panels of the vocabulary shard, R, 128]
  Ref candidate_logits;  // f32 HBM [R, 128]: the k largest in descending order, then zeros
  Ref candidate_ids;     // i32 HBM [R, 128]: their ids within this core's shard
};

// These results, `panels` of logits.
HeadOutputs declare_head(Kernel& k, int64_t rows, int64_t panels);

// Streams matrix `name` of the tail. `vocabulary`: true outputs of this core's shard; padding is
// never a candidate. Equal logits: the smaller id first, so candidate 0 is the argmax.
void lm_head(Kernel& k, WeightStream& stream, const std::string& name, Ref x, int64_t vocabulary,
             int64_t candidates, const HeadOutputs& out);

}  // namespace gridless::blocks
