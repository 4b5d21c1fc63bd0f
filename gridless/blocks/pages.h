// Paged caches: a token's entry is n rows of `width` bf16 values (keys and values, or one latent),
// page p of tokens lies at cache.at(p), [n, 128, width] in HBM, and the page table says which pages
// a slot has.
#pragma once

#include <functional>

#include "gridless/blocks/row_runs.h"

namespace gridless::blocks {

// Writes the entries of all active rows to their pages; fresh: n refs, bf16 [R, width].
void append_to_pages(const std::vector<Ref>& fresh, Ref cache, const StepRows& rows,
                     const RowRuns& runs);

// What attends to pages. A row has `queries` vectors; of the rows [first, first + size) of a launch
// the first queries stand together, then the second ones, and so on: [queries size, ...].
struct PageReader {
  int64_t queries = 0;
  int64_t value_width = 0;
  double scale = 1;                                           // of queries times keys
  std::function<Vec(Scalar first, int64_t size)> queries_of;  // bf16, as wide as a key
  std::function<Vec(Ref page)> keys;                          // bf16 [128, width of a key]
  std::function<Vec(Ref page)> values;                        // bf16 [128, value_width]
  // Takes the averages, f32 [queries size, value_width], of those rows of which `mine`, i1 [size,
  // 128], says so.
  std::function<void(Scalar first, int64_t size, Vec average, Vec mine)> put;
};

// Softmax attention of every active row over positions 0 .. pos of its slot: sum_t p_t value_t /
// sum_t p_t, p_t rounded to bf16 where it meets a value (docs/composites.md, decode_attention). A
// page is read once for up to 8 rows of a run. Memory in the current scope: a ring of pages.
void attend_to_pages(Ref cache, const StepRows& rows, const RowRuns& runs,
                     const PageReader& reader);

// Rows of which `mine` says so into rows first .. of panel `p` of f32 panel-major `to`; the others
// stay.
void store_rows(Ref to, int64_t p, Scalar first, Vec rows, Vec mine);

}  // namespace gridless::blocks
