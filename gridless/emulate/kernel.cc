#include "gridless/emulate/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "gridless/emulate/codec.h"

namespace gridless::emulate {
namespace {

std::unexpected<Diagnostics> wrong(const ir::Op* op, std::string kind, std::string message,
                                   std::string hint = "") {
  Diagnostic d{.kind = std::move(kind), .message = std::move(message), .hint = std::move(hint)};
  if (op) d.where = op->loc;
  return std::unexpected(Diagnostics{std::move(d)});
}

// [[lo, ...], [hi, ...]] of #tpu.element_window<[lo, ...], [hi, ...]>: the first list.
Shape first_list(std::string_view text) {
  Shape out;
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos) return out;
  int64_t number = -1;
  for (char c : text.substr(open, close - open + 1)) {
    if (c >= '0' && c <= '9') {
      number = (number < 0 ? 0 : number * 10) + (c - '0');
    } else if (number >= 0) {
      out.push_back(number);
      number = -1;
    }
  }
  return out;
}

// Reads entry `index` of window_params into `arg`.
std::expected<void, Diagnostics> read_window(const ir::Module& module, const ir::Op& fn,
                                             size_t index, Argument& arg) {
  const ir::Attr* params = fn.find("window_params");
  if (!params || index >= (*params)->array.size()) return {};
  for (const auto& [key, value] : (*params)->array[index]->dict) {
    if (key == "window_kind" && value->text.find("element_window") != std::string::npos) {
      arg.in_elements = true;
      arg.pad_low = first_list(value->text);
    }
    if (key == "pipeline_mode")
      arg.synchronous = value->text.find("synchronous") != std::string::npos;
    if (key != "transform_indices") continue;
    const ir::Op* transform = module.function(value->text);
    if (!transform)
      return wrong(&fn, "invalid_ir",
                   fmt::format("window transform @{} does not exist", value->text));
    auto program = flatten(*transform, 0);
    if (!program) return std::unexpected(std::move(program.error()));
    if (!program->sites.empty())
      return wrong(transform, "invalid_ir", "a window transform must not allocate");
    arg.transform = std::move(*program);
    arg.is_window = true;
  }
  return {};
}

std::string shape_problem(const Argument& arg, Type spec) {
  // Signs of integers are a matter of the ops, so only width and family must agree; floats of one
  // width are different formats.
  const ir::Elem a = arg.type.elem(), b = spec.elem();
  const bool other_family = ir::is_float(a) != ir::is_float(b) || (ir::is_float(a) && a != b);
  if (ir::bit_width(a) != ir::bit_width(b) || other_family)
    return fmt::format("{} is {}, the call's is {}", arg.name, ir::spelling(a), ir::spelling(b));
  const bool matches = arg.is_window ? arg.type.shape().size() == spec.shape().size()
                                     : arg.type.shape() == spec.shape();
  if (matches) return {};
  return fmt::format("{} has shape {}, the call's is {}", arg.name, ir::shape_str(arg.type.shape()),
                     ir::shape_str(spec.shape()));
}

// Without bounds checks a slice may be larger than its ref if nothing but waits takes it: they only
// take its size (one wait for many copies). Such instructions get target kSizeOnly.
void find_sizes_of_waits(Kernel& kernel) {
  std::vector<const ir::Op*> ops;
  ir::walk(*kernel.function, [&](const ir::Op& op) { ops.push_back(&op); });
  std::unordered_set<const ir::Value*> touched;
  // Uses stand behind definitions.
  for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
    const ir::Op& op = **it;
    const bool wait = op.code == ir::OpCode::kTpuWaitDma;
    const bool view = op.info().effect == ir::Effect::kView && !touched.contains(op.result());
    for (const ir::Value* v : op.operands)
      if (!v->type.is_memref() || ir::is_semaphore(v->type.elem()) || !(wait || view))
        touched.insert(v);
  }
  for (Instr& in : kernel.body.code)
    if (in.kind == Instr::Kind::kOp && in.op->code == ir::OpCode::kTpuMemrefSlice &&
        !touched.contains(in.op->result()))
      in.target = Instr::kSizeOnly;
}

}  // namespace

bool uses_barrier(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body.code, [](const Instr& in) {
    return in.op && in.op->code == ir::OpCode::kTpuSemBarrier;
  });
}

int64_t tensor_bytes(const ir::CallArg& arg) {
  return storage_bytes(arg.type.elem(), arg.type.num_elements());
}

std::expected<Kernel, Diagnostics> make_kernel(const ir::Module& module, ir::Call call) {
  const ir::Op* fn = module.entry();
  if (!fn)
    return wrong(nullptr, "invalid_ir", "the module has no entry function",
                 "mark the kernel with tpu.core_type, or name it @main");
  Kernel kernel{.function = fn, .call = std::move(call)};
  if (const ir::Attr* bounds = fn->find("iteration_bounds")) kernel.grid = (*bounds)->ints;
  const size_t dynamic = static_cast<size_t>(std::ranges::count(kernel.grid, ir::kDynamic));
  const auto prefetch = static_cast<size_t>(fn->int_attr_or("scalar_prefetch", 0));
  const auto scratch = static_cast<size_t>(fn->int_attr_or("scratch_operands", 0));
  const auto& args = fn->body().args;
  const size_t grid_rank = kernel.grid.size();
  const size_t tensors = kernel.call.operands.size() -
                         std::min(dynamic, kernel.call.operands.size()) +
                         kernel.call.results.size();
  if (args.size() != grid_rank + tensors + scratch) {
    return wrong(
        fn, "shape_mismatch",
        fmt::format("the kernel has {} arguments ({} grid indices, {} scratch), the call {} "
                    "operands and {} results",
                    args.size(), grid_rank, scratch, kernel.call.operands.size(),
                    kernel.call.results.size()),
        "arguments are grid indices, operands, results, scratch, in this order");
  }
  const size_t first_output = grid_rank + kernel.call.operands.size() - dynamic;
  for (size_t k = 0; k < args.size(); ++k) {
    Argument arg;
    arg.type = args[k]->type;
    arg.name = args[k]->name.empty() ? fmt::format("argument {}", k) : args[k]->name;
    if (k < grid_rank) {
      arg.role = Argument::Role::kGridIndex;
    } else if (k < first_output) {
      arg.role = k < grid_rank + prefetch ? Argument::Role::kPrefetch : Argument::Role::kInput;
      arg.tensor = static_cast<int>(k - grid_rank + dynamic);
      for (const auto& [result, operand] : kernel.call.aliases)
        if (operand == arg.tensor) arg.aliased = result;
    } else if (k < args.size() - scratch) {
      arg.role = Argument::Role::kOutput;
      arg.tensor = static_cast<int>(k - first_output);
      for (const auto& [result, operand] : kernel.call.aliases)
        if (result == arg.tensor) arg.aliased = operand;
    }
    const bool has_tensor = arg.tensor >= 0;
    if (arg.role == Argument::Role::kInput || arg.role == Argument::Role::kOutput) {
      auto ok = read_window(module, *fn, k - grid_rank - prefetch, arg);
      if (!ok) return std::unexpected(std::move(ok.error()));
    }
    if (has_tensor) {
      const bool output = arg.role == Argument::Role::kOutput;
      if (!arg.type.is_memref())
        return wrong(fn, "invalid_ir",
                     fmt::format("{} is {}, not a memref", arg.name, arg.type.str()));
      const auto& specs = output ? kernel.call.results : kernel.call.operands;
      if (ir::is_semaphore(arg.type.elem()))
        return wrong(fn, "unsupported",
                     fmt::format("{} is a semaphore that lives across calls", arg.name),
                     "a copy that one call starts and another waits for is not run here: put both "
                     "into one kernel to check them");
      const std::string problem = shape_problem(arg, specs[static_cast<size_t>(arg.tensor)].type);
      if (!problem.empty()) return wrong(fn, "shape_mismatch", problem);
    }
    kernel.sites.push_back({arg.type, arg.name, fn->loc});
    kernel.arguments.push_back(std::move(arg));
  }
  kernel.sites.push_back({Type::memref({}, Elem::kSemaphore, ir::Space::kSemaphore),
                          "the barrier semaphore", fn->loc});
  auto body = flatten(*fn, static_cast<int>(kernel.sites.size()));
  if (!body) return std::unexpected(std::move(body.error()));
  kernel.body = std::move(*body);
  if (!kernel.call.bounds_checks) find_sizes_of_waits(kernel);
  kernel.sites.insert(kernel.sites.end(), kernel.body.sites.begin(), kernel.body.sites.end());
  return kernel;
}

}  // namespace gridless::emulate
