#include "gridless/time/bundle_slots.h"

#include <algorithm>

namespace gridless::time {

int BundleSlots::find(Track& t, int cycle, int capacity) {
  const auto grow = [&](int c) {
    while (static_cast<int>(t.taken.size()) <= c) {
      t.next.push_back(static_cast<int>(t.taken.size()));
      t.taken.push_back(0);
    }
  };
  grow(cycle);
  int at = cycle;
  while (t.taken[static_cast<size_t>(at)] >= capacity) {
    at = std::max(t.next[static_cast<size_t>(at)], at + 1);
    grow(at);
  }
  // The way just walked is all full: shorten it for the next one.
  for (int c = cycle; c < at;) {
    const int further = std::max(t.next[static_cast<size_t>(c)], c + 1);
    t.next[static_cast<size_t>(c)] = at;
    c = further;
  }
  return at;
}

void BundleSlots::take(Track& t, int cycle, int capacity) {
  if (++t.taken[static_cast<size_t>(cycle)] >= capacity)
    t.next[static_cast<size_t>(cycle)] = cycle + 1;
}

int BundleSlots::place(CostUnit unit, int ready) {
  const auto u = static_cast<size_t>(unit);
  const int capacity = chips::kUnitSlots[u];
  int at = std::max(ready, 0);
  if (unit == CostUnit::kXlu) {
    int& unit_free = *std::ranges::min_element(xlu_free_);
    at = std::max(at, unit_free);
    unit_free = at + chips::kXluInterval;
  } else if (unit == CostUnit::kEup) {
    Track& valu = tracks_[static_cast<size_t>(CostUnit::kValu)];
    for (int before = -1; before != at;) {
      before = at;
      at = find(tracks_[u], at, capacity);
      at = find(valu, at, chips::kUnitSlots[static_cast<size_t>(CostUnit::kValu)]);
    }
    take(tracks_[u], at, capacity);
    take(valu, at, chips::kUnitSlots[static_cast<size_t>(CostUnit::kValu)]);
  } else {
    at = find(tracks_[u], at, capacity);
    take(tracks_[u], at, capacity);
  }
  length_ = std::max(length_, at + 1);
  return at;
}

}  // namespace gridless::time
