// SlotTable: what the sequence slots of a model hold, and the tables of the launch contract that
// say so to a launch: pages of keys and values, and the rows of recurrent models that are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/decode/step_model.h"

namespace gridless::decode {

class SlotTable {
 public:
  // `rows_taken_back`: of a recurrent model, how many tokens a slot can be taken back; none: any.
  SlotTable(int64_t slots, int64_t slot_pages, std::optional<int64_t> rows_taken_back);

  // Operands `pages` and `keep` of a launch: they stay where they are.
  std::span<const std::byte> pages() const { return std::as_bytes(std::span(pages_)); }
  std::span<const std::byte> keep() const { return std::as_bytes(std::span(keep_)); }

  // A page for the row's position. Errors: a position beyond the slot's pages.
  Result<void> provide_page(const Row& row);
  // Takes the slots of recurrent models back to where their rows begin. Errors: rows of a slot
  // that do not stand together, position by position; rows of a recurrent model that do not go on
  // from what the slot holds.
  Result<void> go_on(std::span<const Row> rows);
  // The rows have been launched.
  void count(std::span<const Row> rows);
  // StepModel::truncate().
  int64_t truncate(int64_t slot, int64_t position);

 private:
  int64_t take_back(int64_t slot, int64_t position);

  int64_t slot_pages_;
  std::optional<int64_t> rows_taken_back_;
  std::vector<int32_t> pages_, keep_;
  std::vector<int64_t> held_;  // tokens of a slot, for recurrent models
  std::vector<std::vector<int32_t>> pages_of_;
  std::vector<int32_t> free_pages_;
};

}  // namespace gridless::decode
