#include "gridless/ir/jax_program.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "gridless/base/base64.h"
#include "gridless/base/json.h"
#include "gridless/ir/bytecode.h"
#include "gridless/ir/call_json.h"
#include "gridless/ir/text.h"
#include "gridless/ir/text_parser.h"

namespace gridless::ir {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kOp = "stablehlo.custom_call";
constexpr std::string_view kTarget = "tpu_custom_call";

// Where custom calls of any target begin; what stands in strings or comments is none.
std::vector<size_t> custom_calls(std::string_view text) {
  std::vector<size_t> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/' && text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text[i] == '"') {
      const size_t from = i;
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
      const bool name = i < text.size() && text.substr(from + 1, i - from - 1) == kOp;
      if (name && text.substr(i + 1, 1) == "(") out.push_back(from);
    } else if (text[i] == 's' && text.substr(i, kOp.size()) == kOp) {
      out.push_back(i);
      i += kOp.size();
    }
  }
  return out;
}

Diagnostics fault(SourceLoc where, std::string message, std::string hint = "") {
  return {{.kind = "invalid_ir",
           .message = std::move(message),
           .where = std::move(where),
           .hint = std::move(hint)}};
}

const Attr* find(const std::vector<NamedAttr>& attrs, std::string_view name) {
  const auto it = std::ranges::find(attrs, name, &NamedAttr::first);
  return it == attrs.end() ? nullptr : &it->second;
}

Result<std::vector<CallArg>> call_args(const std::vector<Type>& types, std::string_view prefix) {
  std::vector<CallArg> out;
  for (const Type t : types) {
    std::string name = fmt::format("{}{}", prefix, out.size());
    if (t.kind() != TypeKind::kTensor || t.num_elements() == kDynamic)
      return input_error("{} is {}: a tensor of static shape is expected", name, t.str());
    out.push_back({std::move(name), Type::memref(t.shape(), t.elem(), Space::kAny)});
  }
  return out;
}

// Mosaic kernels see row-major arrays; a call with other layouts would need a copy in front of it.
Result<void> check_layouts(const std::vector<NamedAttr>& attrs, std::string_view name) {
  const Attr* list = find(attrs, name);
  if (!list || list->kind() != AttrKind::kArray) return {};
  for (const Attr& a : (*list)->array) {
    if (a.kind() != AttrKind::kDense) continue;
    const std::vector<int64_t>& order = a->ints;
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] != std::ssize(order) - 1 - static_cast<int64_t>(i))
        return input_error("{}: only row-major layouts are supported", name);
    }
  }
  return {};
}

// The number, or the first of a list, behind "key = " in the text of a StableHLO attribute.
std::optional<int> number_behind(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  while (!text.empty() && (text[0] == ' ' || text[0] == '=' || text[0] == '['))
    text.remove_prefix(1);
  int v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  return error == std::errc() ? std::optional(v) : std::nullopt;
}

Result<void> read_aliases(const std::vector<NamedAttr>& attrs, Call& call) {
  const Attr* list = find(attrs, "output_operand_aliases");
  if (!list || list->kind() != AttrKind::kArray) return {};
  for (const Attr& a : (*list)->array) {
    const std::string_view text = a->text;
    const auto operand = number_behind(text, "operand_index");
    if (a.kind() != AttrKind::kOpaque || !operand)
      return input_error("output_operand_aliases: cannot read {}", print(a));
    // An empty list of indices: the only result.
    call.aliases.emplace_back(number_behind(text, "output_tuple_indices").value_or(0), *operand);
  }
  return {};
}

Result<Call> read_call(const TextParser::CustomCall& custom, std::string_view text,
                       const Json& config) {
  Call call;
  TRY(call.cores, program_cores(text));
  TRY(call.operands, call_args(custom.operands, "in"));
  TRY(call.results, call_args(custom.results, "out"));
  if (const Attr* name = find(custom.attrs, "kernel_name")) call.name = (*name)->text;
  TRY_VOID(check_layouts(custom.attrs, "operand_layouts"));
  TRY_VOID(check_layouts(custom.attrs, "result_layouts"));
  TRY_VOID(read_aliases(custom.attrs, call));
  TRY_VOID(read_backend_config(config, call));
  TRY_VOID(validate(call));
  return call;
}

// A string of the config, out of its base64. libtpu takes text in place of bytecode, and text
// without base64.
std::string payload(const Json& custom, const char* key) {
  const auto it = custom.find(key);
  if (it == custom.end() || !it->is_string()) return "";
  const auto& stored = it->get_ref<const std::string&>();
  auto decoded = base64_decode(stored);
  return decoded ? std::move(*decoded) : stored;
}

std::expected<void, Diagnostics> add_locations(Module& module, const std::string& stored,
                                               std::string_view file, const SourceLoc& where) {
  if (stored.empty()) return {};
  auto locations =
      is_bytecode(stored) ? read_bytecode_locations(stored, file) : parse_locations(stored, file);
  if (!locations) return std::unexpected(std::move(locations.error()));
  if (const auto done = apply_locations(module, *locations); !done)
    return std::unexpected(fault(where, "debug_locations: " + done.error()));
  return {};
}

}  // namespace

bool is_stablehlo(std::string_view text) { return !custom_calls(text).empty(); }

Result<int> program_cores(std::string_view stablehlo) {
  constexpr std::string_view kAttribute = "mhlo.num_partitions = ";
  const size_t at = stablehlo.find(kAttribute);
  if (at == std::string_view::npos) return 1;
  const std::string_view digits = stablehlo.substr(at + kAttribute.size());
  int cores = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), cores);
  if (error != std::errc() || cores < 1) {
    return input_error("the program's mhlo.num_partitions is not a positive number");
  }
  return cores;
}

std::expected<Program, Diagnostics> read_jax_program(std::string_view text, std::string_view file) {
  TextParser parser(text, file);
  std::optional<TextParser::CustomCall> custom;
  SourceLoc where(std::string(file), 0);
  for (const size_t at : custom_calls(text)) {
    const bool pretty = text[at] != '"';
    if (pretty && !text.substr(at + kOp.size()).starts_with(fmt::format(" @{}(", kTarget)))
      continue;
    auto call = parser.parse_custom_call(at);
    if (parser.any_error()) return std::unexpected(parser.take_diagnostics());
    if (call.target != kTarget) continue;
    if (custom) {
      return std::unexpected(fault(parser.place(at),
                                   "a second tpu_custom_call: one kernel is read at a time",
                                   "lower a function that calls this kernel alone"));
    }
    custom = std::move(call);
    where = parser.place(at);
  }
  if (!custom) {
    return std::unexpected(
        fault(where, "the program has no tpu_custom_call",
              "lower it for TPU: .lower(lowering_platforms=(\"tpu\",)), not for the CPU"));
  }
  const Attr* backend = find(custom->attrs, "backend_config");
  const std::string backend_text =
      backend && backend->kind() == AttrKind::kString ? (*backend)->text : std::string();
  const auto parsed = parse_json(backend_text, "the backend_config of the tpu_custom_call");
  if (!parsed) return std::unexpected(fault(where, parsed.error().message));
  const Json& config = *parsed;
  const auto inner = config.is_object() ? config.find("custom_call_config") : config.end();
  if (!config.is_object() || inner == config.end() || !inner->is_object())
    return std::unexpected(
        fault(where, "the backend_config of the tpu_custom_call has no custom_call_config"));
  auto call = read_call(*custom, text, config);
  if (!call) return std::unexpected(fault(where, std::move(call.error().message)));
  const std::string body = payload(*inner, "body");
  if (body.empty()) return std::unexpected(fault(where, "the tpu_custom_call has no body"));
  auto module = is_bytecode(body) ? read_bytecode(body, file) : parse(body, file);
  if (!module) return std::unexpected(std::move(module.error()));
  auto placed = add_locations(*module, payload(*inner, "debug_locations"), file, where);
  if (!placed) return std::unexpected(std::move(placed.error()));
  if (call->name.empty()) {
    const Op* entry = module->entry();
    call->name = entry ? std::string(entry->text_attr("sym_name")) : std::string("kernel");
  }
  return Program{std::move(*module), std::move(*call)};
}

}  // namespace gridless::ir
