// Predicted against compiled cycles of straight-line code: the kernels of the gallery, of a corpus
// folder, and steps of models, as the time model schedules them and as libtpu does.
//   region_cycles_bench [--libtpu PATH] [--corpus DIR] [--model NAME] [--cores N] [--least CYCLES]
//
// What is compared lies between two places where the core may wait, or a loop begins or ends: there
// both schedules are exact. Short branches in between belong to it. Where libtpu cut a kernel
// otherwise (it unrolls and merges), the kernel's code as a whole is compared instead, every loop
// once.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "gridless/bundles/analysis.h"
#include "gridless/ir/read_program.h"
#include "gridless/models/llama/weights.h"
#include "gridless/models/registry.h"
#include "gridless/time/predict.h"
#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/worker.h"
#include "kernels/gallery.h"

namespace {

using namespace gridless;  // NOLINT

struct Piece {
  int cycles = 0;
  std::string where;
  bool vector = true;  // holds operations on vectors
};

// Between waits and edges of loops.
std::vector<Piece> compiled_pieces(const bundles::Analysis& a) {
  std::vector<Piece> out(1);
  int loop = -1;
  for (size_t r = 0; r < a.structure.regions.size(); ++r) {
    const bundles::Region& region = a.structure.regions[r];
    if (region.loop != loop) {
      out.emplace_back();
      loop = region.loop;
    }
    out.back().cycles += region.cycles();
    if (region.ends == bundles::Region::End::kWait) out.emplace_back();
  }
  return out;
}

std::vector<Piece> predicted_pieces(const time::Regions& regions) {
  const Piece none{.cycles = 0, .where = "", .vector = false};
  std::vector<Piece> out(1, none);
  int loop = -1;
  for (const time::Region& region : regions.regions) {
    if (region.loop != loop) {
      out.push_back(none);
      loop = region.loop;
    }
    out.back().cycles += region.cycles;
    if (out.back().where.empty() && region.first.known()) out.back().where = region.first.str();
    out.back().vector = out.back().vector || region.vector;
    if (region.waits) out.push_back(none);
  }
  return out;
}

class Comparison {
 public:
  Comparison(tpu::Compiler& compiler, int least) : compiler_(compiler), least_(least) {}

  void kernel(const std::string& name, ir::Program program, const chips::Slice& slice) {
    const auto timed = time::TimedKernel::create(program.module, program.call);
    if (!timed) return skip(name, to_string(timed.error()));
    // The pipeline that libtpu makes around the body of a grid is not in the body.
    if (!timed->kernel().grid.empty()) return skip(name, "a grid");
    const time::Regions regions = timed->regions();
    const auto call = tpu::compile_kernel(compiler_, std::move(program), slice);
    if (!call || !call->result.compiled || !call->result.compiled->schedule)
      return skip(name, call ? "libtpu made no schedule" : call.error().message);
    auto listing = bundles::parse_listing(call->result.compiled->schedule->dump.schedule);
    if (!listing) return skip(name, listing.error().message);
    const bundles::Analysis analysis = bundles::analyse(std::move(*listing));
    const auto keep = [&](std::vector<Piece> p) {
      std::erase_if(p, [](const Piece& x) { return x.cycles <= 2; });
      return p;
    };
    const std::vector<Piece> is = keep(compiled_pieces(analysis)),
                             said = keep(predicted_pieces(regions));
    const auto sum = [](const std::vector<Piece>& p) {
      int s = 0;
      for (const Piece& x : p) s += x.cycles;
      return s;
    };
    if (is.size() != said.size()) {
      row(name + fmt::format(" (whole: {} pieces, {})", is.size(), said.size()), sum(said), sum(is),
          std::ranges::any_of(said, &Piece::vector));
      return;
    }
    for (size_t k = 0; k < is.size(); ++k)
      if (is[k].cycles >= least_)
        row(name + " " + said[k].where, said[k].cycles, is[k].cycles, said[k].vector);
  }

  void skip(const std::string& name, const std::string& why) {
    fmt::print("{:<58} skipped: {}\n", name, why.substr(0, 90));
  }

  void summary() {
    for (const bool vector : {true, false}) {
      std::vector<double>& e = errors_[vector ? 1 : 0];
      if (e.empty()) continue;
      std::ranges::sort(e);
      fmt::print(
          "{} pieces of {} cycles or more {}: median error {:.1f} %, 90th {:.1f} %, worst "
          "{:.1f} %\n",
          e.size(), least_, vector ? "with vectors" : "of scalars alone", 100 * e[e.size() / 2],
          100 * e[e.size() * 9 / 10], 100 * e.back());
    }
  }

 private:
  void row(const std::string& name, int said, int is, bool vector) {
    const double error = static_cast<double>(said) / is - 1;
    errors_[vector ? 1 : 0].push_back(std::abs(error));
    fmt::print("{:<66} {:<6} {:>8} {:>8} {:>+7.1f}%\n", name, vector ? "vector" : "scalar", said,
               is, 100 * error);
    std::fflush(stdout);
  }

  tpu::Compiler& compiler_;
  int least_;
  std::array<std::vector<double>, 2> errors_;  // of scalars alone, with vectors
};

void gallery(Comparison& comparison) {
  for (const kernels::Lesson& lesson : kernels::lessons()) {
    const auto options = lesson.with();
    if (!options) continue;
    auto program = lesson.build(*options);
    if (!program) continue;
    const auto slice = chips::smallest_slice(program->call.cores);
    comparison.kernel(lesson.name, std::move(*program), *slice);
  }
}

void corpus(Comparison& comparison, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(entry.path() / "module.mlir")) paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    const std::string name = path.filename().string();
    if (name.starts_with("q")) continue;  // kernels with a mistake
    auto program = ir::read_program(path / "module.mlir");
    if (!program) {
      comparison.skip(name, to_string(program.error()));
      continue;
    }
    const auto slice = chips::smallest_slice(program->call.cores);
    comparison.kernel(name, std::move(*program), *slice);
  }
}

void model(Comparison& comparison, const std::string& name, int cores) {
  const models::RegisteredModel* found = models::find_model(name);
  if (!found) return comparison.skip(name, "no such model");
  const models::LlamaConfig config = models::llama_config(found->facts);
  models::StepShape step;
  step.rows = 1, step.slots = 1, step.slot_pages = 8, step.pages = 8;
  step.format = *weights::format_from_spelling(found->layer_format);
  step.head_format = *weights::format_from_spelling(found->head_format);
  const auto sharding = models::shard_llama(config, cores);
  if (!sharding) return comparison.skip(name, sharding.error().message);
  auto program =
      models::llama_step(config, *sharding, step, models::llama_stream(config, *sharding, step));
  if (!program) return comparison.skip(name, to_string(program.error()));
  const auto slice = chips::smallest_slice(cores);
  comparison.kernel(fmt::format("{} on {} cores", name, cores), std::move(*program), *slice);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "tpu-worker") == 0) return tpu::worker_main();
  std::string libtpu_path, corpus_folder = "tests/data/corpus", model_name;
  int cores = 1, least = 20;
  for (int k = 1; k + 1 < argc; k += 2) {
    const std::string key = argv[k];
    if (key == "--libtpu") libtpu_path = argv[k + 1];
    if (key == "--corpus") corpus_folder = argv[k + 1];
    if (key == "--model") model_name = argv[k + 1];
    if (key == "--cores") cores = std::atoi(argv[k + 1]);
    if (key == "--least") least = std::atoi(argv[k + 1]);
  }
  const auto libtpu = tpu::find_libtpu(libtpu_path);
  if (!libtpu) {
    fmt::print(stderr, "{}\n", libtpu.error().message);
    return 1;
  }
  tpu::CompilerOptions options{.libtpu = *libtpu};
  options.schedule = true;
  tpu::Compiler compiler(options);
  Comparison comparison(compiler, least);
  fmt::print("{:<66} {:<6} {:>8} {:>8} {:>8}\n", "code", "", "model", "libtpu", "error");
  if (model_name.empty()) {
    gallery(comparison);
    corpus(comparison, corpus_folder);
  } else {
    model(comparison, model_name, cores);
  }
  comparison.summary();
  return 0;
}
