#include "gridless/weights/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "gridless/base/json.h"
#include "gridless/weights/gguf_names.h"
#include "gridless/weights/safetensors.h"

namespace gridless::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The names of the files in `directory` that end in `suffix`, sorted.
std::vector<std::string> files_ending(const std::string& directory, std::string_view suffix) {
  std::vector<std::string> out;
  std::error_code code;
  for (fs::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
    if (it->path().extension() == suffix) out.push_back(it->path().string());
  std::ranges::sort(out);
  return out;
}

// Opens a file and parses it, errors with the file's name in front.
template <typename Parse>
auto parse_file(const MappedFile& file, Parse parse) -> decltype(parse(file.bytes())) {
  auto out = parse(file.bytes());
  if (!out) return std::unexpected(out.error().in(file.path()));
  return out;
}

}  // namespace

Checkpoint::Checkpoint()
    : config_(std::make_shared<const nlohmann::json>(nlohmann::json::object())) {}

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  Checkpoint out;
  out.path_ = path;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    out.directory_ = path;
    TRY_VOID(out.open_directory());
  } else {
    const fs::path parent = fs::path(path).parent_path();
    out.directory_ = parent.empty() ? "." : parent.string();
    if (path.ends_with(".gguf")) {
      TRY_VOID(out.open_gguf(path));
    } else if (path.ends_with(".safetensors")) {
      TRY_VOID(out.open_safetensors(path));
      TRY_VOID(out.read_config());
    } else if (std::error_code ignored; !fs::exists(path, ignored)) {
      return input_error("{}: no such file or directory", path);
    } else {
      return input_error(
          "{}: not a checkpoint: give a directory with safetensors and config.json, a .safetensors "
          "or a .gguf file",
          path);
    }
  }
  out.build_index();
  return out;
}

Result<void> Checkpoint::open_directory() {
  const fs::path dir(directory_);
  const std::vector<std::string> safetensors = files_ending(directory_, ".safetensors");
  const std::vector<std::string> gguf = files_ending(directory_, ".gguf");
  if (is_file(dir / ImageManifest::kFile)) {
    TRY(Images images, Images::open(directory_));
    images_ = std::make_unique<Images>(std::move(images));
    if (gguf.size() == 1) TRY_VOID(open_gguf(gguf[0]));  // it has a tokenizer, no tensors
  } else if (is_file(dir / kIndexName)) {
    TRY_VOID(open_shards((dir / kIndexName).string()));
  } else if (is_file(dir / kSingleName)) {
    TRY_VOID(open_safetensors((dir / kSingleName).string()));
  } else if (safetensors.size() == 1) {
    TRY_VOID(open_safetensors(safetensors[0]));
  } else if (safetensors.size() > 1) {
    return input_error("{}: {} safetensors files but no {}: fetch the index, or give one file",
                       directory_, safetensors.size(), kIndexName);
  } else if (gguf.size() == 1) {
    return open_gguf(gguf[0]);
  } else if (gguf.size() > 1) {
    return input_error("{}: {} .gguf files; give one of them, e.g. {}", directory_, gguf.size(),
                       gguf[0]);
  } else {
    return input_error("{}: no checkpoint here: neither .safetensors nor .gguf files", directory_);
  }
  return read_config();
}

Result<void> Checkpoint::open_gguf(const std::string& file) {
  TRY(MappedFile mapped, MappedFile::open(file));
  TRY(Gguf parsed, parse_file(mapped, Gguf::parse));
  if (auto adopted = adopt_hugging_face_layout(parsed); !adopted)
    return std::unexpected(adopted.error().in(file));
  gguf_ = std::make_unique<Gguf>(std::move(parsed));
  config_ = std::make_shared<const nlohmann::json>(config_of(*gguf_));
  tensors_ = gguf_->tensors;
  files_.push_back(std::move(mapped));
  return {};
}

Result<void> Checkpoint::open_safetensors(const std::string& file) {
  TRY(MappedFile mapped, MappedFile::open(file));
  TRY(Safetensors parsed, parse_file(mapped, Safetensors::parse));
  tensors_ = std::move(parsed.tensors);
  files_.push_back(std::move(mapped));
  return {};
}

Result<void> Checkpoint::open_shards(const std::string& index_file) {
  TRY(const std::string text, read_text_file(index_file));
  auto weight_map = parse_safetensors_index(text);
  if (!weight_map) return std::unexpected(weight_map.error().in(index_file));
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : *weight_map) shards.insert(shard);
  size_t found = 0;
  for (const std::string& shard : shards) {
    const fs::path file = fs::path(directory_) / shard;
    if (!is_file(file))
      return input_error("{}: the index names the shard '{}', which is not there: fetch it",
                         directory_, printable(shard));
    TRY(MappedFile mapped, MappedFile::open(file.string()));
    TRY(Safetensors parsed, parse_file(mapped, Safetensors::parse));
    for (TensorView& t : parsed.tensors) {
      // The index decides: a copy of a tensor in another shard is not this checkpoint's.
      const auto entry = weight_map->find(t.name);
      if (entry == weight_map->end() || entry->second != shard) continue;
      tensors_.push_back(std::move(t));
      ++found;
    }
    files_.push_back(std::move(mapped));
  }
  if (found == weight_map->size()) return {};
  build_index();
  for (const auto& [tensor, shard] : *weight_map)
    if (!find(tensor))
      return input_error(
          "{}: the index says that tensor '{}' is in '{}', which does not hold it: the shard "
          "belongs to "
          "another model or version, fetch both again",
          directory_, printable(tensor), printable(shard));
  return {};
}

Result<void> Checkpoint::read_config() {
  const std::string file = (fs::path(directory_) / "config.json").string();
  if (!is_file(file)) return {};
  TRY(const std::string text, read_text_file(file));
  TRY(nlohmann::json parsed, parse_json(text, file));
  if (!parsed.is_object()) return input_error("{}: not a JSON object: fetch it again", file);
  config_ = std::make_shared<const nlohmann::json>(std::move(parsed));
  return {};
}

void Checkpoint::build_index() {
  by_name_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  asked_ = std::make_unique<std::atomic<bool>[]>(tensors_.size());
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  asked_[found->second].store(true, std::memory_order_relaxed);
  return &tensors_[found->second];
}

std::vector<std::string> Checkpoint::unasked() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!asked_[i].load(std::memory_order_relaxed)) out.push_back(tensors_[i].name);
  return out;
}

void Checkpoint::release_pages() const {
  for (const MappedFile& file : files_) file.release_pages();
}

Result<const TensorView*> Checkpoint::require(std::string_view name) const {
  if (const TensorView* t = find(name)) return t;
  return input_error(
      "{}: holds no tensor '{}': not a checkpoint of this architecture, or incomplete", path_,
      printable(name));
}

uint64_t Checkpoint::file_bytes() const {
  uint64_t total = 0;
  for (const MappedFile& file : files_) total += file.bytes().size();
  return total;
}

}  // namespace gridless::weights
