// A model's checkpoint, whatever its files: tensors by their Hugging Face names and a config.
//
//   Checkpoint::open(path)   a directory with safetensors (sharded by model.safetensors.index.json,
//   or
//                            model.safetensors, or the only *.safetensors there) and config.json,
//                            or with a single .gguf; or one .safetensors or .gguf file;
//                            or a directory of packed images (images.h), which has no tensors.
//
// Files are mapped, not read: opening costs the headers. Everything handed out points into the
// checkpoint and lives as long as it does. Immutable after open: any number of threads may read.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/mapped_file.h"
#include "gridless/weights/gguf.h"
#include "gridless/weights/images.h"
#include "gridless/weights/tensor.h"

namespace gridless::weights {

class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::string& path);

  Checkpoint(Checkpoint&&) noexcept = default;
  Checkpoint& operator=(Checkpoint&&) noexcept = default;

  // Every tensor, in file order, shards in the order of their names.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;
  // The same, or an error that names the tensor and the checkpoint.
  Result<const TensorView*> require(std::string_view name) const;

  // config.json, or the GGUF metadata in its terms (gguf_names.h). An empty object for a lone
  // .safetensors file without a config.json beside it.
  const nlohmann::json& config() const { return *config_; }

  // What a directory of packed images holds instead of tensors; null for all others.
  const Images* images() const { return images_.get(); }

  // Tensors that nobody has asked for by find() or require(), in file order.
  std::vector<std::string> unasked() const;
  // Lets go of memory that holds pages of the files: they are read again where they are needed.
  void release_pages() const;

  // The GGUF header (tokenizer, chat template), null for safetensors.
  const Gguf* gguf() const { return gguf_.get(); }

  const std::string& path() const { return path_; }
  // Where tokenizer.json and the like lie: the directory, or the one that holds the file.
  const std::string& directory() const { return directory_; }
  // Bytes of all files.
  uint64_t file_bytes() const;

 private:
  Checkpoint();
  Result<void> open_directory();
  Result<void> open_gguf(const std::string& file);
  Result<void> open_safetensors(const std::string& file);
  Result<void> open_shards(const std::string& index_file);
  Result<void> read_config();
  void build_index();

  std::string path_;
  std::string directory_;
  std::vector<MappedFile> files_;
  std::vector<TensorView> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::unique_ptr<std::atomic<bool>[]> asked_;  // as tensors_
  std::unique_ptr<Images> images_;
  std::shared_ptr<const nlohmann::json> config_;
  std::unique_ptr<Gguf> gguf_;
};

}  // namespace gridless::weights
