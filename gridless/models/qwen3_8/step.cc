#include "gridless/models/qwen3_8/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gridless/blocks/collectives/choose.h"
#include "gridless/blocks/gated_attention.h"
#include "gridless/blocks/head.h"
#include "gridless/blocks/mlp.h"
#include "gridless/blocks/norm.h"
#include "gridless/blocks/weight_stream.h"

namespace gridless::models {

using namespace blocks;  // NOLINT: this page reads in the vocabulary of the blocks

namespace {

struct Operands {
  StepRows rows;
  Ref keep, embedding, norms, frequencies, weights, head_norms, conv, vectors;
  Ref kv, matrix, columns, pending;
  HeadOutputs out;
  Ref features;  // none without taps
};

// Layers of a kind; one where there are none, as operands cannot be empty.
int64_t full_layers(const Qwen38Config& m) {
  return std::max<int64_t>(1, m.periods() * m.full_per_period());
}
int64_t linear_layers(const Qwen38Config& m) {
  return std::max<int64_t>(1, m.periods() * m.linear_per_period());
}

// Chunks of the stream that layer `l` of a period takes.
int64_t chunks_of_layer(const weights::StreamLayout& stream, int64_t l) {
  const std::string prefix = fmt::format("{}.", l);
  int64_t chunks = 0;
  for (const weights::MatrixLayout& m : stream.layer) {
    if (m.shape.name.starts_with(prefix)) chunks += m.chunks();
  }
  return chunks;
}

Shape per_layer(int64_t layers, int64_t slots, Shape shape) {
  shape.insert(shape.begin(), {layers, slots});
  return shape;
}

Operands declare(Kernel& k, const Qwen38Config& m, const Qwen38Sharding& s, const StepShape& step,
                 const weights::StreamLayout& stream) {
  const int64_t n = panels(m.hidden), linear = linear_layers(m), full = full_layers(m);
  const HeadShape& h = s.attention.shape;
  Operands io;
  io.rows = declare_rows(k, step.rows, step.slots, step.slot_pages);
  io.keep = k.input("keep", Elem::kI32, {step.slots}, Space::kSmem);
  io.embedding = k.input("embedding", Elem::kF32, {m.vocab, n, kLanes});
  io.norms = k.input("norms", Elem::kF32, {2 * m.layers + 1, n, kLanes});
  io.frequencies = k.input("frequencies", Elem::kF32, {1, h.padded_half()});
  io.weights = k.input("weights", Elem::kI32, {stream.total_rows(), kLanes});
  io.head_norms = k.input("head_norms", Elem::kF32, {full, 2, 2, h.padded_half()});
  io.conv = k.input("conv", Elem::kF32, {linear, kConvTaps, s.delta.conv_panels(), kLanes});
  io.vectors = k.input("delta_vectors", Elem::kF32, {linear, kDeltaVectors, kLanes});
  io.kv = k.inout("kv", Elem::kBf16, {full, step.pages, 2, kPageTokens, h.padded()});
  const auto state = [&](const char* name, Shape shape) {
    return k.inout(name, Elem::kF32, per_layer(linear, step.slots, std::move(shape)));
  };
  io.matrix = state("delta_matrix", delta_matrix_shape(s.delta));
  io.columns = state("delta_columns", delta_columns_shape(s.delta));
  io.pending = state("delta_pending", delta_pending_shape(s.delta));
  io.out = declare_head(k, step.rows, stream.tail[0].panels);
  if (const auto taps = static_cast<int64_t>(step.feature_layers.size()); taps > 0) {
    io.features = k.output("features", Elem::kF32, {taps, n, step.rows, kLanes});
  }
  return io;
}

// Copies the residual stream out where `layer`, one of `run`, is a tap.
void tap(Kernel& k, const std::vector<int64_t>& taps, const LayerRun& run, int64_t period,
         Scalar layer, Ref x, Ref features, Sem done) {
  for (size_t i = 0; i < taps.size(); ++i) {
    const int64_t in_period = taps[i] % period;
    if (in_period < run.first || in_period >= run.first + run.count) continue;
    k.if_(layer == taps[i], [&] { k.copy(x, features.at(static_cast<int64_t>(i)), done).wait(); });
  }
}

}  // namespace

std::expected<ir::Program, Diagnostics> qwen38_step(const Qwen38Config& m, const Qwen38Sharding& s,
                                                    const StepShape& step,
                                                    const weights::StreamLayout& stream) {
  const HeadShape& heads = s.attention.shape;
  const DeltaShape& delta = s.delta;
  const int64_t rows = step.rows, period = static_cast<int64_t>(m.period.size());
  const double scale = 1.0 / std::sqrt(static_cast<double>(m.head_dim));
  Kernel k("qwen38_step", s.cores);
  const Operands io = declare(k, m, s, step, stream);
  k.barrier_all();  // every core is here before anyone writes into another one
  k.scope([&] {
    const Ref x = activations(k, Elem::kF32, m.hidden, rows);   // the residual stream
    const Ref h = activations(k, Elem::kBf16, m.hidden, rows);  // what a matrix reads
    // Before any scope has ended (see the Llama step).
    Collective cores = sums_in_order(k, x.shape());
    WeightStream w(k, io.weights, stream, ring_slots(stream, rows));
    const Ref norms = copy_in(k, io.norms), head_norms = copy_in(k, io.head_norms);
    const Ref conv = copy_in(k, io.conv), vectors = copy_in(k, io.vectors);
    const RopeTable rope = rope_table(io.rows, io.frequencies, heads);
    const RowRuns runs(io.rows);
    const Sem tapped = k.dma_sem();

    embed(io.rows, io.embedding, x);
    k.loop(0, m.periods(), [&](Scalar p) {
      for (const LayerRun& run : layer_runs(m)) {
        const auto named = [&](const char* name) { return fmt::format("{}.{}", run.first, name); };
        const auto project = [&](const char* name, Ref in) { return w.project(named(name), in); };
        // The output of full attention layer f, or of linear attention layer f.
        const auto attention = [&](Scalar f) {
          const Ref qkv = k.vmem(Elem::kBf16, {heads.groups + 2, rows, heads.padded()});
          qkv_norm_rope(project("qkv", h), head_norms.at(f), rope, heads, m.rms_eps, qkv);
          kv_append(qkv, io.kv.at(f), io.rows, runs, heads);
          const Ref context = activations(k, Elem::kBf16, heads.groups * heads.width(), rows);
          decode_attention(qkv, io.kv.at(f), io.rows, runs, heads, scale, context);
          gate_context(context, project("gate", h));
          return project("o", context);
        };
        const auto linear_attention = [&](Scalar f) {
          const Ref mixed = activations(k, Elem::kBf16, delta.value_heads * delta.value_dim, rows);
          gated_delta(project("in", h), {conv.at(f), vectors.at(f)},
                      {io.matrix.at(f), io.columns.at(f), io.pending.at(f)}, io.rows, runs, io.keep,
                      delta, step.chunked_delta ? DeltaRule::kChunked : DeltaRule::kRecurrent,
                      mixed);
          return project("out", mixed);
        };
        const int64_t per_period = run.full ? m.full_per_period() : m.linear_per_period();
        k.loop(0, run.count, [&](Scalar i) {
          k.scope([&] {
            const Scalar layer = p * period + run.first + i, f = p * per_period + run.before + i;
            w.enter_layer(p, i * chunks_of_layer(stream, run.first));
            rms_norm(x, norms.at(layer * 2), h, m.hidden, m.rms_eps);
            cores.add_sum(0, run.full ? attention(f) : linear_attention(f), x);
            // MLP.
            rms_norm(x, norms.at(layer * 2 + 1), h, m.hidden, m.rms_eps);
            cores.add_sum(1, gated_mlp(w, named("gate_up"), named("down"), h), x);
            tap(k, step.feature_layers, run, period, layer, x, io.features, tapped);
          });
        });
      }
    });
    // Head.
    w.enter_tail();
    rms_norm(x, norms.at(2 * m.layers), h, m.hidden, m.rms_eps);
    lm_head(k, w, "head", h, s.vocab, step.candidates, io.out);
  });
  k.set_vmem_limit(int64_t{60} << 20);
  return k.finish();
}

}  // namespace gridless::models
