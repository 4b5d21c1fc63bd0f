#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common.h"
#include "apps/inspect.h"
#include "gridless/base/json.h"
#include "gridless/base/mapped_file.h"
#include "gridless/weights/checkpoint.h"
#include "gridless/weights/summary.h"

namespace gridless::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using weights::Checkpoint;
using weights::Summary;

// What of a config.json a reader wants on one screen.
constexpr const char* kConfigKeys[] = {
    "architectures",       "model_type",          "hidden_size",         "intermediate_size",
    "num_hidden_layers",   "num_attention_heads", "num_key_value_heads", "head_dim",
    "vocab_size",          "rms_norm_eps",        "rope_theta",          "rope_scaling",
    "tie_word_embeddings", "num_experts",         "num_experts_per_tok", "max_position_embeddings"};

json config_summary(const json& config) {
  // Models that also see or hear keep the language model's config one level down.
  const auto inner = config.find("text_config");
  json out = json::object();
  for (const char* key : kConfigKeys) {
    if (config.contains(key)) {
      out[key] = config[key];
    } else if (inner != config.end() && inner->is_object() && inner->contains(key)) {
      out[key] = (*inner)[key];
    }
  }
  return out;
}

json gguf_tokenizer(const weights::Gguf& gguf) {
  json out = json::object();
  const auto text = [&](const char* name, const char* key) {
    if (const auto* v = gguf.find(key); v && v->string()) out[name] = std::string(*v->string());
  };
  const auto integer = [&](const char* name, const char* key) {
    if (const auto* v = gguf.find(key); v && v->integer()) out[name] = *v->integer();
  };
  const auto count = [&](const char* name, const char* key) {
    if (const auto* v = gguf.find(key); v && v->array()) out[name] = v->array()->count;
  };
  text("model", "tokenizer.ggml.model");
  text("pre_tokenizer", "tokenizer.ggml.pre");
  count("tokens", "tokenizer.ggml.tokens");
  count("merges", "tokenizer.ggml.merges");
  integer("bos", "tokenizer.ggml.bos_token_id");
  integer("eos", "tokenizer.ggml.eos_token_id");
  integer("pad", "tokenizer.ggml.padding_token_id");
  if (out.empty()) return nullptr;
  out["source"] = "gguf";
  out["chat_template"] = gguf.find("tokenizer.chat_template") != nullptr;
  return out;
}

// The same from the files beside a safetensors checkpoint; null where there is no tokenizer.
Result<json> file_tokenizer(const std::string& directory) {
  const auto parsed = [&](const char* name) -> Result<json> {
    const std::string path = (fs::path(directory) / name).string();
    const auto text = read_text_file(path);
    if (!text) return json();
    return parse_json(*text, path);
  };
  std::error_code ignored;
  json out = json::object();
  TRY(const json tokenizer, parsed("tokenizer.json"));
  if (tokenizer.is_object()) {
    out["source"] = "tokenizer.json";
    const json& model = tokenizer.value("model", json::object());
    if (model.is_object()) {
      if (model.contains("type")) out["model"] = model["type"];
      if (model.contains("vocab")) out["tokens"] = model["vocab"].size();
      if (model.contains("merges")) out["merges"] = model["merges"].size();
    }
    if (tokenizer.contains("added_tokens")) out["added_tokens"] = tokenizer["added_tokens"].size();
  } else if (fs::exists(fs::path(directory) / "tiktoken.model", ignored)) {
    out["source"] = "tiktoken.model";
  } else {
    return json();
  }
  TRY(const json config, parsed("tokenizer_config.json"));
  out["chat_template"] = (config.is_object() && config.contains("chat_template")) ||
                         fs::exists(fs::path(directory) / "chat_template.jinja", ignored);
  return out;
}

Result<json> to_json(const Checkpoint& model, const Summary& summary,
                     const InspectOptions& options) {
  json tokenizer;
  if (model.gguf()) {
    tokenizer = gguf_tokenizer(*model.gguf());
  } else {
    TRY(tokenizer, file_tokenizer(model.directory()));
  }
  json formats = json::array();
  for (const auto& f : summary.formats)
    formats.push_back({{"dtype", weights::name(f.dtype)},
                       {"tensors", f.tensors},
                       {"elements", f.elements},
                       {"bytes", f.bytes},
                       {"readable", weights::info(f.dtype).readable},
                       {"runs_as", weights::stream_format(f.dtype)}});
  json tensors = json::array();
  if (options.every_tensor) {
    for (const auto& t : model.tensors())
      tensors.push_back({{"name", t.name},
                         {"dtype", weights::name(t.dtype)},
                         {"shape", t.shape},
                         {"bytes", t.stored.size()}});
  } else {
    for (const auto& k : summary.kinds)
      tensors.push_back({{"name", k.name},
                         {"dtype", weights::name(k.dtype)},
                         {"shape", k.shape},
                         {"count", k.tensors},
                         {"bytes", k.bytes}});
  }
  return json{{"path", model.path()},
              {"kind", "checkpoint"},
              {"container", model.gguf() ? "gguf" : "safetensors"},
              {"tensor_count", model.tensors().size()},
              {"parameters", summary.elements},
              {"bytes", summary.bytes},
              {"file_bytes", model.file_bytes()},
              {"formats", formats},
              {"tensors", tensors},
              {"config", config_summary(model.config())},
              {"step", step_facts(model)},
              {"tokenizer", tokenizer}};
}

std::string megabytes(uint64_t bytes) {
  return bytes < 1'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

void print_object(const char* title, const json& object) {
  fmt::print("\n{}\n", title);
  for (const auto& [key, value] : object.items())
    fmt::print("  {:<24} {}\n", key,
               value.is_string()
                   ? weights::printable(value.get_ref<const std::string&>())
                   : weights::printable(value.dump(-1, ' ', true, json::error_handler_t::replace)));
}

void print_text(const json& all) {
  const auto count = all["parameters"].get<uint64_t>();
  const auto bytes = all["bytes"].get<uint64_t>();
  fmt::print("{}\n{}, {} tensors, {:.1f} M parameters, {} of weights, {:.2f} bits per parameter\n",
             all["path"].get<std::string>(), all["container"].get<std::string>(),
             all["tensor_count"].get<uint64_t>(), static_cast<double>(count) / 1e6,
             megabytes(bytes),
             count ? 8 * static_cast<double>(bytes) / static_cast<double>(count) : 0.0);
  fmt::print("\n{:<10} {:>8} {:>14} {:>12}  {}\n", "format", "tensors", "elements", "bytes",
             "matrices run as");
  for (const json& f : all["formats"]) {
    const auto runs_as = f["runs_as"].get<std::string>();
    fmt::print("{:<10} {:>8} {:>14} {:>12}  {}\n", f["dtype"].get<std::string>(),
               f["tensors"].get<int64_t>(), f["elements"].get<uint64_t>(),
               megabytes(f["bytes"].get<uint64_t>()),
               !f["readable"].get<bool>() ? "cannot be read: convert it to Q8_0, Q4_0, Q4_1 or BF16"
               : runs_as.empty()          ? "-"
                                          : runs_as);
  }
  fmt::print("\n{:<56} {:<9} {:<16} {:>6} {:>12}\n", "tensor", "format", "shape", "count", "bytes");
  for (const json& t : all["tensors"])
    fmt::print("{:<56} {:<9} {:<16} {:>6} {:>12}\n",
               weights::printable(t["name"].get<std::string>()), t["dtype"].get<std::string>(),
               weights::shape_text(t["shape"].get<std::vector<int64_t>>()), t.value("count", 1),
               megabytes(t["bytes"].get<uint64_t>()));
  if (!all["config"].empty()) print_object("config", all["config"]);
  if (!all["tokenizer"].is_null()) print_object("tokenizer", all["tokenizer"]);
  print_step(all["step"]);
}

}  // namespace

namespace {

void inspect_images(const Checkpoint& model, const InspectOptions& options) {
  const weights::ImageManifest& m = model.images()->manifest();
  json all = m.to_json();
  all["path"] = model.path();
  all["kind"] = "images";
  all["bytes"] = m.bytes();
  if (!options.every_tensor)
    for (json& file : all["files"]) file["pieces"] = file["pieces"].size();
  if (options.json) return print_json(all);
  fmt::print("{}\npacked images for {} cores, {} in {} files; layers in {}, head in {}\n\n",
             model.path(), m.cores, megabytes(m.bytes()), m.files.size(), m.formats[0],
             m.formats[1]);
  fmt::print("{:<32} {:>14} {:>8}\n", "file", "bytes", "pieces");
  for (const weights::ImageFile& f : m.files)
    fmt::print("{:<32} {:>14} {:>8}\n", f.name(), f.bytes, f.pieces.size());
  fmt::print("\n{} tensors of the checkpoint are in none of them\n", m.left_out.size());
  for (const std::string& name : m.left_out)
    if (options.every_tensor) fmt::print("  {}\n", weights::printable(name));
}

}  // namespace

Result<void> inspect_checkpoint(const std::string& path, const InspectOptions& options) {
  TRY(const Checkpoint model, Checkpoint::open(path));
  if (model.images()) {
    inspect_images(model, options);
    return {};
  }
  TRY(const json all, to_json(model, weights::summarise(model.tensors()), options));
  if (options.json) {
    print_json(all);
  } else {
    print_text(all);
  }
  return {};
}

}  // namespace gridless::apps
