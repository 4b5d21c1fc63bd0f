// A folder below the system's temporary directory that is removed with its contents. Movable.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "gridless/base/error.h"

namespace gridless::tpu {

class ScratchFolder {
 public:
  static Result<ScratchFolder> make() {
    std::error_code error;
    std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
    if (error) temporary = "/tmp";
    std::string name = (temporary / "gridless-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return machine_error("cannot make a folder in {}: {}", temporary.string(), strerror(errno));
    }
    return ScratchFolder(name);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace gridless::tpu
