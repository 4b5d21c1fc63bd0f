// Any bytes as tokenizer.json: an error or a tokenizer that survives its texts, never a crash.
#include <cstdlib>

#include "gridless/text/detokenizer.h"
#include "gridless/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gridless::text;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::from_json(input, input);
  if (!tokenizer) {
    if (tokenizer.error().message.empty()) std::abort();
    return 0;
  }
  // The file's own text is the text most likely to meet its added tokens and patterns.
  for (const std::string_view text :
       {input.substr(0, 200), std::string_view("a  b's 12\n\xFF <s>the")}) {
    for (const bool specials : {true, false}) {
      const auto ids = tokenizer->encode(text, {specials, specials});
      if (!ids) continue;
      if (!tokenizer->decode(*ids, true)) std::abort();
      Detokenizer stream(*tokenizer, false);
      for (const int32_t id : *ids) stream.push(id);
      stream.finish();
    }
  }
  return 0;
}
