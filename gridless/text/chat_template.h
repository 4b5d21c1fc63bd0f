// Chat templates: an OpenAI-style list of messages to the text that the model was trained on.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gridless/base/error.h"
#include "gridless/text/jinja/template.h"

namespace gridless::text {

struct ChatInput {
  nlohmann::ordered_json messages;  // [{"role": ..., "content": ...}, ...]
  nlohmann::ordered_json tools;     // array, or null
  bool add_generation_prompt = true;
  // More variables: bos_token, eos_token, and what the caller sets (enable_thinking, ...).
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
};

// Renders with the variables that transformers' apply_chat_template passes: messages, tools,
// documents (none), add_generation_prompt and `variables`. As there, members of a message that are
// null are left out. The input is checked before the template sees it; errors name the message.
Result<std::string> render_chat(const Template& chat_template, const ChatInput& input,
                                const RenderOptions& options = {});

}  // namespace gridless::text
