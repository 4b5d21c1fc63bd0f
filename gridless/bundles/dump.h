// Dump: what libtpu wrote about one kernel, as texts; where it comes from and how it is kept.
//
// libtpu dumps files named TIME-LABEL-NN-PASS.txt, several per kernel of the program (the wrapper
// around it and copies of operands are kernels too). `gridless compile` keeps those of the kernel
// that was asked for in the folder schedule/ of its output, under the names below.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless::bundles {

inline constexpr std::string_view kScheduleFile = "packed-bundles-post-ra.txt";
inline constexpr std::string_view kCodeFile = "final_bundles.txt";
inline constexpr std::string_view kCriticalPathFile = "critical-path.txt";
inline constexpr std::string_view kSummaryFile = "summary.json";

// VMEM that the kernel allocates, bytes.
struct VmemUse {
  int64_t bytes = 0;        // in all: scratch, windows of operands, spills
  int64_t spill_bytes = 0;  // of these, spilled vector registers
};

struct Dump {
  std::string kernel;         // libtpu's label, "llama_step.13"; the file's name when there is none
  std::string schedule;       // the listing with one line per cycle; "" when absent
  std::string code;           // the listing of the code; "" when absent
  std::string critical_path;  // libtpu's longest chain of each block; "" when absent
  VmemUse vmem;               // zeros when absent
  // What libtpu's simulation of the kernel says, copies included, if it was asked for.
  std::optional<int64_t> estimated_cycles;
};

// What libtpu dumped into `folder` for the kernel: the label is `kernel`, or `kernel` and a number.
// Without such a label, or with an empty `kernel`, the kernel with the longest schedule, but for
// the wrapper and copies. An error when there is none.
Result<Dump> collect_dump(const std::filesystem::path& folder, std::string_view kernel);

// What libtpu's simulation wrote there for the kernel of that label.
std::optional<int64_t> read_estimate(const std::filesystem::path& folder,
                                     const std::string& kernel);

// The files that keep a dump, by name; the opposite of read_dump.
std::map<std::string, std::string> dump_files(const Dump& dump);

// A folder that `gridless compile` wrote, its folder schedule/, a folder that libtpu dumped into
// (`kernel` as in collect_dump), or one listing.
Result<Dump> read_dump(const std::filesystem::path& path, std::string_view kernel = "");

}  // namespace gridless::bundles
