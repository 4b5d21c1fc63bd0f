// gridless render: a chat template on an OpenAI-style list of messages.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/common.h"
#include "gridless/base/json.h"
#include "gridless/models/registry.h"
#include "gridless/text/text_model.h"

namespace gridless::apps {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string model, messages, tools;
  std::vector<std::string> variables;
  bool no_generation_prompt = false, json = false;
};

// A file with the list itself, or with a request that has the list as its member `key`.
Result<Json> read_list(const std::string& path, const char* key) {
  TRY(const std::string text, read_text(path));
  TRY(Json json, parse_json<Json>(text, path));
  if (json.is_object() && json.contains(key)) return Json(json[key]);
  if (!json.is_array())
    return input_error("{} holds neither a list nor an object with \"{}\"", path, key);
  return json;
}

// k=v: the value is JSON where it parses (true, 3, ["a"], "true"), else text.
Result<void> set_variable(Json& variables, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    return input_error("--var: '{}' is not NAME=VALUE", assignment);
  }
  const std::string name = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  TRY_VOID(check_json_depth(value, fmt::format("--var {}", name)));
  Json parsed = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  variables[name] = parsed.is_discarded() ? Json(value) : std::move(parsed);
  return {};
}

Result<void> render(const Arguments& a) {
  TRY(const std::filesystem::path path, models::resolve_weights(a.model));
  TRY(text::ChatModel model, text::load_chat_model(path.string()));
  text::ChatInput input;
  TRY(input.messages, read_list(a.messages, "messages"));
  if (!a.tools.empty()) {
    TRY(input.tools, read_list(a.tools, "tools"));
  }
  input.add_generation_prompt = !a.no_generation_prompt;
  input.variables = std::move(model.special_tokens);
  for (const std::string& assignment : a.variables)
    TRY_VOID(set_variable(input.variables, assignment));
  TRY(const std::string text, text::render_chat(model.chat_template, input));
  if (a.json) {
    print_json({{"text", text}});
  } else {
    fmt::print("{}", text);
  }
  return {};
}

}  // namespace

void add_render(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("render", "Render a chat template on a list of messages");
  const auto a = std::make_shared<Arguments>();
  command
      ->add_option("MODEL", a->model,
                   "A model's name, a checkpoint directory, a .gguf or a .jinja template")
      ->required();
  command
      ->add_option("--messages", a->messages,
                   "JSON file ('-': standard input) with [{\"role\", \"content\"}, ...]")
      ->required();
  command->add_option("--tools", a->tools, "JSON file with a list of OpenAI tool definitions");
  command
      ->add_option("--var", a->variables,
                   "NAME=VALUE: a template variable; the value is JSON where it parses, else text. "
                   "May be repeated")
      ->expected(1)
      ->take_all();
  command->add_flag("--no-generation-prompt", a->no_generation_prompt,
                    "Do not open the assistant's turn at the end (add_generation_prompt=false)");
  command->add_flag("--json", a->json, "Print {\"text\"} instead of the text");
  set_examples(command,
               {"gridless render smollm2 --messages chat.json",
                "gridless render template.jinja --messages chat.json --tools tools.json --var "
                "enable_thinking=false"});
  command->callback([a, &exit_code] {
    const Result<void> done = render(*a);
    exit_code = done ? kDone : report(done.error());
  });
}

}  // namespace gridless::apps
