// Small kernels whose time is known by hand. Scalar instructions around an event cost some tens of
// cycles; the sizes make them small beside what is tested.
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/time/timed_kernel.h"

namespace gridless::time {
namespace {

constexpr int64_t kRows = 200;            // of 512 bytes
constexpr double kBytes = kRows * 512.0;  // 102400
constexpr double kScalars = 200;          // ns for the instructions around it, at most

TEST(Simulation, ACopyTakesItsLatencyAndItsBytes) {
  Kernel k("copy");
  const Ref x = k.input("x", Elem::kF32, {kRows, 128});
  k.scope([&] { k.copy(x, k.vmem(Elem::kF32, {kRows, 128}), k.dma_sem()).wait(); });
  const Prediction p = predict(k, 1, round_numbers(), kOneChip);
  EXPECT_GE(p.ns, 100 + kBytes);
  EXPECT_LE(p.ns, 100 + kBytes + kScalars);
  EXPECT_EQ(p.hbm_bytes_most, kRows * 512);
  EXPECT_GT(p.parts.hbm, kBytes);
}

TEST(Simulation, TwoCopiesOfACoreShareItsMemory) {
  Kernel k("two");
  const Ref x = k.input("x", Elem::kF32, {2, kRows, 128});
  k.scope([&] {
    const Ref to = k.vmem(Elem::kF32, {2, kRows, 128});
    const Sems done = k.dma_sems(2);
    const Copy a = k.copy(x.at(0), to.at(0), done.at(0)), b = k.copy(x.at(1), to.at(1), done.at(1));
    a.wait();
    b.wait();
  });
  const Prediction p = predict(k, 1, round_numbers(), kOneChip);
  EXPECT_NEAR(p.ns, 100 + 2 * kBytes, kScalars);
}

TEST(Simulation, TheCoresOfAChipHaveMemoriesOfTheirOwnUnlessTheChipHasLess) {
  const auto ns = [](double chip_rate) {
    Kernel k("both", 2);
    const Ref x = k.input("x", Elem::kF32, {kRows, 128});
    k.scope([&] { k.copy(x, k.vmem(Elem::kF32, {kRows, 128}), k.dma_sem()).wait(); });
    chips::TimeParameters p = round_numbers();
    p.hbm_chip_rate = chip_rate;
    return predict(k, 2, p, kOneChip).ns;
  };
  EXPECT_NEAR(ns(2), 100 + kBytes, kScalars);
  EXPECT_NEAR(ns(1), 100 + 2 * kBytes, kScalars);
}

TEST(Simulation, WhereCopiesAreServedOneByOneTheFirstIsNotSlowedDown) {
  const auto first = [](double at_once) {
    Kernel k("queue");
    const Ref x = k.input("x", Elem::kF32, {2, kRows, 128});
    k.scope([&] {
      const Ref to = k.vmem(Elem::kF32, {2, kRows, 128});
      const Sems done = k.dma_sems(2);
      const Copy a = k.copy(x.at(0), to.at(0), done.at(0)),
                 b = k.copy(x.at(1), to.at(1), done.at(1));
      a.wait();
      k.delay(5);
      b.wait();
    });
    chips::TimeParameters p = round_numbers();
    p.hbm_copies_at_once = at_once;
    std::vector<Span> spans;
    predict(k, 1, p, kOneChip, &spans);
    for (const Span& s : spans)
      if (s.kind == Span::Kind::kCopy) return s.end;
    return 0.0;
  };
  EXPECT_NEAR(first(1), 100 + kBytes, kScalars);
  EXPECT_NEAR(first(0), 100 + 2 * kBytes, kScalars);
}

Prediction message(int to, const chips::TimeParameters& p, std::vector<Span>* spans = nullptr) {
  Kernel k("message", 8);
  k.scope([&] {
    const Ref from = k.vmem(Elem::kF32, {kRows, 128}), into = k.vmem(Elem::kF32, {kRows, 128});
    const Sem sent = k.dma_sem(), arrived = k.dma_sem();
    k.if_(k.core() == 0, [&] {
      const Copy c = k.copy_to(to, from, into, sent, arrived);
      c.wait_sent();
    });
    k.if_(k.core() == to, [&] { k.wait_received(into, arrived); });
  });
  return predict(k, 8, p, kFourChips, spans);
}

TEST(Simulation, AMessageTakesTheLinksRateAndOneLatency) {
  const Prediction far = message(2, round_numbers());
  EXPECT_NEAR(far.per_core_ns[2], kBytes / 2 + 1000, kScalars);
  EXPECT_NEAR(far.per_core_ns[0], kBytes / 2, kScalars);  // its source is free before it arrives
  EXPECT_LT(far.per_core_ns[3], kScalars);
  EXPECT_EQ(far.messages, 1);
  const Prediction sibling = message(1, round_numbers());
  EXPECT_NEAR(sibling.per_core_ns[1], kBytes / 8 + 500, kScalars);
}

TEST(Simulation, AWaitForAPeerIsTheirsUntilTheySendAndTheNetworksAfterwards) {
  Kernel k("late", 2);
  k.scope([&] {
    const Ref from = k.vmem(Elem::kF32, {kRows, 128}), into = k.vmem(Elem::kF32, {kRows, 128});
    const Sem sent = k.dma_sem(), arrived = k.dma_sem();
    k.if_(k.core() == 0, [&] {
      k.delay(7000);
      k.copy_to(1, from, into, sent, arrived).wait_sent();
    });
    k.if_(k.core() == 1, [&] { k.wait_received(into, arrived); });
  });
  const Prediction p = predict(k, 2, round_numbers(), kOneChip);
  // Half of what happens to core 1, as the parts are means of two cores.
  EXPECT_NEAR(p.parts.peer_wait, 3500, kScalars);
  EXPECT_NEAR(p.parts.imbalance, 250, kScalars);
}

// Every core hands its vector to the right, cores - 1 times: each round is a message.
TEST(Simulation, ARingTakesARoundPerNeighbour) {
  constexpr int kCores = 8;
  Kernel k("ring", kCores);
  k.scope([&] {
    const Ref buf = k.vmem(Elem::kF32, {kCores, kRows, 128});
    const Sems sent = k.dma_sems(kCores), arrived = k.dma_sems(kCores);
    const Scalar me = k.core(), right = (me + 1) % kCores;
    for (int r = 0; r + 1 < kCores; ++r) {
      const Copy c = k.copy_to(right, buf.at(r), buf.at(r + 1), sent.at(r), arrived.at(r));
      k.wait_received(buf.at(r + 1), arrived.at(r));
      c.wait_sent();
    }
  });
  const Prediction p = predict(k, kCores, round_numbers(), kFourChips);
  // A link between chips is busy all the time: its sender waits for a round's source to be free,
  // and what comes from the left is there by then. The last message has its latency on top.
  EXPECT_NEAR(p.ns, (kCores - 1) * kBytes / 2 + 1000, kCores * 100);
  EXPECT_EQ(p.messages, kCores * (kCores - 1));
}

TEST(Simulation, ABarrierLetsNobodyGoBeforeTheLastHasCome) {
  Kernel k("barrier", 8);
  k.scope([&] {
    k.if_(k.core() == 3, [&] { k.delay(50'000); });
    k.barrier_all();
  });
  const Prediction p = predict(k, 8, round_numbers(), kFourChips);
  for (const double ns : p.per_core_ns) {
    EXPECT_GE(ns, 50'000);
    EXPECT_LE(ns, 50'000 + 2 * 1000 + 2 * kScalars);
  }
}

TEST(Simulation, ACoreStartsOneMessageAtATime) {
  const auto ns = [](double issue) {
    Kernel k("fan", 8);
    k.scope([&] {
      const Ref from = k.vmem(Elem::kF32, {8, 128}), into = k.vmem(Elem::kF32, {8, 8, 128});
      const Sem sent = k.dma_sem(), arrived = k.dma_sem();
      k.if_(k.core() == 0, [&] {
        for (int peer = 2; peer < 8; peer += 2) k.copy_to(peer, from, into.at(0), sent, arrived);
        for (int peer = 2; peer < 8; peer += 2) k.wait(from, from, sent);
      });
      k.if_(k.core() != 0 && k.core() % 2 == 0, [&] { k.wait_received(into.at(0), arrived); });
    });
    chips::TimeParameters p = round_numbers();
    p.ici_issue_ns = issue;
    return predict(k, 8, p, kFourChips).ns;
  };
  EXPECT_NEAR(ns(10'000) - ns(0), 20'000, 3000);
}

TEST(Simulation, AReadOfASemaphoreSeesWhatHasArrivedByThen) {
  Kernel k("poll", 2);
  k.scope([&] {
    const Sem s = k.sem();
    k.if_(k.core() == 0, [&] {
      k.delay(20'000);
      k.signal(s, 1, 1);
    });
    k.if_(k.core() == 1, [&] {
      k.while_(0, [&](Scalar seen) { return seen == 0; }, [&](Scalar) { return k.read(s); });
      k.wait(s);
    });
  });
  const Prediction p = predict(k, 2, round_numbers(), kOneChip);
  EXPECT_NEAR(p.per_core_ns[1], 20'000 + 500, kScalars);
}

TEST(Simulation, ADeadlockIsADiagnostic) {
  Kernel k("stuck", 2);
  k.scope([&] {
    const Sem s = k.sem();
    k.if_(k.core() == 1, [&] { k.wait(s); });
  });
  const auto program = k.finish();
  ASSERT_TRUE(program.has_value());
  const auto kernel = TimedKernel::create(program->module, program->call);
  ASSERT_TRUE(kernel.has_value());
  const auto p = kernel->predict(place(kOneChip, 2), {}, {.parameters = round_numbers()});
  ASSERT_FALSE(p.has_value());
  EXPECT_EQ(p.error()[0].kind, "deadlock");
}

TEST(Simulation, ControlFlowReadsTheTablesThatAreGivenAndSaysWhatItLacks) {
  const auto rounds = [](std::span<const std::span<const std::byte>> operands) {
    Kernel k("table");
    const Ref n = k.input("n", Elem::kI32, {1}, Space::kSmem);
    const Ref x = k.input("x", Elem::kF32, {kRows, 128});
    k.scope([&] {
      const Ref to = k.vmem(Elem::kF32, {kRows, 128});
      const Sem done = k.dma_sem();
      k.loop(0, n.get({0}), [&](Scalar) { k.copy(x, to, done).wait(); });
    });
    return predict(k, 1, round_numbers(), kOneChip, nullptr, operands);
  };
  const int32_t three = 3;
  const auto bytes = std::as_bytes(std::span(&three, 1));
  const std::vector<std::span<const std::byte>> given = {bytes, {}};
  const Prediction known = rounds(given), unknown = rounds({});
  EXPECT_NEAR(known.ns, 3 * (100 + kBytes), 4 * kScalars);
  EXPECT_TRUE(known.warnings.empty());
  EXPECT_LT(unknown.ns, 2 * kScalars);
  ASSERT_EQ(unknown.warnings.size(), 1u);
  EXPECT_EQ(unknown.warnings[0].kind, "unknown_scalar");
}

// A kernel of everything: copies, a product, an exchange.
Prediction mixed(const chips::TimeParameters& p, std::vector<Span>* spans = nullptr) {
  Kernel k("mixed", 8);
  const Ref x = k.input("x", Elem::kBf16, {4, 256, 256});
  k.scope([&] {
    const Ref w = k.vmem(Elem::kBf16, {2, 256, 256}), out = k.vmem(Elem::kF32, {8, 256});
    const Ref got = k.vmem(Elem::kF32, {8, 8, 256});
    const Sems done = k.dma_sems(2);
    const Sem sent = k.dma_sem(), arrived = k.dma_sem();
    const Scalar me = k.core();
    k.copy(x.at(0), w.at(0), done.at(0));
    k.loop(0, 4, [&](Scalar i) {
      k.if_(i + 1 < 4, [&] { k.copy(x.at(i + 1), w.at((i + 1) % 2), done.at((i + 1) % 2)); });
      k.wait(x.at(0), w.at(i % 2), done.at(i % 2));
      out.store(
          dot(zeros(k, Elem::kBf16, {8, 256}), w.at(i % 2).load(), zeros(k, Elem::kF32, {8, 256})));
    });
    for (int d = 1; d < 8; ++d) k.copy_to((me + d) % 8, out, got.at(me), sent, arrived);
    for (int d = 1; d < 8; ++d) k.wait_received(got.at(0), arrived);
    for (int d = 1; d < 8; ++d) k.wait(out, out, sent);
    out.store(exp(got.at(0).load()));
  });
  return predict(k, 8, p, kFourChips, spans);
}

TEST(Simulation, ThePartsAddUpToTheWhole) {
  for (const auto& set : chips::tpu7x_time_parameters()) {
    const Prediction p = mixed(set.values);
    EXPECT_NEAR(p.parts.total(), p.ns, 1e-6 * p.ns) << set.name;
    EXPECT_DOUBLE_EQ(p.ns, *std::ranges::max_element(p.per_core_ns)) << set.name;
    EXPECT_GT(p.parts.mxu, 0);
    EXPECT_GT(p.parts.exchange, 0);
    EXPECT_DOUBLE_EQ(p.parts.fixed, set.values.launch_ns);
  }
}

TEST(Simulation, TheSameTwice) {
  const auto& set = chips::tpu7x_time_parameters()[0].values;
  const Prediction a = mixed(set), b = mixed(set);
  EXPECT_EQ(a.per_core_ns, b.per_core_ns);
  EXPECT_EQ(a.steps, b.steps);
}

TEST(Simulation, MoreBandwidthAndLessLatencyAreNeverSlower) {
  const chips::TimeParameters base = chips::tpu7x_time_parameters()[0].values;
  const double ns = mixed(base).ns;
  for (const chips::TimeParameter& t : chips::time_parameters()) {
    const bool rate = t.unit == "GB/s" || t.unit == "GHz";
    if (base.*t.field == 0) continue;
    chips::TimeParameters better = base;
    better.*t.field *= rate ? 1.5 : 0.5;
    EXPECT_LE(mixed(better).ns, ns * (1 + 1e-9)) << t.name;
  }
}

TEST(Simulation, TheBandOfTheSetsHoldsTheNominalTime) {
  const auto at = [](std::string_view name) {
    return mixed(chips::find_time_parameters(name)->values).ns;
  };
  EXPECT_LT(at("optimistic"), at("nominal"));
  EXPECT_GT(at("pessimistic"), at("nominal"));
}

TEST(Trace, PerfettoJsonHasEverySpanInOrderAndNamesItsTracks) {
  std::vector<Span> spans;
  mixed(chips::tpu7x_time_parameters()[0].values, &spans);
  const auto json = nlohmann::json::parse(perfetto_json(spans, "mixed"));
  size_t slices = 0, begins = 0, ends = 0;
  std::map<int, double> last;  // by core: slices of a track must not overlap
  for (const auto& e : json["traceEvents"]) {
    const std::string ph = e["ph"];
    slices += ph == "X";
    begins += ph == "b";
    ends += ph == "e";
    if (ph != "X") continue;
    EXPECT_GE(e["ts"].get<double>(), last[e["pid"]] - 1e-9);
    last[e["pid"]] = e["ts"].get<double>() + e["dur"].get<double>();
  }
  EXPECT_GT(slices, 8u);
  EXPECT_EQ(begins, ends);
  EXPECT_EQ(begins + slices, spans.size());
  const std::string html = timeline_html(spans, "a </script> title");
  EXPECT_EQ(html.find("</script> title"), std::string::npos);
}

}  // namespace
}  // namespace gridless::time
