#include "gridless/ir/op_table.h"

#include <iterator>
#include <string>
#include <unordered_map>

namespace gridless::ir {
namespace {

constexpr OpInfo kTable[] = {
#define GRIDLESS_ROW(id, name, least, most, results, regions, rule, effect, cost, required) \
  {name, least, most, results, regions, Rule::rule, Effect::effect, Cost::cost, required},
    GRIDLESS_OPS(GRIDLESS_ROW)
#undef GRIDLESS_ROW
};

}  // namespace

const OpInfo& info(OpCode code) { return kTable[static_cast<size_t>(code)]; }
int num_op_codes() { return static_cast<int>(std::size(kTable)); }

std::optional<OpCode> op_from_name(std::string_view name) {
  static const std::unordered_map<std::string_view, OpCode> index = [] {
    std::unordered_map<std::string_view, OpCode> map;
    for (size_t i = 0; i < std::size(kTable); ++i)
      map.emplace(kTable[i].name, static_cast<OpCode>(i));
    return map;
  }();
  const auto it = index.find(name);
  if (it == index.end()) return std::nullopt;
  return it->second;
}

}  // namespace gridless::ir
