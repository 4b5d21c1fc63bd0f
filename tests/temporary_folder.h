// A folder for one test, empty at first and gone with its contents after it. Tests run at the same
// time, so a fixed name would be shared.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gridless/base/check.h"

namespace gridless::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "gridless-test-XXXXXX").string();
    GRIDLESS_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make a folder like {}", name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace gridless::testing
