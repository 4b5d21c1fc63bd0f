#include "gridless/ir/call_json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "gridless/base/json.h"

namespace gridless::ir {
namespace {

using Json = nlohmann::json;

// The colours of XLA's memory spaces on TPU.
Result<Space> space_of_color(int64_t color) {
  switch (color) {
    case 0:
      return Space::kHbm;
    case 1:
      return Space::kVmem;
    case 2:
      return Space::kSemaphore;
    case 4:
      return Space::kSmem;
    default:
      return input_error("memory space color {} (known: 0 HBM, 1 VMEM, 2 semaphores, 4 SMEM)",
                         color);
  }
}

Result<void> pin(CallArg& arg, int64_t color) {
  TRY(const Space space, space_of_color(color));
  arg.pinned = space;
  arg.type = Type::memref(arg.type.shape(), arg.type.elem(), space);
  return {};
}

Result<CallArg> parse_arg(const Json& json, std::string name) {
  const auto dtype = json.at("dtype").get<std::string>();
  const auto elem = elem_from_spelling(dtype);
  if (!elem || is_semaphore(*elem)) {
    return input_error("unknown dtype '{}' (known: f32, bf16, i32, i8, f8E4M3FN, ...)", dtype);
  }
  const auto shape = json.at("shape").get<Shape>();
  CallArg arg{std::move(name), Type::memref(shape, *elem, Space::kAny)};
  if (json.contains("space")) {
    const auto spelled = json["space"].get<std::string>();
    const auto space = space_from_spelling(spelled);
    if (!space || (*space != Space::kAny && *space != Space::kHbm && *space != Space::kVmem &&
                   *space != Space::kSmem)) {
      return input_error("memory space '{}' (known: any, hbm, vmem, smem)", spelled);
    }
    arg.type = Type::memref(shape, *elem, *space);
    if (*space != Space::kAny) arg.pinned = space;
  } else if (json.contains("color") && !json["color"].is_null()) {
    TRY_VOID(pin(arg, json["color"].get<int64_t>()));
  }
  return arg;
}

Result<Call> read(const Json& json) {
  Call call;
  call.name = json.at("kernel_name").get<std::string>();
  for (const Json& operand : json.at("operands")) {
    TRY(CallArg arg, parse_arg(operand, fmt::format("in{}", call.operands.size())));
    call.operands.push_back(std::move(arg));
  }
  for (const Json& result : json.at("results")) {
    TRY(CallArg arg, parse_arg(result, fmt::format("out{}", call.results.size())));
    call.results.push_back(std::move(arg));
  }
  for (const Json& alias : json.value("aliases", Json::array())) {
    // `output` is a tuple index: [] for the only result, [k] for result k.
    const auto output = alias.at("output").get<std::vector<int>>();
    call.aliases.emplace_back(output.empty() ? 0 : output[0], alias.at("operand").get<int>());
  }
  call.cores = json.value("num_partitions", 1);
  TRY_VOID(read_backend_config(json.value("backend_config_without_body", Json::object()), call));
  TRY_VOID(validate(call));
  return call;
}

Result<void> check_shape(const CallArg& arg) {
  constexpr int64_t kMost = int64_t{1} << 40;  // no core holds more
  int64_t elements = 1;
  for (const int64_t n : arg.type.shape()) {
    if (n < 1 || n > kMost / elements) {
      return input_error("{}: shape {}: dimensions must be positive and their product at most 2^40",
                         arg.name, shape_str(arg.type.shape()));
    }
    elements *= n;
  }
  return {};
}

}  // namespace

Result<void> read_backend_config(const Json& config, Call& call) {
  const Json custom = config.value("custom_call_config", Json::object());
  call.has_communication = custom.value("has_communication", false);
  if (custom.contains("collective_id")) call.collective_id = custom["collective_id"].get<int>();
  call.bounds_checks = !custom.value("disable_bounds_checks", false);
  call.semaphore_checks = !custom.value("disable_semaphore_checks", false);
  for (const Json& c : custom.value("input_memory_space_colors", Json::array())) {
    const auto i = c.at("operand_index").get<size_t>();
    if (i >= call.operands.size()) return input_error("a memory space color of operand {}", i);
    TRY_VOID(pin(call.operands[i], c.at("color").get<int64_t>()));
  }
  for (const Json& c : custom.value("output_memory_space_colors", Json::array())) {
    const auto index = c.value("shape_index", std::vector<size_t>{});
    const size_t i = index.empty() ? 0 : index[0];
    if (i >= call.results.size()) return input_error("a memory space color of result {}", i);
    TRY_VOID(pin(call.results[i], c.at("color").get<int64_t>()));
  }
  for (const Json& scoped : config.value("scoped_memory_configs", Json::array())) {
    constexpr int kVmem = 1;
    if (scoped.value("memory_space", 0) == kVmem)
      call.vmem_limit_bytes = scoped.at("size").get<int64_t>();
  }
  return {};
}

Result<void> validate(const Call& call) {
  if (call.cores < 1)
    return input_error("the call has {} cores; it needs at least one", call.cores);
  for (const CallArg& arg : call.operands) TRY_VOID(check_shape(arg));
  for (const CallArg& arg : call.results) TRY_VOID(check_shape(arg));
  std::set<int> operands, results;
  for (const auto& [result, operand] : call.aliases) {
    if (operand < 0 || operand >= std::ssize(call.operands) || result < 0 ||
        result >= std::ssize(call.results)) {
      return input_error(
          "alias of result {} with operand {}: the call has {} results and {} operands", result,
          operand, call.results.size(), call.operands.size());
    }
    const Type a = call.operands[static_cast<size_t>(operand)].type;
    const Type b = call.results[static_cast<size_t>(result)].type;
    if (a.shape() != b.shape() || a.elem() != b.elem()) {
      return input_error("alias of result {} ({}) with operand {} ({}): they must be alike", result,
                         b.str(), operand, a.str());
    }
    if (!operands.insert(operand).second || !results.insert(result).second) {
      return input_error("alias of result {} with operand {}: one of them is aliased twice", result,
                         operand);
    }
  }
  return {};
}

Result<Call> parse_call_json(std::string_view text) {
  TRY(const Json json, parse_json(text, "call.json"));
  if (!json.is_object()) return input_error("call.json is not a JSON object");
  try {  // nlohmann reports missing keys and wrong kinds by exceptions; they end here
    return read(json);
  } catch (const Json::exception& error) {
    return input_error("call.json: {} (needed: kernel_name, operands, results)", error.what());
  }
}

}  // namespace gridless::ir
