#include "gridless/models/llama/model.h"

#include <algorithm>

#include "gridless/models/llama/weights.h"
#include "gridless/models/tensors.h"

namespace gridless::models {

namespace {

class LlamaStep : public ShardedModel {
 public:
  LlamaStep(LlamaConfig config, LlamaSharding sharding, const StepShape& shape)
      : config_(std::move(config)),
        sharding_(std::move(sharding)),
        shape_(shape),
        stream_(llama_stream(config_, sharding_, shape)) {}

  const weights::StreamLayout& stream() const override { return stream_; }

  std::expected<ir::Program, Diagnostics> program(int64_t rows) const override {
    StepShape shape = shape_;
    shape.rows = rows;
    return llama_step(config_, sharding_, shape, stream_);
  }

  bool per_core(std::string_view operand) const override { return operand == "weights"; }

  Result<void> fill(const weights::Checkpoint& c, std::string_view operand, int core,
                    std::span<std::byte> out, FillWatch* watch) const override {
    if (operand == "weights") return pack_weights(c, config_, sharding_, stream_, core, out, watch);
    if (operand == "embedding") {
      return fill_rows(c, "model.embed_tokens.weight", config_.vocab, as_floats(out), 0, watch);
    }
    if (operand == "norms") return fill_norms(c, config_, as_floats(out));
    std::ranges::copy(rope_lanes(config_, sharding_.attention.shape), as_floats(out).begin());
    return {};
  }

  int64_t state_bytes(int64_t position) const override {
    return config_.layers * (position + 1) * 2 * sharding_.attention.shape.width() * 2 *
           sharding_.cores;
  }

 private:
  LlamaConfig config_;
  LlamaSharding sharding_;
  StepShape shape_;
  weights::StreamLayout stream_;
};

class Llama : public Model {
 public:
  explicit Llama(LlamaConfig config) : config_(std::move(config)) {}

  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t layers() const override { return config_.layers; }
  int64_t parameters() const override {
    const LlamaConfig& m = config_;
    const int64_t query = m.hidden * m.heads * m.head_dim;
    const int64_t key_value = 2 * m.hidden * m.kv_heads * m.head_dim;
    const int64_t layer = 2 * query + key_value + 3 * m.hidden * m.ffn + 2 * m.hidden;
    return m.layers * layer + m.vocab * m.hidden * (m.tied_head ? 1 : 2) + m.hidden;
  }
  Result<std::unique_ptr<Model>> with_layers(int64_t layers) const override {
    LlamaConfig fewer = config_;
    fewer.layers = layers;
    return llama_model(std::move(fewer));
  }
  Result<void> check_tensors(const weights::Checkpoint& c) const override {
    return models::check_tensors(c, config_);
  }
  Result<Formats> native_formats(const weights::Checkpoint& c) const override {
    return models::native_formats(c, config_);
  }
  Result<std::unique_ptr<ShardedModel>> on_cores(int cores, const StepShape& shape) const override {
    if (!shape.feature_layers.empty()) {
      return input_error("the Llama step has no taps: no draft that reads its layers is supported");
    }
    TRY(LlamaSharding sharding, shard_llama(config_, cores));
    return std::make_unique<LlamaStep>(config_, std::move(sharding), shape);
  }
  std::optional<int64_t> rows_taken_back() const override { return std::nullopt; }

 private:
  LlamaConfig config_;
};

}  // namespace

std::unique_ptr<Model> llama_model(LlamaConfig config) {
  return std::make_unique<Llama>(std::move(config));
}

}  // namespace gridless::models
