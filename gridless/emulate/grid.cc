#include "gridless/emulate/grid.h"

#include "gridless/emulate/fault.h"
#include "gridless/emulate/recorder.h"

namespace gridless::emulate {

Grid::Grid(const Kernel& kernel, Machine& machine, Core& core, std::span<const Tensor> tensors)
    : kernel_(kernel), machine_(machine), core_(core), windows_(kernel.arguments.size()) {
  // Beyond 2^62 points the step limit has long struck.
  for (int64_t b : machine.grid_bounds)
    steps_ = b == 0 ? 0 : std::min(steps_, (int64_t{1} << 62) / b) * b;
  for (size_t k = 0; k < windows_.size(); ++k) {
    const Argument& arg = kernel.arguments[k];
    if (!arg.is_window) continue;
    const bool output = arg.role == Argument::Role::kOutput;
    const ir::CallArg& spec =
        (output ? kernel.call.results : kernel.call.operands)[static_cast<size_t>(arg.tensor)];
    Buffer& b = windows_[k].tensor;
    b.core = core.id;
    b.site = static_cast<int>(k);
    b.type = Type::memref(spec.type.shape(), arg.type.elem(), ir::Space::kHbm);
    b.name = arg.name;
    b.data = tensors[k].data;
    b.contents = tensors[k].contents;
    if (machine.scalars_only && b.data.empty()) {
      b.absent = output || arg.aliased >= 0 ? Content::kVector : Content::kNotGiven;
      b.written = !output || arg.aliased >= 0;
    }
  }
}

Grid::Position Grid::position() const {
  Position p{.step = step_, .blocks = {}};
  for (const Window& w : windows_) p.blocks.push_back(w.at);
  return p;
}

void Grid::restore(const Position& position) {
  step_ = position.step;
  for (size_t k = 0; k < windows_.size(); ++k) windows_[k].at = position.blocks[k];
}

Shape Grid::block_index(size_t argument) {
  std::vector<RtValue> in;
  for (int64_t g : core_.grid) in.emplace_back(make_int(Elem::kI32, g));
  for (size_t k = 0; k < kernel_.arguments.size(); ++k)
    if (kernel_.arguments[k].role == Argument::Role::kPrefetch)
      in.emplace_back(std::make_shared<const View>(whole(core_.buffers[k])));
  Shape at;
  for (const RtValue& v :
       run_function(machine_, core_, kernel_.arguments[argument].transform, in)) {
    if (machine_.recorder) machine_.recorder->decides(*kernel_.function, scalar(v));
    at.push_back(scalar(v).i);
  }
  return at;
}

void Grid::copy(size_t argument, const Shape& at, bool in) {
  const Argument& arg = kernel_.arguments[argument];
  const View window = whole(core_.buffers[argument]);
  const View tensor = whole(windows_[argument].tensor);
  const size_t rank = tensor.shape.size();
  Shape from(rank), into(rank), sizes(rank);
  for (size_t d = 0; d < rank; ++d) {
    int64_t first = arg.in_elements ? at[d] : at[d] * window.shape[d];
    if (d < arg.pad_low.size()) first -= arg.pad_low[d];
    from[d] = std::max<int64_t>(first, 0);
    into[d] = from[d] - first;
    sizes[d] = std::min(first + window.shape[d], tensor.shape[d]) - from[d];
    if (sizes[d] <= 0) {
      throw Fault{
          Diagnostic{.kind = "out_of_bounds",
                     .message = arg.name + ": block " + ir::shape_str(at) +
                                " lies outside the tensor " + ir::shape_str(tensor.shape),
                     .where = kernel_.function->loc,
                     .notes = {},
                     .hint = "check the index map of this operand against its block shape"}};
    }
  }
  const View inner = slice(window, into, sizes), outer = slice(tensor, from, sizes);
  const View &source = in ? outer : inner, &target = in ? inner : outer;
  copy_view(source, target);
  if (!machine_.recorder) return;
  if (!in && inspect(core_.buffers[argument], region_of(inner)).all_garbage)
    machine_.recorder->unwritten_block(core_, argument, at);
  copy_contents(source, target);
  machine_.recorder->window_copy(core_, argument, outer, in);
}

bool Grid::next() {
  const bool last = step_ == steps_;
  core_.grid.assign(machine_.grid_bounds.size(), 0);
  int64_t rest = step_;
  for (size_t d = last ? 0 : core_.grid.size(); d-- > 0;) {
    core_.grid[d] = rest % machine_.grid_bounds[d];
    rest /= machine_.grid_bounds[d];
  }
  std::vector<Shape> next(windows_.size());
  for (size_t k = 0; k < windows_.size(); ++k)
    if (kernel_.arguments[k].is_window && !last) next[k] = block_index(k);
  if (machine_.recorder) machine_.recorder->grid_step(core_);
  // All outputs out before any input comes in: an aliased tensor may be read where it was written.
  for (size_t k = 0; k < windows_.size(); ++k) {
    if (kernel_.arguments[k].role != Argument::Role::kOutput || next[k] == windows_[k].at) continue;
    if (!windows_[k].at.empty()) copy(k, windows_[k].at, /*in=*/false);
    if (machine_.recorder) machine_.recorder->new_window(core_, static_cast<int>(k));
    core_.buffers[k].poison();
    windows_[k].at = next[k];
  }
  if (last) return false;
  for (size_t k = 0; k < windows_.size(); ++k) {
    if (!kernel_.arguments[k].is_window || next[k] == windows_[k].at) continue;
    if (machine_.recorder) machine_.recorder->new_window(core_, static_cast<int>(k));
    core_.buffers[k].poison();
    copy(k, next[k], /*in=*/true);
    windows_[k].at = next[k];
  }
  ++step_;
  core_.frame = std::make_unique<Frame>(kernel_.body);
  for (size_t k = 0; k < kernel_.arguments.size(); ++k) {
    RtValue& slot = core_.frame->slots[static_cast<size_t>(kernel_.body.arguments[k])];
    if (kernel_.arguments[k].role == Argument::Role::kGridIndex) {
      slot = make_int(Elem::kI32, core_.grid[k]);
    } else {
      slot = std::make_shared<const View>(whole(core_.buffers[k]));
    }
  }
  return true;
}

}  // namespace gridless::emulate
