#include "apps/model_target.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "gridless/models/llama/weights.h"
#include "gridless/models/registry.h"

namespace gridless::apps {

namespace {

struct Model {
  models::LlamaConfig config;
  models::LlamaFormats formats;
};

Result<Model> from_checkpoint(const std::string& path) {
  TRY(const weights::Checkpoint checkpoint, weights::Checkpoint::open(path));
  Model m;
  auto config = models::llama_config(checkpoint.config());
  if (!config) return std::unexpected(config.error().in(path));
  m.config = std::move(*config);
  TRY(m.formats, models::native_formats(checkpoint, m.config));
  return m;
}

Result<Model> from_registry(const std::string& name) {
  const models::RegisteredModel* model = models::find_model(name);
  if (!model) {
    std::string known;
    for (const models::RegisteredModel& m : models::registered_models()) {
      known += (known.empty() ? "" : ", ") + std::string(m.name);
    }
    return input_error("no model is called '{}': known are {}, or give the path of a checkpoint",
                       name, known);
  }
  Model m{models::llama_config(model->facts), {}};
  TRY(m.formats.layers, weights::format_from_spelling(model->layer_format));
  TRY(m.formats.head, weights::format_from_spelling(model->head_format));
  return m;
}

Result<int64_t> number(const Target& t, const char* key, int64_t otherwise, int64_t least,
                       int64_t most) {
  const auto it = t.keys.find(key);
  if (it == t.keys.end()) return otherwise;
  int64_t value = 0;
  const char* end = it->second.data() + it->second.size();
  const auto [stop, failure] = std::from_chars(it->second.data(), end, value);
  if (failure != std::errc() || stop != end || value < least || value > most) {
    return input_error("{}={}: a number from {} to {} is needed", key, it->second, least, most);
  }
  return value;
}

}  // namespace

bool is_model_target(const Target& target) {
  if (target.kind == Target::Kind::kModel) return true;
  if (target.kind != Target::Kind::kPath) return false;
  const std::filesystem::path path = target.name;
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) || path.extension() == ".gguf" ||
         path.extension() == ".safetensors";
}

Result<ir::Program> build_model(const Target& target, int cores) {
  static const std::set<std::string_view> known = {"rows",    "sequences", "use",
                                                   "context", "format",    "layers"};
  for (const auto& [key, value] : target.keys) {
    if (!known.contains(key)) {
      return input_error(
          "this model has no key '{}': rows, sequences, use, context, format and layers are known",
          key);
    }
  }
  TRY(Model m, target.kind == Target::Kind::kModel ? from_registry(target.name)
                                                   : from_checkpoint(target.name));
  models::StepShape step;
  TRY(step.rows, number(target, "rows", 1, 1, 64));
  if ((step.rows & (step.rows - 1)) != 0)
    return input_error("rows={}: 1, 2, 4, 8, 16, 32 or 64", step.rows);
  const auto use = target.keys.find("use");
  if (use != target.keys.end() && use->second != "decode" && use->second != "verify" &&
      use->second != "prefill") {
    return input_error("use={}: decode, verify or prefill", use->second);
  }
  // The rows of a verification or a prefill chunk belong to one sequence.
  const bool one = use != target.keys.end() && use->second != "decode";
  TRY(step.slots, number(target, "sequences", one ? 1 : step.rows, 1, 1024));
  TRY(const int64_t context,
      number(target, "context", m.config.context - step.rows, 0, int64_t{1} << 24));
  step.slot_pages = (context + step.rows + blocks::kPageTokens - 1) / blocks::kPageTokens;
  step.pages = step.slots * step.slot_pages;
  TRY(m.config.layers, number(target, "layers", m.config.layers, 1, m.config.layers));
  step.format = m.formats.layers;
  step.head_format = m.formats.head;
  if (const auto it = target.keys.find("format"); it != target.keys.end()) {
    TRY(step.format, weights::format_from_spelling(it->second));
    step.head_format = step.format;
  }
  TRY(const models::LlamaSharding sharding, models::shard_llama(m.config, std::max(cores, 1)));
  auto program =
      models::llama_step(m.config, sharding, step, models::llama_stream(m.config, sharding, step));
  if (!program) return machine_error("the step program is wrong: {}", to_string(program.error()));
  return std::move(*program);
}

}  // namespace gridless::apps
