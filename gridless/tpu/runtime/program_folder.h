// The folder that `gridless compile` wrote (docs/compile_output.md), read for running: everything
// in it that a run relies on is compared with the files it speaks of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/tpu/call_spec.h"

namespace gridless::tpu {

struct ProgramFolder {
  std::filesystem::path path;
  CallSpec spec;  // kernel name, operands, results, aliases and cores; the rest is compiled in
  chips::Slice slice;
  std::vector<int> device_ids;  // core c of the program runs on device_ids[c]
  std::string executable;       // for Executable::load
  std::string body_sha256;      // of the kernel's text
  std::string libtpu_version;   // of the wheel, "" when it was not known
  std::string libtpu_build;     // as the plugin describes itself
};

// Errors (all of the input): no such folder, a file that is missing or has other bytes than the
// manifest says, a manifest of another format or that contradicts itself, a program without a
// kernel of ours.
Result<ProgramFolder> read_program_folder(const std::filesystem::path& path);

// An error when the plugin, which says of itself `version`, is another build of libtpu than the
// program's: executables load only with their own.
Result<void> check_build(const ProgramFolder& program, std::string_view version);

}  // namespace gridless::tpu
