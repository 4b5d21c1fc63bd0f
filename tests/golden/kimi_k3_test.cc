// Kimi K3 against an independent implementation: logits, greedy ids, what passes between the parts
// of a layer, the router's choices, and the states, at every number of cores that divides a model.
#include <algorithm>
#include <set>

#include "gridless/base/numerics.h"
#include "gridless/blocks/activations.h"
#include "tests/golden/tiny_models.h"

namespace gridless::decode {
namespace {

using blocks::kLanes;

struct Case {
  const char* model;
  EngineKind engine;
  int cores;
  int64_t groups = 0;  // of experts; 0: chosen
  weights::Format experts = weights::Format::kMxfp4;
};
std::string label(const Case& c) {
  return fmt::format("{}_{}_{}_ep{}_{}", c.model, c.engine == EngineKind::kCpu ? "cpu" : "emulate",
                     c.cores, c.groups, spelling(c.experts));
}
void PrintTo(const Case& c, std::ostream* out) { *out << label(c); }

RunnerOptions options(const Case& c) {
  RunnerOptions out{
      .cores = c.cores, .engine = c.engine, .slots = 3, .context = 128, .expert_groups = c.groups};
  if (c.experts != weights::Format::kMxfp4) out.format = c.experts;
  return out;
}

class KimiK3 : public testing::TestWithParam<Case> {};

TEST_P(KimiK3, ThreeSequencesTogetherGiveTheGoldenIdsAndLogits) {
  std::vector<GoldenSequence> sequences = golden_sequences(GetParam().model);
  // The emulator is slow: it sees the first tokens of the prompts, of which no golden id follows.
  const bool whole = GetParam().engine == EngineKind::kCpu;
  if (!whole) {
    for (GoldenSequence& s : sequences) shorten(s, 3);
  } else if (GetParam().cores >= 16) {  // as many virtual cores take their time
    for (GoldenSequence& s : sequences) shorten(s, s.prompt.size() + 6);
  }
  const auto runner = load(GetParam().model, options(GetParam()));
  const Decoded got = decode_together(*runner, sequences);
  for (size_t s = 0; s < sequences.size(); ++s) {
    SCOPED_TRACE(s);
    if (whole) {
      EXPECT_EQ(got.ids[s], sequences[s].greedy);
    }
    expect_near(sequences[s].exact, got.logits[s]);
    expect_near(sequences[s].bf16, got.logits[s]);
  }
}

std::vector<Case> cases() {
  const auto cpu = EngineKind::kCpu, emulate = EngineKind::kEmulate;
  const auto bf16 = weights::Format::kBf16;
  return {
      {"a", cpu, 1},
      {"a", cpu, 2},
      {"a", cpu, 4, 2},  // heads of 32 on cores of their own, experts in two groups of two
      {"a", cpu, 4, 4},
      {"a", cpu, 4, 2, bf16},
      {"b_tp16", cpu, 1},
      {"b_tp16", cpu, 2},
      {"b_tp16", cpu, 4, 1},
      {"b_tp16", cpu, 8, 8},
      {"b_tp16", cpu, 16, 4},
      {"b_tp16", cpu, 16, 1, bf16},
      {"c_tp32", cpu, 8, 2},
      {"c_tp32", cpu, 16, 1},
      {"c_tp32", cpu, 32, 2},  // EP2 x TP16
      {"c_tp32", cpu, 32, 8},  // EP8 x TP4
      {"a", emulate, 1},
      {"a", emulate, 2, 2},
      {"a", emulate, 1, 1, bf16},
      {"b_tp16", emulate, 4, 2},
      {"b_tp16", emulate, 8, 2},
      {"b_tp16", emulate, 16, 4},
      {"c_tp32", emulate, 32, 2},
  };
}
INSTANTIATE_TEST_SUITE_P(All, KimiK3, testing::ValuesIn(cases()),
                         [](const auto& info) { return label(info.param); });

// --- within a layer ---

class Golden {
 public:
  explicit Golden(const std::string& model)
      : data_(read_text_file(model_path(model) + "/golden.safetensors").value()),
        tensors_(weights::Safetensors::parse(
                     {reinterpret_cast<const uint8_t*>(data_.data()), data_.size()})
                     .value()) {}

  const weights::TensorView& tensor(const std::string& name) const {
    const weights::TensorView* t = tensors_.find(name);
    EXPECT_TRUE(t) << name;
    return *t;
  }
  // `count` elements from `first` on.
  template <typename T>
  std::vector<T> values(const std::string& name, int64_t first, int64_t count) const {
    std::vector<T> out(static_cast<size_t>(count));
    std::memcpy(out.data(), tensor(name).stored.data() + first * static_cast<int64_t>(sizeof(T)),
                out.size() * sizeof(T));
    return out;
  }

 private:
  std::string data_;
  weights::Safetensors tensors_;
};

double relative_error(const std::vector<float>& want, const std::vector<float>& got) {
  double square = 0, error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = double{got[i]} - double{want[i]};
    square += double{want[i]} * double{want[i]};
    error += d * d;
  }
  return std::sqrt(error / square);
}

// Of panel-major values of one row.
std::vector<float> row_of(const float* panels, int64_t rows, int64_t row, int64_t width) {
  std::vector<float> out;
  for (int64_t i = 0; i < width; ++i)
    out.push_back(panels[(i / kLanes * rows + row) * kLanes + i % kLanes]);
  return out;
}

// The last position of the prompt, in a launch of five rows of it.
TEST(KimiK3Layers, EveryPartGivesTheGoldenValues) {
  const Case c = {"a", EngineKind::kCpu, 2};
  const Golden golden("a");
  const GoldenSequence s = golden_sequences("a")[0];
  RunnerOptions o = options(c);
  o.taps = true;
  const auto runner = load("a", o);
  prefill(*runner, 0, s.prompt, 5);
  constexpr int64_t rows = 8, last = 4, tap_row = 1;  // five rows in a program of eight
  const auto position = static_cast<int64_t>(s.prompt.size()) - 1;
  const auto& mix = golden.tensor("s0.f64.taps.attn_mix");
  const int64_t layers = mix.shape[1], hidden = mix.shape[2];
  const auto* taps = reinterpret_cast<const float*>(runner->result("taps", 1).data());
  const int64_t each = blocks::panels(hidden) * rows * kLanes;
  for (int64_t l = 0; l < layers; ++l) {
    const auto got = [&](int64_t which) {
      return row_of(taps + (l * models::kTaps + which) * each, rows, last, hidden);
    };
    // bf16 roundings of up to nine layers; the smallest mistakes move these by several times that.
    EXPECT_LE(relative_error(golden.values<float>("s0.f64.prefix",
                                                  (position * (layers + 1) + l) * hidden, hidden),
                             got(0)),
              0.03)
        << "prefix " << l;
    int64_t which = 0;
    for (const char* name : {"attn_mix", "attn_out", "mlp_mix", "mlp_out"}) {
      const auto want = golden.values<float>(std::string("s0.f64.taps.") + name,
                                             (tap_row * layers + l) * hidden, hidden);
      EXPECT_LE(relative_error(want, got(++which)), 0.03) << name << " " << l;
    }
  }
}

TEST(KimiK3Layers, RoutersChooseAndWeighAsTheGoldenOnes) {
  for (const Case& c : {Case{"a", EngineKind::kCpu, 1}, {"b_tp16", EngineKind::kCpu, 4, 2}}) {
    const Golden golden(c.model);
    RunnerOptions o = options(c);
    o.taps = true;
    const auto runner = load(c.model, o);
    const Tokens tokens = golden_sequences(c.model)[0].fed();
    const auto& ids = golden.tensor("s0.f64.router_ids");
    const int64_t layers = ids.shape[1], chosen = ids.shape[2];
    for (int64_t t = 0; t < 16; ++t) {
      step(*runner, {{tokens[static_cast<size_t>(t)], 0, static_cast<int32_t>(t)}});
      const auto* gates = reinterpret_cast<const float*>(runner->result("gates", 0).data());
      for (int64_t l = 0; l < layers; ++l) {
        const int64_t at = (t * layers + l) * chosen;
        const auto want = golden.values<int32_t>("s0.f64.router_ids", at, chosen);
        const auto weight = golden.values<float>("s0.f64.router_weights", at, chosen);
        std::set<int64_t> found;
        for (int64_t e = 0; e < kLanes; ++e)
          if (gates[l * kLanes + e] != 0) found.insert(e);
        EXPECT_EQ(found, std::set<int64_t>(want.begin(), want.end())) << t << " layer " << l;
        for (int64_t j = 0; j < chosen; ++j)
          EXPECT_NEAR(gates[l * kLanes + want[static_cast<size_t>(j)]],
                      weight[static_cast<size_t>(j)], 0.02);
      }
    }
  }
}

TEST(KimiK3State, IsTheGoldenStateAfterThePrompt) {
  for (const Case& c : {Case{"a", EngineKind::kCpu, 2}, {"b_tp16", EngineKind::kCpu, 4}}) {
    const Golden golden(c.model);
    const GoldenSequence s = golden_sequences(c.model)[0];
    RunnerOptions o = options(c);
    o.slots = 1;
    const auto runner = load(c.model, o);
    Tokens tokens = s.prompt;
    tokens.push_back(s.greedy[0]);  // so that the prompt's last row is no longer pending
    prefill(*runner, 0, tokens, 1);
    int64_t linear = 0;
    for (int64_t l = 0; l < 9; ++l) {
      if (l == 3 || l >= 7) continue;
      const std::string name = "s0.f64.state_prompt." + std::to_string(l) + ".S";
      const weights::TensorView& t = golden.tensor(name);
      const int64_t heads = t.shape[0], one = t.shape[1] * t.shape[2], mine = heads / c.cores;
      for (int64_t h = 0; h < heads; ++h) {
        const auto bytes = runner->state("delta_matrix", static_cast<int>(h / mine));
        const auto* got =
            reinterpret_cast<const float*>(bytes.data()) + (linear * mine + h % mine) * one;
        // bf16 inputs of the products, over some tens of updates.
        EXPECT_LE(relative_error(golden.values<float>(name, h * one, one), {got, got + one}), 0.03)
            << l << " head " << h;
      }
      ++linear;
    }
    // Latents of all tokens of the prompt: the same on all cores.
    const auto cache = runner->state("latents", c.cores - 1);
    const auto* latents = reinterpret_cast<const uint16_t*>(cache.data());
    const std::string name = "s0.f64.state_end.3.c";
    const int64_t width = golden.tensor(name).shape[1];
    for (int64_t p = 0; p < static_cast<int64_t>(s.prompt.size()); ++p) {
      std::vector<float> got;
      for (int64_t i = 0; i < width; ++i) got.push_back(to_f32(bf16{latents[p * 2 * kLanes + i]}));
      EXPECT_LE(relative_error(golden.values<float>(name, p * width, width), got), 0.03) << p;
    }
  }
}

// --- rows ---

// One at a time, in chunks, and mixed with others: the same bits.
TEST(KimiK3Rows, EveryGroupingGivesTheSameBits) {
  const Case c = {"b_tp16", EngineKind::kCpu, 4, 2};
  const auto sequences = golden_sequences(c.model);
  const auto runner = load(c.model, options(c));
  std::vector<Logits> one_by_one, mixed(3);
  std::vector<Tokens> tokens;
  for (int32_t s = 0; s < 3; ++s) {
    const Tokens fed = sequences[static_cast<size_t>(s)].fed();
    tokens.emplace_back(fed.begin(), fed.begin() + 12);
    one_by_one.push_back(prefill(*runner, s, tokens.back(), 1));
    for (const size_t chunk : {2, 5, 8}) {
      runner->truncate(s, 0);
      EXPECT_TRUE(same_bits(one_by_one.back(), prefill(*runner, s, tokens.back(), chunk))) << chunk;
    }
  }
  // Two sequences with equal routes (the same tokens) beside a third, of different lengths.
  for (int32_t s = 0; s < 3; ++s) runner->truncate(s, 0);
  std::vector<Logits> twins(3);
  const Tokens& twin = tokens[0];
  for (size_t t = 0; t < 12; ++t) {
    std::vector<Row> rows = {{twin[t], 0, static_cast<int32_t>(t)},
                             {twin[t], 2, static_cast<int32_t>(t)}};
    if (t % 2 == 1) {
      rows.push_back({tokens[1][t - 1], 1, static_cast<int32_t>(t - 1)});
      rows.push_back({tokens[1][t], 1, static_cast<int32_t>(t)});
    }
    Logits logits = step(*runner, rows);
    for (size_t r = 0; r < rows.size(); ++r)
      twins[static_cast<size_t>(rows[r].slot)].push_back(std::move(logits[r]));
  }
  EXPECT_TRUE(same_bits(one_by_one[0], twins[0]));
  EXPECT_TRUE(same_bits(one_by_one[0], twins[2]));
  EXPECT_TRUE(same_bits(one_by_one[1], twins[1]));
}

// A host verifies eight rows, and takes some of them back.
TEST(KimiK3Rows, RejectedDraftsLeaveNoTrace) {
  const Case c = {"a", EngineKind::kCpu, 2};
  const auto runner = load(c.model, options(c));
  const Tokens fed = golden_sequences(c.model)[0].fed();
  const Tokens tokens(fed.begin(), fed.begin() + 24);
  const Logits plain = prefill(*runner, 1, tokens, 1);
  Logits got;
  for (size_t round = 0; got.size() < tokens.size(); ++round) {
    const size_t at = got.size(), accepted = round * 3 % 8;
    std::vector<Row> rows;
    for (size_t i = 0; i < 8 && at + i < tokens.size(); ++i)
      rows.push_back({i <= accepted ? tokens[at + i] : (tokens[at + i] + 7) % 512, 0,
                      static_cast<int32_t>(at + i)});
    Logits all = step(*runner, rows);
    all.resize(std::min(all.size(), accepted + 1));
    for (auto& l : all) got.push_back(std::move(l));
  }
  EXPECT_TRUE(same_bits(plain, got));
}

}  // namespace
}  // namespace gridless::decode
