// The generator on small models whose greedy continuations are known from transformers
// (tests/data/llama_tiny).
#include "gridless/decode/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gridless/base/mapped_file.h"
#include "gridless/decode/ngram_draft.h"
#include "gridless/decode/runner.h"
#include "gridless/text/text_model.h"
#include "gridless/text/utf8.h"
#include "tests/decode/fake_model.h"

namespace gridless::decode {
namespace {

using ::testing::HasSubstr;

std::string data(const std::string& name) { return std::string(GRIDLESS_TEST_DATA) + "/" + name; }

struct Sequence {
  Ids prompt, greedy;
};

std::vector<Sequence> goldens(const std::string& model) {
  const auto text = read_text_file(data("llama_tiny/" + model + "/golden.json"));
  std::vector<Sequence> out;
  const auto json = nlohmann::json::parse(text.value());
  for (const auto& s : json["sequences"]) out.push_back({s["prompt"], s["greedy"]});
  return out;
}

std::unique_ptr<StepRunner> load(const std::string& model, RunnerOptions options = {}) {
  const auto checkpoint = weights::Checkpoint::open(data("llama_tiny/" + model));
  EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  auto runner = StepRunner::load(*checkpoint, options);
  EXPECT_TRUE(runner.has_value()) << runner.error().message;
  return std::move(*runner);
}

class GeneratorGolden : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(GeneratorGolden, GreedyIdsOneSequenceAfterAnother) {
  const auto& [model, cores] = GetParam();
  const auto runner = load(model, {.cores = cores, .threads = std::min(cores, 2)});
  Generator generator(*runner, std::nullopt, {});
  for (const Sequence& s : goldens(model)) {
    Ids streamed;
    const auto out =
        generator.generate(s.prompt, {.max_tokens = static_cast<int64_t>(s.greedy.size()),
                                      .on_token = [&](int32_t id) { streamed.push_back(id); }});
    ASSERT_TRUE(out.has_value()) << out.error().message;
    EXPECT_EQ(out->tokens, s.greedy);
    EXPECT_EQ(streamed, s.greedy);
    EXPECT_EQ(out->finish, FinishReason::kLength);
    EXPECT_EQ(out->prompt_tokens, static_cast<int64_t>(s.prompt.size()));
    EXPECT_GT(out->ttft_ms, 0);
    EXPECT_GT(out->tpot_ms, 0);
    EXPECT_GT(out->bytes_per_step, static_cast<double>(runner->weight_bytes()));
  }
}

// Greedy ids of these random models run into repetitions, so that drafts are accepted, too.
TEST_P(GeneratorGolden, DraftsChangeNothing) {
  const auto& [model, cores] = GetParam();
  const auto runner = load(model, {.cores = cores, .threads = std::min(cores, 2)});
  Generator generator(*runner, std::nullopt, {});
  for (const Sequence& s : goldens(model)) {
    for (const int64_t count : {1, 2, 6, 15}) {
      NgramDraft draft(2);
      const auto out =
          generator.generate(s.prompt, {.max_tokens = static_cast<int64_t>(s.greedy.size()),
                                        .draft = &draft,
                                        .draft_tokens = count,
                                        .adapt_draft = false});
      ASSERT_TRUE(out.has_value()) << out.error().message;
      EXPECT_EQ(out->tokens, s.greedy);
    }
  }
}

TEST_P(GeneratorGolden, SeveralStepsPerCallChangeNothing) {
  const auto& [model, cores] = GetParam();
  const auto runner = load(model, {.cores = cores, .threads = std::min(cores, 2)});
  Generator generator(*runner, std::nullopt, {});
  const Sequence s = goldens(model)[0];
  for (const int64_t steps : {2, 7, 100}) {
    const auto out =
        generator.generate(s.prompt, {.max_tokens = std::ssize(s.greedy), .steps_per_call = steps});
    ASSERT_TRUE(out.has_value()) << out.error().message;
    EXPECT_EQ(out->tokens, s.greedy);
    EXPECT_EQ(out->steps, std::ssize(s.greedy) - 1);  // no launch beyond the last token
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GeneratorGolden,
                         ::testing::Values(std::pair{"untied", 1}, std::pair{"untied", 2},
                                           std::pair{"tied_llama3rope", 1},
                                           std::pair{"tied_llama3rope", 2}, std::pair{"tp8", 8}));

// The "untied" model where the final norm, or one row of the head, is all NaN or all
// infinite.
class DamagedWeights : public ::testing::TestWithParam<std::pair<const char*, uint16_t>> {};

TEST_P(DamagedWeights, AreAnErrorInsteadOfATokenFromNowhere) {
  const auto& [tensor, value] = GetParam();
  namespace fs = std::filesystem;
  const fs::path dir = fs::path(::testing::TempDir()) / fmt::format("damaged_{}", ::getpid());
  fs::create_directories(dir);
  for (const char* file : {"config.json", "model.safetensors"}) {
    fs::copy_file(data(fmt::format("llama_tiny/untied/{}", file)), dir / file,
                  fs::copy_options::overwrite_existing);
  }
  {
    const auto intact = weights::Checkpoint::open(dir.string());
    ASSERT_TRUE(intact.has_value()) << intact.error().message;
    const weights::TensorView* t = intact->find(tensor);
    ASSERT_NE(t, nullptr);
    ASSERT_EQ(t->dtype, weights::Dtype::kBF16);
    const auto text = read_text_file((dir / "model.safetensors").string());
    const std::string_view part(reinterpret_cast<const char*>(t->row(0).data()), t->row(0).size());
    const size_t at = text->find(part);
    ASSERT_NE(at, std::string::npos);
    std::fstream file(dir / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<int64_t>(at));
    for (size_t i = 0; i < part.size(); i += 2)
      file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const auto damaged = weights::Checkpoint::open(dir.string());
  ASSERT_TRUE(damaged.has_value()) << damaged.error().message;
  const auto runner = StepRunner::load(*damaged, {});
  ASSERT_TRUE(runner.has_value()) << runner.error().message;
  fs::remove_all(dir);
  Generator generator(**runner, std::nullopt, {});
  for (const double temperature : {0.0, 1.0}) {
    const auto out = generator.generate(Ids{1, 2, 3},
                                        {.max_tokens = 2, .sampler = {.temperature = temperature}});
    ASSERT_FALSE(out.has_value());
    EXPECT_THAT(out.error().message, HasSubstr("the logits are not numbers"));
    EXPECT_EQ(out.error().kind, Error::Kind::kInput);
  }
}

INSTANTIATE_TEST_SUITE_P(NanAndInfinity, DamagedWeights,
                         ::testing::Values(std::pair{"model.norm.weight", uint16_t{0x7fc0}},
                                           std::pair{"model.norm.weight", uint16_t{0x7f80}},
                                           std::pair{"lm_head.weight", uint16_t{0x7fc0}},
                                           std::pair{"lm_head.weight", uint16_t{0x7f80}}));

class GeneratorOnTiny : public ::testing::Test {
 protected:
  static constexpr int64_t kContext = 64;
  std::unique_ptr<StepRunner> runner_ = load("untied", {.context = kContext});
  Sequence golden_ = goldens("untied")[0];

  Generation run(const Ids& prompt, const GenerateOptions& options, Ids eos = {}) {
    Generator generator(*runner_, std::nullopt, std::move(eos));
    const auto out = generator.generate(prompt, options);
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return *out;
  }
  std::string error(const Ids& prompt, const GenerateOptions& options) {
    Generator generator(*runner_, std::nullopt, {});
    const auto out = generator.generate(prompt, options);
    return out ? std::string() : out.error().message;
  }
};

TEST_F(GeneratorOnTiny, NextTurnReusesThePrefixAndAnswersAsIfItDidNot) {
  Generator generator(*runner_, std::nullopt, {});
  const auto first = generator.generate(golden_.prompt, {.max_tokens = 10});
  ASSERT_TRUE(first.has_value());
  Ids turn = golden_.prompt;
  turn.insert(turn.end(), first->tokens.begin(), first->tokens.end());
  turn.insert(turn.end(), {5, 9, 200});
  const auto second = generator.generate(turn, {.max_tokens = 10});
  ASSERT_TRUE(second.has_value());
  // All but the last token of the answer was fed.
  EXPECT_EQ(second->reused_tokens, static_cast<int64_t>(golden_.prompt.size()) + 9);
  EXPECT_EQ(second->tokens, run(turn, {.max_tokens = 10}).tokens);
  // Back to the beginning, and the same prompt again.
  const auto third = generator.generate(golden_.prompt, {.max_tokens = 10});
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->reused_tokens, static_cast<int64_t>(golden_.prompt.size()) - 1);
  EXPECT_EQ(third->tokens, first->tokens);
}

TEST_F(GeneratorOnTiny, EndOfTextStopsAndIsAmongTheTokens) {
  const Generation out = run(golden_.prompt, {.max_tokens = 48}, {golden_.greedy[5]});
  const auto end = std::ranges::find(golden_.greedy, golden_.greedy[5]) + 1;
  EXPECT_EQ(out.tokens, Ids(golden_.greedy.begin(), end));
  EXPECT_EQ(out.finish, FinishReason::kStop);
  const Generation on =
      run(golden_.prompt, {.max_tokens = 20, .ignore_eos = true}, {golden_.greedy[5]});
  EXPECT_EQ(on.tokens, Ids(golden_.greedy.begin(), golden_.greedy.begin() + 20));
}

// The launches behind the end of the text are forgotten: the next turn goes on as if there had been
// none.
TEST_F(GeneratorOnTiny, AnEndInTheMiddleOfACallIsTheEnd) {
  const Ids eos = {golden_.greedy[5]};
  const Generation plain = run(golden_.prompt, {.max_tokens = 48}, eos);
  Generator generator(*runner_, std::nullopt, eos);
  for (const int64_t steps : {3, 4, 48}) {
    Ids streamed;
    const auto out =
        generator.generate(golden_.prompt, {.max_tokens = 48,
                                            .on_token = [&](int32_t id) { streamed.push_back(id); },
                                            .steps_per_call = steps});
    ASSERT_TRUE(out.has_value()) << out.error().message;
    EXPECT_EQ(out->tokens, plain.tokens);
    EXPECT_EQ(streamed, plain.tokens);
    EXPECT_EQ(out->finish, FinishReason::kStop);
    Ids turn = golden_.prompt;
    turn.insert(turn.end(), out->tokens.begin(), out->tokens.end());
    turn.insert(turn.end(), {5, 9, 200});
    const auto next = generator.generate(turn, {.max_tokens = 10, .ignore_eos = true});
    ASSERT_TRUE(next.has_value()) << next.error().message;
    EXPECT_EQ(next->reused_tokens, std::ssize(golden_.prompt) + std::ssize(plain.tokens) - 1);
    EXPECT_EQ(next->tokens, run(turn, {.max_tokens = 10, .ignore_eos = true}).tokens);
  }
}

TEST_F(GeneratorOnTiny, OnlyGreedyAnswersWithoutADraftTakeSeveralStepsPerCall) {
  std::vector<float> likely(8, 0.0f);
  likely[3] = 1;
  FakeModel model({.vocab = 8, .context = 10, .max_rows = 4},
                  [&](std::span<const int32_t>) { return likely; });
  Generator generator(model, std::nullopt, {});
  // The first token comes with the prompt; the context ends the last call early.
  ASSERT_TRUE(generator.generate(Ids{1, 2}, {.max_tokens = 100, .steps_per_call = 5}));
  EXPECT_EQ(model.calls, (std::vector<int64_t>{5, 3}));
  model.calls.clear();
  FakeDraft draft([](const Ids&, int64_t) { return Ids{3}; });
  const GenerateOptions sampled = {.max_tokens = 5,
                                   .sampler = {.temperature = 1},
                                   .steps_per_call = 4},
                        drafted = {.max_tokens = 5, .steps_per_call = 4, .draft = &draft};
  ASSERT_TRUE(generator.generate(Ids{1, 2}, sampled));
  ASSERT_TRUE(generator.generate(Ids{1, 2}, drafted));
  EXPECT_TRUE(model.calls.empty());
  EXPECT_THAT(error(golden_.prompt, {.steps_per_call = 0}), HasSubstr("0 steps per call"));
}

// The flag is looked at between calls.
TEST_F(GeneratorOnTiny, CancellationEndsAfterTheCallUnderWay) {
  std::atomic<bool> cancel = false;
  int seen = 0;
  const Generation cut = run(golden_.prompt, {.max_tokens = 48,
                                              .on_token = [&](int32_t) { cancel = ++seen >= 3; },
                                              .steps_per_call = 4,
                                              .cancel = &cancel});
  EXPECT_EQ(cut.finish, FinishReason::kCancelled);
  EXPECT_EQ(cut.tokens, Ids(golden_.greedy.begin(), golden_.greedy.begin() + 5));
}

TEST_F(GeneratorOnTiny, ContextEndsTheAnswer) {
  Ids prompt(60, 7);
  const Generation out = run(prompt, {.max_tokens = 100});
  // The last position is fed with the fourth token; what it predicts is the fifth.
  EXPECT_EQ(out.tokens.size(), 5u);
  EXPECT_EQ(out.finish, FinishReason::kLength);
  prompt.resize(kContext, 7);
  EXPECT_EQ(run(prompt, {.max_tokens = 100}).tokens.size(), 1u);
  prompt.push_back(7);
  EXPECT_THAT(error(prompt, {}),
              HasSubstr("the prompt has 65 tokens, more than the context of 64"));
}

TEST_F(GeneratorOnTiny, CancellationKeepsWhatThereIs) {
  std::atomic<bool> cancel = false;
  int seen = 0;
  const Generation out = run(
      golden_.prompt,
      {.max_tokens = 48, .on_token = [&](int32_t) { cancel = ++seen == 3; }, .cancel = &cancel});
  EXPECT_EQ(out.tokens, Ids(golden_.greedy.begin(), golden_.greedy.begin() + 3));
  EXPECT_EQ(out.finish, FinishReason::kCancelled);
  EXPECT_EQ(name(out.finish), "cancelled");
  EXPECT_TRUE(run(golden_.prompt, {.cancel = &(cancel = true, cancel)}).tokens.empty());
}

TEST_F(GeneratorOnTiny, SamplingFollowsTheSeedAndVerySmallTemperatureIsGreedy) {
  GenerateOptions options{.max_tokens = 20, .sampler = {.temperature = 1.5, .seed = 3}};
  const Ids a = run(golden_.prompt, options).tokens;
  EXPECT_EQ(run(golden_.prompt, options).tokens, a);
  options.sampler.seed = 4;
  EXPECT_NE(run(golden_.prompt, options).tokens, a);
  options.sampler.temperature = 1e-3;  // the smallest margin of this golden is far above it
  EXPECT_EQ(run(golden_.prompt, options).tokens,
            Ids(golden_.greedy.begin(), golden_.greedy.begin() + 20));
}

TEST_F(GeneratorOnTiny, BadInputIsNamed) {
  EXPECT_THAT(error({}, {}), HasSubstr("the prompt is empty"));
  EXPECT_THAT(error({1, 512}, {}), HasSubstr("token 512 of the prompt"));
  EXPECT_THAT(error({1, -1}, {}), HasSubstr("token -1 of the prompt"));
  EXPECT_THAT(error({1}, {.max_tokens = 0}), HasSubstr("0 tokens to generate"));
  EXPECT_THAT(error({1}, {.sampler = {.top_p = 3}}), HasSubstr("top-p 3"));
  EXPECT_THAT(error({1}, {.sampler = {.logit_bias = {{600, 1.0}}}}), HasSubstr("id 600"));
}

TEST_F(GeneratorOnTiny, TextStreamsInWholeCodePointsAndStopStringsCutIt) {
  // Any tokenizer with ids enough: random bytes are the harder test.
  auto tokenizer = text::load_tokenizer(data("text/bpe_qwen2"));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  Generator generator(*runner_, *tokenizer, {});
  std::string streamed;
  GenerateOptions options{.max_tokens = 40, .on_text = [&](std::string_view piece) {
                            EXPECT_TRUE(text::is_valid_utf8(piece)) << piece;
                            EXPECT_FALSE(piece.empty());
                            streamed += piece;
                          }};
  const auto whole = generator.generate(golden_.prompt, options);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(streamed, whole->text);
  EXPECT_EQ(whole->text, tokenizer->decode(whole->tokens, /*skip_special=*/true).value());
  // Whole code points from the middle of the text.
  size_t at = 0;
  while (at < whole->text.size() / 2)
    at += static_cast<size_t>(text::utf8_at(whole->text, at).size);
  size_t end = at;
  for (int i = 0; i < 4; ++i) end += static_cast<size_t>(text::utf8_at(whole->text, end).size);
  const std::string stop = whole->text.substr(at, end - at);
  options.stop = {"not in there at all", stop};
  streamed.clear();
  const auto cut = generator.generate(golden_.prompt, options);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->text, whole->text.substr(0, whole->text.find(stop)));
  EXPECT_EQ(streamed, cut->text);
  EXPECT_EQ(cut->finish, FinishReason::kStop);
  EXPECT_LT(cut->tokens.size(), whole->tokens.size());
  // The same in the middle of a draft, which is right to the end.
  FakeDraft draft([&](const Ids& text, int64_t count) {
    const auto made = std::span(whole->tokens).subspan(text.size() - golden_.prompt.size());
    const auto next = made.first(std::min(made.size(), static_cast<size_t>(count)));
    return Ids(next.begin(), next.end());
  });
  options.draft = &draft;
  options.adapt_draft = false;
  streamed.clear();
  const auto drafted = generator.generate(golden_.prompt, options);
  ASSERT_TRUE(drafted.has_value());
  EXPECT_GT(drafted->draft->proposed, drafted->draft->accepted);
  EXPECT_EQ(drafted->tokens, cut->tokens);
  EXPECT_EQ(drafted->text, cut->text);
  EXPECT_EQ(streamed, cut->text);
}

}  // namespace
}  // namespace gridless::decode
