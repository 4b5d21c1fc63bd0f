#include "gridless/base/cpu_features.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace gridless {
namespace {

// The "flags" line of /proc/cpuinfo, with a blank on both sides: the kernel's view of the same
// facts.
std::string kernel_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags")) return line.substr(line.find(':') + 1) + " ";
  }
  return "";
}

bool has_all(const std::string& flags, const std::string& words) {
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    if (flags.find(" " + word + " ") == std::string::npos) return false;
  }
  return true;
}

TEST(CpuFeatures, DetectionAgreesWithTheKernel) {
  const std::string flags = kernel_flags();
  if (flags.empty()) GTEST_SKIP() << "no flags line in /proc/cpuinfo";
  const bool avx2 = has_all(flags, "avx avx2 fma f16c");
  const bool avx512 = avx2 && has_all(flags, "avx512f avx512bw avx512vl avx512dq");
  const bool vnni = avx512 && has_all(flags, "avx512_vnni avx512_bf16");
  const Isa expected = vnni     ? Isa::kAvx512Vnni
                       : avx512 ? Isa::kAvx512
                       : avx2   ? Isa::kAvx2
                                : Isa::kBaseline;
  EXPECT_EQ(detected_isa(), expected) << flags;
}

TEST(CpuFeatures, NamesReadBackAsTheLevel) {
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
    const Result<Isa> parsed = parse_isa(isa_name(isa));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, isa);
  }
}

TEST(CpuFeatures, UnknownNameListsTheKnownOnes) {
  const Result<Isa> parsed = parse_isa("sse5");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message,
            "unknown instruction set 'sse5'; use one of baseline, avx2, avx512, avx512vnni");
}

TEST(CpuFeatures, EnvironmentLowersTheLevelButCannotRaiseIt) {
  const char* before = std::getenv("GRIDLESS_ISA");
  const std::string restore = before == nullptr ? "" : before;
  ::setenv("GRIDLESS_ISA", "baseline", 1);
  EXPECT_EQ(requested_isa().value(), Isa::kBaseline);
  ::setenv("GRIDLESS_ISA", "avx512vnni", 1);
  EXPECT_EQ(requested_isa().has_value(), detected_isa() == Isa::kAvx512Vnni);
  ::setenv("GRIDLESS_ISA", "", 1);
  EXPECT_EQ(requested_isa().value(), detected_isa());
  ::setenv("GRIDLESS_ISA", restore.c_str(), 1);
}

}  // namespace
}  // namespace gridless
