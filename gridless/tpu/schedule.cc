#include "gridless/tpu/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace gridless::tpu {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kCycles = "packed-bundles-post-ra";
constexpr std::string_view kCode = "final_bundles";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The label of the kernel in "TIME-LABEL-NN-PASS.txt": `kernel`, or `kernel` and a number.
std::optional<std::string> kernel_label(std::string_view file, std::string_view kernel) {
  const size_t dash = file.find('-');
  if (dash == std::string_view::npos || !file.substr(dash + 1).starts_with(kernel)) {
    return std::nullopt;
  }
  size_t end = dash + 1 + kernel.size();
  if (end < file.size() && file[end] == '.') {
    do ++end;
    while (end < file.size() && std::isdigit(static_cast<unsigned char>(file[end])));
  }
  if (end >= file.size() || file[end] != '-') return std::nullopt;
  return std::string(file.substr(dash + 1, end - dash - 1));
}

int64_t number_after(std::string_view text, std::string_view words) {
  size_t at = text.find(words);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_not_of(" \t", at + words.size());
  if (at == std::string_view::npos) return 0;
  int64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

// The report is a page for people with its data as one JSON object in a script.
void read_vmem(std::string_view page, const std::string& label, Schedule& out) {
  constexpr std::string_view kData = "const DATA =";
  const size_t at = page.find(kData);
  const size_t end = page.find("\n};", at);
  if (at == std::string_view::npos || end == std::string_view::npos) return;
  const std::string_view text = page.substr(at + kData.size(), end + 2 - at - kData.size());
  const Json data = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {  // a report of another shape leaves the numbers at zero
    const Json& kernel = data.at("hlo_breakdowns").at(label);
    out.vmem_bytes = kernel.at("total_size").get<int64_t>();
    for (const Json& block : kernel.at("blocks")) {
      for (const Json& allocation : block.at("allocations")) {
        std::string tag = allocation.at("tag").get<std::string>();
        std::ranges::transform(tag, tag.begin(), [](unsigned char c) { return std::tolower(c); });
        if (tag == "spill") out.spill_bytes += allocation.at("size").get<int64_t>();
      }
    }
  } catch (const Json::exception&) {
    return;
  }
}

}  // namespace

std::vector<std::string> schedule_flags(std::string_view folder) {
  return {fmt::format("--xla_jf_dump_to={}", folder),
          "--xla_jf_dump_llo_text=true",
          "--xla_jf_dump_hlo_text=false",
          "--xla_jf_dump_llo_html=false",
          "--xla_jf_dump_llo_static_gaps=false",
          fmt::format("--xla_jf_dump_llo_pass_label_regex=.*({}|{}).*", kCode, kCycles),
          "--xla_mosaic_enable_llo_source_annotations=true"};
}

std::optional<Schedule> read_schedule(const fs::path& folder, std::string_view kernel_name) {
  Schedule out;
  std::string label, vmem_page;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("vmem_report.html")) vmem_page = read(entry.path());
    const auto found = kernel_label(name, kernel_name);
    if (!found) continue;
    label = *found;
    if (name.ends_with(fmt::format("schedule-analysis_{}.txt", kCycles))) {
      const std::string text = read(entry.path());
      out.cycles = number_after(text, "total scheduled bundles:");
      out.bundles = number_after(text, "non empty scheduled bundles:");
      continue;
    }
    for (const std::string_view pass : {kCycles, kCode}) {
      const std::string file = fmt::format("{}.txt", pass);
      // The number before the pass tells the listing from its analysis.
      if (!name.ends_with("-" + file)) continue;
      out.files[file] = read(entry.path());
    }
  }
  if (out.cycles == 0) return std::nullopt;
  read_vmem(vmem_page, label, out);
  return out;
}

}  // namespace gridless::tpu
