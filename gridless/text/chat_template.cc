#include "gridless/text/chat_template.h"

namespace gridless::text {

using Json = nlohmann::ordered_json;

Result<std::string> render_chat(const Template& chat_template, const ChatInput& input,
                                const RenderOptions& options) {
  if (!input.messages.is_array()) {
    return input_error("messages must be a JSON array of objects with \"role\" and \"content\"");
  }
  if (!input.tools.is_null() && !input.tools.is_array()) {
    return input_error("tools must be a JSON array of tool definitions");
  }
  Json variables = Json::object();
  Json messages = Json::array();
  for (size_t i = 0; i < input.messages.size(); ++i) {
    const Json& message = input.messages[i];
    if (!message.is_object()) return input_error("messages[{}] is not an object", i);
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) {
      return input_error("messages[{}] has no \"role\" (a string such as \"user\")", i);
    }
    Json kept = Json::object();
    for (const auto& [key, value] : message.items()) {
      if (!value.is_null()) kept[key] = value;
    }
    messages.push_back(std::move(kept));
  }
  variables["messages"] = std::move(messages);
  variables["tools"] = input.tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = input.add_generation_prompt;
  for (const auto& [key, value] : input.variables.items()) variables[key] = value;
  return chat_template.render(variables, options);
}

}  // namespace gridless::text
