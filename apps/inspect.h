// What `gridless inspect` can look into: one function per kind of file, each in a file of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gridless/base/error.h"
#include "gridless/weights/checkpoint.h"

namespace gridless::apps {

struct InspectOptions {
  bool json = false;
  bool every_tensor = false;  // list tensors one by one instead of by kind
};

// A checkpoint: a directory, a .safetensors or a .gguf file. Prints to stdout.
Result<void> inspect_checkpoint(const std::string& path, const InspectOptions& options);

// A kernel: a Mosaic body or StableHLO text (ir/read_program.h). Prints to stdout; what the
// verifier finds goes to stderr and is no error here.
bool is_kernel_file(const std::string& path);  // by its extension, or because it is MLIR bytecode
Result<void> inspect_kernel(const std::string& path, const InspectOptions& options);

// What a step over the checkpoint would read: {"formats": by matrix, "kv_bytes_per_token" (of the
// model, without padding), "cores": [per core count {"cores", "chunk_bytes", "chunks_per_core",
// "image_bytes" and "used_bytes" (all cores; used: without the unread ends of chunks), "waste" and
// "waste_read" (their shares that are no weights of the model), "kv_bytes_per_token" (as stored),
// "kv_heads_per_core", "query_groups"} or {"cores", "error"}]}, or {"error"} where no step runs it.
nlohmann::json step_facts(const weights::Checkpoint& checkpoint);
void print_step(const nlohmann::json& step);

}  // namespace gridless::apps
