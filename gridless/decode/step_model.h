// StepModel: what a decode loop needs of a model: launches of rows, and what they predict.
//
// Launch contract: docs/launch_contract.md. StepRunner is the real one; loops are tested on others.
#pragma once

#include <cstdint>
#include <span>

#include "gridless/base/error.h"

namespace gridless::decode {

struct Row {
  int32_t token = 0;
  int32_t slot = 0;
  int32_t position = 0;
};

// What a launch may hold.
struct StepLimits {
  int64_t vocab = 0;
  int64_t context = 0;   // positions of a sequence
  int64_t max_rows = 0;  // of a launch
  // Rows of a slot's last launch that truncate() can take back: those of a verification.
  int64_t pending_rows = INT64_MAX;
  int64_t features = 0;  // numbers of a row that features() gives; 0: the step has no taps
};

class StepModel {
 public:
  StepModel() = default;
  StepModel(const StepModel&) = delete;
  StepModel& operator=(const StepModel&) = delete;
  virtual ~StepModel() = default;

  virtual StepLimits limits() const = 0;

  // One launch of rows.size() <= max_rows rows. Rows of a slot stand together, in ascending
  // positions that continue what it holds, or overwrite its tail as far as truncate() can go back.
  // Errors: context or page table exceeded, a fault of the engine.
  virtual Result<void> step(std::span<const Row> rows) = 0;
  // A launch whose logits nobody will look at. It may still be under way when this returns; what
  // goes wrong then is an error of a later call.
  virtual Result<void> step_ahead(std::span<const Row> rows) { return step(rows); }

  // `count` launches of one row: `first`, and from the second on the likeliest token of the launch
  // before, at the position after its own. The host need not see the tokens in between. After it
  // argmax(n) and check_logits(n) are about launch n, and nobody can ask for logits.
  virtual Result<void> chain(const Row& first, int64_t count) = 0;

  // Of the last launch.
  virtual int32_t argmax(int64_t row) const = 0;
  virtual Result<void> logits(int64_t row, std::span<float> out) const = 0;  // vocab entries
  // What a draft model reads of a row, `limits().features` numbers: the output of every tapped
  // layer, each padded with zeros to whole panels of 128.
  virtual Result<void> features(int64_t /*row*/, std::span<float> /*out*/) const {
    return input_error("this step has no taps");
  }
  // An error where a logit of the row is NaN or infinite: no token can be chosen from them.
  virtual Result<void> check_logits(int64_t row) const = 0;

  // Forgets the tokens of a slot from `position` on and frees their pages. Returns where the slot
  // goes on: at `position`, or at 0 where a recurrent state cannot be taken back so far.
  virtual int64_t truncate(int64_t slot, int64_t position) = 0;

  // Bytes of weights and state that one launch with one row at `position` reads, all cores
  // together.
  virtual int64_t bytes_per_step(int64_t position) const = 0;
};

}  // namespace gridless::decode
