#include "gridless/tpu/in_place.h"

#include <algorithm>
#include <set>
#include <vector>

namespace gridless::tpu {
namespace {

// Segments of tpu.enqueue_dma.
constexpr size_t kTarget = 2, kDevice = 4;

bool has_grid(const ir::Op& function) {
  return function.find("iteration_bounds") != nullptr || function.find("window_params") != nullptr;
}

// True when every use of `ref` is understood and none makes it the target of a remote copy. Views
// of it are followed.
bool only_its_core_writes(const ir::Op& function, const ir::Value* ref) {
  std::set<const ir::Value*> views = {ref};
  bool sound = true;
  ir::walk(function, [&](const ir::Op& op) {
    const bool uses = std::ranges::any_of(
        op.operands, [&](const ir::Value* value) { return views.contains(value); });
    if (!uses) return;
    if (op.code == ir::OpCode::kTpuEnqueueDma) {
      const auto target = op.segment(kTarget);
      sound &= op.segment(kDevice).empty() ||
               std::ranges::none_of(target, [&](const ir::Value* v) { return views.contains(v); });
      return;
    }
    // A loop or branch that carries the ref on under another name.
    if (!op.regions.empty()) sound = false;
    for (const auto& result : op.results) {
      if (result->type.is_memref()) views.insert(result.get());
    }
    if (op.code == ir::OpCode::kScfYield) sound = false;
  });
  return sound;
}

void replace_uses(const ir::Op& op, const ir::Value* from, ir::Value* to) {
  for (const auto& region : op.regions) {
    for (const auto& block : region->blocks) {
      for (const auto& inner : block->ops) {
        std::ranges::replace(inner->operands, const_cast<ir::Value*>(from), to);
        replace_uses(*inner, from, to);
      }
    }
  }
}

void remove_argument(ir::Op& function, ir::Block& block, size_t index) {
  block.args.erase(block.args.begin() + static_cast<ptrdiff_t>(index));
  std::vector<ir::Type> inputs;
  for (size_t i = 0; i < block.args.size(); ++i) {
    block.args[i]->index = static_cast<int>(i);
    inputs.push_back(block.args[i]->type);
  }
  function.set("function_type", ir::Attr::type(ir::Type::function(std::move(inputs), {})));
}

bool in_hbm(const CallSpec& spec, const Alias& alias) {
  const auto hbm = [](Space space) { return space == Space::kAny || space == Space::kHbm; };
  return hbm(spec.operands[alias.operand].space) && hbm(spec.results[alias.result].space);
}

}  // namespace

void write_through_operands(ir::Program& program, CallSpec& spec) {
  ir::Op* function = program.module.entry();
  if (!spec.has_communication || function == nullptr || has_grid(*function)) return;
  ir::Block& block = function->body();
  if (block.args.size() < spec.operands.size() + spec.results.size()) return;
  // From the last result to the first, so that the numbers of those before stay right.
  std::ranges::sort(spec.aliases, {}, &Alias::result);
  for (auto alias = spec.aliases.rbegin(); alias != spec.aliases.rend(); ++alias) {
    const size_t index = spec.operands.size() + static_cast<size_t>(alias->result);
    ir::Value* result = block.args[index].get();
    ir::Value* operand = block.args[static_cast<size_t>(alias->operand)].get();
    if (!in_hbm(spec, *alias) || result->type != operand->type ||
        !only_its_core_writes(*function, result) || !only_its_core_writes(*function, operand)) {
      continue;
    }
    replace_uses(*function, result, operand);
    remove_argument(*function, block, index);
    alias->through_operand = true;
    spec.operands[alias->operand].space = Space::kHbm;
  }
}

}  // namespace gridless::tpu
