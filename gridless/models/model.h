// What a host needs of any model: to know its size, to spread it over cores, to build its step
// programs and to fill their operands. Which operands there are is up to the model; the tables of
// the launch contract (rows, pages, keep) are the host's, operands that are also results are state,
// and all others are constants that fill() knows.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "gridless/ir/call.h"
#include "gridless/models/registry.h"
#include "gridless/models/step_shape.h"
#include "gridless/weights/checkpoint.h"

namespace gridless::models {

// Operands that a host gives at every launch (docs/launch_contract.md).
inline bool is_launch_table(std::string_view operand) {
  return operand == "rows" || operand == "pages" || operand == "keep";
}

// Told as an operand is filled, piece by piece: so that a packer can let go of memory, and leave
// out what an earlier run has done.
class FillWatch {
 public:
  virtual ~FillWatch() = default;
  // Whether bytes [begin, end) of the operand are still to be filled.
  virtual bool wanted(size_t begin, size_t end) = 0;
  virtual Result<void> filled(size_t begin, size_t end) = 0;
};

// A model on a number of cores, for given capacities. All its programs share one set of operands
// but for the row tables and the results.
class ShardedModel {
 public:
  virtual ~ShardedModel() = default;

  virtual const weights::StreamLayout& stream() const = 0;
  virtual std::expected<ir::Program, Diagnostics> program(int64_t rows) const = 0;

  // Whether a constant differs from core to core. The weight stream is one such.
  virtual bool per_core(std::string_view operand) const = 0;
  // Writes the constant `operand` of a core, all of `out`. Errors: tensors that are missing, of
  // other shapes or types than the model asks for. A watched operand may be taken whole or in
  // pieces (the weight stream: matrix by matrix); bytes of no piece are zero and not written.
  virtual Result<void> fill(const weights::Checkpoint& checkpoint, std::string_view operand,
                            int core, std::span<std::byte> out,
                            FillWatch* watch = nullptr) const = 0;
  // Bytes of state that one row at `position` reads, all cores together.
  virtual int64_t state_bytes(int64_t position) const = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual int64_t vocab() const = 0;
  virtual int64_t context() const = 0;  // positions the model was trained for
  virtual int64_t layers() const = 0;
  virtual int64_t parameters() const = 0;  // norms included; a tied head is counted once
  // The same with fewer layers (whole periods of the layers' pattern), or an error.
  virtual Result<std::unique_ptr<Model>> with_layers(int64_t layers) const = 0;

  // Every tensor is there with the shape the config asks for; an error names the first that is not.
  virtual Result<void> check_tensors(const weights::Checkpoint& checkpoint) const = 0;
  // The formats a checkpoint's matrices run in when nothing else is asked for: their own blocks
  // where all matrices of the layers have the same and a stream format holds them exactly, else
  // bf16.
  virtual Result<Formats> native_formats(const weights::Checkpoint& checkpoint) const = 0;
  // An error where the cores do not divide what they must.
  virtual Result<std::unique_ptr<ShardedModel>> on_cores(int cores,
                                                         const StepShape& shape) const = 0;

  // How many of the last tokens of a sequence a host may take back; none: any number. (A recurrent
  // state cannot be wound back further than its pending rows.)
  virtual std::optional<int64_t> rows_taken_back() const = 0;
};

// By the model_type of config.json (or the GGUF metadata in its terms). An error names the missing
// or unsupported key.
Result<std::unique_ptr<Model>> model_of(const nlohmann::json& config);
std::unique_ptr<Model> model_of(const ModelFacts& facts);

}  // namespace gridless::models
