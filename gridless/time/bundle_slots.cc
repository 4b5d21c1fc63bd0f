#include "gridless/time/bundle_slots.h"

#include <algorithm>
#include <iterator>

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

namespace {

// The first cycle from `at` on that has an interval's length free before the next busy one.
int first_gap(const std::map<int, int>& busy, int at) {
  auto next = busy.upper_bound(at);
  if (next != busy.begin()) at = std::max(at, std::prev(next)->second);
  for (; next != busy.end() && next->first < at + chips::kXluInterval; ++next) at = next->second;
  return at;
}

// Closes gaps that are too narrow for another operation.
void occupy(std::map<int, int>& busy, int at) {
  auto it = busy.emplace(at, at + chips::kXluInterval).first;
  if (it != busy.begin()) {
    const auto before = std::prev(it);
    if (at - before->second < chips::kXluInterval) {
      before->second = it->second;
      busy.erase(it);
      it = before;
    }
  }
  const auto after = std::next(it);
  if (after != busy.end() && after->first - it->second < chips::kXluInterval) {
    it->second = after->second;
    busy.erase(after);
  }
}

}  // namespace

int BundleSlots::place_on_xlu(int ready) {
  size_t best = 0;
  int at = first_gap(xlu_busy_[0], ready);
  for (size_t u = 1; u < xlu_busy_.size(); ++u) {
    const int other = first_gap(xlu_busy_[u], ready);
    if (other < at) at = other, best = u;
  }
  occupy(xlu_busy_[best], at);
  return at;
}

int BundleSlots::place_on_both(Track& a, int of_a, Track& b, int of_b, int at) {
  for (int before = -1; before != at;) {
    before = at;
    at = find(b, find(a, at, of_a), of_b);
  }
  take(a, at, of_a);
  take(b, at, of_b);
  return at;
}

int BundleSlots::place(CostUnit unit, int ready, bool narrow) {
  const auto slots = [](CostUnit u) { return chips::kUnitSlots[static_cast<size_t>(u)]; };
  Track& track = tracks_[static_cast<size_t>(unit)];
  int at = std::max(ready, 0);
  if (unit == CostUnit::kXlu) {
    at = place_on_xlu(at);
  } else if (unit == CostUnit::kEup) {
    at = place_on_both(track, slots(unit), tracks_[static_cast<size_t>(CostUnit::kValu)],
                       slots(CostUnit::kValu), at);
  } else if (narrow) {
    at = place_on_both(track, slots(unit), narrow_, kNarrow, at);
  } else {
    at = find(track, at, slots(unit));
    take(track, at, slots(unit));
  }
  length_ = std::max(length_, at + 1);
  return at;
}

}  // namespace gridless::time
