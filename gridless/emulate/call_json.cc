#include "gridless/emulate/call_json.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace gridless::emulate {
namespace {

using nlohmann::json;

// call.json uses MLIR's names, XLA's (pred, u8, s32, f8e4m3fn) are understood too.
std::optional<ir::Elem> elem_of(std::string name) {
  if (name == "pred" || name == "bool") return ir::Elem::kI1;
  if (name.size() > 1 && name[0] == 'u' && std::isdigit(static_cast<unsigned char>(name[1])))
    name = "ui" + name.substr(1);
  if (name.size() > 1 && name[0] == 's' && std::isdigit(static_cast<unsigned char>(name[1])))
    name = "i" + name.substr(1);
  if (name == "f8e4m3fn") return ir::Elem::kF8E4M3FN;
  if (name == "f8e5m2") return ir::Elem::kF8E5M2;
  return ir::elem_from_spelling(name);
}

ir::Space space_of(const json& t) {
  if (!t.contains("color") || !t["color"].is_number_integer()) return ir::Space::kAny;
  switch (t["color"].get<int64_t>()) {
    case 0: return ir::Space::kHbm;
    case 1: return ir::Space::kVmem;
    case 4: return ir::Space::kSmem;
    default: return ir::Space::kAny;
  }
}

Result<std::vector<ir::CallArg>> tensors(const json& call, const char* key, const char* prefix) {
  constexpr int64_t kMost = int64_t{1} << 40;  // elements; beyond it sizes in bytes could overflow
  std::vector<ir::CallArg> out;
  if (!call.contains(key) || !call[key].is_array())
    return input_error("call.json has no array \"{}\"", key);
  for (const json& t : call[key]) {
    if (!t.is_object() || !t.contains("shape") || !t["shape"].is_array() || !t.contains("dtype") ||
        !t["dtype"].is_string())
      return input_error("call.json: an entry of \"{}\" lacks \"shape\" or \"dtype\"", key);
    ir::Shape shape;
    int64_t elements = 1;
    for (const json& d : t["shape"]) {
      if (!d.is_number_integer() || d.get<int64_t>() < 0 || d.get<int64_t>() > kMost)
        return input_error("call.json: bad dimension {} in \"{}\"", d.dump(), key);
      shape.push_back(d.get<int64_t>());
      if (shape.back() != 0 && elements > kMost / shape.back())
        return input_error("call.json: a shape in \"{}\" is too large", key);
      elements *= shape.back();
    }
    const auto elem = elem_of(t["dtype"].get<std::string>());
    if (!elem) return input_error("call.json: unknown dtype {} in \"{}\"", t["dtype"].dump(), key);
    out.push_back({prefix + std::to_string(out.size()),
                   ir::Type::memref(std::move(shape), *elem, space_of(t))});
  }
  return out;
}

}  // namespace

Result<ir::Call> parse_call(const std::string& text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return input_error("call.json is not a JSON object");
  ir::Call call;
  TRY(call.operands, tensors(j, "operands", "in"));
  TRY(call.results, tensors(j, "results", "out"));
  if (j.contains("kernel_name") && j["kernel_name"].is_string()) call.name = j["kernel_name"];
  if (j.contains("aliases")) {
    for (const json& a : j["aliases"]) {
      if (!a.is_object() || !a.contains("operand") || !a["operand"].is_number_integer())
        return input_error("call.json: an alias lacks \"operand\"");
      const auto operand = a["operand"].get<int64_t>();
      int64_t result = 0;
      if (a.contains("output") && a["output"].is_array() && !a["output"].empty() &&
          a["output"][0].is_number_integer())
        result = a["output"][0].get<int64_t>();
      if (operand < 0 || operand >= static_cast<int64_t>(call.operands.size()) || result < 0 ||
          result >= static_cast<int64_t>(call.results.size()))
        return input_error("call.json: alias of operand {} to output {} is out of range", operand, result);
      call.aliases.emplace_back(static_cast<int>(result), static_cast<int>(operand));
    }
  }
  if (j.contains("device_count") && j["device_count"].is_number_integer())
    call.cores = j["device_count"].get<int>();
  if (call.cores < 1 || call.cores > 1024)
    return input_error("call.json: device_count {} is out of range", call.cores);
  return call;
}

}  // namespace gridless::emulate
