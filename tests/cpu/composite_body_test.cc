// Every composite of docs/composites.md: the hand kernels of every instruction set, called by the
// CPU engine, against the body that the block builds, run on the emulator. And the engine without
// hand kernels, which runs the same bodies, gives the emulator's bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "gridless/base/numerics.h"
#include "gridless/blocks/attention.h"
#include "gridless/blocks/collectives/collective.h"
#include "gridless/blocks/gated_attention.h"
#include "gridless/blocks/gated_delta.h"
#include "gridless/blocks/head.h"
#include "gridless/blocks/mlp.h"
#include "gridless/blocks/norm.h"
#include "gridless/blocks/weight_stream.h"
#include "gridless/weights/stream_packer.h"
#include "tests/cpu/random.h"
#include "tests/cpu/run_program.h"

namespace gridless::cpu {
namespace {

using namespace blocks;  // NOLINT: kernels read in the vocabulary of the blocks

constexpr int64_t kRowCounts[] = {1, 2, 3, 8, 16};

Bytes floats(Random& random, int64_t n, float scale = 1) {
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = random.normal() * scale;
  return bytes_of(v);
}
Bytes halves(Random& random, int64_t n) {
  std::vector<uint16_t> v(static_cast<size_t>(n));
  for (uint16_t& x : v) x = to_bf16(random.normal()).bits;
  return bytes_of(v);
}
// Panel-major [n, rows, 128] of normals, zero beyond `width`.
template <typename T>
Bytes activation(Random& random, int64_t width, int64_t rows) {
  std::vector<T> v(static_cast<size_t>(panels(width) * rows * kLanes));
  for (size_t i = 0; i < v.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i), lane = at / (rows * kLanes) * kLanes + at % kLanes;
    if (lane >= width) continue;
    if constexpr (sizeof(T) == 2) {
      v[i] = to_bf16(random.normal()).bits;
    } else {
      v[i] = random.normal();
    }
  }
  return bytes_of(v);
}

void copy_out(Kernel& k, Ref local, Ref to) {
  k.scope([&] { k.copy(local, to, k.dma_sem()).wait(); });
}

// What the contract allows between a hand kernel and its body.
struct Tolerance {
  int ulps = 0;             // bf16 steps of the element; 0: the same bits
  bool of_largest = false;  // ... of the largest element of the result instead
};

testing::AssertionResult within(const Tolerance& t, const Ran& expected, const Ran& actual) {
  if (t.ulps == 0 || !expected.diagnostics.empty() || !actual.diagnostics.empty())
    return same_results(expected, actual);
  for (size_t c = 0; c < expected.results.size(); ++c) {
    const auto e = values_of<uint16_t>(expected.results[c][0]);
    const auto a = values_of<uint16_t>(actual.results[c][0]);
    const auto value = [](uint16_t b) { return double{to_f32(bf16{b})}; };
    double largest = 0;
    for (uint16_t x : e) largest = std::max(largest, std::abs(value(x)));
    for (size_t i = 0; i < e.size(); ++i) {
      // A step is at most 2^-7 of the number; of zero, nothing but a subnormal of f32.
      const double size = t.of_largest ? largest : std::abs(value(e[i]));
      if (!(std::abs(value(e[i]) - value(a[i])) <= t.ulps * 0x1p-7 * size + 0x1p-110)) {
        return testing::AssertionFailure()
               << "element " << i << ": body " << value(e[i]) << ", kernel " << value(a[i]);
      }
    }
  }
  return testing::AssertionSuccess();
}

using Build = std::function<void(Kernel&)>;

void check(const Build& build, const std::vector<Bytes>& inputs, const Tolerance& tolerance = {},
           int cores = 1, int64_t kernels_at_least = 1, int launches = 1) {
  Kernel k("composite", cores);
  build(k);
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  const PerCoreBytes per_core(static_cast<size_t>(cores), inputs);
  const Ran body = run_emulated(*program, per_core, launches);
  EXPECT_TRUE(same_results(body, run_cpu(*program, per_core, {.hand_kernels = false}, launches)));
  std::vector<Isa> isas = vector_isas();
  isas.push_back(Isa::kBaseline);
  for (const Isa isa : isas) {
    const Ran hand = run_cpu(*program, per_core, {.isa = isa}, launches);
    EXPECT_TRUE(within(tolerance, body, hand)) << isa_name(isa);
    EXPECT_GE(hand.stats.hand_kernels, kernels_at_least);
  }
}

// --- products ---

struct Product {
  int64_t n, k;
  bool paired;
  int64_t max_chunk_bytes;
};

// The stream of one matrix of normals, quantised by the packer.
std::vector<uint32_t> image_of(const weights::StreamLayout& layout, Random& random) {
  const weights::MatrixLayout& m = layout.tail[0];
  const Bytes data = floats(random, 2 * m.shape.n * m.shape.k);
  const weights::TensorView t{
      .name = "w",
      .dtype = weights::Dtype::kF32,
      .shape = {2 * m.shape.n, m.shape.k},
      .stored = {reinterpret_cast<const uint8_t*>(data.data()), data.size()}};
  weights::MatrixPlan plan;
  plan.columns = {{0, m.shape.k}};
  for (int64_t i = 0; i < m.shape.n; ++i) {
    plan.rows.push_back({&t, i});
    if (m.shape.paired) plan.second_rows.push_back({&t, m.shape.n + i});
  }
  std::vector<uint32_t> image(static_cast<size_t>(layout.total_rows() * kLanes));
  EXPECT_TRUE(weights::pack_matrix(m, layout.chunk_rows, plan, image));
  return image;
}

class DotBody : public testing::TestWithParam<weights::Format> {};

TEST_P(DotBody, IsTheKernelOfEveryIsaToTheBit) {
  uint32_t seed = 1;
  // One part and several, one panel per chunk and several, padded panels, paired matrices.
  for (const Product& p : {Product{200, 96, false, 1 << 20}, Product{256, 512, false, 128 * 300},
                           Product{384, 384, false, 64 * 1024}, Product{130, 160, true, 1 << 20},
                           Product{256, 256, true, 40 * 1024}}) {
    const auto layout = weights::make_stream_layout(0, {}, {{"w", p.n, p.k, GetParam(), p.paired}},
                                                    p.max_chunk_bytes);
    const weights::MatrixLayout& m = layout.tail[0];
    for (const int64_t rows : kRowCounts) {
      SCOPED_TRACE(testing::Message() << p.n << " x " << p.k << ", " << m.parts << " parts, "
                                      << m.panels_per_chunk << " panels, " << rows << " rows");
      Random random(++seed);
      const std::vector<uint32_t> image = image_of(layout, random);
      const auto build = [&](Kernel& k) {
        const Ref x = k.input("x", Elem::kBf16, {panels(p.k), rows, kLanes});
        const Ref w = k.input("w", Elem::kI32, {layout.total_rows(), kLanes});
        const Ref y = k.output("y", Elem::kF32, {m.panels, rows, kLanes});
        k.scope([&] {
          WeightStream stream(k, w, layout, 2);
          const Ref out = k.vmem(Elem::kF32, y.shape());
          stream.enter_tail();
          stream.project("w", copy_in(k, x), out);
          copy_out(k, out, y);
        });
      };
      check(build, {activation<uint16_t>(random, p.k, rows), bytes_of(image)}, {}, 1, m.chunks());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, DotBody,
                         testing::Values(weights::Format::kBf16, weights::Format::kQ8,
                                         weights::Format::kQ4, weights::Format::kQ4m),
                         [](const auto& info) { return std::string(spelling(info.param)); });

// Logits with many ties, some equal between panels, padding above them all.
TEST(HeadBody, KeepsTheSameCandidates) {
  for (const int64_t rows : kRowCounts) {
    for (const auto& [vocabulary, keep] : {std::pair<int64_t, int64_t>{300, 8}, {129, 1}, {5, 8}}) {
      Random random(static_cast<uint32_t>(vocabulary + rows));
      const auto layout = weights::make_stream_layout(
          0, {}, {{"head", vocabulary, 32, weights::Format::kBf16}}, 128 * 80);
      std::vector<uint32_t> image(static_cast<size_t>(layout.total_rows() * kLanes));
      for (uint32_t& w : image) w = random.below(2) ? 0x3f80bf80u : 0x40003f80u;  // 1, -1, 2
      std::vector<uint16_t> x(static_cast<size_t>(rows * kLanes));
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = i % kLanes < 32 ? to_bf16(static_cast<float>(random.below(3)) - 1).bits : 0;
      const auto build = [&](Kernel& k) {
        const Ref xs = k.input("x", Elem::kBf16, {1, rows, kLanes});
        const Ref w = k.input("w", Elem::kI32, {layout.total_rows(), kLanes});
        HeadOutputs out;
        out.logits = k.output("logits", Elem::kF32, {layout.tail[0].panels, rows, kLanes});
        out.candidate_logits = k.output("best", Elem::kF32, {rows, kLanes});
        out.candidate_ids = k.output("ids", Elem::kI32, {rows, kLanes});
        k.scope([&] {
          WeightStream stream(k, w, layout, 2);
          stream.enter_tail();
          lm_head(k, stream, "head", copy_in(k, xs), vocabulary, keep, out);
        });
      };
      SCOPED_TRACE(testing::Message() << vocabulary << " of vocabulary, " << rows << " rows");
      check(build, {bytes_of(x), bytes_of(image)}, {}, 1, 3);
    }
  }
}

// --- between the products ---

TEST(CompositeBody, RmsNorm) {
  for (const int64_t rows : kRowCounts) {
    for (const int64_t width : {64, 128, 200, 576}) {
      Random random(static_cast<uint32_t>(width + rows));
      const int64_t n = panels(width);
      const auto build = [&](Kernel& k) {
        const Ref x = k.input("x", Elem::kF32, {n, rows, kLanes});
        const Ref w = k.input("w", Elem::kF32, {n, kLanes});
        const Ref y = k.output("y", Elem::kBf16, {n, rows, kLanes});
        k.scope([&] {
          const Ref out = k.vmem(Elem::kBf16, y.shape());
          rms_norm(copy_in(k, x), copy_in(k, w), out, width, 1e-5);
          copy_out(k, out, y);
        });
      };
      SCOPED_TRACE(testing::Message() << width << " wide, " << rows << " rows");
      check(build, {activation<float>(random, width, rows), activation<float>(random, width, 1)},
            {.ulps = 2});
    }
  }
}

TEST(CompositeBody, Swiglu) {
  for (const int64_t rows : kRowCounts) {
    Random random(static_cast<uint32_t>(rows));
    const auto build = [&](Kernel& k) {
      const Ref y = k.input("y", Elem::kF32, {6, rows, kLanes});
      const Ref z = k.output("z", Elem::kBf16, {3, rows, kLanes});
      k.scope([&] {
        const Ref out = k.vmem(Elem::kBf16, z.shape());
        swiglu(copy_in(k, y), out);
        copy_out(k, out, z);
      });
    };
    check(build, {floats(random, 6 * rows * kLanes, 6)}, {.ulps = 1});
  }
}

TEST(CompositeBody, AddIntoAndAddSum) {
  for (const int64_t rows : kRowCounts) {
    for (const int cores : {1, 2, 3, 4}) {
      Random random(static_cast<uint32_t>(rows));
      const auto build = [&](Kernel& k) {
        const Ref x = k.input("x", Elem::kF32, {2, rows, kLanes});
        const Ref y = k.input("y", Elem::kF32, {3, rows, kLanes});  // more panels than x
        const Ref z = k.output("z", Elem::kF32, {2, rows, kLanes});
        if (cores > 1) k.barrier_all();
        k.scope([&] {
          Collective all(k, {.group = {k.cores()}, .part = {2, rows, kLanes}});
          const Ref sum = copy_in(k, x), term = copy_in(k, y);
          all.add_sum(0, term, sum);
          all.add_sum(1, term, sum);
          copy_out(k, sum, z);
        });
      };
      check(build, {floats(random, 2 * rows * kLanes), floats(random, 3 * rows * kLanes)}, {},
            cores, 2);
    }
  }
}

// --- attention ---

std::vector<HeadShape> head_shapes() {
  return {{.heads = 1, .groups = 1, .head_dim = 16},  {.heads = 4, .groups = 2, .head_dim = 16},
          {.heads = 3, .groups = 3, .head_dim = 64},  {.heads = 2, .groups = 4, .head_dim = 64},
          {.heads = 1, .groups = 4, .head_dim = 128}, {.heads = 2, .groups = 1, .head_dim = 128}};
}

TEST(CompositeBody, QkvRope) {
  for (const HeadShape& h : head_shapes()) {
    for (const int64_t rows : kRowCounts) {
      Random random(static_cast<uint32_t>(h.width() + rows));
      const int64_t flat = (h.groups + 2) * h.width();
      const auto build = [&](Kernel& k) {
        const Ref y = k.input("y", Elem::kF32, {panels(flat), rows, kLanes});
        const Ref c = k.input("cos", Elem::kF32, {rows, h.padded_half()});
        const Ref s = k.input("sin", Elem::kF32, {rows, h.padded_half()});
        const Ref q = k.output("qkv", Elem::kBf16, {h.groups + 2, rows, h.padded()});
        k.scope([&] {
          const Ref out = k.vmem(Elem::kBf16, q.shape());
          qkv_rope(copy_in(k, y), {copy_in(k, c), copy_in(k, s)}, h, out);
          copy_out(k, out, q);
        });
      };
      SCOPED_TRACE(testing::Message() << h.heads << " heads of " << h.head_dim << ", " << rows);
      check(build, {activation<float>(random, flat, rows), floats(random, rows * h.padded_half()),
                    floats(random, rows * h.padded_half())});
    }
  }
}

// Rows of several sequences at the edges of tiles and pages: runs of consecutive positions, as in a
// prefill or a verification, slot after slot, with inactive rows between and behind them.
constexpr int64_t kSlots = 3, kSlotPages = 3;
std::vector<int32_t> row_table(int64_t rows, Random& random) {
  constexpr int32_t kStarts[kSlots] = {126, 0, 255};
  const int64_t first_slot = random.below(kSlots);
  std::vector<int32_t> out(static_cast<size_t>(4 * rows));
  int64_t r = 0;
  for (int64_t i = 0; i < kSlots && r < rows; ++i) {
    const int64_t slot = (first_slot + i) % kSlots;
    const int64_t length = random.below(rows) + (i == 0 ? 1 : 0);
    for (int64_t n = 0; n < length && r < rows; ++n, ++r) {
      out[static_cast<size_t>(rows + r)] = static_cast<int32_t>(slot);
      out[static_cast<size_t>(2 * rows + r)] = kStarts[slot] + static_cast<int32_t>(n);
      out[static_cast<size_t>(3 * rows + r)] = 1;
    }
    r += random.below(2);
  }
  return out;
}
std::vector<int32_t> page_table() { return {4, 0, 7, 2, 8, 1, 3, 6, 5}; }

TEST(CompositeBody, KvAppendAndDecodeAttention) {
  const int64_t pages = kSlots * kSlotPages;
  for (const HeadShape& h : head_shapes()) {
    for (const int64_t rows : kRowCounts) {
      Random random(static_cast<uint32_t>(h.width() * 31 + rows));
      const auto build = [&](Kernel& k) {
        StepRows table{rows, k.input("rows", Elem::kI32, {kRowFields, rows}, Space::kSmem),
                       k.input("pages", Elem::kI32, {kSlots, kSlotPages}, Space::kSmem)};
        const Ref qkv = k.input("qkv", Elem::kBf16, {h.groups + 2, rows, h.padded()});
        const Ref out =
            k.output("out", Elem::kBf16, {blocks::panels(h.groups * h.width()), rows, kLanes});
        const Ref cache = k.inout("cache", Elem::kBf16, {pages, 2, kPageTokens, h.padded()});
        k.scope([&] {
          const Ref local = copy_in(k, qkv), context = k.vmem(Elem::kBf16, out.shape());
          const RowRuns runs(table);
          kv_append(local, cache, table, runs, h);
          decode_attention(local, cache, table, runs, h, 1 / std::sqrt(double(h.head_dim)),
                           context);
          copy_out(k, context, out);
        });
      };
      SCOPED_TRACE(testing::Message() << h.heads << " heads of " << h.head_dim << ", " << h.groups
                                      << " groups, " << rows << " rows");
      // Result 0 is the attention; KvAppendToTheBit looks at the cache.
      check(build,
            {bytes_of(row_table(rows, random)), bytes_of(page_table()),
             halves(random, (h.groups + 2) * rows * h.padded()),
             halves(random, pages * 2 * kPageTokens * h.padded())},
            {.ulps = 2, .of_largest = true}, 1, 2);
    }
  }
}

TEST(CompositeBody, KvAppendToTheBit) {
  const int64_t pages = kSlots * kSlotPages;
  for (const HeadShape& h : head_shapes()) {
    for (const int64_t rows : kRowCounts) {
      Random random(static_cast<uint32_t>(h.width() * 7 + rows));
      const auto build = [&](Kernel& k) {
        StepRows table{rows, k.input("rows", Elem::kI32, {kRowFields, rows}, Space::kSmem),
                       k.input("pages", Elem::kI32, {kSlots, kSlotPages}, Space::kSmem)};
        const Ref qkv = k.input("qkv", Elem::kBf16, {h.groups + 2, rows, h.padded()});
        const Ref cache = k.inout("cache", Elem::kBf16, {pages, 2, kPageTokens, h.padded()});
        k.scope([&] { kv_append(copy_in(k, qkv), cache, table, RowRuns(table), h); });
      };
      check(build, {bytes_of(row_table(rows, random)), bytes_of(page_table()),
                    halves(random, (h.groups + 2) * rows * h.padded()),
                    halves(random, pages * 2 * kPageTokens * h.padded())});
    }
  }
}

// --- gated attention and Gated DeltaNet ---

TEST(CompositeBody, QkvNormRope) {
  for (const HeadShape& h : head_shapes()) {
    for (const int64_t rows : kRowCounts) {
      Random random(static_cast<uint32_t>(h.width() * 3 + rows));
      const int64_t flat = (h.groups + 2) * h.width();
      const auto build = [&](Kernel& k) {
        const Ref y = k.input("y", Elem::kF32, {panels(flat), rows, kLanes});
        const Ref w = k.input("norms", Elem::kF32, {2, 2, h.padded_half()});
        const Ref c = k.input("cos", Elem::kF32, {rows, h.padded_half()});
        const Ref s = k.input("sin", Elem::kF32, {rows, h.padded_half()});
        const Ref q = k.output("qkv", Elem::kBf16, {h.groups + 2, rows, h.padded()});
        k.scope([&] {
          const Ref out = k.vmem(Elem::kBf16, q.shape());
          qkv_norm_rope(copy_in(k, y), copy_in(k, w), {copy_in(k, c), copy_in(k, s)}, h, 1e-6, out);
          copy_out(k, out, q);
        });
      };
      SCOPED_TRACE(testing::Message() << h.heads << " heads of " << h.head_dim << ", " << rows);
      check(build,
            {activation<float>(random, flat, rows), floats(random, 4 * h.padded_half()),
             floats(random, rows * h.padded_half()), floats(random, rows * h.padded_half())},
            {.ulps = 1, .of_largest = true});
    }
  }
}

TEST(CompositeBody, GateContext) {
  for (const int64_t rows : kRowCounts) {
    Random random(static_cast<uint32_t>(rows));
    const auto build = [&](Kernel& k) {
      const Ref x = k.input("x", Elem::kBf16, {3, rows, kLanes});
      const Ref gate = k.input("gate", Elem::kF32, {4, rows, kLanes});  // more panels than x
      const Ref y = k.output("y", Elem::kBf16, {3, rows, kLanes});
      k.scope([&] {
        const Ref context = copy_in(k, x);
        gate_context(context, copy_in(k, gate));
        copy_out(k, context, y);
      });
    };
    check(build, {halves(random, 3 * rows * kLanes), floats(random, 4 * rows * kLanes, 6)},
          {.ulps = 1});
  }
}

// Runs of up to `longest` rows of the slots in turn, some of new sequences; the end is inactive.
std::vector<int32_t> row_runs_table(int64_t rows, int64_t longest, Random& random) {
  std::vector<int32_t> out(static_cast<size_t>(4 * rows));
  int64_t r = 0;
  for (int32_t slot = 0; slot < kSlots && r < rows; ++slot) {
    auto position = static_cast<int32_t>(random.below(3) * 50);
    for (int64_t n = 1 + random.below(static_cast<uint32_t>(longest)); n > 0 && r < rows; --n) {
      out[static_cast<size_t>(rows + r)] = slot;
      out[static_cast<size_t>(2 * rows + r)] = position++;
      out[static_cast<size_t>(3 * rows + r++)] = 1;
    }
  }
  return out;
}

// Two launches: the second goes on from the state that the first left.
TEST(CompositeBody, GatedDelta) {
  for (const DeltaShape& d : {DeltaShape{1, 3, 16, 16}, DeltaShape{2, 4, 16, 32},
                              DeltaShape{2, 2, 40, 72}, DeltaShape{1, 2, 128, 128}}) {
    for (const int64_t rows : kRowCounts) {
      Random random(static_cast<uint32_t>(d.key_dim * 7 + rows));
      const auto of_slots = [](Shape s) {
        s.insert(s.begin(), kSlots);
        return s;
      };
      const auto size = [](const Shape& s) {
        int64_t n = 1;
        for (const int64_t x : s) n *= x;
        return n;
      };
      const Shape matrix = of_slots(delta_matrix_shape(d)),
                  columns = of_slots(delta_columns_shape(d));
      const Shape pending = of_slots(delta_pending_shape(d));
      const auto build = [&](Kernel& k) {
        const StepRows table{rows, k.input("rows", Elem::kI32, {kRowFields, rows}, Space::kSmem),
                             Ref()};
        const Ref keep = k.input("keep", Elem::kI32, {kSlots}, Space::kSmem);
        const Ref y = k.input("y", Elem::kF32, {d.projection_panels(), rows, kLanes});
        const Ref conv = k.input("conv", Elem::kF32, {kConvTaps, d.conv_panels(), kLanes});
        const Ref vectors = k.input("vectors", Elem::kF32, {kDeltaVectors, kLanes});
        const Ref out = k.output("out", Elem::kBf16, {d.value_panels(), rows, kLanes});
        const DeltaState state{k.inout("matrix", Elem::kF32, matrix),
                               k.inout("columns", Elem::kF32, columns),
                               k.inout("pending", Elem::kF32, pending)};
        k.scope([&] {
          const RowRuns runs(table);
          const Ref result = k.vmem(Elem::kBf16, out.shape());
          gated_delta(copy_in(k, y), {copy_in(k, conv), copy_in(k, vectors)}, state, table, runs,
                      keep, d, DeltaRule::kRecurrent, result);
          copy_out(k, result, out);
        });
      };
      // At most as many as the launch before had, which has the same rows.
      const std::vector<int32_t> rows_of = row_runs_table(rows, rows < 16 ? 4 : 12, random);
      std::vector<int32_t> keep(kSlots);
      for (int64_t r = 0; r < rows; ++r) {
        if (rows_of[static_cast<size_t>(3 * rows + r)] == 0) continue;
        ++keep[static_cast<size_t>(rows_of[static_cast<size_t>(rows + r)])];
      }
      for (int32_t& n : keep) {
        n = static_cast<int32_t>(
            random.below(static_cast<uint32_t>(std::min<int64_t>(n, kPendingRows) + 1)));
      }
      // A is negative; a pending decay lies between 0 and 1.
      std::vector<float> vectors(static_cast<size_t>(kDeltaVectors * kLanes));
      for (size_t i = 0; i < vectors.size(); ++i) {
        vectors[i] = i < kLanes ? -std::abs(random.normal()) : random.normal();
      }
      std::vector<float> stored(static_cast<size_t>(size(pending)));
      for (size_t i = 0; i < stored.size(); ++i) {
        const int64_t row = static_cast<int64_t>(i) / kLanes % pending[2];
        stored[i] = row < d.key_heads + d.value_heads ? random.normal() * 0.2f : 0.5f;
      }
      SCOPED_TRACE(testing::Message() << d.value_heads << " heads of " << d.key_dim << " x "
                                      << d.value_dim << ", " << rows << " rows");
      check(
          build,
          {bytes_of(rows_of), bytes_of(keep), floats(random, d.projection_panels() * rows * kLanes),
           floats(random, kConvTaps * d.conv_panels() * kLanes, 0.5f), bytes_of(vectors),
           floats(random, size(matrix), 0.3f), floats(random, size(columns)), bytes_of(stored)},
          {.ulps = 2, .of_largest = true}, 1, 1, 2);
    }
  }
}

}  // namespace
}  // namespace gridless::cpu
