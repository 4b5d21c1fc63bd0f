#include "gridless/models/llama/step.h"

#include <cmath>

#include "gridless/blocks/collectives/choose.h"
#include "gridless/blocks/head.h"
#include "gridless/blocks/mlp.h"
#include "gridless/blocks/norm.h"
#include "gridless/blocks/weight_stream.h"

namespace gridless::models {

using namespace blocks;  // NOLINT: this page reads in the vocabulary of the blocks

namespace {

// The operands of the launch contract (docs/launch_contract.md).
struct Operands {
  StepRows rows;
  Ref embedding, norms, frequencies, weights, kv;
  HeadOutputs out;
};

Operands declare(Kernel& k, const LlamaConfig& m, const HeadShape& h, const StepShape& step,
                 const weights::StreamLayout& stream) {
  const int64_t n = panels(m.hidden);
  Operands io;
  io.rows = declare_rows(k, step.rows, step.slots, step.slot_pages);
  k.input("keep", Elem::kI32, {step.slots},
          Space::kSmem);  // only models with recurrent state read it
  io.embedding = k.input("embedding", Elem::kF32, {m.vocab, n, kLanes});
  io.norms = k.input("norms", Elem::kF32, {2 * m.layers + 1, n, kLanes});
  io.frequencies = k.input("frequencies", Elem::kF32, {1, h.padded_half()});
  io.weights = k.input("weights", Elem::kI32, {stream.total_rows(), kLanes});
  io.kv = k.inout("kv", Elem::kBf16, {m.layers, step.pages, 2, kPageTokens, h.padded()});
  io.out = declare_head(k, step.rows, stream.tail[0].panels);
  return io;
}

}  // namespace

std::expected<ir::Program, Diagnostics> llama_step(const LlamaConfig& m, const LlamaSharding& s,
                                                   const StepShape& step,
                                                   const weights::StreamLayout& stream) {
  const HeadShape& heads = s.attention.shape;
  const int64_t rows = step.rows;
  const double scale = 1.0 / std::sqrt(static_cast<double>(m.head_dim));
  Kernel k("llama_step", s.cores);
  const Operands io = declare(k, m, heads, step, stream);
  k.barrier_all();  // every core is here before anyone writes into another one
  k.scope([&] {
    const Ref x = activations(k, Elem::kF32, m.hidden, rows);   // the residual stream
    const Ref h = activations(k, Elem::kBf16, m.hidden, rows);  // what a matrix reads
    // Before any scope has ended: a core may send while a slower one is still in its preparations,
    // and must not hit an address that a scope of those still holds.
    Collective cores = sums_in_order(k, x.shape());
    WeightStream w(k, io.weights, stream, ring_slots(stream, rows));
    const Ref norms = copy_in(k, io.norms);
    const RopeTable rope = rope_table(io.rows, io.frequencies, heads);
    const RowRuns runs(io.rows);

    embed(io.rows, io.embedding, x);
    k.loop(0, m.layers, [&](Scalar layer) {
      k.scope([&] {
        w.enter_layer(layer);
        const Ref cache = io.kv.at(layer);
        // Attention.
        rms_norm(x, norms.at(layer * 2), h, m.hidden, m.rms_eps);
        const Ref qkv = k.vmem(Elem::kBf16, {heads.groups + 2, rows, heads.padded()});
        qkv_rope(w.project("qkv", h), rope, heads, qkv);
        kv_append(qkv, cache, io.rows, runs, heads);
        const Ref context = activations(k, Elem::kBf16, heads.groups * heads.width(), rows);
        decode_attention(qkv, cache, io.rows, runs, heads, scale, context);
        cores.add_sum(0, w.project("o", context), x);
        // MLP.
        rms_norm(x, norms.at(layer * 2 + 1), h, m.hidden, m.rms_eps);
        cores.add_sum(1, gated_mlp(w, "gate_up", "down", h), x);
      });
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
