// gridless inspect of a kernel: what its module holds and how it is called.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/common.h"
#include "apps/inspect.h"
#include "gridless/ir/bytecode.h"
#include "gridless/ir/read_program.h"
#include "gridless/ir/summary.h"
#include "gridless/ir/verifier.h"

namespace gridless::apps {
namespace {

nlohmann::json arg_list(const std::vector<ir::CallArg>& args) {
  nlohmann::json list = nlohmann::json::array();
  for (const ir::CallArg& a : args) list.push_back({{"name", a.name}, {"type", a.type.str()}});
  return list;
}

nlohmann::json facts(const std::string& path, const ir::Summary& s) {
  nlohmann::json args = nlohmann::json::array();
  for (const ir::Type t : s.args) args.push_back(t.str());
  return {{"path", path},
          {"kind", "kernel"},
          {"kernel", s.kernel},
          {"stable_mosaic_version", s.version},
          {"arguments", args},
          {"ops", s.ops},
          {"total_ops", s.total_ops},
          {"vmem_bytes", s.vmem_bytes},
          {"smem_bytes", s.smem_bytes},
          {"semaphores", s.semaphores},
          {"copies", s.copies},
          {"remote_copies", s.remote_copies},
          {"deepest_loop", s.deepest_loop},
          {"composites", s.composites},
          {"communicates", s.communicates}};
}

void print_words(const ir::Summary& s, const ir::Call* call) {
  fmt::print("kernel {}, {} ops, stable_mosaic {}\n", s.kernel, s.total_ops, s.version);
  for (size_t i = 0; i < s.args.size(); ++i) {
    std::string role;
    if (call && i < call->operands.size()) {
      role = call->operands[i].name;
    } else if (call && i < call->operands.size() + call->results.size()) {
      role = call->results[i - call->operands.size()].name;
    }
    fmt::print("  {:6} {}\n", role, s.args[i].str());
  }
  fmt::print("VMEM {} bytes, SMEM {} bytes, {} semaphores (arguments and allocations, unpadded)\n",
             s.vmem_bytes, s.smem_bytes, s.semaphores);
  fmt::print("{} copies, {} of them remote; loops nested {} deep\n", s.copies, s.remote_copies,
             s.deepest_loop);
  if (call) {
    fmt::print("called on {} core{}", call->cores, call->cores == 1 ? "" : "s");
    if (call->collective_id) fmt::print(", collective_id {}", *call->collective_id);
    fmt::print("\n");
    for (const auto& [result, operand] : call->aliases)
      fmt::print("result {} lives in operand {}\n", result, operand);
  }
  for (const auto& [name, count] : s.ops) fmt::print("{:6} {}\n", count, name);
}

}  // namespace

bool is_kernel_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".mlir" || extension == ".mlirbc") return true;
  std::ifstream in(path, std::ios::binary);
  std::string head(8, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  return ir::is_bytecode(head);
}

Result<void> inspect_kernel(const std::string& path, const InspectOptions& options) {
  // A body is worth looking at also where nobody says how it is called.
  auto program = ir::read_program(path);
  auto alone = program ? std::expected<ir::Module, Diagnostics>() : ir::read_module(path);
  if (!program && !alone) return input_error("{}", to_string(alone.error()));
  const ir::Module& module = program ? program->module : *alone;
  const ir::Call* call = program ? &program->call : nullptr;
  const ir::Summary summary = ir::summarise(module);
  const Diagnostics findings = ir::verify(module);
  report(findings);
  if (!options.json) {
    print_words(summary, call);
    return {};
  }
  nlohmann::json out = facts(path, summary);
  out["valid"] = !has_errors(findings);
  if (call) {
    out["call"] = {{"name", call->name},
                   {"operands", arg_list(call->operands)},
                   {"results", arg_list(call->results)},
                   {"aliases", call->aliases},
                   {"cores", call->cores},
                   {"has_communication", call->has_communication}};
    if (call->collective_id) out["call"]["collective_id"] = *call->collective_id;
  }
  print_json(out);
  return {};
}

}  // namespace gridless::apps
