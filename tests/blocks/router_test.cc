// The router and the list of experts that a launch reads, against a sort.
#include "gridless/blocks/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/blocks/block_run.h"

namespace gridless::blocks {
namespace {

struct Routed {
  std::vector<std::vector<int32_t>> ids;  // [row][choice]
  std::vector<Floats> gates;              // [row][expert]
};

Routed expected(const Floats& logits, const Floats& bias, int64_t rows, const RouterShape& s) {
  Routed out;
  for (int64_t r = 0; r < rows; ++r) {
    const auto p = [&](int64_t e) {
      return 1 / (1 + std::exp(-double{logits[static_cast<size_t>(r * s.experts + e)]}));
    };
    std::vector<int32_t> order(static_cast<size_t>(s.experts));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
      return p(a) + double{bias[static_cast<size_t>(a)]} >
             p(b) + double{bias[static_cast<size_t>(b)]};
    });
    order.resize(static_cast<size_t>(s.chosen));
    double total = 0;
    for (const int32_t e : order) total += p(e);
    Floats gates(static_cast<size_t>(s.experts));
    for (const int32_t e : order) gates[static_cast<size_t>(e)] = static_cast<float>(p(e) / total);
    out.ids.push_back(order);
    out.gates.push_back(gates);
  }
  return out;
}

TEST(Router, ChoosesByTheBiasedScoresAndWeighsByTheOthers) {
  for (const auto& [experts, chosen] : {std::pair<int64_t, int64_t>{20, 4}, {300, 16}}) {
    for (const int64_t rows : {1, 5}) {
      std::mt19937 random(static_cast<uint32_t>(experts + rows));
      const RouterShape s{experts, chosen};
      const int64_t count = panels(experts);
      // Few different scores: many ties.
      Floats logits(static_cast<size_t>(rows * experts)), bias(static_cast<size_t>(experts));
      for (float& v : logits) v = static_cast<float>(static_cast<int>(random() % 9)) * 0.5f - 2;
      for (float& v : bias) v = random() % 4 == 0 ? 0.25f : 0.0f;
      const auto build = [&](Kernel& k) {
        const Ref in = k.input("logits", Elem::kF32, {count, rows, kLanes});
        const Ref b = k.input("bias", Elem::kF32, {count, kLanes});
        const Ref gates_out = k.output("gates", Elem::kF32, {count, rows, kLanes});
        const Ref ids_out = k.output("ids", Elem::kI32, {rows, kLanes});
        k.scope([&] {
          const Ref gates = k.vmem(Elem::kF32, gates_out.shape());
          const Ref ids = k.vmem(Elem::kI32, ids_out.shape());
          route(copy_in(k, in), copy_in(k, b), s, gates, ids);
          copy_out(k, gates, gates_out);
          copy_out(k, ids, ids_out);
        });
      };
      const auto results = run(build, {bytes_of(to_panels(logits, rows, experts)),
                                       bytes_of(to_panels(bias, 1, experts))});
      ASSERT_EQ(results.size(), 2u);
      const Floats gates = from_panels(values_of<float>(results[0]), rows, experts);
      const auto ids = values_of<int32_t>(results[1]);
      const Routed want = expected(logits, bias, rows, s);
      for (int64_t r = 0; r < rows; ++r) {
        const auto at = static_cast<size_t>(r);
        EXPECT_EQ(want.ids[at], (std::vector<int32_t>{ids.begin() + r * kLanes,
                                                      ids.begin() + r * kLanes + chosen}));
        for (int64_t e = 0; e < experts; ++e)  // a few roundings of f32
          EXPECT_NEAR(want.gates[at][static_cast<size_t>(e)],
                      gates[static_cast<size_t>(r * experts + e)], 1e-6);
      }
    }
  }
}

// Rows 0 and 2 share choices, row 1 is inactive; two layers, the second with other choices.
TEST(ChosenExperts, AreThoseOfActiveRowsOnceAndAscending) {
  constexpr int64_t rows = 3, chosen = 4, first = 8, count = 8;
  const std::vector<std::vector<std::vector<int32_t>>> choices = {
      {{15, 3, 9, 8}, {10, 11, 12, 13}, {9, 0, 14, 15}},
      {{0, 1, 2, 3}, {8, 9, 10, 11}, {16, 10, 4, 5}}};
  std::vector<int32_t> table(kRowFields * rows, 0), pages(1, 0);
  table[kRowActive * rows] = table[kRowActive * rows + 2] = 1;
  std::vector<int32_t> ids;
  for (const auto& layer : choices)
    for (const auto& row : layer) {
      ids.insert(ids.end(), row.begin(), row.end());
      ids.resize(ids.size() + kLanes - chosen, -1);
    }
  const auto build = [&](Kernel& k) {
    const StepRows step = declare_rows(k, rows, 1, 1);
    const Ref in = k.input("ids", Elem::kI32, {2, rows, kLanes});
    const Ref out = k.output("list", Elem::kI32, {2, count, kLanes});
    k.scope([&] {
      ChosenExperts experts(k, step, {24, chosen}, 2, first, count);
      const Ref local = copy_in(k, in), list = k.vmem(Elem::kI32, out.shape());
      list.store(full(k, Elem::kI32, list.shape(), -1));
      for (int64_t l = 0; l < 2; ++l) {
        experts.take(l, local.at(l));
        k.loop(0, experts.size(),
               [&](Scalar i) { list.at(l).store(broadcast(experts.id(i), {1, kLanes}), {i, 0}); });
      }
      copy_out(k, list, out);
    });
  };
  const auto results = run(build, {bytes_of(table), bytes_of(pages), bytes_of(ids)});
  const auto list = values_of<int32_t>(results.at(0));
  const auto layer = [&](int64_t l) {
    std::vector<int32_t> found;
    for (int64_t i = 0; i < count; ++i)
      found.push_back(list[static_cast<size_t>((l * count + i) * kLanes)]);
    std::erase(found, -1);
    return found;
  };
  EXPECT_EQ(layer(0), (std::vector<int32_t>{8, 9, 14, 15}));
  EXPECT_EQ(layer(1), (std::vector<int32_t>{10}));
}

}  // namespace
}  // namespace gridless::blocks
