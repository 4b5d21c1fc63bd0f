#include "apps/model_target.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "gridless/base/integers.h"
#include "gridless/blocks/step_rows.h"
#include "gridless/decode/runner.h"
#include "gridless/models/dflash2/model.h"
#include "gridless/models/model.h"

namespace gridless::apps {

namespace {

struct Found {
  std::unique_ptr<models::Model> model;
  models::Formats formats;
  int64_t window = 0;  // of a draft model, whose context lies in pages that take turns
};

Result<Found> from_checkpoint(const std::string& path) {
  TRY(const weights::Checkpoint checkpoint, weights::Checkpoint::open(path));
  Found out;
  if (models::is_dflash2(checkpoint.config())) {
    auto draft = models::dflash2_config(checkpoint.config());
    if (!draft) return std::unexpected(draft.error().in(path));
    out.window = draft->window;
    out.model = models::dflash2_model(std::move(*draft));
    return out;
  }
  auto model = models::model_of(checkpoint.config());
  if (!model) return std::unexpected(model.error().in(path));
  out.model = std::move(*model);
  const weights::Images* images = checkpoint.images();
  TRY(out.formats,
      images ? decode::formats_of(images->manifest()) : out.model->native_formats(checkpoint));
  return out;
}

Result<Found> from_registry(const std::string& name) {
  const models::RegisteredModel* model = models::find_model(name);
  if (!model) {
    std::string known;
    for (const models::RegisteredModel& m : models::registered_models()) {
      known += (known.empty() ? "" : ", ") + std::string(m.name);
    }
    return input_error("no model is called '{}': known are {}, or give the path of a checkpoint",
                       name, known);
  }
  Found out{models::model_of(model->facts), {}};
  if (model->facts.architecture == "dflash2")
    out.window = models::dflash2_config(model->facts).window;
  TRY(out.formats.layers, weights::format_from_spelling(model->layer_format));
  TRY(out.formats.head, weights::format_from_spelling(model->head_format));
  return out;
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
  static const std::set<std::string_view> known = {"rows",   "sequences", "use",   "context",
                                                   "format", "layers",    "delta", "groups"};
  for (const auto& [key, value] : target.keys) {
    if (!known.contains(key)) {
      return input_error(
          "this model has no key '{}': rows, sequences, use, context, format, layers, delta and "
          "groups are known",
          key);
    }
  }
  TRY(Found found, target.kind == Target::Kind::kModel ? from_registry(target.name)
                                                       : from_checkpoint(target.name));
  models::StepShape step;
  const bool is_draft = found.window > 0;
  TRY(step.rows, number(target, "rows", is_draft ? 8 : 1, 1, 64));
  if ((step.rows & (step.rows - 1)) != 0)
    return input_error("rows={}: 1, 2, 4, 8, 16, 32 or 64", step.rows);
  const auto use = target.keys.find("use");
  if (use != target.keys.end() && use->second != "decode" && use->second != "verify" &&
      use->second != "prefill") {
    return input_error("use={}: decode, verify or prefill", use->second);
  }
  // The rows of a verification or a prefill chunk belong to one sequence.
  const bool one = is_draft || (use != target.keys.end() && use->second != "decode");
  TRY(step.slots, number(target, "sequences", one ? 1 : step.rows, 1, 1024));
  const int64_t layers = found.model->layers();
  TRY(const int64_t context,
      number(target, "context", found.model->context() - step.rows, 0, int64_t{1} << 24));
  step.slot_pages = (context + step.rows + blocks::kPageTokens - 1) / blocks::kPageTokens;
  step.pages = step.slots * step.slot_pages;
  if (const auto it = target.keys.find("delta"); it != target.keys.end()) {
    if (!found.model->rows_taken_back())
      return input_error("delta={}: this model has no delta rule", it->second);
    if (it->second != "recurrent" && it->second != "chunked")
      return input_error("delta={}: recurrent or chunked", it->second);
    step.chunked_delta = it->second == "chunked";
  }
  if (is_draft) step.pages = std::min(step.slot_pages, ceil_div(found.window, blocks::kPageTokens));
  TRY(const int64_t wanted_layers, number(target, "layers", layers, 1, layers));
  if (wanted_layers != layers) {
    TRY(found.model, found.model->with_layers(wanted_layers));
  }
  step.formats = found.formats;
  if (const auto it = target.keys.find("format"); it != target.keys.end()) {
    TRY(const weights::Format format, weights::format_from_spelling(it->second));
    step.formats = {format, format, format};
  }
  TRY(step.expert_groups, number(target, "groups", 0, 0, 128));
  TRY(const auto model, found.model->on_cores(std::max(cores, 1), step));
  auto program = model->program(step.rows);
  if (!program) return machine_error("the step program is wrong: {}", to_string(program.error()));
  return std::move(*program);
}

}  // namespace gridless::apps
