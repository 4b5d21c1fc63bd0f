// The models that go by name: on the command line (`gridless run smollm2`, `model:llama_8b`) and in
// benchmarks. A model here is its shape; weights, where there are any, are a file that is found or
// not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless::models {

// Widths in elements; every number is the checkpoint's, before any padding.
struct ModelFacts {
  std::string_view
      architecture;  // as GGUF's general.architecture spells it: llama, qwen35 or kimi_k3
  int layers;
  int hidden;
  int heads;
  int kv_heads;
  int head_dim;
  int ffn;
  int vocab;
  int context;  // positions the model was trained for
  float rope_base;
  float norm_eps;
  bool tied_head;  // the head is the embedding, transposed
  // Of qwen35: Gated DeltaNet in three of four layers, heads of 128.
  int linear_key_heads = 0, linear_value_heads = 0;
  // Of kimi_k3, whose head_dim is that of both attentions.
  int residual_block = 0;                          // layers of a block of the residual stream
  int query_rank = 0, latent = 0, extra_dims = 0;  // of latent attention
  int experts = 0, experts_per_token = 0, expert_inner = 0, shared_inner = 0;
  int moe_latent = 0;  // width that routed experts read and write
};

struct RegisteredModel {
  std::string_view name;
  std::string_view summary;
  std::string_view
      source;  // where its weights come from, one phrase; for a shape without weights, why
  std::string_view file;  // path of the weights below the build folder's models/, "" for none
  ModelFacts facts;
  // Formats of the matrices of its layers and of its head, as docs/weight_stream.md names them.
  std::string_view layer_format = "bf16";
  std::string_view head_format = "bf16";
};

// Every model, in the order in which `gridless models` lists them.
std::span<const RegisteredModel> registered_models();

// nullptr when there is no model of that name.
const RegisteredModel* find_model(std::string_view name);

// Where the weights of a model lie: in $GRIDLESS_MODELS, else in ../models beside the running
// program (build/models for build/release/gridless), else in build/models below the working
// directory. Nothing when the model has no weights or they have not been fetched.
std::optional<std::filesystem::path> find_weights(const RegisteredModel& model);

// What the user wrote where a MODEL is asked for: a registered name, or a path. An error says how
// to get the weights, or lists the names.
Result<std::filesystem::path> resolve_weights(std::string_view name_or_path);

}  // namespace gridless::models
