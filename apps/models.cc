// gridless models: what is known by name, how large it is, and whether its weights are here.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/commands.h"
#include "apps/common.h"
#include "gridless/models/model.h"

namespace gridless::apps {
namespace {

using models::RegisteredModel;

nlohmann::json to_json(const RegisteredModel& model,
                       const std::optional<std::filesystem::path>& file) {
  const models::ModelFacts& f = model.facts;
  nlohmann::json object = {{"name", model.name},
                           {"summary", model.summary},
                           {"source", model.source},
                           {"parameters", models::model_of(f)->parameters()},
                           {"architecture", f.architecture},
                           {"layers", f.layers},
                           {"hidden", f.hidden},
                           {"heads", f.heads},
                           {"kv_heads", f.kv_heads},
                           {"head_dim", f.head_dim},
                           {"ffn", f.ffn},
                           {"vocab", f.vocab},
                           {"context", f.context},
                           {"fetched", file.has_value()},
                           {"path", nullptr},
                           {"bytes", nullptr}};
  if (file) {
    object["path"] = file->string();
    object["bytes"] = std::filesystem::file_size(*file);
  }
  return object;
}

std::string state(const RegisteredModel& model, const std::optional<std::filesystem::path>& file) {
  if (file) return "fetched at " + file->lexically_normal().string();
  return model.file.empty() ? "shape only" : "not here: run ./dev demo to fetch";
}

std::string size(const std::optional<std::filesystem::path>& file) {
  if (!file) return "-";
  return fmt::format("{:.1f} MB", static_cast<double>(std::filesystem::file_size(*file)) / 1e6);
}

void print_table() {
  constexpr const char* kRow = "{:<20} {:>10} {:>6} {:>10}  {:<50} {}\n";
  fmt::print(fmt::runtime(kRow), "name", "params", "layers", "size", "what", "state");
  for (const RegisteredModel& model : models::registered_models()) {
    const std::optional<std::filesystem::path> file = models::find_weights(model);
    const double millions = static_cast<double>(models::model_of(model.facts)->parameters()) / 1e6;
    fmt::print(fmt::runtime(kRow), model.name, fmt::format("{:.1f} M", millions),
               model.facts.layers, size(file), model.summary, state(model, file));
  }
}

}  // namespace

void add_models(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("models", "List the models known by name, with sizes and state");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print {\"models\": [...]} instead of a table");
  set_examples(command, {"gridless models", "gridless models --json"});
  command->callback([json, &exit_code] {
    exit_code = kDone;
    if (!*json) return print_table();
    nlohmann::json list = nlohmann::json::array();
    for (const RegisteredModel& model : models::registered_models()) {
      list.push_back(to_json(model, models::find_weights(model)));
    }
    print_json({{"models", list}});
  });
}

}  // namespace gridless::apps
