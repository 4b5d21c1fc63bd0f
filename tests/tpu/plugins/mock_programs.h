// What the mock plugin's programs compute. A program's text says which it is:
//   mock:increment   operands state (i32, donated), step (i32, 1 element); results state + step,
//                    and the sum of the new state (i32, 1 element) plus 1000 times the device's id
//   module @gather   result: the operand's bytes of all cores, one after the other
//   module @next_rows   operands a row table, first candidates and their ids; result: the table
//                    with the likeliest token of all cores in its active rows
//   a tpu_custom_call   the kernel, on the CPU engine: values as on a TPU, in its own time
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/cpu/engine.h"
#include "gridless/emulate/kernel.h"
#include "gridless/ir/jax_program.h"

namespace mock {

// The contents of a buffer; shared by its handle and by work under way.
struct Storage {
  explicit Storage(size_t size, std::shared_ptr<std::atomic<size_t>> used_bytes = nullptr)
      : bytes(size), used(std::move(used_bytes)) {}
  ~Storage() {
    if (used) *used -= bytes.size();
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::vector<std::byte> bytes;
  std::shared_ptr<std::atomic<size_t>> used;  // of the device, this buffer included
};

// One core of a launch. A result that lives in an operand is the same storage.
struct CoreData {
  int device = 0;
  std::vector<Storage*> operands, results;
};

class MockProgram {
 public:
  virtual ~MockProgram() = default;
  virtual size_t results() const = 0;
  virtual std::vector<std::pair<int, int>> donated() const { return {}; }  // result, operand
  virtual size_t result_bytes(size_t result, const CoreData& core, size_t cores) const = 0;
  virtual std::string run(std::span<CoreData> cores) = 0;  // "" or what went wrong
};

class Increment : public MockProgram {
 public:
  size_t results() const override { return 2; }
  std::vector<std::pair<int, int>> donated() const override { return {{0, 0}}; }
  size_t result_bytes(size_t, const CoreData&, size_t) const override { return 4; }
  std::string run(std::span<CoreData> cores) override {
    for (CoreData& core : cores) {
      std::vector<std::byte>& state = core.results[0]->bytes;
      std::vector<int32_t> values(state.size() / 4);
      memcpy(values.data(), state.data(), state.size());
      int32_t by = 0;
      memcpy(&by, core.operands[1]->bytes.data(), 4);
      for (int32_t& value : values) value += by;
      memcpy(state.data(), values.data(), state.size());
      const int32_t total = std::accumulate(values.begin(), values.end(), 1000 * core.device);
      memcpy(core.results[1]->bytes.data(), &total, 4);
    }
    return "";
  }
};

class Gather : public MockProgram {
 public:
  size_t results() const override { return 1; }
  size_t result_bytes(size_t, const CoreData& core, size_t cores) const override {
    return core.operands[0]->bytes.size() * cores;
  }
  std::string run(std::span<CoreData> cores) override {
    for (CoreData& to : cores) {
      auto at = to.results[0]->bytes.begin();
      for (const CoreData& from : cores) at = std::ranges::copy(from.operands[0]->bytes, at).out;
    }
    return "";
  }
};

class NextRows : public MockProgram {
 public:
  // "%shard = stablehlo.constant dense<256>"
  explicit NextRows(std::string_view text) {
    constexpr std::string_view kMark = "%shard = stablehlo.constant dense<";
    shard_ = std::atoi(text.data() + text.find(kMark) + kMark.size());
  }
  size_t results() const override { return 1; }
  size_t result_bytes(size_t, const CoreData& core, size_t) const override {
    return core.operands[0]->bytes.size();
  }
  std::string run(std::span<CoreData> cores) override {
    for (CoreData& to : cores) {
      to.results[0]->bytes = to.operands[0]->bytes;
      auto* table = reinterpret_cast<int32_t*>(to.results[0]->bytes.data());
      const size_t rows = to.results[0]->bytes.size() / 16;
      for (size_t r = 0; r < rows; ++r)
        if (table[3 * rows + r] != 0) table[r] = likeliest(cores, r);
    }
    return "";
  }

 private:
  int32_t likeliest(std::span<CoreData> cores, size_t row) const {
    int32_t best = 0;
    float most = 0;
    for (size_t c = 0; c < cores.size(); ++c) {
      float logit = 0;
      int32_t id = 0;
      memcpy(&logit, cores[c].operands[1]->bytes.data() + row * 512, 4);
      memcpy(&id, cores[c].operands[2]->bytes.data() + row * 512, 4);
      if (c > 0 && logit <= most) continue;
      most = logit;
      best = id + static_cast<int32_t>(c) * shard_;
    }
    return best;
  }

  int32_t shard_ = 0;
};

// A kernel of ours on the CPU engine.
class KernelProgram : public MockProgram {
 public:
  static std::unique_ptr<MockProgram> read(std::string_view text) {
    auto program = gridless::ir::read_jax_program(text, "program.stablehlo.mlir");
    if (!program) return nullptr;
    auto out = std::make_unique<KernelProgram>();
    out->program_ = std::move(*program);
    out->read_donations(text);
    return out;
  }

  size_t results() const override { return results_.size(); }
  std::vector<std::pair<int, int>> donated() const override { return donated_; }
  size_t result_bytes(size_t result, const CoreData&, size_t) const override {
    const int of_kernel = results_[result];
    return of_kernel < 0 ? 0 : bytes_of(program_.call.results[static_cast<size_t>(of_kernel)]);
  }

  std::string run(std::span<CoreData> cores) override {
    if (cores.size() != static_cast<size_t>(program_.call.cores)) return "a core is missing";
    if (!engine_ || moved(cores)) {
      if (std::string error = bind(cores); !error.empty()) return error;
    }
    for (size_t c = 0; c < cores.size(); ++c)
      for (auto& [k, copy] : small_[c]) copy = cores[c].operands[k]->bytes;
    if (auto ok = engine_->run(); !ok) return to_string(ok.error());
    for (size_t c = 0; c < cores.size(); ++c) {
      for (auto& [k, copy] : small_[c]) cores[c].operands[k]->bytes = copy;
      for (size_t r = 0; r < results_.size(); ++r)
        if (!is_donated(static_cast<int>(r))) cores[c].results[r]->bytes = out_[c][r];
    }
    return "";
  }

 private:
  // Operands smaller than this are copied with every launch: their storage changes every time.
  static constexpr size_t kSmall = 1 << 16;

  static size_t bytes_of(const gridless::ir::CallArg& arg) {
    return static_cast<size_t>(gridless::emulate::tensor_bytes(arg));
  }
  bool is_donated(int result) const {
    return std::ranges::any_of(donated_, [&](const auto& d) { return d.first == result; });
  }
  bool written_through(int result) const {
    for (const auto& [r, operand] : donated_) {
      if (r != result) continue;
      return std::ranges::none_of(program_.call.aliases,
                                  [&](const auto& alias) { return alias.second == operand; });
    }
    return false;
  }
  // "%arg7: tensor<..> {.., tf.aliasing_output = 0 : i32}". Results that are no results of the
  // kernel are operands that it writes through.
  void read_donations(std::string_view text) {
    constexpr std::string_view kMark = "tf.aliasing_output = ";
    for (size_t at = 0; (at = text.find(kMark, at)) != std::string_view::npos; ++at) {
      const size_t argument = text.rfind("%arg", at);
      donated_.emplace_back(std::atoi(text.data() + at + kMark.size()),
                            std::atoi(text.data() + argument + 4));
    }
    const auto& call = program_.call;
    int next = 0;
    const size_t count = call.results.size() + donated_.size() - call.aliases.size();
    for (size_t r = 0; r < count; ++r) {
      results_.push_back(written_through(static_cast<int>(r)) ? -1 : next++);
    }
  }
  bool moved(std::span<CoreData> cores) const {
    for (size_t c = 0; c < cores.size(); ++c)
      for (size_t k = 0; k < cores[c].operands.size(); ++k)
        if (!small_[c].contains(k) && cores[c].operands[k]->bytes.data() != bound_[c][k])
          return true;
    return false;
  }
  std::string bind(std::span<CoreData> cores) {
    const size_t n = cores.size();
    engine_.reset();
    small_.assign(n, {});
    bound_.assign(n, {});
    out_.assign(n, std::vector<std::vector<std::byte>>(results_.size()));
    memory_.assign(n, {});
    for (size_t c = 0; c < n; ++c) {
      std::vector<std::span<std::byte>> operands;
      for (size_t k = 0; k < cores[c].operands.size(); ++k) {
        std::vector<std::byte>& bytes = cores[c].operands[k]->bytes;
        if (bytes.size() != bytes_of(program_.call.operands[k])) return "an operand of wrong size";
        std::vector<std::byte>& home = bytes.size() < kSmall ? small_[c][k] = bytes : bytes;
        operands.emplace_back(home);
        bound_[c].push_back(bytes.data());
      }
      memory_[c].operands.assign(operands.begin(), operands.end());
      for (size_t r = 0; r < results_.size(); ++r) {
        if (results_[r] < 0) continue;
        out_[c][r].resize(result_bytes(r, cores[c], n));
        std::span<std::byte> home = out_[c][r];
        for (const auto& [result, operand] : donated_)
          if (result == static_cast<int>(r)) home = operands[static_cast<size_t>(operand)];
        memory_[c].results.push_back(home);
      }
    }
    auto engine = gridless::cpu::Engine::create(program_, memory_, {.threads = 1});
    if (!engine) return to_string(engine.error());
    engine_ = std::move(*engine);
    return "";
  }

  gridless::ir::Program program_;
  std::vector<std::pair<int, int>> donated_;
  std::vector<int> results_;  // of the program: the kernel's number, -1: none of its
  std::vector<std::map<size_t, std::vector<std::byte>>> small_;  // by core and operand
  std::vector<std::vector<std::byte*>> bound_;                   // where the others were
  std::vector<std::vector<std::vector<std::byte>>> out_;         // by core and result
  std::vector<gridless::emulate::CoreMemory> memory_;
  std::unique_ptr<gridless::cpu::Engine> engine_;
};

inline std::unique_ptr<MockProgram> make_program(std::string_view text) {
  if (text.find("mock:increment") != std::string_view::npos) return std::make_unique<Increment>();
  if (text.starts_with("module @gather")) return std::make_unique<Gather>();
  if (text.starts_with("module @next_rows")) return std::make_unique<NextRows>(text);
  if (gridless::ir::is_stablehlo(text)) return KernelProgram::read(text);
  return nullptr;
}

}  // namespace mock
