#include "gridless/ir/read_program.h"

#include <fmt/format.h>

#include <fstream>

#include "gridless/ir/bytecode.h"
#include "gridless/ir/call_json.h"
#include "gridless/ir/jax_program.h"
#include "gridless/ir/text.h"

namespace gridless::ir {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;

std::unexpected<Diagnostics> fault(const std::filesystem::path& path, std::string message,
                                   std::string hint = "") {
  return std::unexpected(Diagnostics{{.kind = "invalid_ir",
                                      .message = std::move(message),
                                      .where = SourceLoc(path.string(), 0),
                                      .hint = std::move(hint)}});
}

std::expected<std::string, Diagnostics> read_bytes(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return fault(path, "a directory, not a kernel");
  std::ifstream in(path, std::ios::binary);
  if (!in) return fault(path, "cannot open the file");
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMostBytes) return fault(path, "the file is larger than 1 GiB");
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (bytes.empty())
    return fault(path, "the file is empty", "did the command that should have written it fail?");
  return bytes;
}

std::expected<Module, Diagnostics> read_body(std::string_view bytes, const std::string& file) {
  return is_bytecode(bytes) ? read_bytecode(bytes, file) : parse(bytes, file);
}

}  // namespace

std::expected<Program, Diagnostics> read_program(const std::filesystem::path& path,
                                                 const std::filesystem::path& call_file) {
  const auto bytes = read_bytes(path);
  if (!bytes) return std::unexpected(bytes.error());
  if (!is_bytecode(*bytes) && is_stablehlo(*bytes)) {
    if (!call_file.empty()) {
      return fault(path, "a whole StableHLO program says its own call: --call does not apply");
    }
    return read_jax_program(*bytes, path.string());
  }
  std::filesystem::path call_path = call_file;
  if (call_path.empty()) {
    call_path = path.parent_path() / "call.json";
    if (!std::filesystem::exists(call_path)) {
      return fault(path, "the body of a kernel, without its operands and results",
                   "name the file that has them: --call call.json");
    }
  }
  auto module = read_body(*bytes, path.string());
  if (!module) return std::unexpected(std::move(module.error()));
  const auto json = read_bytes(call_path);
  if (!json) return std::unexpected(json.error());
  auto call = parse_call_json(*json);
  if (!call) return fault(call_path, std::move(call.error().message));
  return Program{std::move(*module), std::move(*call)};
}

std::expected<Module, Diagnostics> read_module(const std::filesystem::path& path) {
  const auto bytes = read_bytes(path);
  if (!bytes) return std::unexpected(bytes.error());
  if (is_bytecode(*bytes) || !is_stablehlo(*bytes)) return read_body(*bytes, path.string());
  auto program = read_jax_program(*bytes, path.string());
  if (!program) return std::unexpected(std::move(program.error()));
  return std::move(program->module);
}

}  // namespace gridless::ir
