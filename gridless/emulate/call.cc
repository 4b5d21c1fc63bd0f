#include "gridless/emulate/call.h"

#include <nlohmann/json.hpp>

#include "gridless/emulate/codec.h"

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

Result<std::vector<TensorSpec>> tensors(const json& call, const char* key) {
  std::vector<TensorSpec> out;
  if (!call.contains(key) || !call[key].is_array())
    return input_error("call.json has no array \"{}\"", key);
  for (const json& t : call[key]) {
    if (!t.is_object() || !t.contains("shape") || !t["shape"].is_array() || !t.contains("dtype") ||
        !t["dtype"].is_string())
      return input_error("call.json: an entry of \"{}\" lacks \"shape\" or \"dtype\"", key);
    TensorSpec spec;
    for (const json& d : t["shape"]) {
      if (!d.is_number_integer() || d.get<int64_t>() < 0 || d.get<int64_t>() > (int64_t{1} << 40))
        return input_error("call.json: bad dimension {} in \"{}\"", d.dump(), key);
      spec.shape.push_back(d.get<int64_t>());
      if (spec.num_elements() > (int64_t{1} << 40))
        return input_error("call.json: a shape in \"{}\" is too large", key);
    }
    const auto elem = elem_of(t["dtype"].get<std::string>());
    if (!elem) return input_error("call.json: unknown dtype {} in \"{}\"", t["dtype"].dump(), key);
    spec.elem = *elem;
    out.push_back(std::move(spec));
  }
  return out;
}

}  // namespace

int64_t TensorSpec::num_elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

int64_t TensorSpec::bytes() const { return storage_bytes(elem, num_elements()); }

Result<Call> parse_call(const std::string& text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return input_error("call.json is not a JSON object");
  Call call;
  TRY(call.operands, tensors(j, "operands"));
  TRY(call.results, tensors(j, "results"));
  if (j.contains("aliases")) {
    for (const json& a : j["aliases"]) {
      Alias alias;
      if (!a.is_object() || !a.contains("operand") || !a["operand"].is_number_integer())
        return input_error("call.json: an alias lacks \"operand\"");
      alias.operand = a["operand"].get<int>();
      if (a.contains("output") && a["output"].is_array() && !a["output"].empty() &&
          a["output"][0].is_number_integer())
        alias.result = a["output"][0].get<int>();
      if (alias.operand < 0 || alias.operand >= static_cast<int>(call.operands.size()) ||
          alias.result < 0 || alias.result >= static_cast<int>(call.results.size()))
        return input_error("call.json: alias of operand {} to output {} is out of range",
                           alias.operand, alias.result);
      call.aliases.push_back(alias);
    }
  }
  if (j.contains("device_count") && j["device_count"].is_number_integer())
    call.cores = j["device_count"].get<int>();
  if (call.cores < 1 || call.cores > 1024)
    return input_error("call.json: device_count {} is out of range", call.cores);
  return call;
}

}  // namespace gridless::emulate
