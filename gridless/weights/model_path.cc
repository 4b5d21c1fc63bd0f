#include "gridless/weights/model_path.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

namespace gridless::weights {
namespace {

namespace fs = std::filesystem;

struct KnownModel {
  const char* name;
  const char* file;
};
constexpr std::array kKnown = {
    KnownModel{"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
};

std::vector<fs::path> search_path(const std::string& name) {
  std::vector<fs::path> out;
  if (const char* models = std::getenv("GRIDLESS_MODELS"); models && *models) {
    out.emplace_back(models);
    out.push_back(fs::path(models) / name);
  }
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (!code) out.push_back((program.parent_path().parent_path() / "models" / name));
  out.push_back(fs::path("build/models") / name);
  return out;
}

}  // namespace

std::vector<std::string> known_models() {
  std::vector<std::string> out;
  for (const KnownModel& m : kKnown) out.emplace_back(m.name);
  return out;
}

Result<std::string> resolve_model(const std::string& name_or_path) {
  std::error_code ignored;
  if (name_or_path.empty()) return input_error("no model given: name one, e.g. smollm2, or a path");
  const auto known = std::ranges::find(kKnown, name_or_path, &KnownModel::name);
  if (known == kKnown.end()) {
    if (fs::exists(name_or_path, ignored)) return name_or_path;
    if (name_or_path.find_first_of("./") != std::string::npos)
      return input_error("{}: no such file or directory", name_or_path);
    return input_error(
        "no model is called '{}': known names are {}; a path to a checkpoint (a directory or a "
        ".gguf) "
        "works as well",
        name_or_path, fmt::join(known_models(), ", "));
  }
  std::string tried;
  for (const fs::path& directory : search_path(known->name)) {
    const fs::path file = directory / known->file;
    if (fs::is_regular_file(file, ignored)) return file.string();
    tried += (tried.empty() ? "" : ", ") + directory.string();
  }
  return input_error(
      "the weights of '{}' ({}) are not there (looked in {}): run ./dev demo once, or set "
      "GRIDLESS_MODELS to the directory that holds the file",
      known->name, known->file, tried);
}

}  // namespace gridless::weights
