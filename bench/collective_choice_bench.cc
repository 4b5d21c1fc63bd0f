// Which algorithm of a collective is predicted to be fastest, by message size and number of cores.
//   collective_choice_bench [--params NAME]
//   collective_choice_bench --table > gridless/blocks/collectives/choice.inc
//   collective_choice_bench --table-in-order > gridless/blocks/collectives/choice_in_order.inc
#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "bench/collective_time.h"

using namespace gridless;         // NOLINT
using namespace gridless::bench;  // NOLINT
using blocks::Algorithm;
using blocks::CollectiveKind;

namespace {

constexpr int kAlgorithms = 4;
constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast};
// Another algorithm than the direct one, which is the simplest, must be faster by this much.
constexpr double kWorthIt = 0.98;

struct Times {
  double ns[kAlgorithms] = {};  // 0: does not fit
  int best = -1;
};

// `in_order`: only those that add as the direct one does.
Times times(CollectiveCall call, const chips::TimeParameters& p, bool in_order = false) {
  Times t;
  for (int a = 0; a < kAlgorithms; ++a) {
    call.algorithm = static_cast<Algorithm>(a);
    const bool scattered = call.algorithm == Algorithm::kScattered;
    if (scattered && call.kind != CollectiveKind::kAllReduce) continue;
    if (in_order && !scattered && call.algorithm != Algorithm::kDirect) continue;
    t.ns[a] = call_ns(call, p);
    if (t.ns[a] > 0 && (t.best < 0 || t.ns[a] < kWorthIt * t.ns[t.best])) t.best = a;
  }
  return t;
}

void report(const chips::TimeParameters& p) {
  fmt::print("{:<15} {:>5} {:>10} {:>9} {:>9} {:>9} {:>9}  fastest\n", "us per call", "cores",
             "part bytes", "direct", "ring", "by chips", "scattered");
  for (const CollectiveKind kind : kKinds)
    for (const int cores : {2, 4, 8, 16, 32})
      for (const int64_t panels : {1, 4, 16, 64, 256}) {
        const CollectiveCall call{.kind = kind, .cores = cores, .panels = panels};
        const Times t = times(call, p);
        if (t.best < 0) continue;
        fmt::print("{:<15} {:>5} {:>10} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}  {}\n",
                   blocks::name_of(kind), cores, call.part_bytes(), t.ns[0] * 1e-3, t.ns[1] * 1e-3,
                   t.ns[2] * 1e-3, t.ns[3] * 1e-3, blocks::name_of(static_cast<Algorithm>(t.best)));
        std::fflush(stdout);
      }
}

// Rows of choice.inc: up to how many bytes per part an algorithm is the fastest. Sizes double, so
// that a limit lies between two that were tried.
void table(const chips::TimeParameters& p, bool in_order) {
  constexpr const char* kKindNames[] = {"kAllGather", "kReduceScatter", "kAllReduce", "kAllToAll",
                                        "kBroadcast"};
  constexpr const char* kAlgorithmNames[] = {"kDirect", "kRing", "kHierarchical", "kScattered"};
  fmt::print(
      "// Written by bench/collective_choice_bench --table{}: kind, cores, bytes of a part up to "
      "which\n// the algorithm is predicted to be the fastest (0: any).\n",
      in_order ? "-in-order" : "");
  for (const CollectiveKind kind : kKinds) {
    if (in_order && kind != CollectiveKind::kAllReduce) continue;
    for (const int cores : {2, 4, 8, 16, 32}) {
      int before = -1;
      int64_t bytes_before = 0;
      const auto row = [&](int64_t limit) {
        fmt::print("{{CollectiveKind::{}, {}, {}, Algorithm::{}}},\n",
                   kKindNames[static_cast<int>(kind)], cores, limit, kAlgorithmNames[before]);
        std::fflush(stdout);
      };
      for (int64_t panels = 1; panels <= 8192; panels *= 2) {
        const CollectiveCall call{.kind = kind, .cores = cores, .rows = 1, .panels = panels};
        const Times t = times(call, p, in_order);
        if (t.best < 0) break;
        if (before >= 0 && t.best != before) row((bytes_before + call.part_bytes()) / 2);
        before = t.best;
        bytes_before = call.part_bytes();
      }
      row(0);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto set = chips::find_time_parameters(
      argc > 2 && std::strcmp(argv[1], "--params") == 0 ? argv[2] : "nominal");
  if (!set) {
    fmt::print(stderr, "{}\n", set.error().message);
    return 1;
  }
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first.starts_with("--table")) {
    table(set->values, first == "--table-in-order");
  } else {
    report(set->values);
  }
  return 0;
}
