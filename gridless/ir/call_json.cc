#include "gridless/ir/call_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "gridless/base/json.h"
#include "gridless/base/json_place.h"

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

// A value of the file and where it stands: "operands[1].shape".
struct Field {
  const Json* json;
  std::string path;
  std::string_view source = {};  // the file's text; empty: not known, the JSON is part of another

  // For messages.
  std::string where() const {
    if (source.empty()) return path;
    return fmt::format("{}{}{}", json_place(source, path), path.empty() ? "" : ", ", path);
  }
  std::unexpected<Error> needs(std::string_view what) const {
    return input_error("{}: {} is needed, not {}", where(), what, json->dump().substr(0, 40));
  }
  // What is wrong with the value, with its place in front.
  Result<void> in_place(Result<void> result) const {
    if (!result) return std::unexpected(result.error().in(where()));
    return result;
  }
  std::string inside(std::string_view key) const {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }
};

// Absent: null.
Result<std::optional<Field>> optional_member(const Field& of, const char* key) {
  if (!of.json->is_object()) return of.needs("an object");
  const auto it = of.json->find(key);
  if (it == of.json->end() || it->is_null()) return std::nullopt;
  return Field{&*it, of.inside(key), of.source};
}
Result<Field> member(const Field& of, const char* key) {
  TRY(std::optional<Field> found, optional_member(of, key));
  if (!found) {
    if (of.source.empty()) return input_error("{} is missing", of.inside(key));
    return input_error("{}: {} is missing", json_place(of.source, of.path), of.inside(key));
  }
  return std::move(*found);
}

Result<std::vector<Field>> list(const Field& field) {
  if (!field.json->is_array()) return field.needs("a list");
  std::vector<Field> out;
  for (const Json& entry : *field.json)
    out.push_back({&entry, fmt::format("{}[{}]", field.path, out.size()), field.source});
  return out;
}
Result<std::vector<Field>> optional_list(const Field& of, const char* key) {
  TRY(const std::optional<Field> found, optional_member(of, key));
  if (!found) return std::vector<Field>();
  return list(*found);
}

Result<std::string> text(const Field& field) {
  if (!field.json->is_string()) return field.needs("a string");
  return field.json->get<std::string>();
}
Result<int64_t> integer(const Field& field) {
  const bool fits = field.json->is_number_integer() &&
                    !(field.json->is_number_unsigned() && field.json->get<uint64_t>() > INT64_MAX);
  if (!fits) return field.needs("an integer");
  return field.json->get<int64_t>();
}
// Counts and numbers of things.
Result<int> small_integer(const Field& field) {
  TRY(const int64_t value, integer(field));
  if (value < INT32_MIN || value > INT32_MAX) return field.needs("an integer of 32 bits");
  return static_cast<int>(value);
}
Result<Shape> integers(const Field& field) {
  TRY(const std::vector<Field> entries, list(field));
  Shape out;
  for (const Field& entry : entries) {
    TRY(const int64_t value, integer(entry));
    out.push_back(value);
  }
  return out;
}
Result<bool> flag(const Field& of, const char* key) {
  TRY(const std::optional<Field> found, optional_member(of, key));
  if (!found) return false;
  if (!found->json->is_boolean()) return found->needs("true or false");
  return found->json->get<bool>();
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

Result<void> check_cores(const Call& call) {
  if (call.cores >= 1 && call.cores <= kMostCores) return {};
  return input_error("the call is for {} devices; 1 to {} are supported", call.cores, kMostCores);
}

Result<void> check_aliases(const Call& call) {
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

Result<CallArg> parse_arg(const Field& json, std::string name) {
  TRY(const Field dtype_field, member(json, "dtype"));
  TRY(const std::string dtype, text(dtype_field));
  const auto elem = elem_from_spelling(dtype);
  if (!elem || is_semaphore(*elem)) {
    return input_error("{}: unknown dtype '{}' (known: f32, bf16, i32, i8, f8E4M3FN, ...)",
                       dtype_field.where(), dtype);
  }
  TRY(const Field shape_field, member(json, "shape"));
  TRY(const Shape shape, integers(shape_field));
  CallArg arg{std::move(name), Type::memref(shape, *elem, Space::kAny)};
  TRY(const std::optional<Field> space_field, optional_member(json, "space"));
  TRY(const std::optional<Field> color, optional_member(json, "color"));
  if (space_field) {
    TRY(const std::string spelled, text(*space_field));
    const auto space = space_from_spelling(spelled);
    if (!space || (*space != Space::kAny && *space != Space::kHbm && *space != Space::kVmem &&
                   *space != Space::kSmem)) {
      return input_error("{}: memory space '{}' (known: any, hbm, vmem, smem)",
                         space_field->where(), spelled);
    }
    arg.type = Type::memref(shape, *elem, *space);
    if (*space != Space::kAny) arg.pinned = space;
  } else if (color) {
    TRY(const int64_t number, integer(*color));
    TRY_VOID(color->in_place(pin(arg, number)));
  }
  TRY_VOID(shape_field.in_place(check_shape(arg)));
  return arg;
}

// The first entry of a tuple index: [] for the only result, [k] for result k.
Result<int64_t> first_index(const std::optional<Field>& field) {
  if (!field) return 0;
  TRY(const Shape index, integers(*field));
  return index.empty() ? 0 : index[0];
}

Result<void> read_args(const Field& json, const char* key, const char* prefix,
                       std::vector<CallArg>& out) {
  TRY(const Field field, member(json, key));
  TRY(const std::vector<Field> entries, list(field));
  for (const Field& entry : entries) {
    TRY(CallArg arg, parse_arg(entry, fmt::format("{}{}", prefix, out.size())));
    out.push_back(std::move(arg));
  }
  return {};
}

Result<void> read_custom_call(const Field& custom, Call& call) {
  TRY(call.has_communication, flag(custom, "has_communication"));
  TRY(const std::optional<Field> id, optional_member(custom, "collective_id"));
  if (id) {
    TRY(call.collective_id, small_integer(*id));
  }
  TRY(const bool no_device_barrier, flag(custom, "skip_device_barrier"));
  call.device_barrier = call.has_communication && !call.collective_id && !no_device_barrier;
  TRY(const bool no_bounds, flag(custom, "disable_bounds_checks"));
  TRY(const bool no_semaphores, flag(custom, "disable_semaphore_checks"));
  call.bounds_checks = !no_bounds;
  call.semaphore_checks = !no_semaphores;
  TRY(const std::vector<Field> inputs, optional_list(custom, "input_memory_space_colors"));
  for (const Field& entry : inputs) {
    TRY(const Field index, member(entry, "operand_index"));
    TRY(const int64_t i, integer(index));
    TRY(const Field field, member(entry, "color"));
    TRY(const int64_t color, integer(field));
    if (i < 0 || i >= std::ssize(call.operands))
      return input_error("{}: a memory space color of operand {}", index.where(), i);
    TRY_VOID(field.in_place(pin(call.operands[static_cast<size_t>(i)], color)));
  }
  TRY(const std::vector<Field> outputs, optional_list(custom, "output_memory_space_colors"));
  for (const Field& entry : outputs) {
    TRY(const std::optional<Field> index, optional_member(entry, "shape_index"));
    TRY(const int64_t i, first_index(index));
    TRY(const Field field, member(entry, "color"));
    TRY(const int64_t color, integer(field));
    if (i < 0 || i >= std::ssize(call.results))
      return input_error("{}: a memory space color of result {}", entry.where(), i);
    TRY_VOID(field.in_place(pin(call.results[static_cast<size_t>(i)], color)));
  }
  return {};
}

Result<void> read_config(const Field& top, Call& call) {
  TRY(const std::optional<Field> custom, optional_member(top, "custom_call_config"));
  if (custom) TRY_VOID(read_custom_call(*custom, call));
  TRY(const std::vector<Field> memories, optional_list(top, "scoped_memory_configs"));
  for (const Field& scoped : memories) {
    constexpr int64_t kVmem = 1;
    TRY(const std::optional<Field> space, optional_member(scoped, "memory_space"));
    if (!space) continue;
    TRY(const int64_t number, integer(*space));
    if (number != kVmem) continue;
    TRY(const Field size, member(scoped, "size"));
    TRY(call.vmem_limit_bytes, integer(size));
  }
  return {};
}

Result<Call> read(const Field& top) {
  Call call;
  TRY(const Field name, member(top, "kernel_name"));
  TRY(call.name, text(name));
  TRY_VOID(read_args(top, "operands", "in", call.operands));
  TRY_VOID(read_args(top, "results", "out", call.results));
  TRY(const std::vector<Field> aliases, optional_list(top, "aliases"));
  for (const Field& alias : aliases) {
    TRY(const Field output, member(alias, "output"));
    TRY(const int64_t result, first_index(output));
    TRY(const Field operand, member(alias, "operand"));
    TRY(const int number, small_integer(operand));
    if (result < 0 || result > INT32_MAX) return output.needs("the number of a result");
    call.aliases.emplace_back(static_cast<int>(result), number);
    TRY_VOID(alias.in_place(check_aliases(call)));
  }
  TRY(const std::optional<Field> cores, optional_member(top, "num_partitions"));
  if (cores) {
    TRY(call.cores, small_integer(*cores));
    TRY_VOID(cores->in_place(check_cores(call)));
  }
  TRY(const std::optional<Field> config, optional_member(top, "backend_config_without_body"));
  if (config) TRY_VOID(read_config(*config, call));
  TRY_VOID(validate(call));
  return call;
}

}  // namespace

Result<void> read_backend_config(const Json& config, Call& call) {
  return read_config({&config, "backend_config"}, call);
}

Result<void> validate(const Call& call) {
  TRY_VOID(check_cores(call));
  for (const CallArg& arg : call.operands) TRY_VOID(check_shape(arg));
  for (const CallArg& arg : call.results) TRY_VOID(check_shape(arg));
  return check_aliases(call);
}

Result<Call> parse_call_json(std::string_view text) {
  TRY(const Json json, parse_json(text, "call.json"));
  if (!json.is_object()) return input_error("call.json is not a JSON object");
  auto call = read({&json, "", text});
  if (!call) return std::unexpected(call.error().in("call.json"));
  return call;
}

}  // namespace gridless::ir
