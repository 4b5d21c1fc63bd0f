// Predicted against compiled cycles of straight-line code: the kernels of the gallery, of a corpus
// folder, and steps of models, as the time model schedules them and as libtpu does.
//   region_cycles_bench [--libtpu PATH] [--corpus DIR] [--model NAME] [--cores N] [--least CYCLES]
//                       [--listings DIR]
//
// What is compared lies between two places where the core may wait, or a loop begins or ends: there
// both schedules are exact. Short branches in between belong to it. Where libtpu cut a kernel
// otherwise (it unrolls and merges), the kernel's code as a whole is compared instead, every loop
// once. --listings keeps the schedules, a file per kernel, to look at.
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

// Code between two joints: places where the core may wait, and edges of loops. A joint is known by
// its kind and its source line.
struct Piece {
  int cycles = 0;
  std::string where;
  bool vector = false;  // holds operations on vectors
  std::string joint;    // at its end; empty: the kernel's end
};

std::string line_of(const SourceLoc& where) {
  return where.known() ? fmt::format("{}:{}", where.file, where.line) : "";
}

// A loop's parents, itself first; -1 ends the list.
template <typename ParentOf>
std::vector<int> chain_of(int loop, const ParentOf& parent) {
  std::vector<int> out;
  for (; loop >= 0; loop = parent(loop)) out.push_back(loop);
  return out;
}

// The joints on the way from one loop to another: out of those that are left, into others.
template <typename ParentOf, typename LineOf>
void cross(std::vector<Piece>& pieces, int from, int to, const ParentOf& parent,
           const LineOf& line) {
  const std::vector<int> left = chain_of(from, parent), entered = chain_of(to, parent);
  const auto joint = [&](const char* kind, int loop) {
    pieces.back().joint = kind + line(loop);
    pieces.emplace_back();
  };
  for (const int l : left)
    if (std::ranges::find(entered, l) == entered.end()) joint("out of ", l);
  for (size_t k = entered.size(); k-- > 0;)
    if (std::ranges::find(left, entered[k]) == left.end()) joint("into ", entered[k]);
}

std::vector<Piece> compiled_pieces(const bundles::Analysis& a) {
  std::vector<Piece> out(1);
  int loop = -1;
  const auto& loops = a.structure.loops;
  const auto place = [&](int p) {
    return p < 0 ? "" : line_of(a.listing.places[static_cast<size_t>(p)]);
  };
  for (const bundles::Region& region : a.structure.regions) {
    cross(
        out, loop, region.loop, [&](int l) { return loops[static_cast<size_t>(l)].parent; },
        [&](int l) { return place(loops[static_cast<size_t>(l)].place); });
    loop = region.loop;
    out.back().cycles += region.cycles();
    if (region.ends != bundles::Region::End::kWait) continue;
    const bundles::Bundle& last = a.listing.bundles[static_cast<size_t>(region.end - 1)];
    for (int i = last.first; i < last.last; ++i) {
      const bundles::Instruction& in = a.listing.instructions[static_cast<size_t>(i)];
      if (in.unit == bundles::Unit::kSync && !in.places.empty())
        out.back().joint = "wait " + place(in.places[0]);
    }
    out.emplace_back();
  }
  return out;
}

std::vector<Piece> predicted_pieces(const time::TimedKernel& kernel) {
  std::vector<Piece> out(1);
  int loop = -1;
  const auto& loops = kernel.kernel().body.loops;
  const time::Regions& regions = kernel.regions();
  for (const time::Region& region : regions.regions) {
    cross(
        out, loop, region.loop, [&](int l) { return loops[static_cast<size_t>(l)].parent; },
        [&](int l) { return line_of(regions.loops[static_cast<size_t>(l)]); });
    loop = region.loop;
    Piece& piece = out.back();
    piece.cycles += region.cycles;
    if (piece.where.empty()) piece.where = line_of(region.first);
    piece.vector = piece.vector || region.vector;
    if (!region.waits) continue;
    piece.joint = "wait " + line_of(region.wait);
    out.emplace_back();
  }
  return out;
}

// Joints that both have, in order: the longest common subsequence. The compiler merges loops of one
// round, unrolls others and adds waits of its own; what lies between two common joints is compared
// as a whole.
std::vector<std::pair<Piece, Piece>> matched(const std::vector<Piece>& a,
                                             const std::vector<Piece>& b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<int>> best(n + 1, std::vector<int>(m + 1, 0));
  const auto same = [&](size_t i, size_t j) {
    return !a[i].joint.empty() && a[i].joint == b[j].joint;
  };
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      best[i][j] = same(i, j) ? 1 + best[i + 1][j + 1] : std::max(best[i + 1][j], best[i][j + 1]);
  std::vector<std::pair<Piece, Piece>> out(1);
  const auto add = [](Piece& sum, const Piece& p) {
    sum.cycles += p.cycles;
    sum.vector = sum.vector || p.vector;
    if (sum.where.empty()) sum.where = p.where;
  };
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && same(i, j) && best[i][j] == 1 + best[i + 1][j + 1]) {
      add(out.back().first, a[i++]);
      add(out.back().second, b[j++]);
      out.emplace_back();
    } else if (j >= m || (i < n && best[i + 1][j] >= best[i][j + 1])) {
      add(out.back().first, a[i++]);
    } else {
      add(out.back().second, b[j++]);
    }
  }
  return out;
}

// Operands that the kernel takes from anywhere are in HBM here: libtpu would put small ones into
// VMEM, and make loops of loads and stores of the kernel's copies.
void pin_to_hbm(ir::Program& program) {
  const auto& args = program.module.entry()->body().args;
  std::vector<ir::CallArg*> all;
  for (auto* list : {&program.call.operands, &program.call.results})
    for (ir::CallArg& a : *list) all.push_back(&a);
  for (size_t k = 0; k < all.size() && k < args.size(); ++k)
    if (args[k]->type.is_memref() && args[k]->type.space() == ir::Space::kAny)
      all[k]->pinned = ir::Space::kHbm;
}

class Comparison {
 public:
  Comparison(tpu::Compiler& compiler, int least, std::string listings)
      : compiler_(compiler), least_(least), listings_(std::move(listings)) {}

  void kernel(const std::string& name, ir::Program program, const chips::Slice& slice) {
    const auto timed = time::TimedKernel::create(program.module, program.call);
    if (!timed) return skip(name, to_string(timed.error()));
    // The pipeline that libtpu makes around the body of a grid is not in the body.
    if (!timed->kernel().grid.empty()) return skip(name, "a grid");
    pin_to_hbm(program);
    const auto call = tpu::compile_kernel(compiler_, std::move(program), slice);
    if (!call || !call->result.compiled || !call->result.compiled->schedule)
      return skip(name, call ? "libtpu made no schedule" : call.error().message);
    const std::string& schedule = call->result.compiled->schedule->dump.schedule;
    if (!listings_.empty()) {
      const auto kept = write_file(listings_ + "/" + name + ".txt", std::string_view(schedule));
      if (!kept) return skip(name, kept.error().message);
    }
    auto listing = bundles::parse_listing(schedule);
    if (!listing) return skip(name, listing.error().message);
    const bundles::Analysis analysis = bundles::analyse(std::move(*listing));
    const auto pairs = matched(predicted_pieces(*timed), compiled_pieces(analysis));
    int said = 0, is = 0;
    for (const auto& [predicted, compiled] : pairs) {
      said += predicted.cycles, is += compiled.cycles;
      if (compiled.cycles >= least_)
        row(name + " " + predicted.where, predicted.cycles, compiled.cycles, predicted.vector);
    }
    totals_.push_back(std::abs(static_cast<double>(said) / is - 1));
    fmt::print("{:<66} {:<6} {:>8} {:>8} {:>+7.1f}%\n", name, "whole", said, is,
               100.0 * said / is - 100);
  }

  void skip(const std::string& name, const std::string& why) {
    fmt::print("{:<58} skipped: {}\n", name, why.substr(0, 90));
  }

  void summary() {
    if (totals_.empty()) return;
    std::ranges::sort(totals_);
    fmt::print("{} kernels, all code once: median error {:.1f} %, worst {:.1f} %\n", totals_.size(),
               100 * totals_[totals_.size() / 2], 100 * totals_.back());
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
  std::string listings_;                       // folder; empty: they are not kept
  std::array<std::vector<double>, 2> errors_;  // of scalars alone, with vectors
  std::vector<double> totals_;                 // of kernels
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
  step.formats.layers = *weights::format_from_spelling(found->layer_format);
  step.formats.head = *weights::format_from_spelling(found->head_format);
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
  std::string libtpu_path, corpus_folder = "tests/data/corpus", model_name, listings;
  int cores = 1, least = 20;
  for (int k = 1; k + 1 < argc; k += 2) {
    const std::string key = argv[k];
    if (key == "--libtpu") libtpu_path = argv[k + 1];
    if (key == "--corpus") corpus_folder = argv[k + 1];
    if (key == "--model") model_name = argv[k + 1];
    if (key == "--cores") cores = std::atoi(argv[k + 1]);
    if (key == "--listings") listings = argv[k + 1];
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
  Comparison comparison(compiler, least, listings);
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
