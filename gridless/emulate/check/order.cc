#include "gridless/emulate/check/order.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gridless::emulate {
namespace {

struct Weighted {
  int32_t clock;
  int64_t amount;
  bool operator<(const Weighted& o) const { return clock < o.clock; }
};

// Increments of one semaphore as sorted runs, merged to one. Kept from use to use: its lists grow
// once.
struct Merge {
  std::vector<Weighted> list, other;
  std::vector<size_t> ends;  // of the runs

  void clear() {
    list.clear();
    ends.clear();
  }
  // Merges neighbouring runs until one is left.
  void run() {
    other.resize(list.size());
    while (ends.size() > 1) {
      size_t begin = 0, merged = 0;
      for (size_t k = 0; k < ends.size(); k += 2) {
        const size_t middle = ends[k], end = k + 1 < ends.size() ? ends[k + 1] : middle;
        std::merge(list.data() + begin, list.data() + middle, list.data() + middle,
                   list.data() + end, other.data() + begin);
        ends[merged++] = begin = end;
      }
      ends.resize(merged);
      list.swap(other);
    }
  }
};

}  // namespace

Order::Order(const Trace& trace) : trace_(trace), known_(trace.increments.size()) {
  start_from_run();
  solve();
  find_known();
}

void Order::start_from_run() {
  const auto n = static_cast<size_t>(trace_.cores);
  rows_.assign(n, std::vector<int32_t>(n, 0));
  for (size_t w = 0; w < trace_.waits.size(); ++w) {
    const auto core = static_cast<size_t>(trace_.waits[w].at.core);
    const auto* snapshot = trace_.snapshots.data() + w * n;
    rows_[core].insert(rows_[core].end(), snapshot, snapshot + n);
    wait_numbers_.push_back(trace_.waits[w].at.waits);
  }
}

// Recomputes what the waits on one semaphore prove, and takes it over into the rows.
void Order::lower(const Shared& shared, Lowered& lowered) {
  const SemaphoreLog& log = trace_.semaphores[static_cast<size_t>(shared.semaphore)];
  static thread_local Merge merge;
  const std::vector<Weighted>& list = merge.list;
  for (int c = 0; c < trace_.cores; ++c) {
    if (c == shared.owner) continue;
    merge.clear();
    for (const auto& increments : shared.by_core) {
      if (increments.empty()) continue;
      for (int32_t i : increments) {
        const Increment& e = trace_.increments[static_cast<size_t>(i)];
        merge.list.push_back({clock(e.issue, c), e.amount});
      }
      merge.ends.push_back(list.size());
    }
    merge.run();
    size_t k = 0;
    int64_t sum = 0;
    for (int32_t w : log.waits) {
      const WaitEvent& wait = trace_.waits[static_cast<size_t>(w)];
      while (k < list.size() && sum < wait.total) sum += list[k++].amount;
      const int32_t proved = wait.total > 0 && k > 0 ? list[k - 1].clock : 0;
      lower(wait.at, c, proved, lowered);
    }
  }
}

// A wait proves less than was thought about core c: so do the waits after it, as far as they rest
// on it.
void Order::lower(const Node& wait, int c, int32_t proved, Lowered& lowered) {
  const auto n = static_cast<size_t>(trace_.cores);
  const auto owner = static_cast<size_t>(wait.core);
  size_t k = static_cast<size_t>(wait.waits) * n + static_cast<size_t>(c);
  auto& rows = rows_[owner];
  auto& limits = limits_[owner];
  if (limits[k] <= proved) return;
  limits[k] = proved;
  for (; k < rows.size(); k += n) {
    const int32_t most = std::max(rows[k - n], limits[k]);
    if (rows[k] <= most) return;
    rows[k] = most;
    lowered.now[owner] = std::min(lowered.now[owner], static_cast<int32_t>(k / n));
  }
}

// Nothing is known yet of what the waits on shared semaphores prove; the others prove nothing about
// other cores.
void Order::start_limits(const std::vector<Shared>& shared) {
  const auto n = static_cast<size_t>(trace_.cores);
  limits_.resize(n);
  for (size_t c = 0; c < n; ++c) limits_[c].assign(rows_[c].size(), 0);
  for (const Shared& q : shared) {
    auto& limits = limits_[static_cast<size_t>(q.owner)];
    for (int32_t w : trace_.semaphores[static_cast<size_t>(q.semaphore)].waits) {
      const auto row = static_cast<size_t>(trace_.waits[static_cast<size_t>(w)].at.waits);
      std::fill_n(limits.data() + row * n, n, INT32_MAX);
    }
  }
  for (size_t c = 0; c < n; ++c) {
    for (size_t k = n; k < rows_[c].size(); ++k) {
      if (k % n != c) rows_[c][k] = std::min(rows_[c][k], std::max(rows_[c][k - n], limits_[c][k]));
    }
  }
}

void Order::solve() {
  std::vector<Shared> shared;
  const auto n = static_cast<size_t>(trace_.cores);
  for (size_t s = 0; s < trace_.semaphores.size(); ++s) {
    const SemaphoreLog& log = trace_.semaphores[s];
    const int owner = trace_.owner(static_cast<int32_t>(s));
    const bool remote = std::ranges::any_of(log.increments, [&](int32_t i) {
      return trace_.increments[static_cast<size_t>(i)].issue.core != owner;
    });
    if (!remote || log.waits.empty()) continue;
    Shared& q = shared.emplace_back(Shared{static_cast<int32_t>(s), owner, {}});
    q.by_core.resize(n);
    for (int32_t i : log.increments)
      q.by_core[static_cast<size_t>(trace_.increments[static_cast<size_t>(i)].issue.core)]
          .push_back(i);
  }
  // In the order of the run, so that what a wait rests on is mostly final when its turn comes.
  std::ranges::stable_sort(shared, {}, [&](const Shared& q) {
    return trace_.semaphores[static_cast<size_t>(q.semaphore)].waits.front();
  });
  start_limits(shared);
  // Semaphores whose increments all stand before the lowered rows need no new look.
  constexpr int32_t kNever = INT32_MAX;
  Lowered lowered{.before = std::vector<int32_t>(n, 0), .now = std::vector<int32_t>(n, kNever)};
  do {
    ++passes_;
    for (const Shared& q : shared) {
      // The last increment of a core has its largest clock.
      const bool touched = std::ranges::any_of(q.by_core, [&](const auto& list) {
        if (list.empty()) return false;
        const Node& e = trace_.increments[static_cast<size_t>(list.back())].issue;
        const auto c = static_cast<size_t>(e.core);
        return e.waits >= std::min(lowered.before[c], lowered.now[c]);
      });
      if (touched) lower(q, lowered);
    }
    lowered.before = std::exchange(lowered.now, std::vector<int32_t>(n, kNever));
  } while (std::ranges::any_of(lowered.before, [](int32_t row) { return row != kNever; }));
}

void Order::find_known() {
  for (size_t s = 0; s < trace_.semaphores.size(); ++s) {
    const SemaphoreLog& log = trace_.semaphores[s];
    if (log.waits.empty() || log.increments.empty()) continue;
    const int owner = trace_.owner(static_cast<int32_t>(s));
    // How far the owner must have come when an increment is issued: then it cannot be earlier.
    std::vector<std::pair<int32_t, int32_t>> issued;  // (owner's pos, increment)
    for (int32_t i : log.increments)
      issued.push_back({clock(trace_.increments[static_cast<size_t>(i)].issue, owner), i});
    std::ranges::stable_sort(issued, {}, [](const auto& p) { return p.first; });
    const auto wait = [&](size_t j) -> const WaitEvent& {
      return trace_.waits[static_cast<size_t>(log.waits[j])];
    };
    // Units that could be there at each wait beyond those that are consumed by then.
    std::vector<int64_t> spare(log.waits.size());
    size_t k = 0;
    int64_t possible = 0;
    for (size_t j = 0; j < spare.size(); ++j) {
      while (k < issued.size() && issued[k].first < wait(j).at.pos)
        possible += trace_.increments[static_cast<size_t>(issued[k++].second)].amount;
      spare[j] = possible - wait(j).total;
    }
    // By amount: the first wait from j on that cannot do without that many units.
    std::map<int64_t, std::vector<size_t>> first_without;
    const auto table = [&](int64_t amount) -> const std::vector<size_t>& {
      auto& t = first_without[amount];
      if (!t.empty()) return t;
      t.assign(spare.size() + 1, spare.size());
      for (size_t j = spare.size(); j-- > 0;) t[j] = spare[j] < amount ? j : t[j + 1];
      return t;
    };
    for (const auto& [pos, i] : issued) {
      const Increment& e = trace_.increments[static_cast<size_t>(i)];
      const auto later = std::ranges::upper_bound(log.waits, pos, {}, [&](int32_t w) {
        return trace_.waits[static_cast<size_t>(w)].at.pos;
      });
      const auto j = static_cast<size_t>(later - log.waits.begin());
      const size_t found = table(e.copy >= 0 ? 1 : e.amount)[j];
      if (found < spare.size()) known_[static_cast<size_t>(i)] = wait(found).at;
    }
  }
}

std::vector<Node> Order::ends(const Access& a) const {
  if (a.copy < 0) return {a.at};
  const CopyEvent& c = trace_.copies[static_cast<size_t>(a.copy)];
  std::vector<Node> out;
  // The source has been read when either semaphore says so, the target only by the receiver's.
  if (!a.write && c.sent >= 0 && known(c.sent).known()) out.push_back(known(c.sent));
  if (c.arrived >= 0 && known(c.arrived).known()) out.push_back(known(c.arrived));
  return out;
}

bool Order::over(const Access& a, Node n) const {
  if (a.copy < 0) return before(a.at, n);
  const CopyEvent& c = trace_.copies[static_cast<size_t>(a.copy)];
  if (!a.write && c.sent >= 0 && before(known(c.sent), n)) return true;
  return c.arrived >= 0 && before(known(c.arrived), n);
}

}  // namespace gridless::emulate
