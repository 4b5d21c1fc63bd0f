// Launch: a kernel on the memory of N cores while it runs. run() is the plain run of emulator.h;
// the rest lets somebody else decide what happens next (stepper.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gridless/emulate/emulator.h"
#include "gridless/emulate/grid.h"
#include "gridless/emulate/machine.h"
#include "gridless/emulate/source_run.h"

namespace gridless::emulate {

class Launch {
 public:
  // All three must outlive the launch.
  Launch(const Kernel& kernel, std::span<const CoreMemory> memory, const Options& options);
  Launch(const Launch&) = delete;  // the machine points into it

  Report run();

  Machine& machine() { return machine_; }
  const Machine& machine() const { return machine_; }
  const Kernel& kernel() const { return kernel_; }
  std::span<const CoreMemory> memory() const { return memory_; }
  Grid* grid(size_t c) { return grids_[c].get(); }

  // Throws Fault, as all that follow. Before the first enter().
  void set_grid_bounds();
  // The core begins the kernel: its frame is ready, or it is done at once (an empty grid).
  void enter(Core& core);
  // A core that has left begins anew: as at the first launch, but semaphores keep their counts.
  void reset(Core& core) { set_up(static_cast<size_t>(core.id)); }
  // After run_core() returned from the function: the next step of the grid, or the core is done.
  void after_return(Core& core);
  // The core's results are written back: the last blocks of its windows, and copies of VMEM.
  void write_results(Core& core);
  // What is wrong with the end: semaphores that are not zero, cores that wait for ever.
  void check_semaphores(Diagnostics& diagnostics) const;
  Diagnostic deadlock() const;

 private:
  void name(Buffer& b, int core, size_t site) const;
  void set_up(size_t c);
  void set_up_argument(size_t c, size_t s, Buffer& b);
  void check_sizes(const CoreMemory& memory) const;
  std::vector<Tensor> tensors(size_t c) const;
  std::span<std::byte> data_of(size_t c, const Argument& arg) const;
  // The argument whose operand the result `output` is aliased to; null: none.
  const Argument* aliased_input(const Argument& output) const;
  void prepare(Buffer& b, Content all) const;
  Content given(const Argument& arg) const;
  Diagnostic bound_not_given(size_t operand) const;
  void done(Core& core);
  bool schedule(Diagnostics& diagnostics);
  void give_what_is_lacking();
  void finish_copies(Diagnostics& diagnostics);
  void tell_results();

  const Kernel& kernel_;
  std::span<const CoreMemory> memory_;
  const Options& options_;
  SourceRun sources_;
  Machine machine_;
  std::vector<std::vector<Tensor>> tensors_;  // by core and argument
  std::vector<std::unique_ptr<Grid>> grids_;
};

}  // namespace gridless::emulate
