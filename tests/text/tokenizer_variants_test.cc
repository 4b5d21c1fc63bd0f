// The parts of the tokenizer.json format, one variant each: a patch of bpe_qwen2/tokenizer.json and
// the ids that Hugging Face tokenizers gives with it.
#include "gridless/text/tokenizer.h"
#include "tests/text/data.h"

namespace gridless::text {
namespace {

using Ids = std::vector<int32_t>;
using Json = nlohmann::ordered_json;

Json base() { return read_json("bpe_qwen2/tokenizer.json"); }

TEST(TokenizerVariants, EveryPartOfTheFormatGivesTheSameIds) {
  const Json all = read_json("variants.json");
  int n = 0;
  for (const auto& variant : all["variants"]) {
    SCOPED_TRACE(variant["name"].get<std::string>());
    Json json = base();
    for (const auto& [key, value] : variant["patch"].items()) {
      if (key == "model") {
        json["model"].update(value);
      } else {
        json[key] = value;
      }
    }
    const auto t = Tokenizer::from_json(json.dump());
    ASSERT_TRUE(t.has_value()) << t.error().message;
    for (const auto& c : variant["cases"]) {
      const bool specials = c.value("specials", true);
      const bool add_special = json["post_processor"].is_object() && specials;
      const auto ids = t->encode(c["text"].get<std::string>(), {specials, add_special});
      ASSERT_TRUE(ids.has_value()) << ids.error().message;
      EXPECT_EQ(*ids, c["ids"].get<Ids>()) << c["text"] << " specials=" << specials;
      ++n;
    }
  }
  EXPECT_GT(n, 500);
}

TEST(TokenizerVariants, MergesMayBeWrittenAsStrings) {
  Json json = base();
  for (auto& merge : json["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const auto t = Tokenizer::from_json(json.dump());
  const auto pairs = Tokenizer::from_json(base().dump());
  ASSERT_TRUE(t.has_value() && pairs.has_value());
  const std::string text = "the thing in their engine, running on and on";
  EXPECT_EQ(t->encode(text).value(), pairs->encode(text).value());
}

// The same vocabulary through GGUF metadata: one text format per source, one result.
TEST(TokenizerVariants, GgufMetadataGivesTheSameIdsAsJson) {
  const Json json = base();
  GgufVocab vocab;
  vocab.model = "gpt2";
  vocab.pre = "qwen2";
  const auto put = [&](size_t id, const std::string& token, int type) {
    if (vocab.tokens.size() <= id) {
      vocab.tokens.resize(id + 1);
      vocab.token_types.resize(id + 1, 5);
    }
    vocab.tokens[id] = token;
    vocab.token_types[id] = type;
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) put(id.get<size_t>(), token, 1);
  for (const auto& token : json["added_tokens"]) {
    put(token["id"].get<size_t>(), token["content"].get<std::string>(), token["special"] ? 3 : 4);
  }
  for (const auto& merge : json["model"]["merges"]) {
    vocab.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  vocab.bos = 2048;
  vocab.eos = 2050;
  vocab.add_bos = true;
  const auto t = Tokenizer::from_gguf(vocab);
  ASSERT_TRUE(t.has_value()) << t.error().message;
  const Json all = read_json("bpe_qwen2/cases.json");
  for (const auto& c : all["cases"]) {
    EXPECT_EQ(t->encode(c["text"].get<std::string>()).value(), c["ids"].get<Ids>()) << c["text"];
  }
  EXPECT_EQ(t->encode("", {.add_special = true}).value(), (Ids{2048}));
  EXPECT_EQ(t->eos(), 2050);

  vocab.pre = "smollm";
  for (const auto& variant : read_json("variants.json")["variants"].get<std::vector<Json>>()) {
    if (variant["name"] != "digits one by one, then GPT-2 words") continue;
    const auto smollm = Tokenizer::from_gguf(vocab);
    for (const auto& c : variant["cases"]) {
      const EncodeOptions options{.specials = c.value("specials", true)};
      EXPECT_EQ(smollm->encode(c["text"].get<std::string>(), options).value(), c["ids"].get<Ids>());
    }
  }
}

std::string error_of(const Json& json) {
  const auto t = Tokenizer::from_json(json.dump());
  return t.has_value() ? "no error" : t.error().message;
}

TEST(TokenizerErrors, UnsupportedPartsAreNamed) {
  const auto patched = [](const char* key, const char* value) {
    Json json = base();
    json[key] = Json::parse(value);
    return error_of(json);
  };
  EXPECT_NE(patched("normalizer", R"({"type": "BertNormalizer"})").find("BertNormalizer"),
            std::string::npos);
  EXPECT_NE(patched("pre_tokenizer", R"({"type": "Metaspace"})").find("Metaspace"),
            std::string::npos);
  EXPECT_NE(patched("pre_tokenizer", "null").find("ByteLevel"), std::string::npos);
  EXPECT_NE(patched("model", R"({"type": "Unigram"})").find("Unigram"), std::string::npos);
  EXPECT_NE(patched("model", R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})").find("'a'"),
            std::string::npos);
  EXPECT_NE(patched("model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]})")
                .find("merge 0"),
            std::string::npos);
  EXPECT_NE(patched("added_tokens", R"([{"id": 99999999999, "content": "x"}])").find("added token"),
            std::string::npos);
  EXPECT_NE(patched("pre_tokenizer",
                    R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(a"}})")
                .find("does not compile"),
            std::string::npos);
  EXPECT_FALSE(Tokenizer::from_json("{").has_value());
  EXPECT_FALSE(Tokenizer::from_json("[]").has_value());
  EXPECT_FALSE(Tokenizer::from_tiktoken("IQ== 0\nIg== 2\n", "").has_value());
  EXPECT_FALSE(Tokenizer::from_tiktoken("IQ== 0\n!! 1\n", "").has_value());
}

TEST(TokenizerErrors, IdsOutsideTheVocabularyAreRefused) {
  const auto t = Tokenizer::from_json(base().dump());
  const Ids ids = {64, t->size()};
  EXPECT_EQ(t->decode(ids, false).error().message,
            "token id 2059 is outside the vocabulary (0..2058)");
  EXPECT_FALSE(t->decode(Ids{-1}, false).has_value());
}

TEST(TokenizerErrors, AHostilePatternEndsWithAnErrorAndNotWithAHang) {
  Json json = base();
  json["normalizer"] = nullptr;
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+a+)+[bc]";
  const auto t = Tokenizer::from_json(json.dump());
  ASSERT_TRUE(t.has_value()) << t.error().message;
  const auto ids = t->encode(std::string(5000, 'a'));
  ASSERT_FALSE(ids.has_value());
  EXPECT_NE(ids.error().message.find("backtracks"), std::string::npos) << ids.error().message;
}

}  // namespace
}  // namespace gridless::text
