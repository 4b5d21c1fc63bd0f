// Tokenizers against ids made by other implementations (tests/data/text/README.md says which).
#include "gridless/text/detokenizer.h"
#include "gridless/text/tokenizer.h"
#include "tests/text/data.h"

namespace gridless::text {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer qwen2() {
  auto t = Tokenizer::from_json(read_data("bpe_qwen2/tokenizer.json"),
                                read_data("bpe_qwen2/tokenizer_config.json"));
  EXPECT_TRUE(t.has_value()) << t.error().message;
  return *t;
}

Tokenizer kimi() {
  const auto cases = read_json("tiktoken/cases.json");
  auto t = Tokenizer::from_tiktoken(read_data("tiktoken/tiktoken.model"),
                                    read_data("tiktoken/tokenizer_config.json"),
                                    cases["pattern"].get<std::string>());
  EXPECT_TRUE(t.has_value()) << t.error().message;
  return *t;
}

TEST(TokenizerGolden, Qwen2CasesEncodeAndDecode) {
  const Tokenizer t = qwen2();
  int n = 0;
  const auto all = read_json("bpe_qwen2/cases.json");
  for (const auto& c : all["cases"]) {
    const auto text = c["text"].get<std::string>();
    const auto expected = c["ids"].get<Ids>();
    const auto ids = t.encode(text);
    ASSERT_TRUE(ids.has_value()) << ids.error().message;
    EXPECT_EQ(*ids, expected) << text;
    EXPECT_EQ(t.decode(expected, false).value(), c["decoded"].get<std::string>());
    EXPECT_EQ(t.decode(expected, true).value(), c["decoded_skip_special"].get<std::string>());
    ++n;
  }
  EXPECT_EQ(n, 556);
  EXPECT_EQ(t.eos(), 2050);
  EXPECT_EQ(t.bos(), -1);
}

TEST(TokenizerGolden, TiktokenCasesWithSpecialsAndAsText) {
  const Tokenizer t = kimi();
  int n = 0, as_text = 0;
  const auto all = read_json("tiktoken/cases.json");
  for (const auto& c : all["cases"]) {
    const auto text = c["text"].get<std::string>();
    const auto expected = c["ids"].get<Ids>();
    EXPECT_EQ(t.encode(text).value(), expected) << text;
    EXPECT_EQ(t.decode(expected, false).value(), c["decoded"].get<std::string>());
    if (c.contains("ids_specials_as_text")) {
      EXPECT_EQ(t.encode(text, {.specials = false}).value(), c["ids_specials_as_text"].get<Ids>());
      ++as_text;
    } else {
      EXPECT_EQ(t.encode(text, {.specials = false}).value(), expected) << text;
    }
    ++n;
  }
  EXPECT_GT(n, 400);
  EXPECT_GT(as_text, 0);
}

TEST(TokenizerGolden, KimiPatternIsTheDefaultOfTiktoken) {
  const auto t = Tokenizer::from_tiktoken(read_data("tiktoken/tiktoken.model"),
                                          read_data("tiktoken/tokenizer_config.json"));
  ASSERT_TRUE(t.has_value());
  const auto all = read_json("tiktoken/cases.json");
  for (const auto& c : all["cases"]) {
    EXPECT_EQ(t->encode(c["text"].get<std::string>()).value(), c["ids"].get<Ids>());
  }
}

// What may be shown after each id: no half code points, malformed bytes as CPython shows them.
void check_streaming(const Tokenizer& t, const std::string& file) {
  int n = 0;
  const auto all = read_json(file);
  for (const auto& c : all) {
    Detokenizer stream(t, /*skip_special=*/false);
    std::vector<std::string> pieces;
    std::string whole;
    for (const int32_t id : c["ids"].get<Ids>()) {
      pieces.push_back(stream.push(id));
      whole += pieces.back();
    }
    const std::string tail = stream.finish();
    EXPECT_EQ(pieces, c["byte_exact_pieces"].get<std::vector<std::string>>()) << c["ids"];
    EXPECT_EQ(tail, c["byte_exact_tail"].get<std::string>()) << c["ids"];
    EXPECT_EQ(whole + tail, c["final_text"].get<std::string>());
    EXPECT_EQ(t.decode(c["ids"].get<Ids>(), false).value(), c["final_text"].get<std::string>());
    ++n;
  }
  EXPECT_GT(n, 50);
}

TEST(TokenizerGolden, Qwen2StreamingNeverShowsHalfACodePoint) {
  check_streaming(qwen2(), "bpe_qwen2/streaming.json");
}

TEST(TokenizerGolden, TiktokenStreamingNeverShowsHalfACodePoint) {
  check_streaming(kimi(), "tiktoken/streaming.json");
}

}  // namespace
}  // namespace gridless::text
