#include "gridless/models/kimi_k3/model.h"

#include "gridless/models/kimi_k3/weights.h"

namespace gridless::models {

namespace {

class KimiK3Step : public ShardedModel {
 public:
  KimiK3Step(KimiK3Config config, KimiK3Sharding sharding, const StepShape& shape)
      : config_(std::move(config)),
        sharding_(std::move(sharding)),
        shape_(shape),
        stream_(kimi_k3_stream(config_, sharding_, shape)) {}

  const weights::StreamLayout& stream() const override { return stream_; }

  std::expected<ir::Program, Diagnostics> program(int64_t rows) const override {
    StepShape shape = shape_;
    shape.rows = rows;
    return kimi_k3_step(config_, sharding_, shape, stream_);
  }

  bool per_core(std::string_view operand) const override {
    return operand == "weights" || operand == "experts" || operand == "conv" ||
           operand == "delta_vectors";
  }

  Result<void> fill(const weights::Checkpoint& c, std::string_view operand, int core,
                    std::span<std::byte> out, FillWatch* watch) const override {
    return fill_operand(c, config_, sharding_, stream_, operand, core, out, watch);
  }

  int64_t state_bytes(int64_t position) const override {
    const blocks::DeltaShape& d = sharding_.delta;
    const int64_t latents =
        config_.attention_layers() * (position + 1) * sharding_.latent.token_width() * 2;
    const int64_t matrices = config_.delta_layers() * d.value_heads * d.key_dim * d.value_dim * 4;
    return (latents + matrices) * sharding_.cores;
  }

 private:
  KimiK3Config config_;
  KimiK3Sharding sharding_;
  StepShape shape_;
  weights::StreamLayout stream_;
};

class KimiK3 : public Model {
 public:
  explicit KimiK3(KimiK3Config config) : config_(std::move(config)) {}

  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t layers() const override { return config_.layers; }
  int64_t parameters() const override { return parameters_of(config_); }
  Result<std::unique_ptr<Model>> with_layers(int64_t layers) const override {
    KimiK3Config fewer = config_;
    fewer.layers = layers;
    TRY_VOID(check_layers(fewer));
    return kimi_k3_model(std::move(fewer));
  }
  Result<void> check_tensors(const weights::Checkpoint& c) const override {
    return models::check_tensors(c, config_);
  }
  Result<Formats> native_formats(const weights::Checkpoint&) const override {
    return Formats{};  // bf16, and experts in MXFP4
  }
  Result<std::unique_ptr<ShardedModel>> on_cores(int cores, const StepShape& shape) const override {
    TRY(KimiK3Sharding sharding, shard_kimi_k3(config_, cores, shape));
    return std::make_unique<KimiK3Step>(config_, std::move(sharding), shape);
  }
  std::optional<int64_t> rows_taken_back() const override { return blocks::kPendingRows; }

 private:
  KimiK3Config config_;
};

}  // namespace

std::unique_ptr<Model> kimi_k3_model(KimiK3Config config) {
  return std::make_unique<KimiK3>(std::move(config));
}

}  // namespace gridless::models
