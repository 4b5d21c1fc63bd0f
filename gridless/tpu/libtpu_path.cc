#include "gridless/tpu/libtpu_path.h"

#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

namespace gridless::tpu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = "libtpu.so";

// The file itself, or the usual places inside of a folder.
std::optional<fs::path> in_place(const fs::path& path) {
  std::error_code ignored;
  for (const fs::path& candidate :
       {path, path / kFile, path / "libtpu" / kFile, path / "libtpu" / "libtpu" / kFile}) {
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  return std::nullopt;
}

// libtpu-0.0.51.dist-info stands beside the package folder.
std::string wheel_version(const fs::path& library) {
  constexpr std::string_view kPrefix = "libtpu-", kSuffix = ".dist-info";
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(library.parent_path().parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    return name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  }
  return "";
}

// Folders that hold Python packages: the active environment's, the user's, the system's.
std::vector<fs::path> package_folders() {
  std::vector<fs::path> roots;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* value = getenv(name)) roots.push_back(fs::path(value) / "lib");
  }
  if (const char* home = getenv("HOME")) roots.push_back(fs::path(home) / ".local" / "lib");
  roots.insert(roots.end(), {"/usr/local/lib", "/usr/lib"});
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::path& root : roots) {
    for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      out.push_back(entry.path() / "site-packages");
      out.push_back(entry.path() / "dist-packages");
    }
  }
  return out;
}

}  // namespace

Result<Libtpu> find_libtpu(const std::string& option) {
  const auto found = [](const fs::path& path) { return Libtpu{path, wheel_version(path)}; };
  if (!option.empty()) {
    if (const auto path = in_place(option)) return found(*path);
    return input_error("--libtpu {}: there is no libtpu.so", option);
  }
  if (const char* value = getenv("GRIDLESS_LIBTPU"); value != nullptr && *value != '\0') {
    if (const auto path = in_place(value)) return found(*path);
    return input_error("GRIDLESS_LIBTPU={}: there is no libtpu.so", value);
  }
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (const auto path = in_place(self.parent_path().parent_path() / "wheels" / "libtpu")) {
    return found(*path);
  }
  for (const fs::path& folder : package_folders()) {
    if (const auto path = in_place(folder / "libtpu")) return found(*path);
  }
  return machine_error(
      "libtpu.so, the TPU compiler, is not here; run './dev build' to fetch it, or "
      "'pip download libtpu --no-deps', unzip the wheel, and name it with --libtpu or "
      "GRIDLESS_LIBTPU");
}

}  // namespace gridless::tpu
