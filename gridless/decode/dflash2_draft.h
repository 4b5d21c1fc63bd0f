// Dflash2Draft: a DFlash2 model as a draft: one launch of its own kernel guesses a block of tokens
// from what the target's layers said of the text so far (models/dflash2).
//
// The features of every launch of the target wait here until the next proposal appends them to the
// draft's context. Keys and values of the context lie in as many pages as the draft's window needs,
// which take turns. Wrong guesses leave nothing behind: the features of rejected rows are not read,
// and the block itself is not kept.
#pragma once

#include <memory>

#include "gridless/decode/draft.h"
#include "gridless/decode/runner.h"
#include "gridless/models/dflash2/config.h"

namespace gridless::decode {

class Dflash2Draft final : public Draft {
 public:
  // The layers of the target that the draft of a checkpoint reads: RunnerOptions::feature_layers. An error
  // where it is no DFlash2 draft.
  static Result<std::vector<int64_t>> taps(const weights::Checkpoint& draft);

  // On the engine, cores (or `cores`) and threads of `runner`, whose embedding it shares: both
  // checkpoints and the runner must outlive the draft. The draft's matrices are bf16, or what the
  // runner's options ask for. Errors: tensors that are missing or of other shapes, a target that
  // the draft was not made for, cores that do not divide the draft.
  static Result<std::unique_ptr<Dflash2Draft>> load(const weights::Checkpoint& draft,
                                                    const weights::Checkpoint& target,
                                                    const StepRunner& runner,
                                                    std::optional<int> cores = {});
  // The same without a runner. `embedding`: the target's as the operand of that name; empty: the
  // draft makes its own.
  static Result<std::unique_ptr<Dflash2Draft>> load(const weights::Checkpoint& draft,
                                                    const weights::Checkpoint& target,
                                                    const RunnerOptions& options,
                                                    std::span<const std::byte> embedding);
  ~Dflash2Draft() override;

  std::string_view name() const override { return "dflash2"; }
  bool reads_features() const override { return true; }
  Result<void> start(std::span<const int32_t> prompt) override;
  Result<void> read(const StepModel& model, int64_t position, int64_t rows) override;
  Result<Proposal> propose(int64_t count) override;
  Result<void> append(std::span<const int32_t> tokens) override;

  // What the last launch said of the block's rows, for tests: [block, vocabulary], and the ids that
  // the selector chose from, [block, candidates].
  std::vector<std::vector<float>> logits() const;
  std::vector<std::vector<int32_t>> candidates() const;
  int64_t weight_bytes() const;

 private:
  class Impl;
  explicit Dflash2Draft(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gridless::decode
