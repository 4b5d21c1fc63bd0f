// The files beside an executable: what a runtime needs to load it, and what a person wants to know.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "gridless/base/check.h"
#include "gridless/base/sha256.h"
#include "gridless/tpu/compile_call.h"

namespace gridless::tpu {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kExecutable = "executable.bin";
constexpr std::string_view kProgram = "program.stablehlo.mlir";
constexpr std::string_view kBody = "body.mlir";

Json file_entry(std::string_view name, std::string_view bytes) {
  return {{"file", name}, {"bytes", bytes.size()}, {"sha256", sha256_hex(bytes)}};
}

Json operand_list(const std::vector<OperandSpec>& list) {
  Json out = Json::array();
  for (const OperandSpec& operand : list) {
    // Of one core, unpadded and row-major; the spec was validated before it was compiled.
    out.push_back({{"shape", operand.shape},
                   {"dtype", operand.dtype},
                   {"space", space_name(operand.space)},
                   {"bytes", byte_size(operand).value_or(0)}});
    if (!operand.device_layout.empty()) out.back()["layout"] = operand.device_layout;
  }
  return out;
}

Json manifest(const CompiledCall& call, std::string_view gridless_version) {
  const Compiled& compiled = *call.result.compiled;
  Json aliases = Json::array();
  for (const Alias& alias : call.spec.aliases) {
    aliases.push_back({{"result", alias.result}, {"operand", alias.operand}});
  }
  Json out = {{"format", 1},
              {"kernel", call.spec.kernel_name},
              {"slice", call.slice.name()},
              {"cores", call.spec.cores},
              {"device_ids", call.slice.core_order(call.spec.cores)},
              {"executable", file_entry(kExecutable, compiled.executable)},
              {"program", file_entry(kProgram, call.stablehlo)}};
  if (!call.body.empty()) {
    out["body"] = file_entry(kBody, call.body);
    out["operands"] = operand_list(call.spec.operands);
    out["results"] = operand_list(call.spec.results);
    out["aliases"] = aliases;
    out["layout"] = "row-major";
    out["sharding"] = "axis 0 over cores";
    out["has_communication"] = call.spec.has_communication;
    if (call.spec.collective_id) out["collective_id"] = *call.spec.collective_id;
    if (call.spec.vmem_limit_bytes) out["vmem_limit_bytes"] = *call.spec.vmem_limit_bytes;
  }
  out["code_bytes"] = compiled.code_bytes;
  out["memory"] = {{"arguments", compiled.memory.arguments},
                   {"results", compiled.memory.results},
                   {"aliased", compiled.memory.aliased},
                   {"temporary", compiled.memory.temporary}};
  out["versions"] = {{"gridless", gridless_version},
                     {"libtpu", call.libtpu_version},
                     {"libtpu_build", call.libtpu_build}};
  return out;
}

std::string operand_lines(std::string_view what, const std::vector<OperandSpec>& list) {
  std::string out;
  for (size_t i = 0; i < list.size(); ++i) {
    out += fmt::format("  {} {}: {} {} in {}\n", what, i, fmt::join(list[i].shape, "x"),
                       list[i].dtype, space_name(list[i].space));
  }
  return out;
}

std::string report(const CompiledCall& call) {
  const Compiled& compiled = *call.result.compiled;
  const MemoryStats& m = compiled.memory;
  std::string out = fmt::format(
      "kernel      {}\nslice       {}, {} of {} cores\nlibtpu      {}\n"
      "executable  {} bytes\ncode        {} bytes\n"
      "per core    arguments {} B, results {} B (in place {} B), temporary {} B\n",
      call.spec.kernel_name, call.slice.name(), call.spec.cores, call.slice.cores(),
      call.libtpu_version.empty() ? "version unknown" : call.libtpu_version,
      compiled.executable.size(), compiled.code_bytes, m.arguments, m.results, m.aliased,
      m.temporary);
  if (const auto& s = compiled.schedule) {
    out += fmt::format(
        "schedule    {} cycles with every loop counted once, {} of them with instructions\n"
        "vmem        {} bytes, {} of them spilled registers\n",
        s->cycles, s->bundles, s->dump.vmem.bytes, s->dump.vmem.spill_bytes);
    if (s->dump.estimated_cycles) {
      out += fmt::format("estimate    {} cycles, copies included (libtpu's own simulation)\n",
                         *s->dump.estimated_cycles);
    }
  }
  out += operand_lines("operand", call.spec.operands);
  out += operand_lines("result", call.spec.results);
  if (m.temporary > 0 && !call.body.empty()) {
    out +=
        call.spec.has_communication
            ? "note: temporary memory holds the results until the kernel is over, since peers may "
              "write to them\n"
            : "note: temporary memory means that XLA copies operands before or after the kernel\n";
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> output_files(const CompiledCall& call,
                                                std::string_view gridless_version) {
  GRIDLESS_CHECK(call.result.compiled.has_value(), "{} did not compile", call.spec.kernel_name);
  std::map<std::string, std::string> files;
  files[std::string(kExecutable)] = call.result.compiled->executable;
  files[std::string(kProgram)] = call.stablehlo;
  if (!call.body.empty()) files[std::string(kBody)] = call.body;
  if (const auto& schedule = call.result.compiled->schedule) {
    for (const auto& [name, text] : bundles::dump_files(schedule->dump)) {
      files["schedule/" + name] = text;
    }
  }
  files["manifest.json"] = manifest(call, gridless_version).dump(1) + "\n";
  files["report.txt"] = report(call);
  return files;
}

}  // namespace gridless::tpu
