// The taps of a step: what a draft model reads of the layers, against the golden models' residual
// streams.
#include "tests/golden/tiny_models.h"

namespace gridless::decode {
namespace {

constexpr int64_t kPanel = 128;

struct Case {
  const char* model;
  int cores;
  EngineKind engine = EngineKind::kCpu;
};
constexpr Case kCases[] = {{"a_27b_style", 1},     {"a_27b_style", 4},
                           {"b_35_style_tied", 2}, {"c_tp8", 8},
                           {"c_tp8", 2},           {"a_27b_style", 2, EngineKind::kEmulate}};

Logits features_of(StepRunner& runner, size_t rows) {
  Logits out(rows);
  for (size_t r = 0; r < rows; ++r) {
    out[r].resize(static_cast<size_t>(runner.limits().features));
    EXPECT_TRUE(runner.features(static_cast<int64_t>(r), out[r]));
  }
  return out;
}

// The features of every token, fed `chunk` at a time.
Logits feed(StepRunner& runner, const Tokens& tokens, size_t chunk) {
  Logits out;
  runner.truncate(0, 0);
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const size_t n = std::min(chunk, tokens.size() - at);
    prefill(runner, 0,
            {tokens.begin() + static_cast<ptrdiff_t>(at),
             tokens.begin() + static_cast<ptrdiff_t>(at + n)},
            chunk, static_cast<int32_t>(at));
    for (std::vector<float>& f : features_of(runner, n)) out.push_back(std::move(f));
  }
  return out;
}

// The golden outputs of `layers`, as features() lays them out.
Logits golden_features(const std::string& model, const std::vector<int64_t>& layers,
                       size_t tokens) {
  const std::string data = read_text_file(model_path(model) + "/golden.safetensors").value();
  const auto tensors =
      weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  const auto* hidden = tensors->find("s0.f64.hidden");
  const int64_t width = hidden->shape[2], padded = (width + kPanel - 1) / kPanel * kPanel;
  Logits out(tokens);
  for (size_t t = 0; t < tokens; ++t) {
    out[t].assign(layers.size() * static_cast<size_t>(padded), 0.0f);
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto row = static_cast<int64_t>(t) * hidden->shape[1] + layers[i] + 1;
      std::memcpy(out[t].data() + static_cast<int64_t>(i) * padded,
                  hidden->stored.data() + row * width * 4, static_cast<size_t>(width) * 4);
    }
  }
  return out;
}

TEST(Features, AreTheGoldenOutputsOfTheLayers) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.model << " on " << c.cores);
    // The first and the last layer, both kinds, and one layer twice.
    const std::vector<int64_t> layers = {0, 3, 5, 5, 7};
    const auto runner =
        load(c.model, {.cores = c.cores, .engine = c.engine, .context = 128, .feature_layers = layers});
    const bool slow = c.engine == EngineKind::kEmulate;
    Tokens tokens = golden_sequences(c.model)[0].fed();
    if (slow) tokens.resize(10);
    const Logits one_by_one = feed(*runner, tokens, 1);
    expect_near(golden_features(c.model, layers, tokens.size()), one_by_one);
    EXPECT_TRUE(same_bits(one_by_one, feed(*runner, tokens, 8)));
    if (!slow) {
      EXPECT_TRUE(same_bits(one_by_one, feed(*runner, tokens, 64)));
    }
  }
}

TEST(Features, TapsDoNotChangeTheLogits) {
  const Tokens tokens = golden_sequences("c_tp8")[0].fed();
  const auto plain = load("c_tp8", {.cores = 2, .context = 128});
  const auto tapped = load("c_tp8", {.cores = 2, .context = 128, .feature_layers = {1, 6}});
  EXPECT_TRUE(same_bits(prefill(*plain, 0, tokens, 8), prefill(*tapped, 0, tokens, 8)));
  EXPECT_EQ(plain->limits().features, 0);
  EXPECT_FALSE(plain->features(0, {}));
}

TEST(Features, LayersThatAreNotThereAreRefused) {
  const auto error = [](const char* model, std::vector<int64_t> taps) {
    const auto checkpoint = weights::Checkpoint::open(model_path(model));
    const auto runner = StepRunner::load(*checkpoint, {.feature_layers = std::move(taps)});
    return runner ? std::string("loaded") : runner.error().message;
  };
  EXPECT_NE(error("c_tp8", {8}).find("layers 0 to 7"), std::string::npos);
  EXPECT_NE(error("c_tp8", {-1}).find("layers 0 to 7"), std::string::npos);
  EXPECT_NE(error("untied", {0}).find("no taps"), std::string::npos);
}

}  // namespace
}  // namespace gridless::decode
