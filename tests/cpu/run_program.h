// Runs a program on the emulator and on the CPU engine with the same inputs and compares results.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "gridless/cpu/engine.h"
#include "gridless/emulate/emulator.h"

namespace gridless::cpu {

using Bytes = std::vector<std::byte>;
using PerCoreBytes = std::vector<std::vector<Bytes>>;  // [core][operand or result]

template <typename T>
Bytes bytes_of(const std::vector<T>& v) {
  Bytes out(v.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), v.data(), out.size());
  return out;
}
template <typename T>
std::vector<T> values_of(const Bytes& b) {
  std::vector<T> out(b.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), b.data(), b.size());
  return out;
}

// Memory of a call: operands as given, results zeroed, an aliased result in its operand's memory.
class CallMemory {
 public:
  CallMemory(const ir::Call& call, const PerCoreBytes& inputs) : call_(call), operands_(inputs) {
    results_.resize(inputs.size());
    memory_.resize(inputs.size());
    for (size_t c = 0; c < inputs.size(); ++c) {
      for (const ir::CallArg& r : call.results)
        results_[c].emplace_back(static_cast<size_t>(emulate::tensor_bytes(r)));
      for (Bytes& b : operands_[c]) memory_[c].operands.push_back(b);
      for (size_t r = 0; r < results_[c].size(); ++r) memory_[c].results.push_back(home(c, r));
    }
  }
  CallMemory(const CallMemory&) = delete;

  const std::vector<emulate::CoreMemory>& memory() const { return memory_; }
  PerCoreBytes results() {
    PerCoreBytes out(results_.size());
    for (size_t c = 0; c < results_.size(); ++c) {
      for (size_t r = 0; r < results_[c].size(); ++r) out[c].push_back(home(c, r));
    }
    return out;
  }
  // True when every operand that is not updated in place still holds what it was given.
  bool inputs_intact(const PerCoreBytes& inputs) const {
    for (size_t c = 0; c < inputs.size(); ++c) {
      for (size_t i = 0; i < inputs[c].size(); ++i) {
        if (!aliased(i) && operands_[c][i] != inputs[c][i]) return false;
      }
    }
    return true;
  }

 private:
  bool aliased(size_t operand) const {
    for (const auto& [r, o] : call_.aliases) {
      if (o == static_cast<int>(operand)) return true;
    }
    return false;
  }
  Bytes& home(size_t core, size_t result) {
    for (const auto& [r, o] : call_.aliases) {
      if (r == static_cast<int>(result)) return operands_[core][static_cast<size_t>(o)];
    }
    return results_[core][result];
  }

  const ir::Call& call_;
  PerCoreBytes operands_, results_;
  std::vector<emulate::CoreMemory> memory_;
};

// What a run gave: results, or diagnostics.
struct Ran {
  PerCoreBytes results;
  Diagnostics diagnostics;
  EngineStats stats;
};

inline Ran run_emulated(const ir::Program& p, const PerCoreBytes& inputs, int launches = 1) {
  auto emulator = emulate::Emulator::create(p.module, p.call);
  if (!emulator) return {.diagnostics = emulator.error()};
  CallMemory memory(p.call, inputs);
  for (int i = 0; i < launches; ++i) {
    const emulate::Report report = emulator->run(memory.memory());
    if (!report.finished || has_errors(report.diagnostics))
      return {.diagnostics = report.diagnostics};
  }
  return {.results = memory.results()};
}

inline Ran run_cpu(const ir::Program& p, const PerCoreBytes& inputs,
                   const EngineOptions& options = {}, int launches = 1) {
  CallMemory memory(p.call, inputs);
  auto engine = Engine::create(p, memory.memory(), options);
  if (!engine) return {.diagnostics = engine.error()};
  for (int i = 0; i < launches; ++i) {
    if (auto ok = (*engine)->run(); !ok) return {.diagnostics = ok.error()};
  }
  EXPECT_TRUE(memory.inputs_intact(inputs)) << "an operand was overwritten";
  return {.results = memory.results(), .stats = (*engine)->stats()};
}

inline testing::AssertionResult same_results(const Ran& expected, const Ran& actual) {
  if (!expected.diagnostics.empty())
    return testing::AssertionFailure() << "expected: " << to_string(expected.diagnostics);
  if (!actual.diagnostics.empty())
    return testing::AssertionFailure() << "actual: " << to_string(actual.diagnostics);
  for (size_t c = 0; c < expected.results.size(); ++c) {
    for (size_t r = 0; r < expected.results[c].size(); ++r) {
      const Bytes &e = expected.results[c][r], &a = actual.results[c][r];
      for (size_t i = 0; i < e.size(); ++i) {
        if (e[i] != a[i]) {
          return testing::AssertionFailure()
                 << "core " << c << ", result " << r << " differs at byte " << i;
        }
      }
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace gridless::cpu
