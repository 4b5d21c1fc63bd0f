// A model whose logits a function gives, with the checks that the launch contract asks for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "gridless/decode/draft.h"
#include "gridless/decode/step_model.h"

namespace gridless::decode {

using Ids = std::vector<int32_t>;

class FakeModel final : public StepModel {
 public:
  // The logits after a text that begins with the prompt.
  using Language = std::function<std::vector<float>(std::span<const int32_t>)>;
  FakeModel(StepLimits limits, Language language)
      : limits_(limits), language_(std::move(language)) {}

  StepLimits limits() const override { return limits_; }
  Result<void> step(std::span<const Row> rows) override {
    EXPECT_FALSE(rows.empty());
    EXPECT_LE(std::ssize(rows), limits_.max_rows);
    launches.push_back(std::ssize(rows));
    logits_.clear();
    for (const Row& row : rows) {
      EXPECT_EQ(row.slot, 0);
      // Without gaps; the next row of a launch follows the last one.
      EXPECT_EQ(row.position, std::ssize(held));
      EXPECT_LT(row.position, limits_.context);
      EXPECT_TRUE(row.token >= 0 && row.token < limits_.vocab);
      held.push_back(row.token);
      logits_.push_back(language_(held));
    }
    return {};
  }
  Result<void> chain(const Row& first, int64_t count) override {
    std::vector<std::vector<float>> found;
    Row row = first;
    for (int64_t n = 0; n < count; ++n) {
      if (auto ok = step({&row, 1}); !ok) return ok;
      row = {.token = argmax(0), .slot = row.slot, .position = row.position + 1};
      found.push_back(logits_[0]);
    }
    calls.push_back(count);
    logits_ = std::move(found);
    return {};
  }
  int32_t argmax(int64_t row) const override {
    const std::vector<float>& l = logits_[static_cast<size_t>(row)];
    return static_cast<int32_t>(std::ranges::max_element(l) - l.begin());
  }
  Result<void> logits(int64_t row, std::span<float> out) const override {
    std::ranges::copy(logits_[static_cast<size_t>(row)], out.begin());
    return {};
  }
  Result<void> check_logits(int64_t) const override { return {}; }
  int64_t truncate(int64_t slot, int64_t position) override {
    EXPECT_EQ(slot, 0);
    EXPECT_LE(position, std::ssize(held));
    held.resize(static_cast<size_t>(position));
    return position;
  }
  int64_t bytes_per_step(int64_t position) const override { return 1000 + position; }

  Ids held;                       // what slot 0 holds
  std::vector<int64_t> launches;  // rows of each
  std::vector<int64_t> calls;     // launches of each chain

 private:
  StepLimits limits_;
  Language language_;
  std::vector<std::vector<float>> logits_;
};

// Proposes what a function of the text so far says.
class FakeDraft final : public Draft {
 public:
  using Guess = std::function<Ids(const Ids& text, int64_t count)>;
  explicit FakeDraft(Guess guess) : guess_(std::move(guess)) {}
  std::string_view name() const override { return "fake"; }
  Result<void> start(std::span<const int32_t> prompt) override {
    text.assign(prompt.begin(), prompt.end());
    return {};
  }
  Result<Proposal> propose(int64_t count) override {
    EXPECT_GE(count, 1);
    Proposal out{.tokens = guess_(text, count), .odds = {}};
    out.odds.assign(out.tokens.size(), 0.5);
    return out;
  }
  Result<void> append(std::span<const int32_t> tokens) override {
    EXPECT_FALSE(tokens.empty());
    text.insert(text.end(), tokens.begin(), tokens.end());
    return {};
  }

  Ids text;

 private:
  Guess guess_;
};

}  // namespace gridless::decode
