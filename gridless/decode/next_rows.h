// The program between two launches that the host does not read in between: it puts the likeliest
// token of every row into the row table of the next launch, on the devices.
//
// Plain StableHLO over all cores, which the plugin compiles itself. What it computes is what
// StepRunner::argmax says: of the cores' first candidates the largest logit, of equal ones the
// smaller id. (Candidates that are no numbers give some token of the vocabulary: the host finds out
// when it reads them.)
#pragma once

#include <cstdint>
#include <string>

namespace gridless::decode {

struct NextRows {
  int cores = 1;
  int64_t rows = 1;   // R of the step's program
  int64_t shard = 0;  // vocabulary entries of a core
};

// Operands, a shard of them per core along the first axis: the row table (i32 [4, R]) with
// everything but the tokens of active rows, candidate_logits (f32 [R, 128]) and candidate_ids (i32
// [R, 128]) of the launch before. Result: the table.
std::string next_rows_text(const NextRows& next);

}  // namespace gridless::decode
