#include "gridless/models/dflash2/model.h"

#include "gridless/models/dflash2/weights.h"

namespace gridless::models {

namespace {

class Dflash2Step : public ShardedModel {
 public:
  Dflash2Step(Dflash2Config config, Dflash2Sharding sharding, const StepShape& shape,
              const weights::Checkpoint* target)
      : config_(std::move(config)),
        sharding_(std::move(sharding)),
        shape_(shape),
        stream_(dflash2_stream(config_, sharding_, shape)),
        target_(target) {}

  const weights::StreamLayout& stream() const override { return stream_; }

  std::expected<ir::Program, Diagnostics> program(int64_t rows) const override {
    StepShape shape = shape_;
    shape.rows = rows;
    return dflash2_step(config_, sharding_, shape, stream_);
  }

  bool per_core(std::string_view operand) const override { return operand == "weights"; }

  Result<void> fill(const weights::Checkpoint& draft, std::string_view operand, int core,
                    std::span<std::byte> out, FillWatch* watch) const override {
    if (target_ == nullptr)
      return input_error("a draft model has no embedding and head of its own: it needs its target");
    return fill_operand(draft, *target_, config_, sharding_, stream_, operand, core, out, watch);
  }

  int64_t state_bytes(int64_t position) const override {
    return config_.layers * std::min(position + 1, config_.window) * 2 *
           sharding_.attention.shape.width() * 2 * sharding_.cores;
  }

 private:
  Dflash2Config config_;
  Dflash2Sharding sharding_;
  StepShape shape_;
  weights::StreamLayout stream_;
  const weights::Checkpoint* target_;
};

class Dflash2 : public Model {
 public:
  Dflash2(Dflash2Config config, const weights::Checkpoint* target)
      : config_(std::move(config)), target_(target) {}

  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t layers() const override { return config_.layers; }
  int64_t parameters() const override { return models::parameters(config_); }
  Result<std::unique_ptr<Model>> with_layers(int64_t layers) const override {
    Dflash2Config fewer = config_;
    fewer.layers = layers;
    return dflash2_model(std::move(fewer), target_);
  }
  Result<void> check_tensors(const weights::Checkpoint& c) const override {
    if (target_ != nullptr) TRY_VOID(check_target(*target_, config_));
    return models::check_tensors(c, config_);
  }
  Result<Formats> native_formats(const weights::Checkpoint&) const override { return Formats{}; }
  Result<std::unique_ptr<ShardedModel>> on_cores(int cores, const StepShape& shape) const override {
    if (!shape.feature_layers.empty())
      return input_error("a draft of a draft model is not supported");
    TRY(Dflash2Sharding sharding, shard_dflash2(config_, cores));
    return std::make_unique<Dflash2Step>(config_, std::move(sharding), shape, target_);
  }
  std::optional<int64_t> rows_taken_back() const override { return std::nullopt; }

 private:
  Dflash2Config config_;
  const weights::Checkpoint* target_;
};

}  // namespace

std::unique_ptr<Model> dflash2_model(Dflash2Config config, const weights::Checkpoint* target) {
  return std::make_unique<Dflash2>(std::move(config), target);
}

}  // namespace gridless::models
