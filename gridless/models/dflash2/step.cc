#include "gridless/models/dflash2/step.h"

#include <cmath>

#include "gridless/base/integers.h"
#include "gridless/blocks/block_attention.h"
#include "gridless/blocks/candidate_selector.h"
#include "gridless/blocks/collectives/choose.h"
#include "gridless/blocks/gated_attention.h"
#include "gridless/blocks/mlp.h"
#include "gridless/blocks/norm.h"

namespace gridless::models {

using namespace blocks;  // NOLINT: this page reads in the vocabulary of the blocks

namespace {

struct Operands {
  StepRows rows, fed;  // of the block; of the tokens whose features are appended
  Ref first, features, embedding, norms, frequencies, head_norms, conv, weights;
  SelectorInputs selector;
  Ref kv;
  HeadOutputs head;
  SelectorOutputs out;
};

Operands declare(Kernel& k, const Dflash2Config& m, const Dflash2Sharding& s, const StepShape& step,
                 const weights::StreamLayout& stream) {
  const int64_t n = panels(m.hidden);
  const HeadShape& h = s.attention.shape;
  const auto f32 = [&](const char* name, Shape shape) {
    return k.input(name, Elem::kF32, std::move(shape));
  };
  Operands io;
  io.rows = declare_rows(k, m.block, step.slots, step.slot_pages);
  io.first = k.input("first", Elem::kI32, {step.slots}, Space::kSmem);
  io.fed = {step.rows, k.input("context_rows", Elem::kI32, {kRowFields, step.rows}, Space::kSmem),
            io.rows.pages};
  io.features = f32("features", {s.cores * s.feature_panels, step.rows, kLanes});
  io.embedding = f32("embedding", {m.vocab, n, kLanes});
  io.norms = f32("norms", {2 * m.layers + 2, n, kLanes});
  io.frequencies = f32("frequencies", {1, h.padded_half()});
  io.head_norms = f32("head_norms", {m.layers, 2, 2, h.padded_half()});
  io.conv = f32("conv", {m.layers, 2, kDynamicVariants, kDynamicTaps, n, kLanes});
  io.selector.predecessor = f32("predecessor", {m.vocab, panels(m.rank), kLanes});
  io.selector.successor = f32("successor", {m.vocab, panels(m.rank), kLanes});
  io.weights = k.input("weights", Elem::kI32, {stream.total_rows(), kLanes});
  io.kv = k.inout("kv", Elem::kBf16, {m.layers, step.pages, 2, kPageTokens, h.padded()});
  io.head = declare_head(k, m.block, stream.tail.back().panels);
  io.out = declare_selector(k, m.block);
  return io;
}

// A copy in VMEM of this core's panels, in bf16.
Ref my_features(Kernel& k, Ref features, int64_t count) {
  const Ref out = k.vmem(Elem::kBf16, {count, features.dim(1), kLanes});
  k.scope([&] {
    const Ref mine = copy_in(k, features.rows(k.core() * count, count));
    out.store(cast(mine.load(), Elem::kBf16));
  });
  return out;
}

}  // namespace

DynamicConvShape conv_shape(const Dflash2Config& m) {
  return {.width = m.hidden, .group = m.conv_group};
}

std::expected<ir::Program, Diagnostics> dflash2_step(const Dflash2Config& m,
                                                     const Dflash2Sharding& s,
                                                     const StepShape& step,
                                                     const weights::StreamLayout& stream) {
  const HeadShape& heads = s.attention.shape;
  const DynamicConvShape mixing = conv_shape(m);
  const double scale = 1.0 / std::sqrt(static_cast<double>(m.head_dim));
  Kernel k("dflash2_step", s.cores);
  const Operands io = declare(k, m, s, step, stream);
  k.barrier_all();  // every core is here before anyone writes into another one
  k.scope([&] {
    const Ref x = activations(k, Elem::kF32, m.hidden, m.block);   // the residual stream
    const Ref h = activations(k, Elem::kBf16, m.hidden, m.block);  // what a matrix reads
    const Ref context = activations(k, Elem::kBf16, m.hidden, step.rows);
    // Before any scope has ended (see the Llama step).
    Collective cores = sums_in_order(k, x.shape());
    Collective fed_cores = sums_in_order(k, context.shape());
    Collective candidates = gather_candidates(k, m.block);
    WeightStream w(k, io.weights, stream, ring_slots(stream, std::max(m.block, step.rows)));
    const Ref norms = copy_in(k, io.norms), head_norms = copy_in(k, io.head_norms);
    const Ref conv = copy_in(k, io.conv);
    const RopeTable rope = rope_table(io.rows, io.frequencies, heads);
    const RopeTable fed_rope = rope_table(io.fed, io.frequencies, heads);
    const Scalar first = io.first.get({io.rows.slot(0)});

    // Context: one vector per token, from the features.
    k.scope([&] {
      const Ref sum = activations(k, Elem::kF32, m.hidden, step.rows);
      sum.store(zeros(k, Elem::kF32, sum.shape()));
      fed_cores.add_sum(0, w.project("fc", my_features(k, io.features, s.feature_panels)), sum);
      rms_norm(sum, norms.at(2 * m.layers + 1), context, m.hidden, m.rms_eps);
    });
    embed(io.rows, io.embedding, x);
    k.loop(0, m.layers, [&](Scalar layer) {
      k.scope([&] {
        w.enter_layer(layer);
        const Ref cache = io.kv.at(layer);
        KvAppendRun append(cache, io.fed);
        // h = the normed input of a sublayer, mixed along the block; the result mixes its output.
        const auto enter = [&](int64_t which, const char* kernel) {
          rms_norm(x, norms.at(layer * 2 + which), h, m.hidden, m.rms_eps);
          const Ref dynamic = w.project(kernel, h), base = conv.at(layer).at(which);
          dynamic_conv(h, base.at(0), dynamic, 0, mixing, h);
          // The mixing is linear, so every core mixes its part of the sum.
          return [&k, &cores, &mixing, x, dynamic, base, which](Ref y) {
            dynamic_conv(y, base.at(1), dynamic, 1, mixing, y);
            cores.add_sum(which, y, x);
          };
        };
        // Attention: keys and values of the context come from its vectors as they are.
        const auto leave_attention = enter(0, "attention.kernel");
        const int64_t outputs = w.matrix("qkv").panels;
        const Ref y = k.vmem(Elem::kF32, {outputs, m.block, kLanes});
        const Ref fed_y = k.vmem(Elem::kF32, {outputs, step.rows, kLanes});
        w.project("qkv", {h, context}, {y, fed_y});
        const Ref qkv = k.vmem(Elem::kBf16, {heads.groups + 2, m.block, heads.padded()});
        const Ref fed_qkv = k.vmem(Elem::kBf16, {heads.groups + 2, step.rows, heads.padded()});
        qkv_norm_rope(fed_y, head_norms.at(layer), fed_rope, heads, m.rms_eps, fed_qkv);
        append.put(fed_qkv, heads);
        qkv_norm_rope(y, head_norms.at(layer), rope, heads, m.rms_eps, qkv);
        const Ref seen = activations(k, Elem::kBf16, heads.groups * heads.width(), m.block);
        block_attention(qkv, cache, io.rows, first, heads, m.window, scale, seen);
        leave_attention(w.project("o", seen));
        // MLP.
        const auto leave_mlp = enter(1, "mlp.kernel");
        leave_mlp(gated_mlp(w, "gate_up", "down", h));
      });
    });
    // Head and selector.
    w.enter_tail();
    rms_norm(x, norms.at(2 * m.layers), h, m.hidden, m.rms_eps);
    SelectorInputs selector = io.selector;
    selector.hidden = w.project("selector", h);
    lm_head(k, w, "head", h, s.vocab, m.candidates, io.head);
    select_candidates(selector, io.head, s.vocab, m.candidates, io.rows, candidates, io.out);
  });
  k.set_vmem_limit(int64_t{60} << 20);
  return k.finish();
}

Result<Dflash2Sharding> shard_dflash2(const Dflash2Config& config, int cores) {
  if (cores < 1 || cores > 128) return input_error("{} cores: use 1 to 128", cores);
  if (config.vocab % cores != 0) {
    return input_error("a vocabulary of {} does not divide among {} cores", config.vocab, cores);
  }
  Dflash2Sharding s;
  s.cores = cores;
  s.attention = shard_heads(config.kv_heads, config.group(), config.head_dim, cores);
  s.ffn = round_up(ceil_div(config.ffn, cores), 32);
  s.vocab = config.vocab / cores;
  s.feature_panels = ceil_div(std::ssize(config.taps) * panels(config.hidden), cores);
  return s;
}

weights::StreamLayout dflash2_stream(const Dflash2Config& config, const Dflash2Sharding& s,
                                     const StepShape& step) {
  const HeadShape& h = s.attention.shape;
  const int64_t hidden = round_up(config.hidden, 32), queries = h.groups * h.width();
  const weights::Format format = step.formats.layers, bf16 = weights::Format::kBf16;
  const int64_t kernel = conv_shape(config).projection();
  // Inputs in another order than the file's must not cut its blocks of 32 (see the Llama step).
  return weights::make_stream_layout(
      config.layers,
      {{"attention.kernel", kernel, hidden, format},
       {"qkv", queries + 2 * h.width(), hidden, format},
       {"o", config.hidden, round_up(queries, 32), config.head_dim % 32 == 0 ? format : bf16},
       {"mlp.kernel", kernel, hidden, format},
       {"gate_up", s.ffn, hidden, format, /*paired=*/true},
       {"down", config.hidden, s.ffn, format}},
      {{"selector", config.rank, hidden, format}, {"head", s.vocab, hidden, step.formats.head}},
      step.max_chunk_bytes,
      {{"fc", config.hidden, s.feature_panels * kLanes, config.hidden % 32 == 0 ? format : bf16}});
}

}  // namespace gridless::models
