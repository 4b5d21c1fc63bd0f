// DFlash2 drafts of other shapes than the golden one, with random weights, against the maths in
// double precision, written here from the definition.
#include <fstream>
#include <map>
#include <random>

#include "gridless/base/numerics.h"
#include "gridless/decode/dflash2_draft.h"
#include "tests/golden/tiny_models.h"
#include "tests/temporary_folder.h"

namespace gridless::decode {
namespace {

using Json = nlohmann::json;
using Row = std::vector<double>;
using Matrix = std::vector<Row>;

struct Shape {
  int layers, hidden, ffn, vocab, heads, kv_heads, head_dim, window, block, group, rank, top_k;
  std::vector<int> taps;
  double eps = 1e-6, theta = 1e4;

  Json config() const {
    return {{"num_hidden_layers", layers},
            {"hidden_size", hidden},
            {"intermediate_size", ffn},
            {"vocab_size", vocab},
            {"num_attention_heads", heads},
            {"num_key_value_heads", kv_heads},
            {"head_dim", head_dim},
            {"sliding_window", window},
            {"rope_parameters", {{"rope_theta", theta}}},
            {"dflash_config",
             {{"block_size", block},
              {"conv_kernel_size", 2},
              {"conv_group_size", group},
              {"mask_token_id", vocab - 1},
              {"selector_rank", rank},
              {"selector_top_k", top_k},
              {"target_layer_ids", taps}}}};
  }
};

// Tensors of numbers that bf16 holds, by name, [rows][columns].
class Weights {
 public:
  explicit Weights(uint32_t seed) : random_(seed) {}

  void add(const std::string& name, std::vector<int64_t> shape, double scale, double mean = 0) {
    const int64_t columns = shape.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    Matrix& m = tensors_[name] = Matrix(static_cast<size_t>(rows));
    std::normal_distribution<double> normal(mean, scale);
    for (Row& r : m)
      for (int64_t i = 0; i < columns; ++i)
        r.push_back(double{to_f32(to_bf16(static_cast<float>(normal(random_))))});
    shapes_[name] = std::move(shape);
  }
  const Matrix& operator[](const std::string& name) const { return tensors_.at(name); }

  void write(const std::filesystem::path& folder, const Json& config) const {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    Json header = Json::object();
    std::string data;
    for (const auto& [name, m] : tensors_) {
      const size_t begin = data.size();
      for (const Row& r : m)
        for (const double x : r) {
          const auto f = static_cast<float>(x);
          data.append(reinterpret_cast<const char*>(&f), sizeof f);
        }
      header[name] = {
          {"dtype", "F32"}, {"shape", shapes_.at(name)}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::ofstream file(folder / "model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << text << data;
  }

 private:
  std::mt19937 random_;
  std::map<std::string, Matrix> tensors_;
  std::map<std::string, std::vector<int64_t>> shapes_;
};

std::string of_layer(int layer, const std::string& name) {
  return "layers." + std::to_string(layer) + "." + name;
}

Weights draft_weights(const Shape& s, uint32_t seed) {
  Weights w(seed);
  const auto matrix = [&](const std::string& name, int64_t out, int64_t in) {
    w.add(name, {out, in}, 1 / std::sqrt(static_cast<double>(in)));
  };
  const auto norm = [&](const std::string& name, int64_t n) { w.add(name, {n}, 0.1, 1); };
  matrix("fc.weight", s.hidden, std::ssize(s.taps) * s.hidden);
  norm("hidden_norm.weight", s.hidden), norm("norm.weight", s.hidden);
  matrix("candidate_selector.hidden_projection.weight", s.rank, s.hidden);
  w.add("candidate_selector.predecessor_codebook", {s.vocab, s.rank}, 1);
  w.add("candidate_selector.successor_codebook", {s.vocab, s.rank}, 0.3);
  for (int l = 0; l < s.layers; ++l) {
    norm(of_layer(l, "input_layernorm.weight"), s.hidden);
    norm(of_layer(l, "post_attention_layernorm.weight"), s.hidden);
    matrix(of_layer(l, "self_attn.q_proj.weight"), s.heads * s.head_dim, s.hidden);
    matrix(of_layer(l, "self_attn.k_proj.weight"), s.kv_heads * s.head_dim, s.hidden);
    matrix(of_layer(l, "self_attn.v_proj.weight"), s.kv_heads * s.head_dim, s.hidden);
    matrix(of_layer(l, "self_attn.o_proj.weight"), s.hidden, s.heads * s.head_dim);
    norm(of_layer(l, "self_attn.q_norm.weight"), s.head_dim);
    norm(of_layer(l, "self_attn.k_norm.weight"), s.head_dim);
    matrix(of_layer(l, "mlp.gate_proj.weight"), s.ffn, s.hidden);
    matrix(of_layer(l, "mlp.up_proj.weight"), s.ffn, s.hidden);
    matrix(of_layer(l, "mlp.down_proj.weight"), s.hidden, s.ffn);
    for (const char* conv : {"attention_conv", "mlp_conv"}) {
      w.add(of_layer(l, std::string(conv) + ".base_kernel"), {2, 2, s.hidden}, 0.5);
      w.add(of_layer(l, std::string(conv) + ".kernel_projection.weight"),
            {4 * s.hidden / s.group, s.hidden}, 0.5 / std::sqrt(static_cast<double>(s.hidden)));
    }
  }
  return w;
}

// --- the definition ---

Row times(const Matrix& w, const Row& x) {
  Row out;
  for (const Row& row : w) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
    out.push_back(sum);
  }
  return out;
}

Row normed(const Row& x, const Row& w, double eps) {
  double square = 0;
  for (const double v : x) square += v * v;
  const double scale = 1 / std::sqrt(square / static_cast<double>(x.size()) + eps);
  Row out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(x[i] * scale * w[i]);
  return out;
}

// Heads of a projection, normed and turned to `position`; w null: as they are.
std::vector<Row> heads_of(const Shape& s, const Row& y, const Row* w, int64_t position) {
  std::vector<Row> out;
  const auto dim = static_cast<size_t>(s.head_dim);
  for (size_t at = 0; at < y.size(); at += dim) {
    Row h(y.begin() + static_cast<ptrdiff_t>(at), y.begin() + static_cast<ptrdiff_t>(at + dim));
    if (w != nullptr) {
      const Row n = normed(h, *w, s.eps);
      for (size_t i = 0; i < dim / 2; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(s.theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
        h[i] = n[i] * std::cos(angle) - n[i + dim / 2] * std::sin(angle);
        h[i + dim / 2] = n[i + dim / 2] * std::cos(angle) + n[i] * std::sin(angle);
      }
    }
    out.push_back(std::move(h));
  }
  return out;
}

struct Mixing {
  const Matrix& base;  // [variant * 2 + tap][channel]
  Matrix dynamic;      // [row][(variant * 2 + tap) * groups + group]
  size_t group, groups;

  Matrix apply(size_t variant, const Matrix& x) const {
    Matrix out = x;
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t c = 0; c < x[t].size(); ++c) {
        out[t][c] = 0;
        for (size_t tap = 0; tap <= std::min<size_t>(t, 1); ++tap) {
          const size_t list = variant * 2 + tap;
          out[t][c] += (base[list][c] + dynamic[t][list * groups + c / group]) * x[t - tap][c];
        }
      }
    return out;
  }
};

struct Entry {
  int64_t position;
  std::vector<Row> keys, values;
};

Row attend(const Shape& s, const std::vector<Row>& q, int64_t position,
           const std::vector<Entry>& seen) {
  Row out;
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
  for (size_t head = 0; head < q.size(); ++head) {
    const size_t kv = head / static_cast<size_t>(s.heads / s.kv_heads);
    Row sums(static_cast<size_t>(s.head_dim), 0.0);
    double total = 0;
    for (const Entry& e : seen) {
      if (std::abs(e.position - position) >= s.window) continue;
      double score = 0;
      for (size_t i = 0; i < sums.size(); ++i) score += q[head][i] * e.keys[kv][i];
      const double p = std::exp(score * scale);
      total += p;
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += p * e.values[kv][i];
    }
    for (const double v : sums) out.push_back(v / total);
  }
  return out;
}

struct Block {
  Matrix hidden, logits;
};

Block reference(const Shape& s, const Weights& w, const Weights& target, const Matrix& features,
                int32_t anchor) {
  const auto start = static_cast<int64_t>(features.size());
  const auto part = [&](int l, const std::string& name) -> const Matrix& {
    return w[of_layer(l, name)];
  };
  Matrix context, x;
  for (const Row& f : features)
    context.push_back(normed(times(w["fc.weight"], f), w["hidden_norm.weight"][0], s.eps));
  const Matrix& embedding = target["model.embed_tokens.weight"];
  for (int r = 0; r < s.block; ++r)
    x.push_back(embedding[static_cast<size_t>(r == 0 ? anchor : s.vocab - 1)]);
  for (int l = 0; l < s.layers; ++l) {
    const auto sublayer = [&](const std::string& norm, const std::string& conv, const auto& body) {
      Matrix in, dynamic;
      for (const Row& row : x) in.push_back(normed(row, part(l, norm)[0], s.eps));
      for (const Row& row : in)
        dynamic.push_back(times(part(l, conv + ".kernel_projection.weight"), row));
      const Mixing mixing{part(l, conv + ".base_kernel"), std::move(dynamic),
                          static_cast<size_t>(s.group), static_cast<size_t>(s.hidden / s.group)};
      const Matrix out = mixing.apply(1, body(mixing.apply(0, in)));
      for (size_t r = 0; r < x.size(); ++r)
        for (size_t c = 0; c < x[r].size(); ++c) x[r][c] += out[r][c];
    };
    sublayer("input_layernorm.weight", "attention_conv", [&](const Matrix& in) {
      std::vector<Entry> seen;
      const auto remember = [&](const Row& row, int64_t position) {
        seen.push_back({position,
                        heads_of(s, times(part(l, "self_attn.k_proj.weight"), row),
                                 &part(l, "self_attn.k_norm.weight")[0], position),
                        heads_of(s, times(part(l, "self_attn.v_proj.weight"), row), nullptr, 0)});
      };
      for (size_t p = 0; p < context.size(); ++p) remember(context[p], static_cast<int64_t>(p));
      for (size_t r = 0; r < in.size(); ++r) remember(in[r], start + static_cast<int64_t>(r));
      Matrix out;
      for (size_t r = 0; r < in.size(); ++r) {
        const int64_t position = start + static_cast<int64_t>(r);
        const auto q = heads_of(s, times(part(l, "self_attn.q_proj.weight"), in[r]),
                                &part(l, "self_attn.q_norm.weight")[0], position);
        out.push_back(times(part(l, "self_attn.o_proj.weight"), attend(s, q, position, seen)));
      }
      return out;
    });
    sublayer("post_attention_layernorm.weight", "mlp_conv", [&](const Matrix& in) {
      Matrix out;
      for (const Row& row : in) {
        Row inner = times(part(l, "mlp.gate_proj.weight"), row);
        const Row up = times(part(l, "mlp.up_proj.weight"), row);
        for (size_t i = 0; i < inner.size(); ++i) inner[i] *= up[i] / (1 + std::exp(-inner[i]));
        out.push_back(times(part(l, "mlp.down_proj.weight"), inner));
      }
      return out;
    });
  }
  Block out;
  for (const Row& row : x) {
    out.hidden.push_back(normed(row, w["norm.weight"][0], s.eps));
    out.logits.push_back(times(target["lm_head.weight"], out.hidden.back()));
  }
  return out;
}

// The selector's tokens, from logits and hidden rows, and how far the closest choice was.
std::pair<Tokens, double> selected(const Shape& s, const Weights& w, const Logits& logits,
                                   const Matrix& hidden, int32_t anchor) {
  Tokens out;
  double margin = 1e9;
  auto last = static_cast<size_t>(anchor);
  for (size_t r = 1; r < logits.size(); ++r) {
    std::vector<size_t> order(logits[r].size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order,
                             [&](size_t a, size_t b) { return logits[r][a] > logits[r][b]; });
    const Row h = times(w["candidate_selector.hidden_projection.weight"], hidden[r]);
    std::vector<std::pair<double, size_t>> scores;
    for (size_t k = 0; k < static_cast<size_t>(s.top_k); ++k) {
      double score = double{logits[r][order[k]]};
      for (size_t i = 0; i < h.size(); ++i)
        score += w["candidate_selector.successor_codebook"][order[k]][i] * h[i] *
                 w["candidate_selector.predecessor_codebook"][last][i];
      scores.emplace_back(score, order[k]);
    }
    std::ranges::sort(scores, std::greater<>());
    if (scores.size() > 1) margin = std::min(margin, scores[0].first - scores[1].first);
    last = scores[0].second;
    out.push_back(static_cast<int32_t>(last));
  }
  return {out, margin};
}

// --- the draft on the same ---

class Features final : public StepModel {
 public:
  Features(const Matrix& rows, int64_t from, int64_t hidden)
      : rows_(rows), from_(from), hidden_(hidden) {}
  StepLimits limits() const override {
    const int64_t taps = std::ssize(rows_[0]) / hidden_;
    return {.features = taps * ((hidden_ + 127) / 128 * 128)};
  }
  Result<void> step(std::span<const decode::Row>) override { return {}; }
  Result<void> chain(const decode::Row&, int64_t) override { return {}; }
  int32_t argmax(int64_t) const override { return 0; }
  Result<void> logits(int64_t, std::span<float>) const override { return {}; }
  Result<void> check_logits(int64_t) const override { return {}; }
  Result<void> features(int64_t row, std::span<float> out) const override {
    std::ranges::fill(out, 0.0f);
    const Row& all = rows_[static_cast<size_t>(from_ + row)];
    for (size_t i = 0; i < all.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      out[static_cast<size_t>(at / hidden_ * ((hidden_ + 127) / 128 * 128) + at % hidden_)] =
          static_cast<float>(all[i]);
    }
    return {};
  }
  int64_t truncate(int64_t, int64_t position) override { return position; }
  int64_t bytes_per_step(int64_t) const override { return 0; }

 private:
  const Matrix& rows_;
  int64_t from_, hidden_;
};

struct Case {
  Shape shape;
  int64_t context;
  std::vector<int> cores;
  EngineKind engine = EngineKind::kCpu;
};

std::vector<Case> cases() {
  return {
      // Panels that are half full, a block of five, a rank of two panels, heads that one core has
      // only some of.
      {{2, 192, 160, 200, 6, 2, 32, 40, 5, 8, 130, 8, {0, 3, 4}}, 61, {1, 2, 4, 8}},
      // Three pages of window, no groups; more candidates than a core has tokens.
      {{1, 64, 96, 96, 4, 4, 16, 300, 8, 2, 16, 16, {1, 2}}, 150, {1, 8}},
      // A window shorter than the block, channels with dynamic kernels of their own or of a panel.
      {{1, 128, 64, 64, 2, 1, 64, 3, 16, 128, 8, 4, {0}}, 129, {1, 2}},
      {{1, 96, 64, 64, 2, 2, 16, 128, 2, 1, 8, 1, {0}}, 130, {1}},
      {{1, 64, 32, 64, 4, 2, 16, 20, 4, 4, 16, 8, {0, 1}}, 131, {2}, EngineKind::kEmulate},
  };
}

TEST(Dflash2Reference, OtherShapesComputeTheDefinition) {
  uint32_t seed = 0;
  for (const Case& c : cases()) {
    const Shape& s = c.shape;
    SCOPED_TRACE(s.config().dump());
    const Weights w = draft_weights(s, ++seed);
    Weights target(seed + 100);
    target.add("model.embed_tokens.weight", {s.vocab, s.hidden}, 1);
    target.add("lm_head.weight", {s.vocab, s.hidden}, 1 / std::sqrt(double(s.hidden)));
    target.add("features", {c.context, std::ssize(s.taps) * s.hidden}, 1);
    const Matrix& features = target["features"];
    const auto anchor = static_cast<int32_t>(seed * 7) % s.vocab;
    const Block want = reference(s, w, target, features, anchor);
    Logits want_logits;
    for (const Row& row : want.logits) want_logits.emplace_back(row.begin(), row.end());

    const gridless::testing::TemporaryFolder folder;
    w.write(folder.path() / "draft", s.config());
    target.write(folder.path() / "target", Json::object());
    const auto draft_file = *weights::Checkpoint::open((folder.path() / "draft").string());
    const auto target_file = *weights::Checkpoint::open((folder.path() / "target").string());
    for (const int cores : c.cores) {
      SCOPED_TRACE(cores);
      const auto draft =
          Dflash2Draft::load(draft_file, target_file,
                             RunnerOptions{.cores = cores, .engine = c.engine, .context = 512}, {});
      ASSERT_TRUE(draft) << draft.error().message;
      Tokens text(static_cast<size_t>(c.context), 0);
      text.push_back(anchor);
      ASSERT_TRUE((*draft)->start(text));
      for (int64_t at = 0; at < c.context; at += 37) {
        ASSERT_TRUE((*draft)->read(Features(features, at, s.hidden), at,
                                   std::min<int64_t>(37, c.context - at)));
      }
      const auto proposal = (*draft)->propose(15);
      ASSERT_TRUE(proposal) << proposal.error().message;
      const Logits got = (*draft)->logits();
      expect_near(want_logits, got);
      // Of the draft's own logits, as far as the choices were clear.
      const auto [tokens, margin] = selected(s, w, got, want.hidden, anchor);
      EXPECT_EQ(proposal->tokens.size(), static_cast<size_t>(s.block - 1));
      if (margin > 0.1) {
        EXPECT_EQ(proposal->tokens, tokens);
      }
    }
  }
}

}  // namespace
}  // namespace gridless::decode
