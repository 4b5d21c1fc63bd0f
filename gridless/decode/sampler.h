// From logits to a token: bias, penalties, temperature, min-p, top-k, top-p, and a seeded draw.
//
// The order is vLLM's, and it matters: logit bias is added; the repetition penalty divides positive
// logits (multiplies negative ones) of every id in prompt or output; frequency * count and presence
// are taken from ids in the output; temperature 0 ends here with the largest logit (the lowest id
// of equals); logits are divided by the temperature; then ids are removed by min-p (less likely
// than min_p times the likeliest), top-k (below the k-th largest; its equals stay) and top-p (the
// smallest that together make up at most 1 - top_p; the largest stays), each seeing what the ones
// before left, renormalised. Arithmetic is double.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::decode {

struct SamplerOptions {
  double temperature = 0;         // 0: greedy
  double top_p = 1;               // (0, 1]; 1: off
  int64_t top_k = 0;              // 0: off
  double min_p = 0;               // [0, 1]; 0: off
  double repetition_penalty = 1;  // > 0; 1: off
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::vector<std::pair<int32_t, double>> logit_bias;  // ids within the vocabulary
  uint64_t seed = 0;  // the same seed draws the same tokens from the same logits

  // An error names the option that is out of its range.
  Result<void> check() const;
  bool penalises() const;
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options) : options_(std::move(options)), random_(options_.seed) {}

  // Whether the largest logit is always the answer, so that nobody needs to read the logits.
  bool is_argmax() const { return options_.temperature == 0 && !options_.penalises(); }

  // One number per logit; they sum to 1. `prompt` and `output` are the ids so far.
  std::vector<double> probabilities(std::span<const float> logits, std::span<const int32_t> prompt,
                                    std::span<const int32_t> output) const;
  // Draws from them; uses up one number of the random stream.
  int32_t sample(std::span<const float> logits, std::span<const int32_t> prompt,
                 std::span<const int32_t> output);

  // The first id, in id order, whose cumulative probability exceeds u in [0, 1).
  static int32_t pick(std::span<const double> probabilities, double u);

 private:
  std::vector<double> penalised(std::span<const float> logits, std::span<const int32_t> prompt,
                                std::span<const int32_t> output) const;

  SamplerOptions options_;
  std::mt19937_64 random_;
};

}  // namespace gridless::decode
