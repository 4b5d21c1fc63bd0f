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
  io.rows.count = step.rows;
  io.rows.table = k.input("rows", Elem::kI32, {kRowFields, step.rows}, Space::kSmem);
  io.rows.pages = k.input("pages", Elem::kI32, {step.slots, step.slot_pages}, Space::kSmem);
  k.input("keep", Elem::kI32, {step.slots},
          Space::kSmem);  // only models with recurrent state read it
  io.embedding = k.input("embedding", Elem::kF32, {m.vocab, n, kLanes});
  io.norms = k.input("norms", Elem::kF32, {2 * m.layers + 1, n, kLanes});
  io.frequencies = k.input("frequencies", Elem::kF32, {1, h.padded_half()});
  io.weights = k.input("weights", Elem::kI32, {stream.total_rows(), kLanes});
  io.kv = k.inout("kv", Elem::kBf16, {m.layers, step.pages, 2, kPageTokens, h.padded()});
  io.out.candidate_logits = k.output("candidate_logits", Elem::kF32, {step.rows, kLanes});
  io.out.candidate_ids = k.output("candidate_ids", Elem::kI32, {step.rows, kLanes});
  io.out.logits = k.output("logits", Elem::kF32, {stream.tail[0].panels, step.rows, kLanes});
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
    Collective cores(k, {.algorithm = choose_in_order(k.cores(), x.dim(0) * rows * kLanes * 4),
                         .group = {k.cores()},
                         .part = x.shape()});
    WeightStream w(k, io.weights, stream, ring_slots(stream, rows));
    const Ref norms = copy_in(k, io.norms);
    const RopeTable rope = rope_table(io.rows, io.frequencies, heads);

    embed(io.rows, io.embedding, x);
    k.loop(0, m.layers, [&](Scalar layer) {
      k.scope([&] {
        w.enter_layer(layer);
        const Ref cache = io.kv.at(layer);
        const auto project = [&](const char* name, Ref in) {
          const Ref y = k.vmem(Elem::kF32, {w.matrix(name).panels, rows, kLanes});
          w.project(name, in, y);
          return y;
        };
        // Attention.
        rms_norm(x, norms.at(layer * 2), h, m.hidden, m.rms_eps);
        const Ref qkv = k.vmem(Elem::kBf16, {heads.groups + 2, rows, heads.padded()});
        qkv_rope(project("qkv", h), rope, heads, qkv);
        kv_append(qkv, cache, io.rows, heads);
        const Ref context = activations(k, Elem::kBf16, heads.groups * heads.width(), rows);
        decode_attention(qkv, cache, io.rows, heads, scale, context);
        cores.add_sum(0, project("o", context), x);
        // MLP: the gated product is taken chunk by chunk, as gate and up stream by together.
        rms_norm(x, norms.at(layer * 2 + 1), h, m.hidden, m.rms_eps);
        const int64_t chunk = w.matrix("gate_up").panels_per_chunk / 2;
        const Ref inner = k.vmem(Elem::kBf16, {w.matrix("gate_up").panels / 2, rows, kLanes});
        w.project_groups("gate_up", h,
                         [&](Scalar g, Ref y) { swiglu(y, inner.rows(g * chunk, chunk)); });
        cores.add_sum(1, project("down", inner), x);
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
