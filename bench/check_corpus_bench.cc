// Time of one check of each kernel of a corpus directory (module.mlir, call.json,
// data.safetensors), in process and without reading files: median and least of many.
//   check_corpus_bench DIR [REPEATS]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "gridless/base/mapped_file.h"
#include "gridless/emulate/check/check.h"
#include "gridless/ir/read_program.h"
#include "gridless/weights/safetensors.h"

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  using namespace gridless;  // NOLINT
  const fs::path dir = argc > 1 ? argv[1] : "tests/data/corpus";
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 21;
  std::vector<fs::path> kernels;
  for (const auto& entry : fs::directory_iterator(dir))
    if (fs::exists(entry.path() / "module.mlir")) kernels.push_back(entry.path());
  std::ranges::sort(kernels);
  fmt::print("{:<36} {:>8} {:>10} {:>10}\n", "kernel", "events", "median ms", "least ms");
  for (const fs::path& path : kernels) {
    const auto program = ir::read_program(path / "module.mlir");
    if (!program) continue;
    const ir::Call* call = &program->call;
    const std::string data = read_text_file(path / "data.safetensors").value();
    const auto tensors =
        weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    if (!tensors) continue;
    std::vector<std::span<const std::byte>> inputs;
    for (size_t k = 0; k < call->operands.size(); ++k) {
      const auto* t = tensors->find(fmt::format("in{}", k));
      if (!t) break;
      inputs.emplace_back(reinterpret_cast<const std::byte*>(t->stored.data()), t->stored.size());
    }
    std::vector<double> ms;
    int64_t events = 0;
    for (int r = 0; r < repeats; ++r) {
      const auto report = emulate::check(program->module, *call, call->cores, inputs);
      if (!report) break;
      ms.push_back(report->seconds * 1e3);
      events = report->events;
    }
    if (ms.empty()) continue;
    std::ranges::sort(ms);
    fmt::print("{:<36} {:>8} {:>10.3f} {:>10.3f}\n", path.filename().string(), events,
               ms[ms.size() / 2], ms[0]);
  }
  return 0;
}
