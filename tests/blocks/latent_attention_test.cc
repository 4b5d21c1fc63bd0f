// Latent attention in its absorbed form against the expanded one: keys and values of every head and
// token made from the latents.
#include "gridless/blocks/latent_attention.h"

#include <cmath>

#include "gridless/base/integers.h"
#include "gridless/blocks/pages.h"
#include "gridless/blocks/weight_stream.h"
#include "gridless/weights/stream_packer.h"
#include "tests/blocks/block_run.h"

namespace gridless::blocks {
namespace {

constexpr LatentShape kShape{.heads = 3, .latent = 144, .nope = 48, .extra = 16, .value = 40};
constexpr int64_t kTokens = 150;  // of one sequence, on two pages
constexpr double kScale = 0.125;

struct Data {
  explicit Data(int64_t rows) : rows(rows) {
    std::mt19937 random(static_cast<uint32_t>(rows));
    const auto make = [&](int64_t n, float scale = 1) {
      return rounded(normals(random, n, scale));
    };
    c = make(kTokens * kShape.latent);
    kx = make(kTokens * kShape.extra);
    nope = make(rows * kShape.heads * kShape.nope);
    extra = make(rows * kShape.heads * kShape.extra);
    gate = make(rows * kShape.heads * kShape.value);
    k_up = make(kShape.heads * kShape.nope * kShape.latent, 0.1f);
    v_up = make(kShape.heads * kShape.value * kShape.latent, 0.1f);
  }
  int64_t rows;
  Floats c, kx, nope, extra, gate;
  Floats k_up, v_up;  // [head][nope or value][latent]
};

// Row r, at position kTokens - rows + r.
Floats expanded(const Data& d, int64_t r) {
  const auto at = [](const Floats& v, int64_t i) { return double{v[static_cast<size_t>(i)]}; };
  Floats out;
  const int64_t position = kTokens - d.rows + r;
  for (int64_t h = 0; h < kShape.heads; ++h) {
    std::vector<double> p;
    double top = -1e30, total = 0;
    for (int64_t t = 0; t <= position; ++t) {
      double score = 0;
      for (int64_t i = 0; i < kShape.nope; ++i) {
        double key = 0;
        for (int64_t j = 0; j < kShape.latent; ++j)
          key += at(d.k_up, (h * kShape.nope + i) * kShape.latent + j) *
                 at(d.c, t * kShape.latent + j);
        score += key * at(d.nope, (r * kShape.heads + h) * kShape.nope + i);
      }
      for (int64_t i = 0; i < kShape.extra; ++i)
        score +=
            at(d.kx, t * kShape.extra + i) * at(d.extra, (r * kShape.heads + h) * kShape.extra + i);
      p.push_back(score * kScale);
      top = std::max(top, p.back());
    }
    for (double& s : p) total += s = std::exp(s - top);
    for (int64_t i = 0; i < kShape.value; ++i) {
      double y = 0;
      for (int64_t t = 0; t <= position; ++t)
        for (int64_t j = 0; j < kShape.latent; ++j)
          y += p[static_cast<size_t>(t)] / total * at(d.c, t * kShape.latent + j) *
               at(d.v_up, (h * kShape.value + i) * kShape.latent + j);
      const double g = at(d.gate, (r * kShape.heads + h) * kShape.value + i);
      out.push_back(rounded(double{rounded(y)} * double{rounded(1 / (1 + std::exp(-g)))}));
    }
  }
  return out;
}

// [n][k] as a stream of one bf16 matrix.
Bytes image_of(const weights::StreamLayout& layout, const Floats& w, int64_t n, int64_t k) {
  weights::TensorView t{.name = "w", .dtype = weights::Dtype::kF32, .shape = {n, k}};
  const Bytes bytes = bytes_of(w);
  t.stored = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  weights::MatrixPlan plan{.columns = {{0, k}}};
  for (int64_t i = 0; i < n; ++i) plan.rows.push_back({&t, i});
  std::vector<uint32_t> words(static_cast<size_t>(layout.total_rows() * kLanes));
  EXPECT_TRUE(weights::pack_matrix(layout.tail[0], layout.chunk_rows, plan, words));
  return bytes_of(words);
}

TEST(LatentAttention, IsTheExpandedOne) {
  const LatentShape& s = kShape;
  for (const int64_t rows : {1, 3}) {
    const Data d(rows);
    const int64_t keys = s.heads * s.nope, values = s.heads * s.value;
    const auto up = weights::make_stream_layout(
        0, {}, {{"k_up", s.latent, round_up(keys, 32), weights::Format::kBf16}}, 1 << 20);
    const auto down = weights::make_stream_layout(
        0, {}, {{"v_up", values, round_up(s.latent, 32), weights::Format::kBf16}}, 1 << 20);
    const auto build = [&](Kernel& k) {
      const StepRows step = declare_rows(k, rows, 1, 2);
      const Ref cache = k.input("cache", Elem::kBf16, {2, 1, kPageTokens, s.token_width()});
      const Ref y = k.input("y", Elem::kF32, {s.query_panels(), rows, kLanes});
      const Ref gate = k.input("gate", Elem::kF32, {panels(values), rows, kLanes});
      const Ref up_image = k.input("up", Elem::kI32, {up.total_rows(), kLanes});
      const Ref down_image = k.input("down", Elem::kI32, {down.total_rows(), kLanes});
      const Ref out = k.output("out", Elem::kF32, {panels(values), rows, kLanes});
      k.scope([&] {
        const auto by_head = [&](int64_t count) {
          return k.vmem(Elem::kBf16, {count, s.heads * rows, kLanes});
        };
        WeightStream k_up(k, up_image, up, 2), v_up(k, down_image, down, 2);
        k_up.enter_tail(), v_up.enter_tail();
        const Ref local = copy_in(k, y), separate = by_head(s.nope_panels());
        separate_heads(local, s, separate);
        const Ref queries = k.vmem(Elem::kBf16, {s.heads, rows, s.token_width()});
        latent_queries(k_up.project("k_up", separate), local, s, queries);
        const Ref found = by_head(s.latent_panels());
        latent_attention(queries, cache, step, RowRuns(step), s, kScale, found);
        const Ref context = activations(k, Elem::kBf16, values, rows);
        gated_values(v_up.project("v_up", found), copy_in(k, gate), s, context);
        widen_out(k, context, out);
      });
    };
    std::vector<int32_t> table(static_cast<size_t>(kRowFields * rows)), pages = {1, 0};
    for (int64_t r = 0; r < rows; ++r) {
      table[static_cast<size_t>(kRowPosition * rows + r)] =
          static_cast<int32_t>(kTokens - rows + r);
      table[static_cast<size_t>(kRowActive * rows + r)] = 1;
    }
    std::vector<uint16_t> latents(static_cast<size_t>(2 * kPageTokens * s.token_width()));
    for (int64_t t = 0; t < kTokens; ++t) {
      uint16_t* token = latents.data() +
                        ((1 - t / kPageTokens) * kPageTokens + t % kPageTokens) * s.token_width();
      for (int64_t i = 0; i < s.latent; ++i)
        token[i] = to_bf16(d.c[static_cast<size_t>(t * s.latent + i)]).bits;
      for (int64_t i = 0; i < s.extra; ++i)
        token[round_to_lanes(s.latent) + i] =
            to_bf16(d.kx[static_cast<size_t>(t * s.extra + i)]).bits;
    }
    // Queries: against the latents of all heads, then against the rest from a whole panel on.
    Floats queries = to_panels(d.nope, rows, keys);
    const Floats extra = to_panels(d.extra, rows, s.heads * s.extra);
    queries.insert(queries.end(), extra.begin(), extra.end());
    Floats transposed(d.k_up.size());
    for (int64_t i = 0; i < keys; ++i)
      for (int64_t j = 0; j < s.latent; ++j)
        transposed[static_cast<size_t>(j * keys + i)] =
            d.k_up[static_cast<size_t>(i * s.latent + j)];
    const auto results = run(
        build, {bytes_of(table), bytes_of(pages), bytes_of(latents), bytes_of(queries),
                bytes_of(to_panels(d.gate, rows, values)), image_of(up, transposed, s.latent, keys),
                image_of(down, d.v_up, values, s.latent)});
    ASSERT_EQ(results.size(), 1u);
    const Floats got = from_panels(values_of<float>(results[0]), rows, values);
    for (int64_t r = 0; r < rows; ++r) {
      // bf16 of the absorbed queries moves scores of some units by 2^-9 of them, bf16 of weights
      // and averages the result by as much again.
      expect_close(expanded(d, r), {got.begin() + r * values, got.begin() + (r + 1) * values},
                   0.03);
    }
  }
}

// New latents go to their place in their page and leave the others alone.
TEST(Pages, TakeTheEntriesOfActiveRows) {
  constexpr int64_t rows = 3, width = 128;
  std::vector<int32_t> table(kRowFields * rows), pages = {2, 0, 1, 3};
  const int32_t slots[] = {0, 1, 1}, positions[] = {5, 130, 131}, active[] = {1, 1, 0};
  for (size_t r = 0; r < rows; ++r) {
    table[kRowSlot * rows + r] = slots[r];
    table[kRowPosition * rows + r] = positions[r];
    table[kRowActive * rows + r] = active[r];
  }
  std::mt19937 random(3);
  const Floats fresh = rounded(normals(random, rows * width));
  std::vector<uint16_t> cache(4 * kPageTokens * width, to_bf16(7).bits);
  const auto build = [&](Kernel& k) {
    const StepRows step = declare_rows(k, rows, 2, 2);
    const Ref in = k.input("fresh", Elem::kF32, {rows, width});
    const Ref home = k.inout("cache", Elem::kBf16, {4, 1, kPageTokens, width});
    k.scope([&] {
      const Ref token = k.vmem(Elem::kBf16, {rows, width});
      token.store(cast(copy_in(k, in).load(), Elem::kBf16));
      append_to_pages({token}, home, step, RowRuns(step));
    });
  };
  const auto results =
      run(build, {bytes_of(table), bytes_of(pages), bytes_of(fresh), bytes_of(cache)});
  std::vector<uint16_t> want = cache;
  for (int64_t i = 0; i < width; ++i) {
    want[static_cast<size_t>((2 * kPageTokens + 5) * width + i)] =
        to_bf16(fresh[static_cast<size_t>(i)]).bits;
    want[static_cast<size_t>((3 * kPageTokens + 2) * width + i)] =
        to_bf16(fresh[static_cast<size_t>(width + i)]).bits;
  }
  EXPECT_EQ(values_of<uint16_t>(results.at(0)), want);
}

}  // namespace
}  // namespace gridless::blocks
