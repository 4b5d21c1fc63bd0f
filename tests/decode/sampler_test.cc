// The sampler against probabilities that float64 code and the transformers processors agree on
// (tests/data/sampler).
#include "gridless/decode/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "gridless/base/mapped_file.h"

namespace gridless::decode {
namespace {

using Json = nlohmann::json;

struct Case {
  std::vector<float> logits;
  std::vector<int32_t> prompt, output;
  SamplerOptions options;
  Json json;
};

std::vector<Case> cases() {
  const auto text = read_text_file(std::string(GRIDLESS_TEST_DATA) + "/sampler/sampler_cases.json");
  std::vector<Case> out;
  const Json all = Json::parse(text.value());
  for (const Json& j : all) {
    Case c{j["logits"], j["prompt_ids"], j["output_ids"], {}, j};
    const Json& p = j["params"];
    c.options = {.temperature = p.value("temperature", 1.0),
                 .top_p = p.value("top_p", 1.0),
                 .top_k = p.value("top_k", int64_t{0}),
                 .min_p = p.value("min_p", 0.0),
                 .repetition_penalty = p.value("repetition_penalty", 1.0),
                 .frequency_penalty = p.value("frequency_penalty", 0.0),
                 .presence_penalty = p.value("presence_penalty", 0.0)};
    const Json biases = p.value("logit_bias", Json::object());
    for (const auto& [id, bias] : biases.items())
      c.options.logit_bias.emplace_back(std::stoi(id), bias.get<double>());
    out.push_back(std::move(c));
  }
  return out;
}

TEST(Sampler, ProbabilitiesAreThoseOfTheReferenceOrder) {
  int n = 0;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.json["params"].dump());
    ASSERT_TRUE(c.options.check().has_value());
    const std::vector<double> p = Sampler(c.options).probabilities(c.logits, c.prompt, c.output);
    const std::vector<double> want = c.json["probs_vllm"];
    ASSERT_EQ(p.size(), want.size());
    // Both sides are float64; exp and the order of sums differ by a few ulp.
    for (size_t i = 0; i < p.size(); ++i) ASSERT_NEAR(p[i], want[i], 1e-12) << "id " << i;
    ++n;
  }
  EXPECT_EQ(n, 60);
}

TEST(Sampler, PicksTheFirstIdWhoseCumulativeProbabilityExceedsU) {
  for (const Case& c : cases()) {
    const std::vector<double> p = c.json["probs_vllm"];
    for (const Json& draw : c.json["inverse_cdf_id_order"])
      EXPECT_EQ(Sampler::pick(p, draw["u"]), draw["token"].get<int32_t>());
  }
  // A sum that rounding left short of u still gives an id that has a probability.
  EXPECT_EQ(Sampler::pick(std::vector<double>{0.5, 0.5 - 1e-12, 0}, 1 - 1e-15), 1);
}

TEST(Sampler, SameSeedSameDrawsAndTheDrawsFollowTheProbabilities) {
  const std::vector<float> logits = {0, 1, 2, -1, 1.5f};
  const auto draws = [&](uint64_t seed) {
    Sampler sampler({.temperature = 1, .seed = seed});
    std::vector<int32_t> out;
    for (int i = 0; i < 20000; ++i) out.push_back(sampler.sample(logits, {}, {}));
    return out;
  };
  const std::vector<int32_t> a = draws(7);
  EXPECT_EQ(a, draws(7));
  EXPECT_NE(a, draws(8));
  const std::vector<double> p = Sampler({.temperature = 1}).probabilities(logits, {}, {});
  for (size_t id = 0; id < logits.size(); ++id) {
    const double share =
        static_cast<double>(std::ranges::count(a, static_cast<int32_t>(id))) / 20000;
    // Five standard deviations of a binomial.
    EXPECT_NEAR(share, p[id], 5 * std::sqrt(p[id] * (1 - p[id]) / 20000)) << id;
  }
}

TEST(Sampler, GreedyNeedsNoLogitsUnlessSomethingChangesThem) {
  EXPECT_TRUE(Sampler({}).is_argmax());
  EXPECT_TRUE(Sampler({.top_p = 0.5, .top_k = 3}).is_argmax());
  EXPECT_FALSE(Sampler({.temperature = 0.1}).is_argmax());
  EXPECT_FALSE(Sampler({.repetition_penalty = 1.1}).is_argmax());
  EXPECT_FALSE(Sampler({.logit_bias = {{3, 1.0}}}).is_argmax());
}

TEST(Sampler, OptionsOutOfRangeAreNamed) {
  const auto message = [](const SamplerOptions& o) {
    const auto ok = o.check();
    return ok ? std::string() : ok.error().message;
  };
  EXPECT_TRUE(message({.temperature = -1}).starts_with("temperature -1"));
  EXPECT_TRUE(message({.temperature = NAN}).starts_with("temperature nan"));
  EXPECT_TRUE(message({.top_p = 0}).starts_with("top-p 0"));
  EXPECT_TRUE(message({.top_p = 1.5}).starts_with("top-p 1.5"));
  EXPECT_TRUE(message({.top_k = -2}).starts_with("top-k -2"));
  EXPECT_TRUE(message({.min_p = 2}).starts_with("min-p 2"));
  EXPECT_TRUE(message({.repetition_penalty = 0}).starts_with("repetition penalty 0"));
}

}  // namespace
}  // namespace gridless::decode
