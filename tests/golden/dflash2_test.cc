// The DFlash2 draft against golden traces (tests/data/dflash2_tiny: numpy in float64, and with bf16
// roundings): the same guesses round by round, as many accepted, the same text.
#include <functional>
#include <map>
#include <random>

#include "gridless/decode/dflash2_draft.h"
#include "gridless/decode/generator.h"
#include "tests/golden/tiny_models.h"

namespace gridless::decode {
namespace {

std::string set_path() { return std::string(GRIDLESS_TEST_DATA) + "/dflash2_tiny/a"; }

struct Trace {
  Tokens prompt, emitted;
  struct Round {
    Tokens drafts;
    int64_t accepted;
  };
  std::vector<Round> rounds;
};

std::vector<Trace> traces() {
  const auto json = nlohmann::json::parse(read_text_file(set_path() + "/golden.json").value());
  std::vector<Trace> out;
  for (const auto& s : json["sequences"]) {
    Trace t{s["prompt"], s["emitted"], {}};
    for (const auto& r : s["rounds"]) t.rounds.push_back({r["drafts"], r["accepted"]});
    out.push_back(std::move(t));
  }
  return out;
}

// Logits [row][vocabulary] of a round, rows 1 to 7 of the block; empty: not in the file.
Logits golden_logits(const std::string& name) {
  const std::string data = read_text_file(set_path() + "/golden.safetensors").value();
  const auto tensors =
      weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  const weights::TensorView* t = tensors->find(name);
  Logits out;
  for (int64_t r = 0; t != nullptr && r < t->rows(); ++r) {
    out.emplace_back(static_cast<size_t>(t->row_elements()));
    std::memcpy(out.back().data(), t->row(r).data(), t->row(r).size());
  }
  return out;
}

// The target with its draft.
struct Pair {
  weights::Checkpoint target, draft_weights;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<Dflash2Draft> draft;
};

std::unique_ptr<Pair> load_pair(RunnerOptions options, std::optional<int> draft_cores = {}) {
  auto out = std::make_unique<Pair>(Pair{*weights::Checkpoint::open(set_path() + "/target"),
                                         *weights::Checkpoint::open(set_path() + "/draft"), nullptr,
                                         nullptr});
  options.feature_layers = Dflash2Draft::taps(out->draft_weights).value();
  auto runner = StepRunner::load(out->target, options);
  EXPECT_TRUE(runner) << runner.error().message;
  out->runner = std::move(*runner);
  auto draft = Dflash2Draft::load(out->draft_weights, out->target, *out->runner, draft_cores);
  EXPECT_TRUE(draft) << draft.error().message;
  out->draft = std::move(*draft);
  return out;
}

// Passes everything on and remembers the rounds.
class Recorder final : public Draft {
 public:
  explicit Recorder(Dflash2Draft& draft) : draft_(draft) {}
  std::string_view name() const override { return draft_.name(); }
  bool reads_features() const override { return true; }
  Result<void> start(std::span<const int32_t> prompt) override {
    rounds.clear();
    logits.clear();
    return draft_.start(prompt);
  }
  Result<void> read(const StepModel& model, int64_t position, int64_t rows) override {
    return draft_.read(model, position, rows);
  }
  Result<Proposal> propose(int64_t count) override {
    TRY(Proposal p, draft_.propose(count));
    rounds.push_back({p.tokens, 0});
    logits.push_back(draft_.logits());
    return p;
  }
  Result<void> append(std::span<const int32_t> tokens) override {
    if (!rounds.empty()) rounds.back().accepted = std::ssize(tokens) - 1;
    return draft_.append(tokens);
  }
  std::vector<Trace::Round> rounds;
  std::vector<Logits> logits;

 private:
  Dflash2Draft& draft_;
};

struct Case {
  int cores;
  std::optional<int> draft_cores;
  EngineKind engine = EngineKind::kCpu;
  size_t rounds = 100;
};
constexpr Case kCases[] = {{1, {}}, {2, {}}, {4, {}}, {2, 8}, {2, {}, EngineKind::kEmulate, 2}};

TEST(Dflash2, GuessesAndTextAreThoseOfTheGoldenTraces) {
  const std::vector<Trace> golden = traces();
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.cores << " cores, engine " << static_cast<int>(c.engine));
    const auto pair =
        load_pair({.cores = c.cores, .engine = c.engine, .context = 128}, c.draft_cores);
    Generator generator(*pair->runner, std::nullopt, {});
    for (size_t s = 0; s < golden.size(); ++s) {
      const Trace& trace = golden[s];
      const size_t rounds = std::min(c.rounds, trace.rounds.size());
      Tokens emitted = trace.emitted;
      if (rounds < trace.rounds.size()) {
        size_t tokens = 1;
        for (size_t r = 0; r < rounds; ++r)
          tokens += static_cast<size_t>(trace.rounds[r].accepted) + 1;
        emitted.resize(tokens);
      }
      Recorder recorder(*pair->draft);
      // Room for a whole block in the last round, too.
      const GenerateOptions options{
          .max_tokens = std::ssize(emitted) + 8, .draft = &recorder, .adapt_draft = false};
      const auto got = generator.generate(trace.prompt, options);
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_GE(recorder.rounds.size(), rounds);
      for (size_t r = 0; r < rounds; ++r) {
        EXPECT_EQ(recorder.rounds[r].drafts, trace.rounds[r].drafts)
            << "sequence " << s << ", round " << r;
        EXPECT_EQ(recorder.rounds[r].accepted, trace.rounds[r].accepted);
        for (const char* variant : {"f64", "bf16"}) {
          const Logits want = golden_logits("s" + std::to_string(s) + "." + variant + ".round" +
                                            std::to_string(r) + ".logits");
          if (want.empty()) continue;
          expect_near(want, {recorder.logits[r].begin() + 1, recorder.logits[r].end()});
        }
      }
      EXPECT_EQ(Tokens(got->tokens.begin(), got->tokens.begin() + std::ssize(emitted)), emitted);
    }
  }
}

Tokens random_tokens(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Tokens out(n);
  for (int32_t& t : out) t = static_cast<int32_t>(random() % 319);
  return out;
}

Tokens must_generate(Generator& generator, const Tokens& prompt, const GenerateOptions& options) {
  const auto got = generator.generate(prompt, options);
  EXPECT_TRUE(got) << got.error().message;
  return got ? got->tokens : Tokens();
}

// Odd lengths, and contexts on both sides of the pages' and the window's ends: greedy answers with
// the draft are plain ones to the token, also when the model's caches are used again.
TEST(Dflash2, GreedyTextIsThatWithoutADraft) {
  const auto pair = load_pair({.cores = 2, .context = 512});
  Generator generator(*pair->runner, std::nullopt, {});
  for (const size_t length : {1, 25, 127, 128, 129, 261}) {
    SCOPED_TRACE(length);
    const Tokens prompt = random_tokens(length, static_cast<uint32_t>(length));
    GenerateOptions options{.max_tokens = 21};
    const Tokens plain = must_generate(generator, prompt, options);
    options.draft = pair->draft.get();
    for (const bool adapt : {false, true}) {
      options.adapt_draft = adapt;
      EXPECT_EQ(must_generate(generator, prompt, options), plain);
    }
    for (const int64_t guesses : {1, 6}) {
      options.draft_tokens = guesses;
      EXPECT_EQ(must_generate(generator, prompt, options), plain);
    }
  }
}

// What the draft guesses depends on the window alone, not on how its context was told: in one go or
// row by row, from the start or from shortly before the window, over pages that took turns.
TEST(Dflash2, GuessesDependOnTheWindowAlone) {
  constexpr int64_t kWindow = 24;
  const auto pair = load_pair({.cores = 1, .context = 512});
  const Tokens text = random_tokens(300, 3);
  const auto guesses = [&](Dflash2Draft& draft, size_t from, size_t chunk, size_t length) {
    const auto part = [&](size_t at, size_t n) {
      return Tokens(text.begin() + static_cast<ptrdiff_t>(at),
                    text.begin() + static_cast<ptrdiff_t>(at + n));
    };
    EXPECT_TRUE(draft.start(Tokens{}));  // forgets
    EXPECT_TRUE(draft.start(part(0, 1)));
    pair->runner->truncate(0, 0);
    for (size_t at = 0; at + 1 < length;) {
      const size_t rows = std::min({at < from ? from - at : chunk, length - 1 - at, size_t{64}});
      prefill(*pair->runner, 0, part(at, rows), rows, static_cast<int32_t>(at));
      if (at >= from) {
        EXPECT_TRUE(
            draft.read(*pair->runner, static_cast<int64_t>(at), static_cast<int64_t>(rows)));
      }
      EXPECT_TRUE(draft.append(part(at + 1, rows)));
      at += rows;
      // Proposals on the way take in what waits.
      if (chunk == 5 && at > from) {
        EXPECT_EQ(draft.propose(7)->tokens.size(), 7u);
      }
    }
    EXPECT_EQ(draft.propose(7)->tokens.size(), 7u);
    return draft.logits();
  };
  for (const size_t length : {30, 128, 129, 153, 257}) {
    SCOPED_TRACE(length);
    const Logits whole = guesses(*pair->draft, 0, 64, length);
    EXPECT_TRUE(same_bits(whole, guesses(*pair->draft, 0, 5, length)));
    const auto from = static_cast<int64_t>(length) - 1 - kWindow;
    EXPECT_TRUE(same_bits(whole, guesses(*pair->draft, static_cast<size_t>(from), 3, length)));
    // One token less is another context.
    EXPECT_FALSE(same_bits(whole, guesses(*pair->draft, static_cast<size_t>(from) + 2, 3, length)));
  }
}

// Sampling with a draft draws from the target's own distribution. First, the tokens are those that
// the same seeds draw without a draft; second, over many seeds the triples of first tokens (of
// which the second ones are verified guesses' neighbours, and the third ones follow accepted
// guesses) are distributed as the model's probabilities say: the chi-square statistic has mean
// `cells - 1` and variance a little more than twice that, so ten standard deviations of cells that
// expect 10 and more are a probability below 1e-10.
TEST(Dflash2, SampledTokensAreDistributedAsTheTargetSays) {
  const auto pair = load_pair({.cores = 1, .context = 128});
  Generator generator(*pair->runner, std::nullopt, {});
  const Tokens prompt = traces()[0].prompt;
  GenerateOptions options{.max_tokens = 4, .adapt_draft = false};
  options.sampler = {.temperature = 8, .top_k = 3};
  constexpr int kSeeds = 400;

  std::map<Tokens, double> expected;  // of triples
  const std::function<void(const Tokens&, double)> expect = [&](const Tokens& drawn, double p) {
    if (drawn.size() == 3) {
      if (p * kSeeds >= 10) expected[drawn] = p * kSeeds;
      return;
    }
    Tokens all = prompt;
    all.insert(all.end(), drawn.begin(), drawn.end());
    pair->runner->truncate(0, 0);
    const Logits logits = prefill(*pair->runner, 0, all, 64);
    const auto next = Sampler(options.sampler).probabilities(logits.back(), prompt, drawn);
    for (size_t id = 0; id < next.size(); ++id) {
      if (next[id] == 0) continue;
      Tokens longer = drawn;
      longer.push_back(static_cast<int32_t>(id));
      expect(longer, p * next[id]);
    }
  };
  expect({}, 1);
  ASSERT_GE(expected.size(), 5u);

  std::map<Tokens, double> seen;
  int64_t accepted = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    options.sampler.seed = static_cast<uint64_t>(seed);
    options.draft = pair->draft.get();
    const auto got = generator.generate(prompt, options);
    ASSERT_TRUE(got) << got.error().message;
    accepted += got->draft->accepted;
    ++seen[{got->tokens.begin(), got->tokens.begin() + 3}];
    if (seed % 50 != 0) continue;
    options.draft = nullptr;
    EXPECT_EQ(must_generate(generator, prompt, options), got->tokens);
  }
  EXPECT_GT(accepted, kSeeds / 20);
  double statistic = 0, rest = kSeeds, rest_seen = kSeeds;
  for (const auto& [cell, e] : expected) {
    statistic += (seen[cell] - e) * (seen[cell] - e) / e;
    rest -= e;
    rest_seen -= seen[cell];
  }
  if (rest >= 10) statistic += (rest_seen - rest) * (rest_seen - rest) / rest;
  const auto freedom = static_cast<double>(expected.size());
  EXPECT_LT(statistic, freedom + 10 * std::sqrt(2 * freedom));
}

// Guesses that are right as often as a pattern says, made from the text itself.
class Pattern final : public Draft {
 public:
  Pattern(Tokens text, std::function<int64_t(int64_t)> right)
      : text_(std::move(text)), right_(std::move(right)) {}
  std::string_view name() const override { return "pattern"; }
  Result<void> start(std::span<const int32_t> prompt) override {
    at_ = std::ssize(prompt);
    return {};
  }
  Result<Proposal> propose(int64_t count) override {
    Proposal p;
    const int64_t right = right_(round_++);
    for (int64_t i = 0; i < count; ++i) {
      const size_t at = static_cast<size_t>(at_ + i);
      const int32_t token = at < text_.size() ? text_[at] : 0;
      p.tokens.push_back(i < right ? token : (token + 1) % 319);
      p.odds.push_back(0.5);
    }
    return p;
  }
  Result<void> append(std::span<const int32_t> tokens) override {
    at_ += std::ssize(tokens);
    return {};
  }

 private:
  Tokens text_;
  std::function<int64_t(int64_t)> right_;
  int64_t at_ = 0, round_ = 0;
};

// None, all, in turns: what is accepted is what is right, and the text does not change.
TEST(Dflash2, EveryPatternOfAcceptanceGivesTheSameText) {
  const auto pair = load_pair({.cores = 4, .context = 256});
  Generator generator(*pair->runner, std::nullopt, {});
  const Tokens prompt = random_tokens(121, 9);
  GenerateOptions options{.max_tokens = 60, .adapt_draft = false};
  Tokens text = prompt;
  const Tokens plain = must_generate(generator, prompt, options);
  text.insert(text.end(), plain.begin(), plain.end());
  const std::function<int64_t(int64_t)> patterns[] = {
      [](int64_t) { return 0; }, [](int64_t) { return 7; },
      [](int64_t round) { return round % 2 == 0 ? 7 : 0; },
      [](int64_t round) { return round * 5 % 8; }};
  const int64_t rounds[] = {59, 8, 0, 0};  // where the pattern says how many there are
  for (size_t i = 0; i < std::size(patterns); ++i) {
    SCOPED_TRACE(i);
    Pattern draft(text, patterns[i]);
    options.draft = &draft;
    const auto got = generator.generate(prompt, options);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->tokens, plain);
    if (rounds[i] > 0) {
      EXPECT_EQ(got->steps, rounds[i]);
    }
  }
}

TEST(Dflash2, DraftsThatDoNotBelongToTheModelAreRefused) {
  const auto draft = *weights::Checkpoint::open(set_path() + "/draft");
  const auto target = *weights::Checkpoint::open(set_path() + "/target");
  const auto untapped = *StepRunner::load(target, {.context = 128});
  const auto without = Dflash2Draft::load(draft, target, *untapped);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("do not belong together"), std::string::npos);
  const auto other = *weights::Checkpoint::open(model_path("c_tp8"));
  const auto runner = *StepRunner::load(other, {.context = 128, .feature_layers = {1, 3, 5, 7}});
  const auto wrong = Dflash2Draft::load(draft, other, *runner);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("embed_tokens.weight has the shape [512, 64]"),
            std::string::npos)
      << wrong.error().message;
  EXPECT_FALSE(Dflash2Draft::taps(target));
  const auto alone = StepRunner::load(draft, {});
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().message.find("give it as --draft"), std::string::npos);
}

}  // namespace
}  // namespace gridless::decode
