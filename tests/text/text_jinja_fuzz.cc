// Any bytes as a chat template: text or an error, in bounded time.
#include <cstdlib>

#include "gridless/text/chat_template.h"
#include "gridless/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gridless::text;
  static const auto messages = nlohmann::ordered_json::parse(
      R"([{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "é"}]},
          {"role": "assistant", "content": "<think>a</think>b", "tool_calls": [{"function": {"name": "f",
           "arguments": {"x": 1.5}}}]}, {"role": "tool", "content": "r"}, {"role": "user", "content": "q"}])");
  static const auto tools =
      nlohmann::ordered_json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
  const auto parsed = Template::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  const auto text =
      render_chat(*parsed, {messages, tools}, {.now = std::tm{}, .work_limit = 1 << 20});
  if (text && !is_valid_utf8(*text)) std::abort();
  if (!text && text.error().message.empty()) std::abort();
  return 0;
}
