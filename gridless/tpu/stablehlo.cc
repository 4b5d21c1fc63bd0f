#include "gridless/tpu/stablehlo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "gridless/base/base64.h"

namespace gridless::tpu {
namespace {

// MLIR string literal: quotes, backslashes and anything that does not print become \XX.
std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || u < 0x20 || u >= 0x7f) {
      out += fmt::format("\\{:02X}", u);
    } else {
      out += c;
    }
  }
  return out;
}

// "tensor<8x128xf32>", or the whole of `cores` such shards: "tensor<32x128xf32>".
std::string tensor(const OperandSpec& operand, int cores = 1) {
  std::string out = "tensor<";
  for (size_t i = 0; i < operand.shape.size(); ++i) {
    out += fmt::format("{}x", operand.shape[i] * (i == 0 ? cores : 1));
  }
  return out + operand.dtype + ">";
}

// Dimensions in row-major order, most minor first: "1, 0".
std::string minor_to_major(const OperandSpec& operand) {
  std::string out;
  for (size_t i = operand.shape.size(); i-- > 0;) out += fmt::format("{}{}", i, i ? ", " : "");
  return out;
}

// dense<[1, 0]> : tensor<2xindex>
std::string layout(const OperandSpec& operand) {
  const size_t rank = operand.shape.size();
  return rank == 1 ? "dense<0> : tensor<1xindex>"
                   : fmt::format("dense<[{}]> : tensor<{}xindex>", minor_to_major(operand), rank);
}

// Shardy: the leading axis over the cores, the others whole.
std::string sharding(const OperandSpec& operand) {
  std::string out = R"(<@mesh, [{"core"})";
  for (size_t i = 1; i < operand.shape.size(); ++i) out += ", {}";
  return out + "]>";
}

template <typename T>
std::string each(const std::vector<T>& list,
                 const std::function<std::string(const T&, size_t)>& f) {
  std::string out;
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + f(list[i], i);
  return out;
}

std::string types(const std::vector<OperandSpec>& list, int cores = 1) {
  return each<OperandSpec>(list, [&](const OperandSpec& o, size_t) { return tensor(o, cores); });
}

// One type bare, none or several in parentheses.
std::string result_types(const std::vector<OperandSpec>& list, int cores = 1) {
  return list.size() == 1 ? tensor(list[0], cores) : "(" + types(list, cores) + ")";
}

// The names of a statement's results: "%k" or "%k#0, %k#1".
std::string result_names(std::string_view name, size_t n) {
  if (n == 1) return std::string(name);
  std::string out;
  for (size_t i = 0; i < n; ++i) out += fmt::format("{}{}#{}", i ? ", " : "", name, i);
  return out;
}
std::string defined(std::string_view name, size_t n) {
  if (n == 0) return "";
  return n == 1 ? fmt::format("{} = ", name) : fmt::format("{}:{} = ", name, n);
}

// The call as the kernel sees it: without the results that it writes through operands.
struct KernelCall {
  explicit KernelCall(const CallSpec& spec) : numbers(kernel_results(spec)) {
    for (const int i : numbers) results.push_back(spec.results[i]);
    for (const Alias& alias : spec.aliases) {
      if (!alias.through_operand) aliases.push_back({position(alias.result), alias.operand});
    }
  }
  int position(int result) const {  // among the kernel's; the result is one of them
    return static_cast<int>(std::ranges::find(numbers, result) - numbers.begin());
  }

  std::vector<int> numbers;  // of `results` among the program's
  std::vector<OperandSpec> results;
  std::vector<Alias> aliases;
};

std::string aliases(const KernelCall& kernel) {
  return each<Alias>(kernel.aliases, [&](const Alias& alias, size_t) {
    const std::string index = kernel.results.size() == 1 ? "" : fmt::format("{}", alias.result);
    return fmt::format(
        "#stablehlo.output_operand_alias<output_tuple_indices = [{}], operand_index = {}, "
        "operand_tuple_indices = []>",
        index, alias.operand);
  });
}

// What the program returns: results of the call, and operands that the kernel wrote through.
std::string returned_names(const CallSpec& spec, std::string_view operand_prefix) {
  const KernelCall kernel(spec);
  return each<OperandSpec>(spec.results, [&](const OperandSpec&, size_t i) {
    for (const Alias& alias : spec.aliases) {
      if (alias.result == static_cast<int>(i) && alias.through_operand) {
        return fmt::format("{}{}", operand_prefix, alias.operand);
      }
    }
    return kernel.results.size() == 1
               ? "%call"
               : fmt::format("%call#{}", kernel.position(static_cast<int>(i)));
  });
}

std::string custom_call(const CallSpec& spec, std::string_view body, const std::string& arguments) {
  const KernelCall kernel(spec);
  const auto layouts = [](const std::vector<OperandSpec>& list) {
    return each<OperandSpec>(list, [](const OperandSpec& o, size_t) { return layout(o); });
  };
  std::string attributes =
      fmt::format("backend_config = \"{}\"", escape(backend_config(spec, body)));
  // Without it XLA may drop a call whose results nobody uses: one that only talks to other cores.
  if (spec.has_communication || kernel.results.empty()) attributes += ", has_side_effect = true";
  attributes += fmt::format(", kernel_name = \"{}\", operand_layouts = [{}]",
                            escape(spec.kernel_name), layouts(spec.operands));
  if (!kernel.aliases.empty())
    attributes += fmt::format(", output_operand_aliases = [{}]", aliases(kernel));
  attributes += fmt::format(", result_layouts = [{}]", layouts(kernel.results));
  // The location names the kernel in libtpu's reports and dump files.
  return fmt::format("{}stablehlo.custom_call @tpu_custom_call({}) {{{}}} : ({}) -> {} loc(\"{}\")",
                     defined("%call", kernel.results.size()), arguments, attributes,
                     types(spec.operands), result_types(kernel.results), escape(spec.kernel_name));
}

// The attributes of @main's argument or result. The layout is pinned to row-major, which is what
// the kernel needs: left alone, XLA stores narrow arrays transposed and copies them before the
// call.
std::string attributes(const CallSpec& spec, const OperandSpec& operand) {
  std::string out = fmt::format("mhlo.layout_mode = \"{{{}}}\"", minor_to_major(operand));
  if (spec.cores > 1) out += ", sdy.sharding = #sdy.sharding" + sharding(operand);
  return out;
}

std::string main_arguments(const CallSpec& spec) {
  return each<OperandSpec>(spec.operands, [&](const OperandSpec& operand, size_t i) {
    std::string donated;
    for (const Alias& alias : spec.aliases) {
      if (alias.operand != static_cast<int>(i)) continue;
      donated = fmt::format(", tf.aliasing_output = {} : i32", alias.result);
    }
    return fmt::format("%arg{}: {} {{{}{}}}", i, tensor(operand, spec.cores),
                       attributes(spec, operand), donated);
  });
}

std::string main_results(const CallSpec& spec) {
  return each<OperandSpec>(spec.results, [&](const OperandSpec& result, size_t) {
    return fmt::format("{} {{{}}}", tensor(result, spec.cores), attributes(spec, result));
  });
}

std::string argument_names(const CallSpec& spec, std::string_view prefix) {
  return each<OperandSpec>(
      spec.operands, [&](const OperandSpec&, size_t i) { return fmt::format("{}{}", prefix, i); });
}

// The program of one core.
std::string single(const CallSpec& spec, std::string_view body) {
  const size_t n = spec.results.size();
  std::string out = fmt::format("  func.func public @main({}) -> ({}) {{\n", main_arguments(spec),
                                main_results(spec));
  out += "    " + custom_call(spec, body, argument_names(spec, "%arg")) + "\n";
  out += n == 0 ? "    return\n"
                : fmt::format("    return {} : {}\n", returned_names(spec, "%arg"),
                              types(spec.results));
  return out + "  }\n";
}

// The program of several cores.
std::string manual(const CallSpec& spec, std::string_view body) {
  const size_t n = spec.results.size();
  const auto shardings = [](const std::vector<OperandSpec>& list) {
    return each<OperandSpec>(list, [](const OperandSpec& o, size_t) { return sharding(o); });
  };
  std::string out = fmt::format("  sdy.mesh @mesh = <[\"core\"={}]>\n", spec.cores);
  out += fmt::format("  func.func public @main({}) -> ({}) {{\n", main_arguments(spec),
                     main_results(spec));
  out += fmt::format(
      "    {}sdy.manual_computation({}) in_shardings=[{}] out_shardings=[{}] "
      "manual_axes={{\"core\"}} ({}) {{\n",
      defined("%all", n), argument_names(spec, "%arg"), shardings(spec.operands),
      shardings(spec.results), each<OperandSpec>(spec.operands, [](const OperandSpec& o, size_t i) {
        return fmt::format("%shard{}: {}", i, tensor(o));
      }));
  out += "      " + custom_call(spec, body, argument_names(spec, "%shard")) + "\n";
  out += n == 0 ? "      sdy.return\n"
                : fmt::format("      sdy.return {} : {}\n", returned_names(spec, "%shard"),
                              types(spec.results));
  out += fmt::format("    }} : ({}) -> {}\n", types(spec.operands, spec.cores),
                     result_types(spec.results, spec.cores));
  out += n == 0 ? "    return\n"
                : fmt::format("    return {} : {}\n", result_names("%all", n),
                              types(spec.results, spec.cores));
  return out + "  }\n";
}

// MLIR bytecode, which JAX always writes in the versioned form.
bool is_bytecode(std::string_view body) { return body.starts_with("ML\xefR"); }

}  // namespace

std::string backend_config(const CallSpec& spec, std::string_view body) {
  using Json = nlohmann::ordered_json;
  Json call;
  call["body"] = base64_encode(body);
  if (spec.has_communication) call["has_communication"] = true;
  if (spec.collective_id) call["collective_id"] = *spec.collective_id;
  if (is_bytecode(body) || body.find("\"stable_mosaic.") != std::string_view::npos) {
    call["serialization_format"] = 1;
  }
  call["needs_layout_passes"] = true;
  // Colours pin operands: 0 HBM, 1 VMEM. libtpu takes SMEM from the kernel's own signature.
  Json results = Json::array(), operands = Json::array();
  const auto color = [](Space space) { return space == Space::kHbm ? 0 : 1; };
  const auto pinned = [](Space space) { return space == Space::kHbm || space == Space::kVmem; };
  const KernelCall kernel(spec);
  for (size_t i = 0; i < kernel.results.size(); ++i) {
    if (!pinned(kernel.results[i].space)) continue;
    Json entry = {{"color", color(kernel.results[i].space)}};
    if (kernel.results.size() > 1) entry["shape_index"] = Json::array({i});
    results.push_back(entry);
  }
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    if (!pinned(spec.operands[i].space)) continue;
    operands.push_back({{"operand_index", i}, {"color", color(spec.operands[i].space)}});
  }
  if (!results.empty()) call["output_memory_space_colors"] = results;
  if (!operands.empty()) call["input_memory_space_colors"] = operands;
  if (!spec.bounds_checks) call["disable_bounds_checks"] = true;
  if (!spec.semaphore_checks) call["disable_semaphore_checks"] = true;
  Json config;
  config["custom_call_config"] = call;
  if (spec.vmem_limit_bytes) {
    config["scoped_memory_configs"] =
        Json::array({Json{{"memory_space", 1}, {"offset", 0}, {"size", *spec.vmem_limit_bytes}}});
  }
  return config.dump();
}

std::string gather_text(const OperandSpec& shard, int cores) {
  std::string replicated = "<@mesh, [";
  for (size_t i = 0; i < shard.shape.size(); ++i) replicated += i ? ", {}" : "{}";
  const std::string whole = tensor(shard, cores);
  return fmt::format(
      "module @gather attributes {{mhlo.num_partitions = {0} : i32, mhlo.num_replicas = 1 : i32}} "
      "{{\n"
      "  sdy.mesh @mesh = <[\"core\"={0}]>\n"
      "  func.func public @main(%arg0: {1} {{mhlo.layout_mode = \"{{{2}}}\", sdy.sharding = "
      "#sdy.sharding{3}}}) -> ({1} {{mhlo.layout_mode = \"{{{2}}}\", sdy.sharding = "
      "#sdy.sharding{4}]>}}) {{\n"
      "    return %arg0 : {1}\n"
      "  }}\n"
      "}}\n",
      cores, whole, minor_to_major(shard), sharding(shard), replicated);
}

Result<std::string> stablehlo_text(const CallSpec& spec, std::string_view body) {
  TRY_VOID(validate(spec));
  if (!is_bytecode(body) && body.find("module") == std::string_view::npos) {
    return input_error("kernel '{}': the body holds no MLIR module", spec.kernel_name);
  }
  return fmt::format(
      "module @\"{}\" attributes {{mhlo.num_partitions = {} : i32, mhlo.num_replicas = 1 : i32}} "
      "{{\n{}}}\n",
      escape(spec.kernel_name), spec.cores,
      spec.cores == 1 ? single(spec, body) : manual(spec, body));
}

}  // namespace gridless::tpu
