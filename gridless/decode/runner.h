// StepRunner: a loaded model that takes rows to logits, one launch per call, on the CPU engine, on
// the emulator or on TPUs. It owns the weights, the caches and one program per row count.
//
// Launch contract: docs/launch_contract.md. Rows may belong to one sequence (prefill chunk,
// verification: consecutive positions) or to different ones. What a row computes depends neither on
// how many rows a launch has nor on the others.
//
// Not thread-safe: one launch at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridless/base/cpu_features.h"
#include "gridless/base/error.h"
#include "gridless/decode/step_model.h"
#include "gridless/decode/tpu_host.h"
#include "gridless/models/model.h"

namespace gridless::decode {

enum class EngineKind { kCpu, kEmulate, kTpu };

struct RunnerOptions {
  int cores = 1;    // virtual cores the model is spread over
  int threads = 1;  // workers that run them (CPU engine)
  EngineKind engine = EngineKind::kCpu;
  Isa isa = active_isa();
  std::optional<weights::Format> format;  // of all matrices; default: what the checkpoint holds
  int64_t slots = 1;                      // sequences that may be live at once
  int64_t context = 2048;                 // tokens a sequence may reach; rounded up to pages of 128
  int64_t max_rows = 64;                  // largest launch
  int64_t expert_groups = 0;              // models::StepShape
  bool taps = false;                      // results `taps` and `gates` too
  // Models with a delta rule: rows of a prompt in chunks (blocks/delta_chunk.h). Then the bits of a
  // row depend on how its prompt was cut.
  bool chunked_delta = false;
  std::vector<int64_t> feature_layers;  // whose output features() gives; not on TPUs
  // For kTpu. The programs say cores and the most of slots, context and rows that they hold.
  std::shared_ptr<const TpuPrograms> programs;
  TpuOptions tpu;
};

// The formats that images were packed in; an error where this version does not know one.
Result<models::Formats> formats_of(const weights::ImageManifest& manifest);

// A candidate for the next token.
struct Candidate {
  int32_t id = 0;
  float logit = 0;
};

class StepRunner final : public StepModel {
 public:
  // Loads and packs; `progress` is called with the fraction done, from 0 to 1. On TPUs it also
  // brings the weights to the devices, one core's image after the other: the host never holds more
  // than one.
  static Result<std::unique_ptr<StepRunner>> load(
      const weights::Checkpoint& checkpoint, const RunnerOptions& options,
      const std::function<void(double)>& progress = nullptr);
  // Random weights of a shape, for benchmarks: values are finite and small, nothing else is
  // promised.
  static Result<std::unique_ptr<StepRunner>> random(const models::Model& model,
                                                    const RunnerOptions& options);
  ~StepRunner() override;

  StepLimits limits() const override;

  Result<void> step(std::span<const Row> rows) override;
  Result<void> step_ahead(std::span<const Row> rows) override;

  // On TPUs all are enqueued before the first is over.
  Result<void> chain(const Row& first, int64_t count) override;

  // A step on the CPU engine with the times of all its steps.
  Result<std::vector<cpu::TraceEvent>> step_traced(std::span<const Row> rows);

  int32_t argmax(int64_t row) const override;
  std::vector<Candidate> candidates(int64_t row) const;  // of the last launch, descending
  Result<void> logits(int64_t row, std::span<float> out) const override;
  Result<void> features(int64_t row, std::span<float> out) const override;
  // On TPUs it looks at the candidates: bringing all logits to the host would cost time.
  Result<void> check_logits(int64_t row) const override;
  int64_t truncate(int64_t slot, int64_t position) override;

  // A result of the last launch, of a core; empty: no such one (taps).
  std::span<const std::byte> result(std::string_view name, int core) const;

  // A core's memory of an operand that is state (docs/launch_contract.md); empty: no such one.
  std::span<const std::byte> state(std::string_view operand, int core) const;

  // The memory of a constant that all cores share, for a draft that needs it too; empty: no such
  // one, or on TPUs.
  std::span<const std::byte> constant(std::string_view operand) const;

  int64_t vocab() const;
  const RunnerOptions& options() const;
  models::Formats formats() const;
  int64_t bytes_per_step(int64_t position) const override;
  int64_t weight_bytes() const;

 private:
  class Impl;
  explicit StepRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gridless::decode
