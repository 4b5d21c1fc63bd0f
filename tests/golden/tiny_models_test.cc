// The steps of Llama and Qwen3.8 against independent implementations, and against itself: what a
// row computes depends neither on the row count nor on the other rows, the workers or the pages.
#include "tests/golden/tiny_models.h"

#include <algorithm>
#include <random>

namespace gridless::decode {
namespace {

constexpr const char* kModels[] = {"untied",      "tied_llama3rope", "tp8",
                                   "a_27b_style", "b_35_style_tied", "c_tp8"};
// It has two key heads of linear attention.
constexpr std::string_view kFourCoresDoNotDivide = "b_35_style_tied";

struct Case {
  std::string model;
  EngineKind engine;
  int cores;
};
std::string label(const Case& c) {
  return c.model + (c.engine == EngineKind::kCpu ? "_cpu_" : "_emulate_") + std::to_string(c.cores);
}
void PrintTo(const Case& c, std::ostream* out) { *out << label(c); }

class TinyModel : public testing::TestWithParam<Case> {
 protected:
  RunnerOptions options() const {
    return {.cores = GetParam().cores, .engine = GetParam().engine, .slots = 3, .context = 256};
  }
  // The emulator takes tens of milliseconds per core and launch: it sees the first tokens only.
  std::vector<GoldenSequence> sequences(size_t emulated_tokens) const {
    std::vector<GoldenSequence> all = golden_sequences(GetParam().model);
    if (GetParam().engine == EngineKind::kCpu) return all;
    for (GoldenSequence& s : all) shorten(s, emulated_tokens);
    return all;
  }
};

TEST_P(TinyModel, ThreeSequencesTogetherGiveTheGoldenIdsAndLogits) {
  const auto sequences = this->sequences(24);
  const auto runner = load(GetParam().model, options());
  const Decoded got = decode_together(*runner, sequences);
  for (size_t s = 0; s < sequences.size(); ++s) {
    SCOPED_TRACE(s);
    EXPECT_EQ(got.ids[s], sequences[s].greedy);
    expect_near(sequences[s].exact, got.logits[s]);
    expect_near(sequences[s].bf16, got.logits[s]);
  }
}

TEST_P(TinyModel, EveryGroupingOfRowsGivesTheSameBits) {
  const auto sequences = this->sequences(10);
  const auto runner = load(GetParam().model, options());
  std::vector<Logits> one_by_one;
  for (size_t s = 0; s < sequences.size(); ++s)
    one_by_one.push_back(prefill(*runner, static_cast<int32_t>(s), sequences[s].fed(), 1));
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (const size_t chunk : {8, 64}) {
      const auto slot = static_cast<int32_t>((s + 1) % 3);
      runner->truncate(slot, 0);
      EXPECT_TRUE(same_bits(one_by_one[s], prefill(*runner, slot, sequences[s].fed(), chunk)))
          << "sequence " << s << ", chunks of " << chunk;
    }
  }
  // Launches of random rows of all three: some of one, some of several, in any order of sequences.
  std::mt19937 random(1);
  std::vector<size_t> done(3);
  std::vector<Logits> mixed(3);
  for (int32_t s = 0; s < 3; ++s) runner->truncate(s, 0);
  for (;;) {
    std::vector<Row> rows;
    std::vector<size_t> order = {0, 1, 2};
    std::ranges::shuffle(order, random);
    for (const size_t s : order) {
      const Tokens fed = sequences[s].fed();
      for (size_t n = random() % 7; n > 0 && done[s] < fed.size(); --n, ++done[s])
        rows.push_back({fed[done[s]], static_cast<int32_t>(s), static_cast<int32_t>(done[s])});
    }
    if (rows.empty() && std::ranges::equal(done, sequences, {}, {}, [](const GoldenSequence& g) {
          return g.fed().size();
        })) {
      break;
    }
    if (rows.empty()) continue;
    Logits logits = step(*runner, rows);
    for (size_t r = 0; r < rows.size(); ++r)
      mixed[static_cast<size_t>(rows[r].slot)].push_back(std::move(logits[r]));
  }
  for (size_t s = 0; s < 3; ++s) EXPECT_TRUE(same_bits(one_by_one[s], mixed[s])) << s;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* model : kModels) {
    for (const int cores : {1, 2, 4, 8}) {
      if (model != kFourCoresDoNotDivide || cores <= 2)
        out.push_back({model, EngineKind::kCpu, cores});
    }
  }
  // Each core count once on the emulator.
  out.push_back({"untied", EngineKind::kEmulate, 1});
  out.push_back({"untied", EngineKind::kEmulate, 2});
  out.push_back({"tied_llama3rope", EngineKind::kEmulate, 4});
  out.push_back({"tp8", EngineKind::kEmulate, 8});
  out.push_back({"a_27b_style", EngineKind::kEmulate, 4});
  out.push_back({"b_35_style_tied", EngineKind::kEmulate, 1});
  out.push_back({"c_tp8", EngineKind::kEmulate, 2});
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, TinyModel, testing::ValuesIn(cases()),
                         [](const auto& info) { return label(info.param); });

TEST(TinyModelCpu, TwoWorkersGiveTheBitsOfOne) {
  for (const char* model : kModels) {
    const Tokens tokens = golden_sequences(model)[0].fed();
    for (const int cores : {2, 8}) {
      if (model == kFourCoresDoNotDivide && cores == 8) continue;
      const Logits expected = prefill(*load(model, {.cores = cores}), 0, tokens, 1);
      for (const size_t chunk : {1, 8}) {
        const auto two = load(model, {.cores = cores, .threads = 2});
        EXPECT_TRUE(same_bits(expected, prefill(*two, 0, tokens, chunk))) << model << cores;
      }
    }
  }
}

Tokens random_tokens(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Tokens out(n);
  for (int32_t& t : out) t = static_cast<int32_t>(random() % 512);
  return out;
}

TEST(LongSequences, CrossThePagesOfTheCacheInAnyChunks) {
  const Tokens tokens = random_tokens(300, 5);
  const RunnerOptions options{.cores = 2, .slots = 2, .context = 384};
  const Logits expected = prefill(*load("untied", options), 0, tokens, 1);
  for (const size_t chunk : {3, 8, 64}) {
    const auto runner = load("untied", options);
    EXPECT_TRUE(same_bits(expected, prefill(*runner, 1, tokens, chunk))) << chunk;
  }
}

TEST(LongSequences, CrossThePagesOfTheCacheOnTheEmulator) {
  const Tokens tokens = random_tokens(134, 5), start(tokens.begin(), tokens.begin() + 122);
  const Tokens end(tokens.begin() + 122, tokens.end());
  const auto runner = load("untied", {.engine = EngineKind::kEmulate, .slots = 1, .context = 256});
  prefill(*runner, 0, start, 64);
  const Logits expected = prefill(*runner, 0, end, 1, 122);
  for (const size_t chunk : {3, 8, 12}) {
    runner->truncate(0, 122);
    EXPECT_TRUE(same_bits(expected, prefill(*runner, 0, end, chunk, 122))) << chunk;
  }
}

TEST(LongSequences, PagesOfSeveralSlotsInterleave) {
  constexpr size_t length = 290;
  const RunnerOptions options{.slots = 3, .context = 384};
  const auto runner = load("tied_llama3rope", options);
  std::vector<Tokens> tokens;
  std::vector<Logits> together(3);
  for (uint32_t s = 0; s < 3; ++s) tokens.push_back(random_tokens(length - 7 * s, s));
  // Blocks of 32 rows of one slot after another, so that pages are given out in turn.
  for (size_t from = 0; from < length; from += 32) {
    for (int32_t s = 0; s < 3; ++s) {
      const Tokens& all = tokens[static_cast<size_t>(s)];
      if (from >= all.size()) continue;
      const Tokens part(all.begin() + static_cast<int64_t>(from),
                        all.begin() + static_cast<int64_t>(std::min(all.size(), from + 32)));
      for (auto& l : prefill(*runner, s, part, 32, static_cast<int32_t>(from)))
        together[static_cast<size_t>(s)].push_back(std::move(l));
    }
  }
  for (size_t s = 0; s < 3; ++s) {
    const auto alone = load("tied_llama3rope", options);
    EXPECT_TRUE(same_bits(prefill(*alone, 0, tokens[s], 64), together[s])) << s;
  }
}

TEST(LongSequences, TruncatedSlotsForgetWhatTheyHeld) {
  const RunnerOptions options{.slots = 2, .context = 256};
  const auto runner = load("untied", options);
  const Tokens first = random_tokens(200, 1), other = random_tokens(150, 2);
  prefill(*runner, 0, first, 64);
  prefill(*runner, 1, other, 64);
  // Back into the first page, on with other tokens; the freed page goes to whoever asks first.
  runner->truncate(0, 100);
  prefill(*runner, 1, random_tokens(20, 3), 64, 150);
  const Tokens rest = random_tokens(90, 4);
  const Logits got = prefill(*runner, 0, rest, 64, 100);
  Tokens whole(first.begin(), first.begin() + 100);
  whole.insert(whole.end(), rest.begin(), rest.end());
  const Logits expected = prefill(*load("untied", options), 0, whole, 64);
  EXPECT_TRUE(same_bits(Logits(expected.begin() + 100, expected.end()), got));
  runner->truncate(1, 0);
  EXPECT_TRUE(same_bits(expected, prefill(*runner, 1, whole, 64)));
}

TEST(StepRunner, RefusesRowsThatCannotBe) {
  const auto runner = load("untied", {.context = 100, .max_rows = 2});
  const auto message = [&](const std::vector<Row>& rows) {
    const auto ok = runner->step(rows);
    return ok ? std::string("accepted") : ok.error().message;
  };
  EXPECT_EQ(message({{1, 0, 127}}), "accepted");  // pages are whole
  EXPECT_NE(message({{1, 0, 128}}).find("beyond the context of 128 tokens"), std::string::npos);
  EXPECT_NE(message({{512, 0, 0}}).find("token 512"), std::string::npos);
  EXPECT_NE(message({{1, 1, 0}}).find("slot 1"), std::string::npos);
  EXPECT_NE(message({{1, 0, -1}}).find("position -1"), std::string::npos);
  EXPECT_NE(message({}).find("0 rows"), std::string::npos);
  EXPECT_NE(message({{1, 0, 0}, {1, 0, 1}, {1, 0, 2}}).find("3 rows"), std::string::npos);
}

}  // namespace
}  // namespace gridless::decode
