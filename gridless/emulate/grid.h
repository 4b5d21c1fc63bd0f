// The grid of a kernel: the body runs once per point, in row-major order, on blocks (windows) of
// its operands that are copied in and out around it, as the chip's pipeline does.
//
// An input block is copied in when its index changes. An output block is written back when its
// index changes and after the last step; until then it keeps what earlier steps wrote. Parts of a
// block beyond the tensor are poison and are not written back.
#pragma once

#include "gridless/emulate/emulator.h"
#include "gridless/emulate/machine.h"

namespace gridless::emulate {

// The memory of a call's operand or result on one core, and under a recorder what is known of it
// (Buffer::contents; null: all kKnown). Aliased ones share both.
struct Tensor {
  std::span<std::byte> data;
  std::shared_ptr<Content[]> contents;
};

class Grid {
 public:
  // `tensors`: per argument of the kernel, the whole tensor.
  Grid(const Kernel& kernel, Machine& machine, Core& core, std::span<const Tensor> tensors);

  // Sets up the frame for the next step; false after the last, with every output written back.
  bool next();
  // The step that next() set up last is the last one.
  bool at_end() const { return step_ == steps_; }
  // For whoever saves and restores a machine: the step, and the block in each window.
  struct Position {
    int64_t step = 0;
    std::vector<Shape> blocks;  // by argument
  };
  Position position() const;
  void restore(const Position& position);
  // Under a recorder: what is known of the tensor of a window (Buffer::contents).
  std::shared_ptr<Content[]> contents(size_t argument) const {
    return windows_[argument].tensor.contents;
  }

 private:
  struct Window {
    Buffer tensor;
    Shape at;  // block indices in the window buffer; empty: nothing there
  };
  Shape block_index(size_t argument);
  void copy(size_t argument, const Shape& at, bool in);

  const Kernel& kernel_;
  Machine& machine_;
  Core& core_;
  std::vector<Window> windows_;  // by argument
  int64_t step_ = 0, steps_ = 1;
};

}  // namespace gridless::emulate
