// Kernels that JAX wrote, run on the data that JAX computed for them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "gridless/base/mapped_file.h"
#include "gridless/emulate/buffer.h"
#include "gridless/emulate/codec.h"
#include "gridless/emulate/emulator.h"
#include "gridless/ir/call_json.h"
#include "gridless/ir/text.h"
#include "gridless/weights/safetensors.h"

namespace gridless::emulate {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Case {
  ir::Module module;
  ir::Call call;
  json meta;
  std::string data;
  weights::Safetensors tensors;

  explicit Case(const std::string& name) {
    const fs::path dir = fs::path(GRIDLESS_TEST_DATA) / "corpus" / name;
    auto parsed = ir::parse(read_text_file(dir / "module.mlir").value(), "module.mlir");
    if (!parsed) throw std::runtime_error(to_string(parsed.error()));
    module = std::move(*parsed);
    auto c = ir::parse_call_json(read_text_file(dir / "call.json").value());
    if (!c) throw std::runtime_error(c.error().message);
    call = std::move(*c);
    meta = json::parse(read_text_file(dir / "meta.json").value());
    data = read_text_file(dir / "data.safetensors").value();
    auto t =
        weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    if (!t) throw std::runtime_error(t.error().message);
    tensors = std::move(*t);
  }

  CallResult run() const {
    std::vector<std::span<const std::byte>> inputs;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      const auto* t = tensors.find(fmt::format("in{}", k));
      if (!t) throw std::runtime_error("no input");
      inputs.emplace_back(reinterpret_cast<const std::byte*>(t->stored.data()), t->stored.size());
    }
    auto result = run_call(module, call, call.cores, inputs);
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }

  // The largest excess over atol + rtol * |expected| of an output; NaN where expected is not
  // counts.
  double excess(const CallResult& got, size_t output) const {
    const Elem e = call.results[output].type.elem();
    const auto* expected = tensors.find(fmt::format("out{}", output));
    const int bits = storage_bits(e);
    const auto n = static_cast<int64_t>(got.outputs[output].size()) * 8 / bits;
    const double rtol = meta["tolerance"]["rtol"], atol = meta["tolerance"]["atol"];
    const auto value = [&](const std::byte* p, int64_t k) -> double {
      const uint32_t b = get_bits(p, k, bits);
      return ir::is_float(e) ? float_from_bits(e, b) : static_cast<double>(wrap(e, b));
    };
    double worst = -1;
    for (int64_t k = 0; k < n; ++k) {
      const double x = value(got.outputs[output].data(), k);
      const double y = value(reinterpret_cast<const std::byte*>(expected->stored.data()), k);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      const double over = std::fabs(x - y) - (atol + rtol * std::fabs(y));
      worst = std::isnan(over) ? INFINITY : std::max(worst, over);
    }
    return worst;
  }
};

std::vector<std::string> kinds(const Report& report) {
  std::vector<std::string> out;
  for (const Diagnostic& d : report.diagnostics) out.push_back(d.kind);
  return out;
}

std::vector<std::string> names(bool clean) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(GRIDLESS_TEST_DATA) / "corpus")) {
    if (!fs::exists(entry.path() / "meta.json")) continue;
    const json meta = json::parse(read_text_file(entry.path() / "meta.json").value());
    if ((meta["verdict"] == "clean") == clean) out.push_back(entry.path().filename());
  }
  std::ranges::sort(out);
  return out;
}

class Clean : public testing::TestWithParam<std::string> {};

TEST_P(Clean, GivesJaxsValuesWithoutFindings) {
  const Case c(GetParam());
  const CallResult got = c.run();
  EXPECT_THAT(got.report.diagnostics, testing::IsEmpty()) << to_string(got.report.diagnostics);
  ASSERT_TRUE(got.report.finished);
  std::vector<size_t> undefined = c.meta["undefined_outputs"];
  for (size_t k = 0; k < got.outputs.size(); ++k) {
    if (std::ranges::find(undefined, k) != undefined.end()) continue;
    EXPECT_LE(c.excess(got, k), 0) << "output " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Clean, testing::ValuesIn(names(true)),
                         [](const auto& info) { return info.param; });

// What one run shows of each seeded bug. A race shows only through a wrong value, and only where
// the emulator's own order of copies brings it out: `values` says whether the outputs come out
// right.
struct Seeded {
  std::string name;
  std::vector<std::string> kinds;
  bool values_right;
};

void PrintTo(const Seeded& s, std::ostream* out) { *out << s.name; }

class SeededBug : public testing::TestWithParam<Seeded> {};

TEST_P(SeededBug, ShowsAsExpected) {
  const Seeded& s = GetParam();
  const Case c(s.name);
  const CallResult got = c.run();
  EXPECT_THAT(kinds(got.report), testing::ElementsAreArray(s.kinds))
      << to_string(got.report.diagnostics);
  for (const Diagnostic& d : got.report.diagnostics) EXPECT_TRUE(d.where.known()) << d.str();
  if (!got.report.finished) return;
  bool right = true;
  for (size_t k = 0; k < got.outputs.size(); ++k) right &= c.excess(got, k) <= 0;
  EXPECT_EQ(right, s.values_right);
}

INSTANTIATE_TEST_SUITE_P(
    Corpus, SeededBug,
    testing::Values(
        Seeded{"q01_dropped_wait", {"dma_in_flight_at_end", "semaphore_not_zero"}, false},
        Seeded{"q02_wrong_semaphore", {}, false}, Seeded{"q03_slot_reused_too_early", {}, true},
        Seeded{"q04_wrong_peer", {"deadlock"}, true},
        Seeded{"q05_barrier_off_by_one", {"deadlock"}, true},
        Seeded{"q06_double_signal", {"semaphore_not_zero"}, false},
        Seeded{"q07_missing_barrier", {}, false},
        Seeded{"q08_oob_dynamic_slice", {"out_of_bounds"}, true},
        Seeded{"q09_uninitialised_accumulator", {}, false},
        Seeded{"q10_deadlock_two_devices", {"deadlock"}, true},
        Seeded{"q11_semaphore_left_nonzero", {"semaphore_not_zero"}, true},
        Seeded{"q12_race_for_some_inputs", {}, true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gridless::emulate
