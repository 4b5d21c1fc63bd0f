// gridless pack: a checkpoint as the cores take it, in files.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/commands.h"
#include "apps/common.h"
#include "apps/model_options.h"
#include "gridless/base/processors.h"
#include "gridless/chips/slice.h"
#include "gridless/decode/pack_images.h"
#include "gridless/weights/summary.h"

namespace gridless::apps {
namespace {

struct Arguments {
  std::string checkpoint, folder, slice, format;
  int cores = 0, threads = 0;
  int64_t groups = 0;
  bool verify = false, json = false;
};

Result<void> verify(const Arguments& a) {
  TRY(const weights::Images images, weights::Images::open(a.checkpoint));
  const weights::ImageManifest& m = images.manifest();
  Progress progress("reading images", m.bytes(), "B");
  uint64_t done = 0;
  for (size_t f = 0; f < m.files.size(); ++f) {
    TRY_VOID(images.verify(f));
    progress.update(done += m.files[f].bytes);
  }
  if (a.json) {
    print_json({{"path", a.checkpoint}, {"ok", true}, {"bytes", m.bytes()}});
  } else {
    fmt::print("{}: {} bytes in {} files are as they were packed\n", a.checkpoint, m.bytes(),
               m.files.size());
  }
  return {};
}

// Tensors that are in no image, by kind.
void print_left_out(const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::map<std::string, int> kinds;
  for (const std::string& name : names) ++kinds[weights::without_numbers(name)];
  fmt::print("{} tensors are in none of them:\n", names.size());
  for (const auto& [kind, count] : kinds)
    fmt::print("  {:>6} x {}\n", count, weights::printable(kind));
}

Result<void> pack(const Arguments& a) {
  if (a.verify) return verify(a);
  if (a.folder.empty()) return input_error("give a folder for the images: -o DIR");
  if (a.slice.empty() == (a.cores == 0)) return input_error("give one of --slice and --cores");
  ModelOptions names;
  names.model = a.checkpoint;
  TRY(const OpenModel model, open_model(names));
  decode::PackOptions options;
  options.cores = a.cores;
  if (!a.slice.empty()) {
    TRY(const chips::Slice slice, chips::parse_slice(a.slice));
    options.cores = slice.cores();
  }
  options.formats = model.native;
  TRY(const std::optional<weights::Format> format, parse_format(a.format, model.native));
  if (format) options.formats.layers = options.formats.head = *format;
  options.expert_groups = a.groups;
  options.threads = a.threads > 0 ? a.threads : physical_processors();
  std::optional<Progress> progress;
  const CatchInterrupt interrupt;
  TRY(const weights::ImageManifest m,
      decode::pack_images(*model.checkpoint, *model.model, options, a.folder,
                          [&](uint64_t done, uint64_t all) {
                            if (!progress) progress.emplace("packing weights", all, "B");
                            progress->update(done);
                            return !CatchInterrupt::flag();
                          }));
  progress.reset();
  if (a.json) {
    print_json({{"path", a.folder},
                {"cores", m.cores},
                {"formats", {{"layers", m.formats[0]}, {"head", m.formats[1]}}},
                {"files", m.files.size()},
                {"bytes", m.bytes()},
                {"left_out", m.left_out}});
    return {};
  }
  fmt::print("{}: {} files for {} cores, {} bytes; layers in {}, head in {}\n", a.folder,
             m.files.size(), m.cores, m.bytes(), m.formats[0], m.formats[1]);
  print_left_out(m.left_out);
  return {};
}

}  // namespace

void add_pack(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "pack", "Write a checkpoint as every core takes it, to be run or uploaded without packing");
  const auto a = std::make_shared<Arguments>();
  command
      ->add_option("CHECKPOINT", a->checkpoint,
                   "A checkpoint directory, a .gguf, a model's name; with --verify packed images")
      ->required();
  command->add_option("-o,--output", a->folder,
                      "Folder for the images; one that was begun with the same options is gone on "
                      "with");
  command->add_option("--slice", a->slice, "For all cores of a slice, such as tpu7x:2x2x1");
  command->add_option("--cores", a->cores, "For so many cores")->check(CLI::Range(1, 128));
  command->add_option("--format", a->format,
                      "Format of the matrices: bf16, q8 or q4; default: what the checkpoint holds");
  command
      ->add_option("--groups", a->groups,
                   "Groups of cores among which experts are divided; 0: chosen by the model")
      ->check(CLI::Range(0, 128));
  command
      ->add_option("--threads", a->threads,
                   "Files that are written at once; default: physical processors")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--verify", a->verify, "Read images and compare their checksums");
  command->add_flag("--json", a->json, "Print one JSON object");
  set_examples(command,
               {"gridless pack DIRECTORY -o images --slice tpu7x:2x2x1",
                "gridless pack smollm2 -o images --cores 2 && gridless run images --prompt Hi",
                "gridless pack images --verify"});
  command->callback([a, &exit_code] {
    const Result<void> done = pack(*a);
    exit_code = done ? kDone : report(done.error());
  });
}

}  // namespace gridless::apps
