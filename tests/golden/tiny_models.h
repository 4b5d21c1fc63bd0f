// The golden models of tests/data/*_tiny: tiny random models with greedy continuations and logits
// from independent implementations (Llama: transformers in float32; Qwen3.8 and Kimi K3: numpy in
// float64; all also in numpy with bf16 roundings).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gridless/base/mapped_file.h"
#include "gridless/decode/runner.h"
#include "gridless/weights/safetensors.h"

namespace gridless::decode {

using Tokens = std::vector<int32_t>;
using Logits = std::vector<std::vector<float>>;  // [token][vocabulary]

struct GoldenSequence {
  Tokens prompt, greedy;
  Tokens fed() const {  // prompt and all generated tokens but the last
    Tokens out = prompt;
    out.insert(out.end(), greedy.begin(), greedy.end() - 1);
    return out;
  }
  Logits exact, bf16;  // without roundings, and with those of a bf16 engine
};

// Names of models are unique over the sets.
inline std::string model_path(const std::string& model) {
  for (const char* set : {"llama_tiny", "qwen38_tiny", "kimi_k3_tiny"}) {
    const std::string path = fmt::format("{}/{}/{}", GRIDLESS_TEST_DATA, set, model);
    if (std::filesystem::exists(path)) return path;
  }
  return model;
}

inline std::vector<GoldenSequence> golden_sequences(const std::string& model) {
  const auto json =
      nlohmann::json::parse(read_text_file(model_path(model) + "/golden.json").value());
  const std::string data = read_text_file(model_path(model) + "/golden.safetensors").value();
  const auto tensors =
      weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  const auto logits = [&](const std::string& name) {
    const weights::TensorView* t = tensors->find(name);
    Logits out;
    if (t == nullptr) return out;
    for (int64_t r = 0; r < t->rows(); ++r) {
      out.emplace_back(static_cast<size_t>(t->row_elements()));
      std::memcpy(out.back().data(), t->row(r).data(), t->row(r).size());
    }
    return out;
  };
  std::vector<GoldenSequence> out;
  for (const auto& s : json["sequences"]) {
    const std::string name = "s" + std::to_string(out.size());
    Logits exact = logits(name + ".f32.logits");
    if (exact.empty()) exact = logits(name + ".f64.logits");
    out.push_back({s["prompt"], s["greedy"], std::move(exact), logits(name + ".bf16.logits")});
  }
  return out;
}

inline std::unique_ptr<StepRunner> load(const std::string& model, const RunnerOptions& options) {
  const auto checkpoint = weights::Checkpoint::open(model_path(model));
  auto runner = StepRunner::load(*checkpoint, options);
  EXPECT_TRUE(runner) << runner.error().message;
  return std::move(*runner);
}

// One launch; the logits of its rows.
inline Logits step(StepRunner& runner, const std::vector<Row>& rows) {
  const auto ok = runner.step(rows);
  EXPECT_TRUE(ok) << ok.error().message;
  Logits out(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    out[r].resize(static_cast<size_t>(runner.vocab()));
    EXPECT_TRUE(runner.logits(static_cast<int64_t>(r), out[r]));
  }
  return out;
}

// Tokens of one sequence from position `from` on, `chunk` rows per launch.
inline Logits prefill(StepRunner& runner, int32_t slot, const Tokens& tokens, size_t chunk,
                      int32_t from = 0) {
  Logits out;
  for (size_t i = 0; i < tokens.size(); i += chunk) {
    std::vector<Row> rows;
    for (size_t j = i; j < std::min(tokens.size(), i + chunk); ++j)
      rows.push_back({tokens[j], slot, from + static_cast<int32_t>(j)});
    for (std::vector<float>& l : step(runner, rows)) out.push_back(std::move(l));
  }
  return out;
}

inline testing::AssertionResult same_bits(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << ", " << b.size();
  for (size_t t = 0; t < a.size(); ++t) {
    if (std::memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(float)) != 0)
      return testing::AssertionFailure() << "the logits of token " << t << " differ";
  }
  return testing::AssertionSuccess();
}

// 2.5 % rms and 25 % maximum of the golden logits' rms: bf16 activations over four layers are off
// by about 1 % rms (the float64 model with bf16 roundings, against the float32 one).
inline void expect_near(const Logits& golden, const Logits& actual) {
  ASSERT_EQ(golden.size(), actual.size());
  double square = 0, error = 0, largest = 0, count = 0;
  for (size_t t = 0; t < golden.size(); ++t) {
    for (size_t v = 0; v < golden[t].size(); ++v) {
      const double d = double{actual[t][v]} - double{golden[t][v]};
      square += double{golden[t][v]} * double{golden[t][v]};
      error += d * d;
      largest = std::max(largest, std::abs(d));
      ++count;
    }
  }
  const double rms = std::sqrt(square / count);
  EXPECT_LE(std::sqrt(error / count), 0.025 * rms);
  EXPECT_LE(largest, 0.25 * rms);
}

// Only the first `tokens` that are fed.
inline void shorten(GoldenSequence& s, size_t tokens) {
  const size_t n = std::min(s.fed().size(), tokens);
  s.prompt.resize(std::min(s.prompt.size(), n));
  s.greedy.resize(n + 1 - s.prompt.size());
  s.exact.resize(n);
  s.bf16.resize(n);
}

// Decodes greedily, all sequences in one launch per step as long as each lives; per sequence ids
// and logits.
struct Decoded {
  std::vector<Tokens> ids;
  std::vector<Logits> logits;
};
inline Decoded decode_together(StepRunner& runner, const std::vector<GoldenSequence>& sequences) {
  Decoded out{std::vector<Tokens>(sequences.size()), std::vector<Logits>(sequences.size())};
  for (int32_t position = 0;; ++position) {
    std::vector<Row> rows;
    for (size_t s = 0; s < sequences.size(); ++s) {
      const Tokens& prompt = sequences[s].prompt;
      const auto at = static_cast<size_t>(position);
      if (out.ids[s].size() == sequences[s].greedy.size()) continue;
      const int32_t token = at < prompt.size() ? prompt[at] : out.ids[s].back();
      rows.push_back({token, static_cast<int32_t>(s), position});
    }
    if (rows.empty()) return out;
    Logits logits = step(runner, rows);
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto s = static_cast<size_t>(rows[r].slot);
      const auto best = std::ranges::max_element(logits[r]) - logits[r].begin();
      EXPECT_EQ(runner.argmax(static_cast<int64_t>(r)), best);
      if (static_cast<size_t>(position) + 1 >= sequences[s].prompt.size())
        out.ids[s].push_back(static_cast<int32_t>(best));
      out.logits[s].push_back(std::move(logits[r]));
    }
  }
}

}  // namespace gridless::decode
