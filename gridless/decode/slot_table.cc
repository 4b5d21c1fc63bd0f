#include "gridless/decode/slot_table.h"

#include <algorithm>

#include "gridless/base/check.h"
#include "gridless/blocks/step_rows.h"

namespace gridless::decode {

using blocks::kPageTokens;

SlotTable::SlotTable(int64_t slots, int64_t slot_pages, std::optional<int64_t> rows_taken_back)
    : slot_pages_(slot_pages),
      rows_taken_back_(rows_taken_back),
      pages_(static_cast<size_t>(slots * slot_pages)),
      keep_(static_cast<size_t>(slots)),
      held_(static_cast<size_t>(slots)),
      pages_of_(static_cast<size_t>(slots)) {
  for (int64_t p = slots * slot_pages; p > 0; --p)
    free_pages_.push_back(static_cast<int32_t>(p - 1));
}

Result<void> SlotTable::provide_page(const Row& row) {
  std::vector<int32_t>& mine = pages_of_[static_cast<size_t>(row.slot)];
  const int64_t page = row.position / kPageTokens;
  if (row.position < 0 || page >= slot_pages_) {
    return input_error("position {} is beyond the context of {} tokens", row.position,
                       slot_pages_ * kPageTokens);
  }
  while (static_cast<int64_t>(mine.size()) <= page) {
    GRIDLESS_CHECK(!free_pages_.empty());
    const int32_t fresh = free_pages_.back();
    free_pages_.pop_back();
    pages_[static_cast<size_t>(row.slot * slot_pages_ + static_cast<int64_t>(mine.size()))] = fresh;
    mine.push_back(fresh);
  }
  return {};
}

Result<void> SlotTable::go_on(std::span<const Row> rows) {
  std::vector<int32_t> seen;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    if (r > 0 && row.slot == rows[r - 1].slot) {
      if (row.position != rows[r - 1].position + 1) {
        return input_error("row {}: position {} after {} in slot {}", r, row.position,
                           rows[r - 1].position, row.slot);
      }
      continue;
    }
    if (std::ranges::find(seen, row.slot) != seen.end()) {
      return input_error("row {}: the rows of slot {} do not stand together", r, row.slot);
    }
    seen.push_back(row.slot);
    if (!rows_taken_back_) continue;
    const int64_t at = held_[static_cast<size_t>(row.slot)];
    if (row.position > at || take_back(row.slot, row.position) != row.position) {
      return input_error(
          "row {}: position {} of slot {}, which holds {} tokens of a recurrent model: go on, go "
          "back at most {}, or start again at 0",
          r, row.position, row.slot, at, *rows_taken_back_);
    }
  }
  return {};
}

int64_t SlotTable::take_back(int64_t slot, int64_t position) {
  int64_t& at = held_[static_cast<size_t>(slot)];
  int32_t& kept = keep_[static_cast<size_t>(slot)];
  if (position >= at) return at;
  const bool possible = at - position <= kept;
  kept -= possible ? static_cast<int32_t>(at - position) : kept;
  return at = possible ? position : 0;
}

void SlotTable::count(std::span<const Row> rows) {
  if (!rows_taken_back_) return;
  for (size_t r = 0; r < rows.size();) {
    size_t end = r;
    while (end < rows.size() && rows[end].slot == rows[r].slot) ++end;
    const auto slot = static_cast<size_t>(rows[r].slot);
    held_[slot] = rows[end - 1].position + 1;
    keep_[slot] =
        static_cast<int32_t>(std::min<int64_t>(static_cast<int64_t>(end - r), *rows_taken_back_));
    r = end;
  }
}

int64_t SlotTable::truncate(int64_t slot, int64_t position) {
  if (rows_taken_back_) position = take_back(slot, position);
  std::vector<int32_t>& pages = pages_of_[static_cast<size_t>(slot)];
  const auto needed = static_cast<size_t>((position + kPageTokens - 1) / kPageTokens);
  while (pages.size() > needed) {
    free_pages_.push_back(pages.back());
    pages.pop_back();
  }
  return position;
}

}  // namespace gridless::decode
