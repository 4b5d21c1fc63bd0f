// Lesson 20: the exchanges of a group of cores, as blocks.
//
// Lesson 15 writes one exchange out. A model takes them from gridless/blocks/collectives: what is
// exchanged (`kind`) and how (`algorithm`) are two words, and one barrier is enough for any number
// of calls. Which algorithm is fastest depends on the message and on the slice; all of them can be
// checked, timed and compiled here:
//
//   gridless check 'kernel:20_collectives?kind=all-to-all&algorithm=ring' --cores 128
//   gridless compile 'kernel:20_collectives?algorithm=hierarchical&panels=64' --cores 8 -o out
//
// The order of a sum is part of what an algorithm promises, so the reference below adds in that
// order and the results are equal to the bit.
#include "gridless/blocks/collectives/collective.h"
#include "gridless/lang/kernel.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT
using blocks::Algorithm;
using blocks::CollectiveKind;

namespace {

constexpr int64_t kLanes = 128;

// The options, by name.
struct Case {
  explicit Case(const Options& o)
      : kind(static_cast<CollectiveKind>(o["kind"])),
        algorithm(static_cast<Algorithm>(o["algorithm"])),
        cores(o["cores"]),
        stride(o["stride"]),
        size(o["group"] == 0 ? cores / stride : o["group"]),
        panels(o["panels"]),
        rows(o["rows"]),
        calls(o["calls"]),
        root(o["root"]) {}

  bool sums() const {
    return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce;
  }
  int64_t parts_in() const {
    return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllToAll ? size : 1;
  }
  int64_t parts_out() const {
    return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllToAll ? size : 1;
  }
  Shape shape(int64_t parts) const { return {parts * panels, rows, kLanes}; }
  Shape all_calls(int64_t parts) const { return {calls, parts * panels, rows, kLanes}; }

  CollectiveKind kind;
  Algorithm algorithm;
  int64_t cores, stride, size, panels, rows, calls, root;
};

Built build(const Options& o) {
  const Case c(o);
  Kernel k("collective", static_cast<int>(c.cores));
  const Ref x = k.input("x", Elem::kF32, c.all_calls(c.parts_in()));
  const Ref y = k.output("y", Elem::kF32, c.all_calls(c.parts_out()));
  k.barrier_all();
  k.scope([&] {
    blocks::Collective exchange(k, {.kind = c.kind,
                                    .algorithm = c.algorithm,
                                    .group = {static_cast<int>(c.size), static_cast<int>(c.stride)},
                                    .part = c.shape(1),
                                    .root = static_cast<int>(c.root)});
    const Ref in = k.vmem(Elem::kF32, c.shape(c.parts_in()));
    const Sem done = k.dma_sem();
    k.loop(0, c.calls, [&](Scalar call) {
      k.copy(x.at(call), in, done).wait();
      k.copy(exchange.run(in, call), y.at(call), done).wait();
    });
  });
  k.set_vmem_limit(int64_t{60} << 20);
  return k.finish();
}

// Values of very different size, so that another order of a sum would round differently.
PerCore inputs(const Options& o, uint64_t seed) {
  const Case c(o);
  Rng rng(seed);
  PerCore all;
  for (int64_t core = 0; core < c.cores; ++core) {
    Array x = normal(rng, Elem::kF32, c.all_calls(c.parts_in()));
    const Array exponents = whole(rng, Elem::kI32, x.shape, -4, 3);
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] *= std::exp2(exponents.values[i]);
    all.push_back({std::move(x)});
  }
  return all;
}

// The sum over the members' terms, where `owner` makes it.
float sum_in_order(Algorithm algorithm, int64_t owner, const std::vector<float>& terms) {
  const auto n = static_cast<int64_t>(terms.size());
  const auto term = [&](int64_t i) { return terms[static_cast<size_t>(i % n)]; };
  float sum = 0;
  switch (algorithm) {
    case Algorithm::kDirect:
    case Algorithm::kScattered:
      for (int64_t i = 0; i < n; ++i) sum = i == 0 ? term(0) : sum + term(i);
      break;
    case Algorithm::kRing:
      for (int64_t i = 1; i <= n; ++i) sum = i == 1 ? term(owner + 1) : sum + term(owner + i);
      break;
    case Algorithm::kHierarchical:
      for (int64_t i = 0; i < n; i += 2) {
        const float pair = i + 1 < n ? term(i) + term(i + 1) : term(i);
        sum = i == 0 ? pair : sum + pair;
      }
      break;
  }
  return sum;
}

PerCore reference(const Options& o, const PerCore& in) {
  const Case c(o);
  const int64_t tile = c.rows * kLanes, part = c.panels * tile;
  // Members own equal pieces of an all-reduce.
  const int64_t piece = (c.panels + c.size - 1) / c.size;
  PerCore out;
  for (int64_t core = 0; core < c.cores; ++core) {
    const int64_t me = core / c.stride % c.size, first = core - me * c.stride;
    const auto value = [&](int64_t member, int64_t call, int64_t i) {
      const Array& x = in[static_cast<size_t>(first + member * c.stride)][0];
      return x.values[static_cast<size_t>(call * c.parts_in() * part + i)];
    };
    Array y(Elem::kF32, c.all_calls(c.parts_out()));
    for (int64_t k = 0; k < y.size(); ++k) {
      const int64_t call = k / (c.parts_out() * part), i = k % (c.parts_out() * part);
      double& result = y.values[static_cast<size_t>(k)];
      if (c.sums()) {
        const bool scatters = c.kind == CollectiveKind::kReduceScatter;
        std::vector<float> terms;
        for (int64_t m = 0; m < c.size; ++m) {
          terms.push_back(static_cast<float>(value(m, call, scatters ? me * part + i : i)));
        }
        result = sum_in_order(c.algorithm, scatters ? me : i / tile / piece, terms);
      } else if (c.kind == CollectiveKind::kAllGather) {
        result = value(i / part, call, i % part);
      } else if (c.kind == CollectiveKind::kAllToAll) {
        result = value(i / part, call, me * part + i % part);
      } else {
        result = value(c.root, call, i);
      }
    }
    out.push_back({std::move(y)});
  }
  return out;
}

template <typename Word, size_t N>
std::vector<std::string> names(const Word (&words)[N]) {
  std::vector<std::string> all;
  for (const Word w : words) all.emplace_back(name_of(w));
  return all;
}

}  // namespace

Lesson lesson_20_collectives() {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                       CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
                                       CollectiveKind::kBroadcast};
  constexpr Algorithm kAlgorithms[] = {Algorithm::kDirect, Algorithm::kRing,
                                       Algorithm::kHierarchical, Algorithm::kScattered};
  return {.name = "20_collectives",
          .title = "Exchanges of a group of cores: what, and how",
          .options = {{"cores", 4, "cores", 1, 128},
                      {.key = "kind", .value = 2, .meaning = "exchange", .names = names(kKinds)},
                      {.key = "algorithm", .meaning = "way", .names = names(kAlgorithms)},
                      {"group", 0, "cores of a group (0: as many as there are)", 0, 128},
                      {"stride", 1, "cores from one member to the next", 1, 64},
                      {"panels", 1, "panels of a part", 1, 1024},
                      {"rows", 8, "rows of a panel", 1, 64},
                      {"calls", 3, "calls, one after another", 1, 1000},
                      {"root", 0, "member that broadcasts", 0, 127}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // one order of additions: exact
}

}  // namespace gridless::kernels
