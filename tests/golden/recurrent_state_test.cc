// The recurrent state of Gated DeltaNet: equal to the golden models' after a prompt, and untouched
// by rows that a host takes back, whatever it accepts and in whatever launches.
#include <algorithm>
#include <functional>
#include <random>

#include "gridless/decode/generator.h"
#include "gridless/decode/ngram_draft.h"
#include "tests/golden/tiny_models.h"

namespace gridless::decode {
namespace {

constexpr size_t kBlock = 8;  // an anchor and seven drafts

struct Case {
  const char* model;
  int cores;
};
constexpr Case kCases[] = {{"a_27b_style", 4}, {"b_35_style_tied", 2}, {"c_tp8", 8}};

// Goes on with the sequence in `slot` by one block: the first `accepted` drafts are right, the
// others are not. The logits of the right rows.
Logits verify(StepRunner& runner, const Tokens& tokens, int32_t slot, size_t position,
              size_t accepted) {
  std::vector<Row> rows;
  for (size_t i = 0; i < kBlock && position + i < tokens.size(); ++i) {
    const int32_t right = tokens[position + i];
    rows.push_back(
        {i <= accepted ? right : (right + 7) % 512, slot, static_cast<int32_t>(position + i)});
  }
  Logits all = step(runner, rows);
  all.resize(std::min(all.size(), accepted + 1));
  return all;
}

TEST(RecurrentState, RejectedDraftsLeaveNoTrace) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.model);
    const RunnerOptions options{.cores = c.cores, .slots = 2, .context = 128};
    const Tokens tokens = golden_sequences(c.model)[0].fed();
    const Logits plain = prefill(*load(c.model, options), 0, tokens, 1);
    const auto runner = load(c.model, options);
    std::mt19937 random(1);
    const std::function<size_t(size_t)> patterns[] = {
        [](size_t) { return size_t{0}; }, [](size_t) { return kBlock - 1; },
        [](size_t round) { return round % 2 == 0 ? size_t{0} : kBlock - 1; },
        [&](size_t) { return size_t{random() % kBlock}; }};
    for (const auto& accepted : patterns) {
      Logits got;
      runner->truncate(0, 0);
      for (size_t round = 0; got.size() < tokens.size(); ++round) {
        for (auto& l : verify(*runner, tokens, 0, got.size(), accepted(round)))
          got.push_back(std::move(l));
        // The other slot goes its own way between the rounds.
        step(*runner, {{tokens[round], 1, static_cast<int32_t>(round)}});
      }
      EXPECT_TRUE(same_bits(plain, got));
    }
  }
}

// Prompts in chunks of matrix products: near the golden logits, and the recurrence goes on from the
// state that they leave.
TEST(RecurrentState, ChunkedPrompts) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.model);
    RunnerOptions options{.cores = c.cores, .slots = 2, .context = 256};
    const auto plain = load(c.model, options);
    options.chunked_delta = true;
    const auto chunked = load(c.model, options);
    const std::vector<GoldenSequence> golden = golden_sequences(c.model);
    const GoldenSequence& longest = *std::ranges::max_element(
        golden, {}, [](const GoldenSequence& s) { return s.fed().size(); });
    const Tokens tokens = longest.fed();
    for (const size_t chunk : {16, 64}) {
      const Logits got = prefill(*chunked, 0, tokens, chunk);
      expect_near(longest.exact, got);
      EXPECT_FALSE(same_bits(prefill(*plain, 0, tokens, chunk), got)) << "nothing was chunked";
    }
    // Two sequences in one launch, each with rows that are committed at once.
    std::vector<Row> rows;
    for (int32_t slot : {1, 0}) {
      for (int32_t i = 0; i < 24; ++i) rows.push_back({tokens[static_cast<size_t>(i)], slot, i});
    }
    chunked->truncate(0, 0);
    const Logits both = step(*chunked, rows);
    const Logits right(longest.exact.begin(), longest.exact.begin() + 24);
    expect_near(right, {both.begin(), both.begin() + 24});
    expect_near(right, {both.begin() + 24, both.end()});
  }
}

TEST(RecurrentState, GoesBackOverPendingRowsOnly) {
  const auto runner = load("c_tp8", {.context = 128});
  const Tokens tokens = golden_sequences("c_tp8")[0].fed();
  const Logits plain = prefill(*runner, 0, tokens, 16);
  EXPECT_EQ(runner->truncate(0, 1000), static_cast<int64_t>(tokens.size()));
  const Logits again = [&] {  // the last launch had 54 - 48 rows
    const auto at = static_cast<int32_t>(tokens.size()) - 5;
    EXPECT_EQ(runner->truncate(0, at), at);
    return prefill(*runner, 0, {tokens.end() - 5, tokens.end()}, 5, at);
  }();
  EXPECT_TRUE(same_bits({plain.end() - 5, plain.end()}, again));
  const auto far = runner->step(std::vector<Row>{{tokens[20], 0, 20}});
  ASSERT_FALSE(far);
  EXPECT_NE(far.error().message.find("go back at most 8, or start again at 0"), std::string::npos);
  EXPECT_EQ(runner->truncate(0, 3), 0);
  EXPECT_TRUE(same_bits(plain, prefill(*runner, 0, tokens, 1)));
}

TEST(RecurrentState, IsTheGoldenStateAfterThePrompt) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.model);
    const GoldenSequence sequence = golden_sequences(c.model)[0];
    const auto runner = load(c.model, {.cores = c.cores, .context = 128});
    // One more token makes the prompt's last row more than pending.
    Tokens tokens = sequence.prompt;
    tokens.push_back(sequence.greedy[0]);
    prefill(*runner, 0, tokens, 1);
    const std::string data = read_text_file(model_path(c.model) + "/golden.safetensors").value();
    const auto tensors =
        weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    int64_t layers = 0;
    for (int64_t layer = 0; layer < 8; ++layer) {
      const auto* want = tensors->find("s0.f64.state_prompt." + std::to_string(layer) + ".S");
      if (want == nullptr) continue;
      const int64_t heads = want->shape[0], values = want->shape[1], keys = want->shape[2];
      const int64_t mine = heads / c.cores, one = mine * keys * values;
      double square = 0, error = 0;
      for (int64_t h = 0; h < heads; ++h) {
        const auto bytes = runner->state("delta_matrix", static_cast<int>(h / mine));
        const auto* got =
            reinterpret_cast<const float*>(bytes.data()) + layers * one + h % mine * keys * values;
        for (int64_t v = 0; v < values; ++v)
          for (int64_t k = 0; k < keys; ++k) {
            float w = 0;
            std::memcpy(&w, want->row(h * values + v).data() + k * 4, 4);
            const double d = double{got[k * values + v]} - double{w};
            square += double{w} * double{w};
            error += d * d;
          }
      }
      // bf16 inputs of the products: 2^-9 each, over some tens of updates.
      EXPECT_LE(std::sqrt(error), 0.025 * std::sqrt(square)) << "layer " << layer;
      ++layers;
    }
    EXPECT_EQ(layers, 6);
  }
}

// The golden continuations repeat tokens, so that some guesses of the n-gram draft come true.
TEST(RecurrentState, DraftsChangeNothing) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.model);
    const auto runner = load(c.model, {.cores = c.cores, .context = 256});
    Generator generator(*runner, std::nullopt, {});
    int64_t proposed = 0;
    for (const GoldenSequence& s : golden_sequences(c.model)) {
      NgramDraft draft;
      const GenerateOptions options{.max_tokens = static_cast<int64_t>(s.greedy.size()),
                                    .draft = &draft,
                                    .adapt_draft = false};
      const auto drafted = generator.generate(s.prompt, options);
      ASSERT_TRUE(drafted) << drafted.error().message;
      EXPECT_EQ(drafted->tokens, s.greedy);
      proposed += drafted->draft->proposed;
    }
    EXPECT_GT(proposed, 0);
  }
}

TEST(StepRunner, RowsOfASlotStandTogether) {
  for (const char* model : {"c_tp8", "untied"}) {
    const auto runner = load(model, {.slots = 2, .context = 128});
    const auto apart = runner->step(std::vector<Row>{{1, 0, 0}, {1, 1, 0}, {2, 0, 1}});
    ASSERT_FALSE(apart);
    EXPECT_NE(apart.error().message.find("slot 0 do not stand together"), std::string::npos);
    const auto gap = runner->step(std::vector<Row>{{1, 0, 0}, {1, 0, 2}});
    ASSERT_FALSE(gap);
    EXPECT_NE(gap.error().message.find("position 2 after 0"), std::string::npos);
  }
}

}  // namespace
}  // namespace gridless::decode
