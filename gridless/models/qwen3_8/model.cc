#include "gridless/models/qwen3_8/model.h"

#include <functional>
#include <numeric>

#include "gridless/models/qwen3_8/weights.h"

namespace gridless::models {

namespace {

class Qwen38Step : public ShardedModel {
 public:
  Qwen38Step(Qwen38Config config, Qwen38Sharding sharding, const StepShape& shape)
      : config_(std::move(config)),
        sharding_(std::move(sharding)),
        shape_(shape),
        stream_(qwen38_stream(config_, sharding_, shape)) {}

  const weights::StreamLayout& stream() const override { return stream_; }

  std::expected<ir::Program, Diagnostics> program(int64_t rows) const override {
    StepShape shape = shape_;
    shape.rows = rows;
    return qwen38_step(config_, sharding_, shape, stream_);
  }

  bool per_core(std::string_view operand) const override {
    return operand == "weights" || operand == "conv" || operand == "delta_vectors";
  }

  Result<void> fill(const weights::Checkpoint& c, std::string_view operand, int core,
                    std::span<std::byte> out, FillWatch* watch) const override {
    return fill_operand(c, config_, sharding_, stream_, operand, core, out, watch);
  }

  int64_t state_bytes(int64_t position) const override {
    const blocks::DeltaShape& d = sharding_.delta;
    const int64_t kv = config_.periods() * config_.full_per_period() * (position + 1) * 2 *
                       sharding_.attention.shape.width() * 2;
    const int64_t matrix = config_.periods() * config_.linear_per_period() * d.value_heads *
                           d.key_dim * d.value_dim * 4;
    return (kv + matrix) * sharding_.cores;
  }

 private:
  Qwen38Config config_;
  Qwen38Sharding sharding_;
  StepShape shape_;
  weights::StreamLayout stream_;
};

class Qwen38 : public Model {
 public:
  explicit Qwen38(Qwen38Config config) : config_(std::move(config)) {}

  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t layers() const override { return config_.layers; }
  int64_t parameters() const override {
    int64_t total = 0;
    for (const ExpectedTensor& t : expected_tensors(config_)) {
      total += std::accumulate(t.shape.begin(), t.shape.end(), int64_t{1}, std::multiplies());
    }
    return total;
  }
  Result<std::unique_ptr<Model>> with_layers(int64_t layers) const override {
    const auto period = static_cast<int64_t>(config_.period.size());
    if (layers % period != 0) {
      return input_error("{} layers: the pattern of this model's layers repeats every {}", layers,
                         period);
    }
    Qwen38Config fewer = config_;
    fewer.layers = layers;
    return qwen38_model(std::move(fewer));
  }
  Result<void> check_tensors(const weights::Checkpoint& c) const override {
    return models::check_tensors(c, config_);
  }
  Result<Formats> native_formats(const weights::Checkpoint&) const override {
    return Formats{};  // checkpoints of this family hold bf16 and f32
  }
  Result<std::unique_ptr<ShardedModel>> on_cores(int cores, const StepShape& shape) const override {
    for (const int64_t layer : shape.feature_layers) {
      if (layer < 0 || layer >= config_.layers) {
        return input_error("a draft that reads layer {}: this model has layers 0 to {}", layer,
                           config_.layers - 1);
      }
    }
    TRY(Qwen38Sharding sharding, shard_qwen38(config_, cores));
    return std::make_unique<Qwen38Step>(config_, std::move(sharding), shape);
  }
  std::optional<int64_t> rows_taken_back() const override { return blocks::kPendingRows; }

 private:
  Qwen38Config config_;
};

}  // namespace

std::unique_ptr<Model> qwen38_model(Qwen38Config config) {
  return std::make_unique<Qwen38>(std::move(config));
}

}  // namespace gridless::models
