// The TPUs of this host with the memory of one model: what StepRunner's launches run on with
// `--engine tpu`. One per process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gridless/decode/step_engine.h"
#include "gridless/decode/tpu_programs.h"
#include "gridless/tpu/runtime/session.h"

namespace gridless::decode {

struct TpuOptions {
  std::string libtpu;  // the plugin
  std::chrono::milliseconds limit = std::chrono::minutes(2);
};

class TpuHost {
 public:
  // Takes hold of the TPUs and looks whether they are those of the programs' slice, whether libtpu
  // is the programs' build, and whether every device gives back what is copied to it.
  static Result<std::unique_ptr<TpuHost>> start(const TpuOptions& options,
                                                const TpuPrograms& programs);

  // The bytes of an operand that stays on the device, as the step begins with it. They must stay
  // until the next call.
  using Source = std::function<Result<std::span<const std::byte>>(
      int core, const ir::CallArg& operand, bool is_state)>;

  // The launches of the program for `rows`, which `call` describes, of a model with `vocabulary`.
  // Brings to the devices what is not there yet. `host` has all cores of the program, of operands
  // only the tables, and must outlive the engine.
  Result<std::unique_ptr<StepEngine>> step(int64_t rows, int64_t vocabulary, const ir::Call& call,
                                           std::span<const emulate::CoreMemory> host,
                                           const Source& source,
                                           const std::function<void(double)>& progress);

 private:
  TpuHost(std::unique_ptr<tpu::Client> client, const TpuPrograms& programs)
      : client_(std::move(client)), programs_(&programs) {}

  std::unique_ptr<tpu::Client> client_;
  tpu::DeviceMemory memory_;
  const TpuPrograms* programs_;
};

}  // namespace gridless::decode
