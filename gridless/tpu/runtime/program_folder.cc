#include "gridless/tpu/runtime/program_folder.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "gridless/base/json.h"
#include "gridless/base/mapped_file.h"
#include "gridless/base/sha256.h"
#include "gridless/tpu/pjrt_layouts.h"

namespace gridless::tpu {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

// The value of `key`, as `T`; an error names the key.
template <typename T>
Result<T> get(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || it == object.end()) return input_error("'{}' is missing", key);
  try {
    return it->get<T>();
  } catch (const Json::exception&) {
    return input_error("'{}' is not what it should be: {}", key, it->dump().substr(0, 60));
  }
}

// The file that entry `key` speaks of, with the bytes that it says.
Result<std::string> checked_file(const std::filesystem::path& folder, const Json& manifest,
                                 const char* key) {
  TRY(const Json entry, get<Json>(manifest, key));
  TRY(const std::string name, get<std::string>(entry, "file"));
  TRY(const uint64_t bytes, get<uint64_t>(entry, "bytes"));
  TRY(const std::string digest, get<std::string>(entry, "sha256"));
  if (name.find('/') != std::string::npos)
    return input_error("'{}': '{}' is not a file of this folder", key, name);
  TRY(std::string text, read_text_file((folder / name).string()));
  if (text.size() != bytes)
    return input_error("{} has {} bytes, the manifest says {}: copy the folder again", name,
                       text.size(), bytes);
  if (sha256_hex(text) != digest)
    return input_error("{} is damaged (its sha256 is not the manifest's): copy the folder again",
                       name);
  return text;
}

Result<Space> parse_space(const std::string& name) {
  for (const Space space : {Space::kAny, Space::kHbm, Space::kVmem, Space::kSmem})
    if (space_name(space) == name) return space;
  return input_error("'space' is '{}'", name);
}

Result<std::vector<OperandSpec>> operand_list(const Json& manifest, const char* key) {
  TRY(const Json list, get<Json>(manifest, key));
  std::vector<OperandSpec> out;
  for (const Json& entry : list) {
    OperandSpec operand;
    TRY(operand.shape, get<std::vector<int64_t>>(entry, "shape"));
    TRY(operand.dtype, get<std::string>(entry, "dtype"));
    TRY(const std::string space, get<std::string>(entry, "space"));
    TRY(operand.space, parse_space(space));
    if (entry.contains("layout")) {
      TRY(operand.device_layout, get<std::string>(entry, "layout"));
      TRY_VOID(DeviceLayout::parse(operand.device_layout));
    }
    TRY(const int64_t bytes, get<int64_t>(entry, "bytes"));
    TRY(const int64_t computed, byte_size(operand));
    if (bytes != computed)
      return input_error("{} {} has {} bytes, its shape says {}", key, out.size(), bytes, computed);
    out.push_back(std::move(operand));
  }
  return out;
}

Result<CallSpec> read_call(const Json& manifest) {
  CallSpec spec;
  TRY(spec.kernel_name, get<std::string>(manifest, "kernel"));
  TRY(spec.cores, get<int>(manifest, "cores"));
  TRY(spec.operands, operand_list(manifest, "operands"));
  TRY(spec.results, operand_list(manifest, "results"));
  TRY(const Json aliases, get<Json>(manifest, "aliases"));
  for (const Json& entry : aliases) {
    Alias alias;
    TRY(alias.result, get<int>(entry, "result"));
    TRY(alias.operand, get<int>(entry, "operand"));
    spec.aliases.push_back(alias);
  }
  TRY_VOID(validate(spec));
  for (const auto& [key, value] :
       {std::pair{"layout", "row-major"}, {"sharding", "axis 0 over cores"}}) {
    TRY(const std::string said, get<std::string>(manifest, key));
    if (said != value) return input_error("'{}' is '{}', known is '{}'", key, said, value);
  }
  return spec;
}

Result<std::vector<int>> read_devices(const Json& manifest, int cores, const chips::Slice& slice) {
  TRY(std::vector<int> ids, get<std::vector<int>>(manifest, "device_ids"));
  std::vector<int> sorted = ids;
  std::ranges::sort(sorted);
  const bool distinct = std::ranges::adjacent_find(sorted) == sorted.end();
  if (static_cast<int>(ids.size()) != cores || !distinct || sorted.front() < 0 ||
      sorted.back() >= slice.cores()) {
    return input_error("'device_ids' are not {} devices of {}", cores, slice.name());
  }
  return ids;
}

Result<ProgramFolder> read(const std::filesystem::path& path, const Json& manifest) {
  TRY(const int format, get<int>(manifest, "format"));
  if (format != kFormat) {
    return input_error("it has format {}, this program reads format {}: compile again", format,
                       kFormat);
  }
  ProgramFolder out{.path = path};
  if (!manifest.contains("body")) {
    return input_error(
        "it was made from a whole StableHLO program: only kernels of this program, as `gridless "
        "compile MODEL` makes them, can be run");
  }
  TRY(out.spec, read_call(manifest));
  TRY(const std::string slice, get<std::string>(manifest, "slice"));
  TRY(out.slice, chips::parse_slice(slice));
  TRY(out.device_ids, read_devices(manifest, out.spec.cores, out.slice));
  TRY(out.executable, checked_file(path, manifest, "executable"));
  TRY(const std::string body, checked_file(path, manifest, "body"));
  out.body_sha256 = sha256_hex(body);
  TRY(const Json versions, get<Json>(manifest, "versions"));
  TRY(out.libtpu_version, get<std::string>(versions, "libtpu"));
  TRY(out.libtpu_build, get<std::string>(versions, "libtpu_build"));
  return out;
}

// What tells builds apart: "Built on <date> (<number>) cl/<number>"; what stands before it names
// the chip, in other words with devices than without.
std::string_view build_lines(std::string_view version) {
  const size_t at = version.find("Built on");
  return at == std::string_view::npos ? version : version.substr(at);
}

std::string one_line(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, '\n', ' ');
  return out;
}

}  // namespace

Result<ProgramFolder> read_program_folder(const std::filesystem::path& path) {
  const std::string file = (path / "manifest.json").string();
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return input_error(
        "{}: there is no manifest.json: give a folder that `gridless compile -o` "
        "wrote",
        path.string());
  }
  TRY(const std::string text, read_text_file(file));
  TRY(const Json manifest, parse_json(text, file));
  auto out = read(path, manifest);
  if (!out) return std::unexpected(out.error().in(file));
  return out;
}

Result<void> check_build(const ProgramFolder& program, std::string_view version) {
  if (build_lines(version) == build_lines(program.libtpu_build)) return {};
  return input_error(
      "{} was compiled by '{}'{}, this is '{}': executables load only with their own build; "
      "compile again with this libtpu, or name the other one by --libtpu",
      program.path.string(), one_line(program.libtpu_build),
      program.libtpu_version.empty() ? "" : " (libtpu " + program.libtpu_version + ")",
      one_line(version));
}

}  // namespace gridless::tpu
