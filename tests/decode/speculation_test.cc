// Speculation in the generator: whatever a draft says, the answer is the one without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <random>

#include "gridless/decode/generator.h"
#include "gridless/decode/ngram_draft.h"
#include "tests/decode/fake_model.h"

namespace gridless::decode {
namespace {

using ::testing::ElementsAre;

constexpr StepLimits kLimits{.vocab = 10, .context = 100, .max_rows = 16};

// Counts: after 3 comes 4, after 9 comes 0.
std::vector<float> counting(std::span<const int32_t> text) {
  std::vector<float> logits(10, 0.0f);
  logits[static_cast<size_t>((text.back() + 1) % 10)] = 1;
  return logits;
}

// Counts on correctly, but for every token at a place of the text where `wrong` says so.
FakeDraft counting_draft(std::function<bool(size_t)> wrong) {
  return FakeDraft([wrong](const Ids& text, int64_t count) {
    Ids out;
    for (int64_t i = 0; i < count; ++i) {
      const size_t at = text.size() + static_cast<size_t>(i);
      const int32_t right = (text.back() + 1 + static_cast<int32_t>(i)) % 10;
      out.push_back(wrong(at) ? (right + 5) % 10 : right);
    }
    return out;
  });
}

// Ids that count on from `first`.
Ids count_from(int32_t first, int64_t count) {
  Ids out;
  for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>((first + i) % 10));
  return out;
}

class Speculation : public ::testing::Test {
 protected:
  Generation run(Draft& draft, GenerateOptions options, const Ids& prompt = {1, 2, 3},
                 Ids eos = {}) {
    options.draft = &draft;
    options.adapt_draft = false;
    model_.launches.clear();
    Generator generator(model_, std::nullopt, std::move(eos));
    const auto out = generator.generate(prompt, options);
    EXPECT_TRUE(out.has_value()) << out.error().message;
    EXPECT_TRUE(out->draft.has_value());
    // The caches hold the text without the last token, and nothing that was rejected.
    Ids text = prompt;
    text.insert(text.end(), out->tokens.begin(), out->tokens.end() - 1);
    EXPECT_EQ(model_.held, text);
    model_.held.clear();
    return *out;
  }

  FakeModel model_{kLimits, counting};
};

TEST_F(Speculation, AllAccepted) {
  FakeDraft draft = counting_draft([](size_t) { return false; });
  const Generation out = run(draft, {.max_tokens = 17, .draft_tokens = 7});
  EXPECT_EQ(out.tokens, count_from(4, 17));
  // Chunks of the prompt; then 1 + 8 + 8 tokens.
  EXPECT_THAT(model_.launches, ElementsAre(2, 1, 8, 8));
  EXPECT_EQ(out.draft->rounds, 2);
  EXPECT_EQ(out.draft->proposed, 14);
  EXPECT_EQ(out.draft->accepted, 14);
  EXPECT_EQ(out.draft->mean_accepted(), 7);
  EXPECT_EQ(out.steps, 2);
  EXPECT_EQ(out.finish, FinishReason::kLength);
  // The token before the last is at position 2 + 16.
  EXPECT_EQ(out.bytes_per_step, 1000 + (10 + 18) / 2.0);
  EXPECT_NEAR(out.tpot_ms * 16, out.step_ms * 2, 1e-9);
}

TEST_F(Speculation, NoneAccepted) {
  FakeDraft draft = counting_draft([](size_t) { return true; });
  const Generation out = run(draft, {.max_tokens = 12, .draft_tokens = 3});
  EXPECT_EQ(out.tokens, count_from(4, 12));
  EXPECT_EQ(out.draft->accepted, 0);
  EXPECT_EQ(out.draft->mean_accepted(), 0);
  // Ten tokens are left after the first: the last one needs no draft, the one before it one.
  EXPECT_THAT(model_.launches, ElementsAre(2, 1, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2, 1));
  EXPECT_EQ(out.draft->rounds, 10);
  EXPECT_EQ(out.draft->proposed, 8 * 3 + 2 + 1);
}

TEST_F(Speculation, EveryOtherDraftWrong) {
  for (const size_t odd : {0u, 1u}) {
    FakeDraft draft = counting_draft([odd](size_t at) { return at % 2 == odd; });
    const Generation out = run(draft, {.max_tokens = 30, .draft_tokens = 4});
    EXPECT_EQ(out.tokens, count_from(4, 30));
    EXPECT_GT(out.draft->accepted, 10);
    EXPECT_LT(out.draft->mean_accepted(), 1.1);
  }
}

TEST_F(Speculation, ProposalsMayBeShortOrEmpty) {
  FakeDraft draft([](const Ids& text, int64_t count) {
    return text.size() % 3 == 0 ? Ids() : count_from(text.back() + 1, std::min<int64_t>(count, 2));
  });
  const Generation out = run(draft, {.max_tokens = 20, .draft_tokens = 9});
  EXPECT_EQ(out.tokens, count_from(4, 20));
  EXPECT_EQ(out.draft->accepted, out.draft->proposed);
  EXPECT_LT(out.draft->rounds, out.steps);
}

TEST_F(Speculation, EndOfTextInsideAndAtTheEndsOfADraft) {
  FakeDraft draft = counting_draft([](size_t) { return false; });
  for (int32_t eos = 0; eos < 10; ++eos) {
    const Generation out = run(draft, {.max_tokens = 40, .draft_tokens = 4}, {3}, {eos});
    EXPECT_EQ(out.tokens, count_from(4, (eos + 10 - 4) % 10 + 1));
    EXPECT_EQ(out.finish, FinishReason::kStop);
  }
}

TEST_F(Speculation, MaxTokensAndContextEndADraft) {
  FakeDraft draft = counting_draft([](size_t) { return false; });
  for (int64_t tokens = 1; tokens < 20; ++tokens) {
    const Generation out = run(draft, {.max_tokens = tokens, .draft_tokens = 6});
    EXPECT_EQ(out.tokens, count_from(4, tokens));
    EXPECT_EQ(out.finish, FinishReason::kLength);
    // No row for a token that could not follow.
    EXPECT_LE(std::ssize(model_.held), 2 + tokens);
  }
  for (int64_t prompt = 85; prompt <= 100; ++prompt) {
    const Generation out = run(draft, {.draft_tokens = 6}, count_from(0, prompt));
    // What the row at the last position predicts is the last token.
    EXPECT_EQ(std::ssize(out.tokens), 101 - prompt);
    EXPECT_EQ(out.tokens, count_from(static_cast<int32_t>(prompt), 101 - prompt));
    EXPECT_EQ(out.finish, FinishReason::kLength);
  }
}

TEST_F(Speculation, LaunchesKeepToTheRowsOfTheModel) {
  FakeDraft draft = counting_draft([](size_t) { return false; });
  run(draft, {.max_tokens = 60, .draft_tokens = 1000});
  EXPECT_EQ(*std::ranges::max_element(model_.launches), kLimits.max_rows);
}

TEST_F(Speculation, RejectedRowsCanBeTakenBack) {
  StepLimits limits = kLimits;
  limits.pending_rows = 4;
  FakeModel model(limits, counting);
  FakeDraft draft = counting_draft([](size_t) { return false; });
  Generator generator(model, std::nullopt, {});
  ASSERT_TRUE(generator.generate(
      Ids{1, 2, 3},
      {.max_tokens = 60, .draft = &draft, .draft_tokens = 1000, .adapt_draft = false}));
  model.launches.erase(model.launches.begin(), model.launches.begin() + 2);  // the prompt
  EXPECT_EQ(*std::ranges::max_element(model.launches), 4);
}

TEST_F(Speculation, CancellationBetweenRounds) {
  FakeDraft draft = counting_draft([](size_t) { return false; });
  std::atomic<bool> cancel = false;
  const Generation out = run(draft, {.max_tokens = 50,
                                     .on_token = [&](int32_t id) { cancel = id == 7; },
                                     .cancel = &cancel,
                                     .draft_tokens = 2});
  EXPECT_EQ(out.finish, FinishReason::kCancelled);
  EXPECT_EQ(out.tokens, count_from(4, 4));
}

TEST_F(Speculation, NextTurnStartsFromWhatWasAccepted) {
  FakeDraft draft = counting_draft([](size_t at) { return at % 5 == 0; });
  Generator generator(model_, std::nullopt, {});
  GenerateOptions options{
      .max_tokens = 9, .draft = &draft, .draft_tokens = 4, .adapt_draft = false};
  ASSERT_TRUE(generator.generate(Ids{1, 2, 3}, options));
  const auto next = generator.generate(count_from(1, 20), options);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->reused_tokens, 3 + 8);
  EXPECT_EQ(next->tokens, count_from(21, 9));
}

TEST_F(Speculation, FaultsOfADraftAreReported) {
  class Broken final : public Draft {
    std::string_view name() const override { return "broken"; }
    Result<void> start(std::span<const int32_t>) override { return {}; }
    Result<Proposal> propose(int64_t) override { return machine_error("no draft today"); }
    Result<void> append(std::span<const int32_t>) override { return {}; }
  } draft;
  Generator generator(model_, std::nullopt, {});
  const auto out = generator.generate(Ids{1}, {.draft = &draft});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "no draft today");
  const auto zero = generator.generate(Ids{1}, {.draft = &draft, .draft_tokens = 0});
  ASSERT_FALSE(zero);
  EXPECT_THAT(zero.error().message, ::testing::HasSubstr("0 draft tokens per launch"));
}

// Logits from a hash of the last three tokens: no two contexts are alike.
std::vector<float> babble(std::span<const int32_t> text) {
  uint32_t seed = 5;
  for (const int32_t id : text.last(std::min<size_t>(3, text.size())))
    seed = seed * 31 + static_cast<uint32_t>(id);
  std::mt19937 random(seed);
  std::vector<float> logits(10);
  for (float& l : logits) l = static_cast<float>(random() % 1000) * 0.004f;
  return logits;
}

TEST(SpeculationAtRandom, SameTokensSampledOrNotAndWhateverTheDraftSays) {
  std::mt19937 random(11);
  const auto chance = [&](int of) {
    return static_cast<int64_t>(random() % static_cast<unsigned>(of));
  };
  int64_t accepted = 0;
  for (int run = 0; run < 300; ++run) {
    const StepLimits limits{.vocab = 10, .context = 20 + chance(60), .max_rows = 1 + chance(16)};
    GenerateOptions options{
        .max_tokens = 1 + chance(60),
        .sampler = {.temperature = static_cast<double>(chance(3)) * 0.4, .seed = random()},
        .ignore_eos = chance(2) == 0,
        .draft_tokens = 1 + chance(20)};
    if (chance(2) == 0) options.sampler.repetition_penalty = 1.3;
    if (chance(2) == 0) options.sampler.frequency_penalty = 0.4;
    if (chance(3) == 0) options.sampler.top_p = 0.8;
    if (chance(3) == 0) options.sampler.logit_bias = {{4, 2.0}};
    options.adapt_draft = chance(3) == 0;
    Ids prompt;
    for (int64_t n = 1 + chance(15); n > 0; --n) prompt.push_back(static_cast<int32_t>(chance(10)));

    FakeModel plain_model(limits, babble), model(limits, babble);
    const Generation plain =
        Generator(plain_model, std::nullopt, {9}).generate(prompt, options).value();
    // Right with some probability, or the real n-gram draft.
    const int64_t good = chance(4);
    FakeDraft oracle([&](const Ids& text, int64_t count) {
      Ids out;
      const auto at = static_cast<int64_t>(text.size() - prompt.size());
      for (int64_t i = at;
           i < std::min(at + chance(static_cast<int>(count) + 1), std::ssize(plain.tokens)); ++i)
        out.push_back(chance(4) <= good ? plain.tokens[static_cast<size_t>(i)] : 0);
      return out;
    });
    NgramDraft ngram(3);
    options.draft = chance(2) == 0 ? static_cast<Draft*>(&oracle) : &ngram;
    const Generation out = Generator(model, std::nullopt, {9}).generate(prompt, options).value();
    EXPECT_EQ(out.tokens, plain.tokens);
    EXPECT_EQ(out.finish, plain.finish);
    EXPECT_EQ(model.held, plain_model.held);
    EXPECT_LE(out.steps, plain.steps);
    accepted += out.draft->accepted;
  }
  EXPECT_GT(accepted, 500);
}

// All texts of three tokens over four ids with their probabilities, by the sampler's own vectors.
std::map<Ids, double> distribution(const SamplerOptions& options, const Ids& prompt,
                                   const FakeModel::Language& language) {
  std::map<Ids, double> out{{{}, 1.0}};
  for (int step = 0; step < 3; ++step) {
    std::map<Ids, double> longer;
    for (const auto& [tokens, p] : out) {
      Ids text = prompt;
      text.insert(text.end(), tokens.begin(), tokens.end());
      const std::vector<double> next =
          Sampler(options).probabilities(language(text), prompt, tokens);
      for (size_t id = 0; id < next.size(); ++id) {
        Ids with = tokens;
        with.push_back(static_cast<int32_t>(id));
        if (next[id] > 0) longer[with] = p * next[id];
      }
    }
    out = std::move(longer);
  }
  return out;
}

class SampledSpeculation : public ::testing::TestWithParam<SamplerOptions> {};

// Chi-square over all texts: the mean is the degrees of freedom f, the deviation sqrt(2 f).
TEST_P(SampledSpeculation, DrawsFromTheTargetDistribution) {
  const FakeModel::Language language = [](std::span<const int32_t> text) {
    const auto last = static_cast<float>(text.back()), n = static_cast<float>(text.size());
    return std::vector<float>{0.3f * last, 1.0f - 0.2f * n, 0.5f, 0.1f * last * n};
  };
  const Ids prompt{2, 1};
  const std::map<Ids, double> want = distribution(GetParam(), prompt, language);
  FakeModel model({.vocab = 4, .context = 16, .max_rows = 4}, language);
  Generator generator(model, std::nullopt, {});
  // Right and wrong ids, and ids that the filters remove.
  FakeDraft draft([](const Ids& text, int64_t count) {
    Ids out{text.size() % 2 == 0 ? 1 : 3, 0, 2};
    out.resize(static_cast<size_t>(std::min<int64_t>(count, 3)));
    return out;
  });
  constexpr int kRuns = 20000;
  std::map<Ids, int> seen;
  int64_t accepted = 0, proposed = 0;
  for (int seed = 0; seed < kRuns; ++seed) {
    GenerateOptions options{
        .max_tokens = 3, .sampler = GetParam(), .draft = &draft, .adapt_draft = false};
    options.sampler.seed = static_cast<uint64_t>(seed);
    const Generation out = generator.generate(prompt, options).value();
    ++seen[out.tokens];
    accepted += out.draft->accepted;
    proposed += out.draft->proposed;
  }
  EXPECT_GT(accepted, kRuns / 20);
  EXPECT_LT(accepted, proposed);
  double chi = 0, freedom = -1;
  for (const auto& [tokens, p] : want) {
    const double expected = p * kRuns;
    const double d = seen[tokens] - expected;
    chi += d * d / expected;
    ++freedom;
  }
  int all = 0;
  for (const auto& [tokens, p] : want) all += seen[tokens];
  EXPECT_EQ(all, kRuns);  // nothing outside
  EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom)) << freedom;
}

INSTANTIATE_TEST_SUITE_P(
    Samplers, SampledSpeculation,
    ::testing::Values(SamplerOptions{.temperature = 1}, SamplerOptions{.temperature = 0.6},
                      SamplerOptions{.temperature = 1, .top_p = 0.8},
                      SamplerOptions{.temperature = 1.2, .top_k = 3},
                      SamplerOptions{.temperature = 1,
                                     .repetition_penalty = 1.5,
                                     .frequency_penalty = 0.7,
                                     .presence_penalty = 0.3},
                      SamplerOptions{.temperature = 1, .logit_bias = {{1, -1.5}, {0, 2.0}}}));

}  // namespace
}  // namespace gridless::decode
