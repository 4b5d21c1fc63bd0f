// Compiled step programs of one model, one per row count, as `gridless compile` wrote them. All of
// them run over the same weights and state, so they have to agree on everything but the rows.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/ir/call.h"
#include "gridless/tpu/runtime/program_folder.h"

namespace gridless::decode {

class TpuPrograms {
 public:
  // Errors: what read_program_folder() finds, programs that are no steps, that do not belong
  // together, or that have the same row count.
  static Result<TpuPrograms> read(const std::vector<std::filesystem::path>& folders);

  // Sequences, their pages and cores, as the operands' shapes say. The formats are the
  // checkpoint's.
  int64_t slots() const { return slots_; }
  int64_t slot_pages() const { return slot_pages_; }
  int cores() const { return any().spec.cores; }
  int64_t max_rows() const { return by_rows_.rbegin()->first; }
  // Of the smallest program that holds `rows`, which is at most max_rows().
  int64_t rows_for(int64_t rows) const { return by_rows_.lower_bound(rows)->first; }

  const tpu::ProgramFolder& of(int64_t rows) const { return by_rows_.at(rows); }
  const tpu::ProgramFolder& any() const { return by_rows_.begin()->second; }
  std::vector<int64_t> row_counts() const;

  // An error unless the program for `rows` was compiled from exactly `program`: only then do the
  // weights and tables that this process makes mean the same to it.
  Result<void> check(int64_t rows, ir::Program program) const;

 private:
  Result<void> add(tpu::ProgramFolder folder);

  std::map<int64_t, tpu::ProgramFolder> by_rows_;
  int64_t slots_ = 0, slot_pages_ = 0;
};

}  // namespace gridless::decode
