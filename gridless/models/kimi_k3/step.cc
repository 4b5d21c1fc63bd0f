#include "gridless/models/kimi_k3/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gridless/base/check.h"
#include "gridless/blocks/block_residual.h"
#include "gridless/blocks/collectives/by_hosts.h"
#include "gridless/blocks/head.h"
#include "gridless/blocks/layer_constants.h"
#include "gridless/blocks/norm.h"
#include "gridless/blocks/pages.h"
#include "gridless/blocks/weight_stream.h"

namespace gridless::models {

using namespace blocks;  // NOLINT: this page reads in the vocabulary of the blocks

namespace {

struct Operands {
  StepRows rows;
  Ref keep, embedding, norms, output_norms, weights, experts, moe_vectors, latent_norms, conv,
      vectors;
  Ref cache;
  DeltaState state;  // of all layers
  HeadOutputs out;
  Ref taps, gates;  // StepShape::taps
};

Operands declare(Kernel& k, const KimiK3Config& m, const KimiK3Sharding& s, const StepShape& step,
                 const weights::StreamLayout& stream) {
  const int64_t n = panels(m.hidden), attending = m.attention_layers(), linear = m.delta_layers();
  const KimiK3Panels p = panels_of(m);
  Operands io;
  io.rows = declare_rows(k, step.rows, step.slots, step.slot_pages);
  io.keep = k.input("keep", Elem::kI32, {step.slots}, Space::kSmem);
  io.embedding = k.input("embedding", Elem::kF32, {m.vocab, n, kLanes});
  io.norms = k.input("norms", Elem::kF32, {m.layers, 4, n, kLanes});
  io.output_norms = k.input("output_norms", Elem::kF32, {2, n, kLanes});
  io.weights = k.input("weights", Elem::kI32, {stream.total_rows(), kLanes});
  io.experts =
      k.input("experts", Elem::kI32, {m.moe_layers(), s.experts, s.expert.slab_rows(), kLanes});
  io.moe_vectors =
      k.input("moe_vectors", Elem::kF32, {m.moe_layers(), p.moe_latent + p.experts, kLanes});
  io.latent_norms = k.input("latent_norms", Elem::kF32, {attending, p.query + p.latent, kLanes});
  io.conv = k.input("conv", Elem::kF32, {linear, kConvTaps, s.delta.conv_panels(), kLanes});
  io.vectors = k.input("delta_vectors", Elem::kF32, {linear, s.delta.vector_rows(), kLanes});
  io.cache = k.inout("latents", Elem::kBf16,
                     {attending, step.pages, 1, kPageTokens, s.latent.token_width()});
  const auto state = [&](const char* name, Shape shape) {
    shape.insert(shape.begin(), {linear, step.slots});
    return k.inout(name, Elem::kF32, std::move(shape));
  };
  io.state = {.matrix = state("delta_matrix", delta_matrix_shape(s.delta)),
              .columns = state("delta_columns", delta_columns_shape(s.delta)),
              .pending = state("delta_pending", delta_pending_shape(s.delta))};
  io.out = declare_head(k, step.rows, stream.tail[0].panels);
  if (step.taps) {
    io.taps = k.output("taps", Elem::kF32, {m.layers + 1, kTaps, n, step.rows, kLanes});
    io.gates = k.output("gates", Elem::kF32, {m.moe_layers(), p.experts, step.rows, kLanes});
  }
  return io;
}

// Where the matrices of a layer lie in the stream: all linear attentions are equal, and so on.
class Sections {
 public:
  Sections(const KimiK3Config& m, const weights::StreamLayout& stream)
      : m_(m), stream_(stream), attending_(m.period - 1) {
    linear_size_ = first(0, "gate_up") - first(0, "in");
    dense_size_ = after(0) - first(0, "gate_up");
    attention_size_ = first(attending_, "router") - first(attending_, "down_qkv");
    moe_size_ = after(1) - first(1, "router");
  }

  // Chunks to go on from those of the first layer of its kind to those of layer l.
  Scalar linear(Scalar l) const { return start(l) - first(0, "in"); }
  Scalar attention(Scalar l) const { return start(l) - first(attending_, "down_qkv"); }
  Scalar moe(Scalar l) const {
    const Scalar size = where(attends(l), Scalar(attention_size_), Scalar(linear_size_));
    return start(l) + size - first(1, "router");
  }

  Scalar attends(Scalar l) const {
    if (l.is_constant()) return m_.attends(l.constant()) ? 1 : 0;
    return l % m_.period == m_.period - 1 || l == m_.layers - 1;
  }
  // Number of layer l among those that attend, or among those that do not.
  Scalar attention_index(Scalar l) const { return l / m_.period; }
  Scalar linear_index(Scalar l) const { return l - l / m_.period; }

  // Matrix `name` of the first layer of its kind.
  std::string linear(const char* name) const { return fmt::format("0.{}", name); }
  std::string attention(const char* name) const { return fmt::format("{}.{}", attending_, name); }

 private:
  int64_t first(int64_t layer, const char* name) const {
    const std::string full = fmt::format("{}.{}", layer, name);
    const auto it = std::ranges::find(stream_.layer, full,
                                      [](const weights::MatrixLayout& x) { return x.shape.name; });
    GRIDLESS_CHECK(it != stream_.layer.end(), "no matrix {}", full);
    return it->first_chunk;
  }
  // The first chunk that is not of the layers up to `layer`.
  int64_t after(int64_t layer) const {
    if (layer + 1 == m_.layers) return stream_.chunks_per_layer;
    return first(layer + 1, m_.attends(layer + 1) ? "down_qkv" : "in");
  }
  Scalar start(Scalar l) const {
    const Scalar attention = linear_index(l) * linear_size_ + attention_index(l) * attention_size_;
    if (l.is_constant() && l.constant() == 0) return attention;
    return attention + dense_size_ + (l - 1) * moe_size_;
  }

  const KimiK3Config& m_;
  const weights::StreamLayout& stream_;
  int64_t attending_;  // the first layer that does
  int64_t linear_size_ = 0, dense_size_ = 0, attention_size_ = 0, moe_size_ = 0;
};

// Memory for expert slabs on the way: two of large ones at least, and not more than pays.
int expert_slots(const ExpertLayout& layout) {
  constexpr int64_t kBytes = int64_t{10} << 20, kLeast = 2, kMost = 8;
  return static_cast<int>(std::clamp(kBytes / (layout.slab_rows() * 512), kLeast, kMost));
}

class Step {
 public:
  Step(Kernel& k, const KimiK3Config& m, const KimiK3Sharding& s, const StepShape& step,
       const weights::StreamLayout& stream, const Operands& io)
      : k_(k),
        m_(m),
        s_(s),
        io_(io),
        p_(panels_of(m)),
        rows_(step.rows),
        candidates_(step.candidates),
        sections_(m, stream),
        residual_(k, m.hidden, step.rows, m.residual_blocks(), m.rms_eps),
        x_(activations(k, Elem::kF32, m.hidden, step.rows)),
        h_(activations(k, Elem::kBf16, m.hidden, step.rows)),
        sums_(k, x_.shape()),
        expert_sums_(k, {p_.moe_latent, step.rows, kLanes}),
        down_(k, {s.down_panels, step.rows, kLanes}),
        router_(k, {s.router_panels, step.rows, kLanes}),
        w_(k, io.weights, stream, ring_slots(stream, step.rows, int64_t{18} << 20)),
        norms_(io.norms),
        moe_vectors_(io.moe_vectors),
        latent_norms_(io.latent_norms),
        conv_(io.conv),
        vectors_(io.vectors),
        runs_(io.rows),
        chosen_(k, io.rows, {m.experts, m.chosen}, m.moe_layers(),
                s.groups == 1 ? Scalar(0) : k.core() / s.group_size() * s.experts, s.experts),
        experts_(io.experts, s.expert, {m.situ_beta, m.situ_linear_beta}, expert_slots(s.expert)) {}

  void run() {
    embed(io_.rows, io_.embedding, residual_.prefix());
    layer(0);
    k_.loop(1, m_.layers, [&](Scalar l) { layer(l); });
    const Ref norms = copy_in(k_, io_.output_norms);
    tap(m_.layers, 0, residual_.prefix());
    residual_.mix(m_.residual_blocks(), norms.at(0), x_);
    rms_norm(x_, norms.at(1), h_, m_.hidden, m_.rms_eps);
    w_.enter_tail();
    lm_head(k_, w_, "head", h_, s_.vocab, candidates_, io_.out);
  }

 private:
  void layer(Scalar l) {
    k_.scope([&] {
      const Scalar block = l / m_.residual_block, begins = l % m_.residual_block == 0;
      const Ref norms = norms_.take(l);
      const Ref y = activations(k_, Elem::kF32, m_.hidden, rows_);
      // Attention. The layer that begins a block does not see the sum before it as a block yet.
      tap(l, 0, residual_.prefix());
      residual_.mix(block + where(begins, Scalar(0), Scalar(1)), norms.at(0), x_);
      tap(l, 1, x_);
      rms_norm(x_, norms.at(1), h_, m_.hidden, m_.rms_eps);
      k_.if_(begins, [&] { residual_.save(block); });
      k_.scope([&] {
        const Ref part = partial_output();
        k_.if_(
            sections_.attends(l), [&] { attention(l, part); }, [&] { linear_attention(l, part); });
        sum(0, part, y);
      });
      tap(l, 2, y);
      residual_.add(y, begins);
      // MLP.
      residual_.mix(block + 1, norms.at(2), x_);
      tap(l, 3, x_);
      rms_norm(x_, norms.at(3), h_, m_.hidden, m_.rms_eps);
      k_.scope([&] { sum(1, l.is_constant() ? dense() : mixture(l), y); });
      tap(l, 4, y);
      residual_.add(y, 0);
    });
  }

  // For the output projection of either attention.
  Ref partial_output() {
    const int64_t count = std::max(w_.matrix(sections_.linear("o")).panels,
                                   w_.matrix(sections_.attention("o")).panels);
    return k_.vmem(Elem::kF32, {count, rows_, kLanes});
  }

  // y = the sum of `part` over all cores, rounded to bf16.
  void sum(Scalar turn, Ref part, Ref y) {
    y.store(zeros(k_, Elem::kF32, y.shape()));
    sums_.add_sum(turn, part, y);
    round_to_bf16(y);
  }

  // Values of bf16, as every projection gives.
  Ref project(const std::string& name, Ref in) {
    const Ref y = w_.project(name, in);
    round_to_bf16(y);
    return y;
  }

  // The part of y in panels [first, first + count) as a matrix reads it.
  Ref input(Ref y, int64_t first, int64_t count) {
    const Ref out = k_.vmem(Elem::kBf16, {count, rows_, kLanes});
    out.store(cast(y.load({first, 0, 0}, out.shape()), Elem::kBf16));
    return out;
  }

  void linear_attention(Scalar l, Ref part) {
    k_.scope([&] {
      const Scalar f = sections_.linear_index(l);
      const DeltaConstants constants{conv_.take(f), vectors_.take(f)};
      w_.enter_layer(0, sections_.linear(l));
      const Ref y = project(sections_.linear("in"), h_);
      const Ref low = input(y, s_.delta.projection_panels(), panels(m_.delta_dim));
      const Ref decay = project(sections_.linear("decay"), low);
      const Ref mixed =
          activations(k_, Elem::kBf16, s_.delta.value_heads * s_.delta.value_dim, rows_);
      kimi_delta(y, decay, constants,
                 {io_.state.matrix.at(f), io_.state.columns.at(f), io_.state.pending.at(f)},
                 io_.rows, runs_, io_.keep, s_.delta, mixed);
      w_.project(sections_.linear("o"), mixed, part.rows(0, panels_of_output("0")));
    });
  }

  void attention(Scalar l, Ref part) {
    k_.scope([&] {
      const LatentShape& s = s_.latent;
      const Scalar f = sections_.attention_index(l);
      const Ref norms = latent_norms_.take(f), cache = io_.cache.at(f);
      const auto named = [&](const char* name) { return sections_.attention(name); };
      const auto by_head = [&](int64_t count) {
        return k_.vmem(Elem::kBf16, {count, s.heads * rows_, kLanes});
      };
      w_.enter_layer(0, sections_.attention(l));
      const Ref mine = project(named("down_qkv"), h_).rows(0, s_.down_panels);
      const Ref gate = project(named("gate"), h_);
      const Ref low = down_.run(mine, f);  // of queries | latent | extra key dimensions
      // Queries.
      const Ref q = activations(k_, Elem::kBf16, m_.query_rank, rows_);
      rms_norm(low.rows(0, p_.query), norms.rows(0, p_.query), q, m_.query_rank, m_.rms_eps);
      const Ref y = project(named("q"), q), separate = by_head(s.nope_panels());
      separate_heads(y, s, separate);
      const Ref queries = k_.vmem(Elem::kBf16, {s.heads, rows_, s.token_width()});
      latent_queries(w_.project(named("k_up"), separate), y, s, queries);
      // This token's latent.
      const Ref token = k_.vmem(Elem::kBf16, {rows_, s.token_width()});
      latent_token(low.rows(p_.query, p_.latent), low.rows(p_.query + p_.latent, p_.extra),
                   norms.rows(p_.query, p_.latent), s, m_.rms_eps, token);
      k_.scope([&] { append_to_pages({token}, cache, io_.rows, runs_); });
      const Ref found = by_head(s.latent_panels());
      const double scale = 1 / std::sqrt(static_cast<double>(m_.nope + m_.extra));
      latent_attention(queries, cache, io_.rows, runs_, s, scale, found);
      const Ref context = activations(k_, Elem::kBf16, s.heads * s.value, rows_);
      gated_values(w_.project(named("v_up"), found), gate, s, context);
      const auto layer_name = std::to_string(m_.period - 1);
      w_.project(named("o"), context, part.rows(0, panels_of_output(layer_name)));
    });
  }

  int64_t panels_of_output(const std::string& layer) { return w_.matrix(layer + ".o").panels; }

  Ref mlp(const std::string& layer) {
    const Situ gate{m_.situ_beta, m_.situ_linear_beta};
    return gated_mlp(w_, layer + ".gate_up", layer + ".down", h_,
                     [&](Ref y, Ref out) { situ(y, gate, out); });
  }

  // Of this core, as is mixture().
  Ref dense() {
    w_.enter_layer(0);
    return mlp("0");
  }

  Ref mixture(Scalar l) {
    const Scalar moe_layer = l - 1;
    const Ref vectors = moe_vectors_.take(moe_layer);
    w_.enter_layer(0, sections_.moe(l));
    const Ref low = router_.run(w_.project("1.router", h_).rows(0, s_.router_panels), l);
    const Ref in = input(low, 0, p_.moe_latent);
    const Ref gates = k_.vmem(Elem::kF32, {p_.experts, rows_, kLanes});
    const Ref ids = k_.vmem(Elem::kI32, {rows_, kLanes});
    route(low.rows(p_.moe_latent, p_.experts), vectors.rows(p_.moe_latent, p_.experts),
          {m_.experts, m_.chosen}, gates, ids);
    if (io_.gates) k_.copy(gates, io_.gates.at(moe_layer), k_.dma_sem()).wait();
    chosen_.take(moe_layer, ids);
    experts_.prefetch(moe_layer, chosen_);
    const Ref part = mlp("1");  // shared experts
    const Ref routed = k_.vmem(Elem::kF32, {p_.moe_latent, rows_, kLanes});
    routed.store(zeros(k_, Elem::kF32, routed.shape()));
    experts_.add(moe_layer, chosen_, in, gates, routed);
    const Ref total = k_.vmem(Elem::kF32, routed.shape());
    total.store(zeros(k_, Elem::kF32, total.shape()));
    expert_sums_.add_sum(l, routed, total);
    round_to_bf16(total);
    const Ref normed = activations(k_, Elem::kBf16, m_.moe_latent, rows_);
    rms_norm(total, vectors.rows(0, p_.moe_latent), normed, m_.moe_latent, m_.rms_eps);
    // This core's inputs; a core beyond the last panel has zero weights, whatever it reads.
    const Scalar first =
        s_.cores == 1 ? Scalar(0) : min(k_.core() * s_.up_panels, p_.moe_latent - s_.up_panels);
    add_into(part.rows(0, panels(m_.hidden)), w_.project("1.up", normed.rows(first, s_.up_panels)));
    return part;
  }

  // Value `which` of layer l, for those who asked for it.
  void tap(Scalar l, int64_t which, Ref v) {
    if (!io_.taps) return;
    k_.scope([&] { k_.copy(v, io_.taps.at(l).at(which), k_.dma_sem()).wait(); });
  }

  Kernel& k_;
  const KimiK3Config& m_;
  const KimiK3Sharding& s_;
  const Operands& io_;
  KimiK3Panels p_;
  int64_t rows_, candidates_;
  Sections sections_;
  BlockResidual residual_;
  Ref x_;  // what a layer reads of the residual stream
  Ref h_;  // the same normed, as a matrix reads it
  SumByHosts sums_, expert_sums_;
  GatherByHosts down_, router_;
  WeightStream w_;
  LayerConstants norms_, moe_vectors_, latent_norms_, conv_, vectors_;
  RowRuns runs_;
  ChosenExperts chosen_;
  Experts experts_;
};

}  // namespace

std::expected<ir::Program, Diagnostics> kimi_k3_step(const KimiK3Config& m, const KimiK3Sharding& s,
                                                     const StepShape& step,
                                                     const weights::StreamLayout& stream) {
  Kernel k("kimi_k3_step", s.cores);
  const Operands io = declare(k, m, s, step, stream);
  k.barrier_all();  // every core is here before anyone writes into another one
  k.scope([&] { Step(k, m, s, step, stream, io).run(); });
  k.set_vmem_limit(int64_t{60} << 20);
  return k.finish();
}

}  // namespace gridless::models
