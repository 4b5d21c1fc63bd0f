// Paged caches: a token's entry is n rows of `width` bf16 values (keys and values, or one latent),
// page p of tokens lies at cache.at(p), [n, 128, width] in HBM, and the page table says which pages
// a slot has.
#pragma once

#include <functional>

#include "gridless/blocks/step_rows.h"

namespace gridless::blocks {

// Writes the entries of all active rows to their pages; fresh: n refs, bf16 [R, width].
void append_to_pages(const std::vector<Ref>& fresh, Ref cache, const StepRows& rows);

// Softmax attention over the pages of a row's slot, with as many pages on their way as it pays.
class PagedSoftmax {
 public:
  // Takes a ring of pages from the scope around.
  PagedSoftmax(Ref cache, const StepRows& rows);

  struct Use {
    std::function<Vec()> queries;    // bf16 [count, width of a key], made when pages are on the way
    int64_t count;                   // of queries
    std::function<Vec(Ref)> keys;    // of a page: bf16 [128, width of a key]
    std::function<Vec(Ref)> values;  // of a page: bf16 [128, value_width]
    int64_t value_width;
    double scale;  // of the products of queries and keys
  };
  // sum_t p_t value_t / sum_t p_t over the positions 0 .. pos of row r, f32 [count, value_width];
  // p_t is rounded to bf16 where it meets a value (docs/composites.md, decode_attention).
  Vec attend(Scalar r, const Use& use) const;

 private:
  Ref cache_;
  const StepRows& rows_;
  Ref ring_;
  Sems arrived_;
};

}  // namespace gridless::blocks
