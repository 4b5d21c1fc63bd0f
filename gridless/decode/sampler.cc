#include "gridless/decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace gridless::decode {

namespace {

// A removed id: its exponential is 0.
constexpr double kRemoved = -std::numeric_limits<double>::infinity();

// Softmax; returns the probabilities of x.
std::vector<double> softmax(std::span<const double> x) {
  const double top = *std::ranges::max_element(x);
  std::vector<double> p(x.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += p[i] = std::exp(x[i] - top);
  for (double& v : p) v /= sum;
  return p;
}

void keep_min_p(std::vector<double>& x, double min_p) {
  // p < min_p * max p, in the logarithm.
  const double least = *std::ranges::max_element(x) + std::log(min_p);
  for (double& v : x) {
    if (v < least) v = kRemoved;
  }
}

void keep_top_k(std::vector<double>& x, int64_t k) {
  if (k >= static_cast<int64_t>(x.size())) return;
  std::vector<double> sorted = x;
  std::ranges::nth_element(sorted, sorted.begin() + k - 1, std::greater<>());
  const double least = sorted[static_cast<size_t>(k - 1)];
  for (double& v : x) {
    if (v < least) v = kRemoved;
  }
}

void keep_top_p(std::vector<double>& x, double top_p) {
  const std::vector<double> p = softmax(x);
  std::vector<size_t> order;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != kRemoved) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return x[a] < x[b]; });
  double sum = 0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    sum += p[order[i]];
    if (sum > 1 - top_p) return;
    x[order[i]] = kRemoved;
  }
}

}  // namespace

Result<void> SamplerOptions::check() const {
  if (!(temperature >= 0) || !std::isfinite(temperature))
    return input_error("temperature {}: give 0 (greedy) or more", temperature);
  if (!(top_p > 0 && top_p <= 1)) return input_error("top-p {}: give more than 0, up to 1", top_p);
  if (top_k < 0) return input_error("top-k {}: give a count, or 0 for all", top_k);
  if (!(min_p >= 0 && min_p <= 1)) return input_error("min-p {}: give 0 to 1", min_p);
  if (!(repetition_penalty > 0) || !std::isfinite(repetition_penalty))
    return input_error("repetition penalty {}: give more than 0", repetition_penalty);
  return {};
}

bool SamplerOptions::penalises() const {
  return repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0 ||
         !logit_bias.empty();
}

std::vector<double> Sampler::penalised(std::span<const float> logits,
                                       std::span<const int32_t> prompt,
                                       std::span<const int32_t> output) const {
  std::vector<double> x(logits.begin(), logits.end());
  for (const auto& [id, bias] : options_.logit_bias) x[static_cast<size_t>(id)] += bias;
  std::map<int32_t, int64_t> counts;
  for (const int32_t id : output) ++counts[id];
  std::set<int32_t> seen(prompt.begin(), prompt.end());
  for (const auto& [id, count] : counts) seen.insert(id);
  for (const int32_t id : seen) {
    double& v = x[static_cast<size_t>(id)];
    v = v > 0 ? v / options_.repetition_penalty : v * options_.repetition_penalty;
  }
  for (const auto& [id, count] : counts) {
    x[static_cast<size_t>(id)] -=
        options_.frequency_penalty * static_cast<double>(count) + options_.presence_penalty;
  }
  return x;
}

std::vector<double> Sampler::probabilities(std::span<const float> logits,
                                           std::span<const int32_t> prompt,
                                           std::span<const int32_t> output) const {
  std::vector<double> x = options_.penalises() ? penalised(logits, prompt, output)
                                               : std::vector<double>(logits.begin(), logits.end());
  if (options_.temperature == 0) {
    std::vector<double> p(x.size(), 0.0);
    p[static_cast<size_t>(std::ranges::max_element(x) - x.begin())] = 1;  // the first of equals
    return p;
  }
  for (double& v : x) v /= options_.temperature;
  if (options_.min_p > 0) keep_min_p(x, options_.min_p);
  if (options_.top_k > 0) keep_top_k(x, options_.top_k);
  if (options_.top_p < 1) keep_top_p(x, options_.top_p);
  return softmax(x);
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const int32_t> prompt,
                        std::span<const int32_t> output) {
  // 53 bits, so that u is exact and below 1; the standard's distributions differ between libraries.
  const double u = static_cast<double>(random_() >> 11) * 0x1p-53;
  return pick(probabilities(logits, prompt, output), u);
}

int32_t Sampler::pick(std::span<const double> probabilities, double u) {
  double sum = 0;
  int32_t last = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] == 0) continue;
    last = static_cast<int32_t>(i);
    sum += probabilities[i];
    if (sum > u) break;  // else rounding left the sum a little short of 1: the last one it is
  }
  return last;
}

}  // namespace gridless::decode
