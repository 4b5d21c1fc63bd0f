// Rules that hold for any text.
#include <gtest/gtest.h>
#include <rapidcheck.h>

// rapidcheck's own gtest header needs gtest first; the blank line keeps the order.

#include <rapidcheck/gtest.h>

#include <chrono>

#include "gridless/text/detokenizer.h"
#include "gridless/text/tokenizer.h"
#include "gridless/text/utf8.h"
#include "tests/text/data.h"

namespace gridless::text {
namespace {

// bpe_qwen2 without its normaliser, so that text survives unchanged.
const Tokenizer& exact() {
  static const Tokenizer t = [] {
    auto json = read_json("bpe_qwen2/tokenizer.json");
    json["normalizer"] = nullptr;
    return Tokenizer::from_json(json.dump()).value();
  }();
  return t;
}

const Tokenizer& nfc() {
  static const Tokenizer t = Tokenizer::from_json(read_data("bpe_qwen2/tokenizer.json")).value();
  return t;
}

std::string random_utf8() {
  const auto points = *rc::gen::container<std::vector<uint32_t>>(rc::gen::oneOf(
      rc::gen::inRange<uint32_t>(0, 0x80), rc::gen::inRange<uint32_t>(0, 0x3000),
      rc::gen::inRange<uint32_t>(0x3000, 0xD800), rc::gen::inRange<uint32_t>(0xE000, 0x110000)));
  std::string out;
  for (const uint32_t c : points) append_utf8(out, c);
  return out;
}

RC_GTEST_PROP(TokenizerProperty, DecodingUndoesEncodingOfUtf8, ()) {
  const std::string text = random_utf8();
  RC_ASSERT(is_valid_utf8(text));
  for (const bool specials : {true, false}) {
    const auto ids = exact().encode(text, {.specials = specials});
    RC_ASSERT(exact().decode(*ids, false).value() == text);
  }
}

RC_GTEST_PROP(TokenizerProperty, DecodingUndoesEncodingOfAnyBytes, (const std::string& bytes)) {
  const auto ids = exact().encode(bytes);
  RC_ASSERT(exact().decode_bytes(*ids, false).value() == bytes);
}

RC_GTEST_PROP(TokenizerProperty, NormalisedTextIsAFixedPoint, ()) {
  const std::string text = random_utf8();
  const std::string normal = normalize(text, NormalForm::kNfc);
  RC_ASSERT(nfc().encode(text).value() == nfc().encode(normal).value());
}

RC_GTEST_PROP(TokenizerProperty, StreamedPiecesAreUtf8AndAddUp, (const std::string& bytes)) {
  const auto ids = exact().encode(bytes).value();
  Detokenizer stream(exact(), false);
  std::string whole;
  for (const int32_t id : ids) {
    const std::string piece = stream.push(id);
    RC_ASSERT(is_valid_utf8(piece));
    whole += piece;
  }
  RC_ASSERT(whole + stream.finish() == to_valid_utf8(bytes));
}

double seconds_to_encode(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  const auto ids = exact().encode(text);
  EXPECT_TRUE(ids.has_value()) << ids.error().message;
  EXPECT_TRUE(ids && exact().decode_bytes(*ids, false).value() == text);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A quadratic merge would need hours for the first one. The bound leaves room for sanitizers.
TEST(TokenizerScale, AMegabyteWithoutACutIsNotQuadratic) {
  constexpr size_t kMegabyte = 1 << 20;
  std::string letters, spaces(kMegabyte, ' '), digits(kMegabyte, '7'), broken(kMegabyte, '\xFF'),
      mixed;
  while (letters.size() < kMegabyte) letters += "thingouea";
  while (mixed.size() < kMegabyte) mixed += "<|im_start|> a\n ";
  for (const std::string* text : {&letters, &spaces, &digits, &broken, &mixed}) {
    EXPECT_LT(seconds_to_encode(*text), 20.0) << text->substr(0, 8);
  }
  EXPECT_LT(seconds_to_encode(spaces + "x"), 20.0);
}

}  // namespace
}  // namespace gridless::text
