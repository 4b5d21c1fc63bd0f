// What libtpu dumps about the code it generated for one kernel: the static schedule, its VMEM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gridless::tpu {

struct Schedule {
  // Lines of the post-register-allocation schedule: one is one cycle, stalls included, every loop
  // counted once. Not a run time: trip counts and DMA waits are not in it.
  int64_t cycles = 0;
  int64_t bundles = 0;      // of these, the ones with an instruction
  int64_t vmem_bytes = 0;   // allocated by the kernel: scratch, windows, spills
  int64_t spill_bytes = 0;  // of these, spilled registers
  // "packed-bundles-post-ra.txt" and "final_bundles.txt": the listings, with source locations.
  std::map<std::string, std::string> files;
};

// The flags that make libtpu write these files into `folder`, and only these (all passes would cost
// five to ten times the compilation). libtpu copies the folder's name into the executable, so it
// must not differ from run to run.
std::vector<std::string> schedule_flags(std::string_view folder);

// Reads what was dumped for the kernel. Files are named TIME-LABEL-NN-PASS.txt, with the call's
// name and a number as label. nullopt when this libtpu wrote nothing that is known.
std::optional<Schedule> read_schedule(const std::filesystem::path& folder,
                                      std::string_view kernel_name);

}  // namespace gridless::tpu
