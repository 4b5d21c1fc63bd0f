#include "gridless/decode/tpu_programs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "gridless/base/sha256.h"
#include "gridless/blocks/step_rows.h"
#include "gridless/tpu/compile_kernel.h"

namespace gridless::decode {
namespace {

// The tables of the launch contract come first (docs/launch_contract.md).
constexpr size_t kRows = 0, kPages = 1, kTables = 3;

std::string describe(const tpu::OperandSpec& operand) {
  return fmt::format("{} {}", fmt::join(operand.shape, "x"), operand.dtype);
}

bool same(const tpu::OperandSpec& a, const tpu::OperandSpec& b) {
  return a.shape == b.shape && a.dtype == b.dtype;
}

Result<void> check_contract(const tpu::ProgramFolder& folder) {
  const auto& operands = folder.spec.operands;
  const bool step = operands.size() > kTables && !folder.spec.aliases.empty() &&
                    operands[kRows].shape.size() == 2 && operands[kPages].shape.size() == 2 &&
                    operands[kRows].shape[0] == blocks::kRowFields &&
                    operands[kRows].dtype == "i32" && operands[kPages].dtype == "i32";
  if (step) return {};
  return input_error("{}: '{}' is no step program: compile model:NAME or a checkpoint",
                     folder.path.string(), folder.spec.kernel_name);
}

// Where two programs of one step differ that must not; "" where they do not.
std::string difference(const tpu::ProgramFolder& a, const tpu::ProgramFolder& b) {
  if (a.slice != b.slice) return fmt::format("{} and {}", a.slice.name(), b.slice.name());
  if (a.device_ids != b.device_ids)
    return fmt::format("{} and {} cores", a.spec.cores, b.spec.cores);
  if (a.libtpu_build != b.libtpu_build) return "two builds of libtpu";
  if (a.spec.operands.size() != b.spec.operands.size()) return "steps of different models";
  for (size_t k = 0; k < a.spec.operands.size(); ++k) {
    const tpu::OperandSpec &x = a.spec.operands[k], &y = b.spec.operands[k];
    if (k == kRows || same(x, y)) continue;
    return fmt::format(
        "operand {}: {} and {} (give all the same context= and sequences=, where context and the "
        "largest rows together fill whole pages of 128 tokens)",
        k, describe(x), describe(y));
  }
  return "";
}

}  // namespace

Result<TpuPrograms> TpuPrograms::read(const std::vector<std::filesystem::path>& folders) {
  TpuPrograms out;
  for (const std::filesystem::path& path : folders) {
    TRY(tpu::ProgramFolder folder, tpu::read_program_folder(path));
    TRY_VOID(out.add(std::move(folder)));
  }
  if (out.by_rows_.empty()) return input_error("there is no compiled program");
  const auto& operands = out.any().spec.operands;
  out.slots_ = operands[kPages].shape[0];
  out.slot_pages_ = operands[kPages].shape[1];
  return out;
}

Result<void> TpuPrograms::add(tpu::ProgramFolder folder) {
  TRY_VOID(check_contract(folder));
  const int64_t rows = folder.spec.operands[kRows].shape[1];
  if (const auto it = by_rows_.find(rows); it != by_rows_.end()) {
    return input_error("{} and {} are both programs for {} rows: give one of each",
                       it->second.path.string(), folder.path.string(), rows);
  }
  if (!by_rows_.empty()) {
    if (const std::string what = difference(any(), folder); !what.empty()) {
      return input_error("{} and {} do not belong together: {}", any().path.string(),
                         folder.path.string(), what);
    }
  }
  by_rows_.emplace(rows, std::move(folder));
  return {};
}

std::vector<int64_t> TpuPrograms::row_counts() const {
  std::vector<int64_t> out;
  for (const auto& [rows, folder] : by_rows_) out.push_back(rows);
  return out;
}

Result<void> TpuPrograms::check(int64_t rows, ir::Program program) const {
  const tpu::ProgramFolder& folder = of(rows);
  std::vector<std::string> names;
  for (const ir::CallArg& arg : program.call.operands) names.push_back(arg.name);
  const tpu::KernelSource source = tpu::kernel_source(std::move(program));
  if (source.spec.operands.size() != folder.spec.operands.size()) {
    return input_error("{} was compiled for another model: it has {} operands, not {}",
                       folder.path.string(), folder.spec.operands.size(),
                       source.spec.operands.size());
  }
  for (size_t k = 0; k < source.spec.operands.size(); ++k) {
    const tpu::OperandSpec &theirs = folder.spec.operands[k], &ours = source.spec.operands[k];
    if (same(theirs, ours)) continue;
    return input_error(
        "{} was compiled for another model, format or number of cores: operand {} is {} there, "
        "and {} for these weights",
        folder.path.string(), names[k], describe(theirs), describe(ours));
  }
  if (sha256_hex(source.body) != folder.body_sha256) {
    return input_error(
        "{} was compiled from another step program than these weights need (another version of "
        "gridless, another format, or another model of the same shape): compile it again",
        folder.path.string());
  }
  return {};
}

}  // namespace gridless::decode
