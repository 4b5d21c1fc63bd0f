#include "gridless/bundles/dump.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "gridless/base/json.h"
#include "gridless/base/mapped_file.h"

namespace gridless::bundles {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string read_or_empty(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  return read_text_file(path).value_or("");
}

struct DumpName {
  std::string label, pass;
};

// TIME-LABEL-NN-PASS.txt; labels may have dashes, passes too.
std::optional<DumpName> parse_name(std::string_view file) {
  const auto digits = [](std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
  };
  const size_t first = file.find('-');
  if (first == std::string_view::npos || !digits(file.substr(0, first))) return std::nullopt;
  for (size_t at = first + 1; (at = file.find('-', at)) != std::string_view::npos; ++at) {
    const size_t end = file.find('-', at + 1);
    if (end == std::string_view::npos) return std::nullopt;
    if (!digits(file.substr(at + 1, end - at - 1)) || at == first + 1) continue;
    return DumpName{std::string(file.substr(first + 1, at - first - 1)),
                    std::string(file.substr(end + 1))};
  }
  return std::nullopt;
}

bool is_named(std::string_view label, std::string_view kernel) {
  if (kernel.empty() || !label.starts_with(kernel)) return false;
  const std::string_view rest = label.substr(kernel.size());
  return rest.empty() ||
         (rest[0] == '.' &&
          std::ranges::all_of(rest.substr(1), [](unsigned char c) { return std::isdigit(c); }));
}

bool is_wrapper(std::string_view label) {
  return label == "TLP" || label.starts_with('<') || label == "copy" || label.starts_with("copy.");
}

// label -> pass -> file
using Index = std::map<std::string, std::map<std::string, fs::path>>;

Index index_dump(const fs::path& folder, fs::path& vmem_page) {
  Index out;
  std::error_code error;
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // of two compilations the later one wins
  for (const fs::path& path : paths) {
    const std::string name = path.filename().string();
    if (name.ends_with("vmem_report.html")) vmem_page = path;
    if (const auto parsed = parse_name(name)) out[parsed->label][parsed->pass] = path;
  }
  return out;
}

std::string choose_label(const Index& index, std::string_view kernel) {
  std::string best;
  uintmax_t best_size = 0;
  for (const auto& [label, passes] : index) {
    const auto schedule = passes.find(std::string(kScheduleFile));
    if (schedule == passes.end()) continue;
    if (is_named(label, kernel)) return label;
    std::error_code error;
    const uintmax_t size = fs::file_size(schedule->second, error);
    if (error || is_wrapper(label) || size <= best_size) continue;
    best = label;
    best_size = size;
  }
  return best;
}

// The report is a page for people with its data as one JSON object in a script. One of another
// shape leaves the numbers at zero.
VmemUse read_vmem_page(std::string_view page, const std::string& label) {
  constexpr std::string_view kData = "const DATA =";
  const size_t at = page.find(kData);
  const size_t end = page.find("\n};", at);
  if (at == std::string_view::npos || end == std::string_view::npos) return {};
  const std::string_view text = page.substr(at + kData.size(), end + 2 - at - kData.size());
  const auto data = parse_json(text, "vmem_report.html");
  VmemUse out;
  if (!data) return out;
  try {
    const Json& kernel = data->at("hlo_breakdowns").at(label);
    out.bytes = kernel.at("total_size").get<int64_t>();
    for (const Json& block : kernel.at("blocks")) {
      for (const Json& allocation : block.at("allocations")) {
        std::string tag = allocation.at("tag").get<std::string>();
        std::ranges::transform(tag, tag.begin(), [](unsigned char c) { return std::tolower(c); });
        if (tag == "spill") out.spill_bytes += allocation.at("size").get<int64_t>();
      }
    }
  } catch (const Json::exception&) {
    return {};
  }
  return out;
}

Result<void> read_summary(const fs::path& file, Dump& out) {
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  TRY(const std::string text, read_text_file(file));
  TRY(const Json data, parse_json(text, file.string()));
  try {
    out.kernel = data.at("kernel").get<std::string>();
    out.vmem.bytes = data.at("vmem_bytes").get<int64_t>();
    out.vmem.spill_bytes = data.at("vmem_spill_bytes").get<int64_t>();
    if (data.contains("estimated_cycles")) {
      out.estimated_cycles = data.at("estimated_cycles").get<int64_t>();
    }
  } catch (const Json::exception& wrong) {
    return input_error("{}: {}", file.string(), wrong.what());
  }
  return {};
}

// A single listing: the code is told from the schedule by its name.
Result<Dump> read_listing_file(const fs::path& path) {
  Dump out;
  out.kernel = path.filename().string();
  TRY(std::string text, read_text_file(path));
  (out.kernel.find("final_bundles") == std::string::npos ? out.schedule : out.code) =
      std::move(text);
  return out;
}

}  // namespace

Result<Dump> collect_dump(const fs::path& folder, std::string_view kernel) {
  fs::path vmem_page;
  Index index = index_dump(folder, vmem_page);
  Dump out;
  out.kernel = choose_label(index, kernel);
  if (out.kernel.empty()) {
    return input_error("{}: no schedule of a kernel (*-{})", folder.string(), kScheduleFile);
  }
  const auto& passes = index.at(out.kernel);
  const auto text = [&](std::string_view pass) {
    const auto at = passes.find(std::string(pass));
    return at == passes.end() ? std::string() : read_or_empty(at->second);
  };
  out.schedule = text(kScheduleFile);
  out.code = text(kCodeFile);
  out.critical_path = text(kCriticalPathFile);
  out.vmem = read_vmem_page(read_or_empty(vmem_page), out.kernel);
  out.estimated_cycles = read_estimate(folder, out.kernel);
  return out;
}

// In LABEL_TPU7x_static_llo_profile.textproto: "  estimated_cycles: 9543".
std::optional<int64_t> read_estimate(const fs::path& folder, const std::string& kernel) {
  constexpr std::string_view kKey = "estimated_cycles:";
  const std::string text = read_or_empty(folder / (kernel + "_TPU7x_static_llo_profile.textproto"));
  size_t at = text.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  at = text.find_first_not_of(' ', at + kKey.size());
  int64_t value = 0;
  if (at == std::string::npos ||
      std::from_chars(text.data() + at, text.data() + text.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

std::map<std::string, std::string> dump_files(const Dump& dump) {
  std::map<std::string, std::string> out;
  const auto keep = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) out[std::string(name)] = text;
  };
  keep(kScheduleFile, dump.schedule);
  keep(kCodeFile, dump.code);
  keep(kCriticalPathFile, dump.critical_path);
  nlohmann::ordered_json summary = {{"kernel", dump.kernel},
                                    {"vmem_bytes", dump.vmem.bytes},
                                    {"vmem_spill_bytes", dump.vmem.spill_bytes}};
  if (dump.estimated_cycles) summary["estimated_cycles"] = *dump.estimated_cycles;
  out[std::string(kSummaryFile)] = summary.dump(1) + "\n";
  return out;
}

Result<Dump> read_dump(const fs::path& path, std::string_view kernel) {
  std::error_code error;
  if (!fs::exists(path, error)) return input_error("{}: no such file or folder", path.string());
  if (!fs::is_directory(path, error)) return read_listing_file(path);
  const fs::path inner = path / "schedule";
  const fs::path folder = fs::is_directory(inner, error) ? inner : path;
  if (!fs::exists(folder / kScheduleFile, error) && !fs::exists(folder / kCodeFile, error)) {
    return collect_dump(folder, kernel);
  }
  Dump out;
  out.kernel = path.filename().string();
  out.schedule = read_or_empty(folder / kScheduleFile);
  out.code = read_or_empty(folder / kCodeFile);
  out.critical_path = read_or_empty(folder / kCriticalPathFile);
  TRY_VOID(read_summary(folder / kSummaryFile, out));
  return out;
}

}  // namespace gridless::bundles
