#include "gridless/text/jinja/template.h"

#include <chrono>

#include "gridless/text/jinja/interpreter.h"
#include "gridless/text/utf8.h"

namespace gridless::text {

using namespace jinja;

struct Template::Tree {
  Block block;
};

namespace {

Value from_json(const nlohmann::ordered_json& json, int depth = 0) {
  using Type = nlohmann::ordered_json::value_t;
  if (depth > kMaxValueDepth) throw Fault{"the input nests too deeply"};
  switch (json.type()) {
    case Type::boolean:
      return Value::boolean(json.get<bool>());
    case Type::number_integer:
      return Value::integer(json.get<int64_t>());
    case Type::number_unsigned:
      if (json.get<uint64_t>() > INT64_MAX) return Value::real(json.get<double>());
      return Value::integer(json.get<int64_t>());
    case Type::number_float:
      return Value::real(json.get<double>());
    case Type::string:
      return Value::string(to_valid_utf8(json.get_ref<const std::string&>()));
    case Type::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(from_json(item, depth + 1));
      return Value::list(std::move(items));
    }
    case Type::object: {
      Dict dict;
      for (const auto& [key, value] : json.items())
        dict.set(Value::string(key), from_json(value, depth + 1));
      return Value::dict(std::move(dict));
    }
    default:
      return Value::none();
  }
}

Error to_error(const Fault& fault) {
  if (fault.line == 0) return {Error::Kind::kInput, "chat template: " + fault.message};
  return {Error::Kind::kInput, fmt::format("chat template line {}: {}", fault.line, fault.message)};
}

std::tm local_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm out{};
  localtime_r(&now, &out);
  return out;
}

}  // namespace

Result<Template> Template::parse(std::string_view source) {
  try {
    Template out;
    out.tree_ = std::make_shared<const Tree>(Tree{jinja::parse(source)});
    return out;
  } catch (const Fault& fault) {
    return std::unexpected(to_error(fault));
  }
}

Result<std::string> Template::render(const nlohmann::ordered_json& variables,
                                     const RenderOptions& options) const {
  if (!variables.is_object())
    return input_error("the variables of a template must be a JSON object");
  try {
    const auto globals = std::make_shared<Scope>();
    add_functions(*globals);
    for (const auto& [name, value] : variables.items()) globals->set(name, from_json(value));
    Limits limits;
    limits.work = options.work_limit;
    Interpreter interpreter(limits, options.now.value_or(local_now()));
    return interpreter.run(tree_->block, globals);
  } catch (const Fault& fault) {
    return std::unexpected(to_error(fault));
  }
}

}  // namespace gridless::text
