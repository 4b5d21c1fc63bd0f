#include "gridless/blocks/candidate_selector.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "gridless/lang/source.h"

namespace gridless::blocks {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// The `keep` largest numbers of `values` (each f32 [R, 128]) and their ids (f32, of which no two
// are equal where the values count) in lanes 0 .. keep-1, descending, of equals the smaller id
// first; other lanes are 0.
struct Best {
  Vec values, ids;
};

Best best_of(const std::vector<Vec>& values, const std::vector<Vec>& ids, int64_t keep) {
  Kernel& k = *values[0].kernel();
  const Shape shape = values[0].shape();
  Vec all = concat(values, 1);
  const Vec all_ids = concat(ids, 1);
  const Vec lane = iota(k, shape, 1);
  Best best{zeros(k, Elem::kF32, shape), zeros(k, Elem::kF32, shape)};
  for (int64_t i = 0; i < keep; ++i) {
    const Vec top = max_over(all, 1);
    const Vec id = min_over(where(all == top, all_ids, std::numeric_limits<float>::max()), 1);
    best.values = where(lane == static_cast<int>(i), broadcast(top, shape), best.values);
    best.ids = where(lane == static_cast<int>(i), broadcast(id, shape), best.ids);
    all = where(all_ids == id, kMinusInfinity, all);
  }
  return best;
}

// The `keep` best candidates of all cores, f32 [R, 128] in VMEM.
struct Merged {
  Ref logits, ids;
};

Merged merge(const HeadOutputs& head, int64_t shard, int64_t keep, Collective& gather) {
  Kernel& k = *head.candidate_logits.kernel();
  const Shape row = head.candidate_logits.shape(), one = {1, row[0], kLanes};
  const Merged out{k.vmem(Elem::kF32, row), k.vmem(Elem::kF32, row)};
  const Ref logits = copy_in(k, head.candidate_logits), ids = copy_in(k, head.candidate_ids);
  const Ref mine = k.vmem(Elem::kF32, {2, row[0], kLanes});
  mine.store(reshape(logits.load(), one), {0, 0, 0});
  // Ids are exact in f32 up to 2^24.
  const Vec global = cast(ids.load() + k.core() * shard, Elem::kF32);
  mine.store(reshape(global, one), {1, 0, 0});
  const Ref all = gather.run(mine, 0);
  const Vec lane = iota(k, row, 1);
  const Vec real = lane < static_cast<int>(std::min(keep, shard));
  std::vector<Vec> values, numbers;
  for (int64_t c = 0; c < k.cores(); ++c) {
    const auto part = [&](int64_t which) {
      return reshape(all.load({2 * c + which, 0, 0}, one), row);
    };
    values.push_back(where(real, part(0), kMinusInfinity));
    numbers.push_back(where(real, part(1), -1.0));
  }
  const Best best = best_of(values, numbers, keep);
  out.logits.store(best.values);
  // Logits that are no numbers must not become addresses.
  const auto last = static_cast<double>(shard * k.cores() - 1);
  out.ids.store(min(max(best.ids, 0.0), last));
  return out;
}

// Lanes 0 .. n-1 of a row [1, 128] as a column [n, 1], exactly.
Vec as_column(Vec row, int64_t n) {
  Kernel& k = *row.kernel();
  const Shape square = {n, kLanes};
  return sum(where(iota(k, square, 0) == iota(k, square, 1), broadcast(row, square), 0.0), 1);
}

// The merged ids where scalars can read them. They come from vectors: a run of scalars only is told
// what they are by name.
struct Ids {
  Ref table;  // i32 SMEM [R, 128]
  Source candidate;

  Scalar get(Scalar row, Scalar i) const {
    return source(candidate, table.get({row, i}), {row, i});
  }
};

// Rows of a code book by token, for every candidate of rows 1 .. : f32 [R-1, keep, panels, 128].
class Codes {
 public:
  Codes(Kernel& k, Ref book, const Ids& ids, int64_t rows, int64_t keep)
      : k_(k), book_(book), ids_(ids), rows_(rows), keep_(keep), done_(k.dma_sem()) {
    codes_ = k.vmem(Elem::kF32, {rows, keep, book.dim(1), kLanes});
  }
  void fetch() {
    each([&](Ref from, Ref to) { k_.copy(from, to, done_); });
  }
  void wait() {
    each([&](Ref from, Ref to) { k_.wait(from, to, done_); });
  }
  // Panel p of one candidate [1, 128], or of all [keep, 128].
  Vec one(int64_t row, Scalar candidate, int64_t p) const {
    return reshape(codes_.load({row, candidate, p, 0}, {1, 1, 1, kLanes}), {1, kLanes});
  }
  Vec all(int64_t row, int64_t p) const {
    return reshape(codes_.load({row, 0, p, 0}, {1, keep_, 1, kLanes}), {keep_, kLanes});
  }

 private:
  void each(const std::function<void(Ref, Ref)>& use) {
    k_.loop(0, rows_, [&](Scalar r) {
      k_.loop(0, keep_, [&](Scalar i) { use(book_.at(ids_.get(r + 1, i)), codes_.at(r).at(i)); });
    });
  }

  Kernel& k_;
  Ref book_, codes_;
  const Ids& ids_;
  int64_t rows_, keep_;
  Sem done_;
};

}  // namespace

SelectorOutputs declare_selector(Kernel& k, int64_t rows) {
  SelectorOutputs out;
  out.candidates = k.output("draft_candidates", Elem::kI32, {rows, kLanes});
  out.drafts = k.output("drafts", Elem::kI32, {1, kLanes});
  return out;
}

Collective gather_candidates(Kernel& k, int64_t rows) {
  return Collective(
      k, {.kind = CollectiveKind::kAllGather, .group = {k.cores()}, .part = {2, rows, kLanes}});
}

void select_candidates(const SelectorInputs& in, const HeadOutputs& head, int64_t shard,
                       int64_t keep, const StepRows& rows, Collective& gather,
                       const SelectorOutputs& out) {
  Kernel& k = *in.hidden.kernel();
  const int64_t count = rows.count, code_panels = in.predecessor.dim(1);
  k.scope([&] {
    const Merged best = merge(head, shard, keep, gather);
    const Sem done = k.dma_sem();
    // The ids, where the copies of the code books can read them.
    const Ref merged = k.vmem(Elem::kI32, {count, kLanes});
    merged.store(cast(best.ids.load(), Elem::kI32));
    k.copy(merged, out.candidates, done).wait();
    const Ids ids{k.smem(Elem::kI32, {count, kLanes}),
                  {"candidate", 0, in.successor.dim(0) - 1, {count, keep}}};
    k.copy(out.candidates, ids.table, done).wait();

    const Ref anchor = k.vmem(Elem::kF32, {code_panels, kLanes});
    const Copy of_anchor = k.copy(in.predecessor.at(rows.token(0)), anchor, done);
    Codes successors(k, in.successor, ids, count - 1, keep);
    successors.fetch();
    // The last row's token precedes nothing.
    std::optional<Codes> predecessors;
    if (count > 2) predecessors.emplace(k, in.predecessor, ids, count - 2, keep);
    if (predecessors) predecessors->fetch();
    of_anchor.wait();
    successors.wait();
    if (predecessors) predecessors->wait();

    const Source choice{"chosen", 0, keep - 1, {count - 1}};
    Scalar chosen = 0;
    const Vec lane = iota(k, {1, kLanes}, 1);
    Vec drafts = zeros(k, Elem::kI32, {1, kLanes});
    for (int64_t i = 0; i + 1 < count; ++i) {
      Vec products;  // [keep, 128]
      for (int64_t p = 0; p < code_panels; ++p) {
        const Vec last =
            i == 0 ? anchor.load({p, 0}, {1, kLanes}) : predecessors->one(i - 1, chosen, p);
        const Vec hidden = reshape(in.hidden.load({p, i + 1, 0}, {1, 1, kLanes}), {1, kLanes});
        const Vec term = successors.all(i, p) * (last * hidden);
        products = p == 0 ? term : products + term;
      }
      const Vec logit = as_column(best.logits.load({i + 1, 0}, {1, kLanes}), keep);
      const Vec score = logit + sum(products, 1);
      const Vec number = iota(k, {keep, 1}, 0);
      const Vec first = min_over(where(score == max_over(score, 0), cast(number, Elem::kF32),
                                       std::numeric_limits<float>::max()),
                                 0);
      chosen =
          source(choice,
                 extract(cast(min(first, static_cast<double>(keep - 1)), Elem::kI32), {0, 0}), {i});
      drafts = where(lane == static_cast<int>(i), broadcast(ids.get(i + 1, chosen), lane.shape()),
                     drafts);
    }
    const Ref result = k.vmem(Elem::kI32, {1, kLanes});
    result.store(drafts);
    k.copy(result, out.drafts, done).wait();
  });
}

}  // namespace gridless::blocks
