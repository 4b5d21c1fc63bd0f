#include "gridless/text/text_model.h"

#include <filesystem>
#include <vector>

#include "gridless/base/json.h"
#include "gridless/base/mapped_file.h"

namespace gridless::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What lies where, before anything is read.
struct Files {
  std::string tokenizer_json, tiktoken, config, jinja, gguf;
};

std::string existing(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? path.string() : std::string();
}

std::string single_gguf(const fs::path& directory) {
  std::error_code error;
  std::string found;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".gguf") continue;
    if (!found.empty()) return "";  // a choice that is not ours
    found = entry.path().string();
  }
  return found;
}

Files look(const fs::path& path) {
  Files f;
  std::error_code error;
  const std::string extension = path.extension().string();
  const bool directory = fs::is_directory(path, error);
  const fs::path folder = directory ? path : path.parent_path();
  if (extension == ".gguf" && !directory) {
    f.gguf = path.string();
    return f;
  }
  f.config = existing(folder / "tokenizer_config.json");
  if (directory) {
    f.tokenizer_json = existing(folder / "tokenizer.json");
    f.tiktoken = existing(folder / "tiktoken.model");
    f.gguf = single_gguf(folder);
  } else if (extension == ".model" || extension == ".tiktoken") {
    f.tiktoken = path.string();
  } else if (extension != ".jinja") {
    f.tokenizer_json = path.string();
  }
  f.jinja = extension == ".jinja" && !directory ? path.string()
                                                : existing(folder / "chat_template.jinja");
  return f;
}

Result<std::string> read_if_there(const std::string& path) {
  if (path.empty()) return std::string();
  return read_text_file(path);
}

template <typename T>
Result<T> in_file(Result<T> result, const std::string& path) {
  if (result) return result;
  Error error = result.error();
  // Some messages begin with the bare name of the file already.
  const std::string name = fs::path(path).filename().string() + ": ";
  if (error.message.starts_with(name)) error.message.erase(0, name.size());
  return std::unexpected(error.in(path));
}

Result<std::vector<std::string>> string_array(const weights::Gguf& gguf, const char* key) {
  const weights::GgufValue* value = gguf.find(key);
  if (value == nullptr) return std::vector<std::string>();
  const weights::GgufArray* array = value->array();
  if (array == nullptr || (array->element != weights::GgufType::kString && array->count > 0)) {
    return input_error("{} is not an array of strings", key);
  }
  return std::vector<std::string>(array->strings.begin(), array->strings.end());
}

int integer(const weights::Gguf& gguf, const char* key, int fallback) {
  const weights::GgufValue* value = gguf.find(key);
  const auto found = value == nullptr ? std::nullopt : value->integer();
  return found && *found >= 0 && *found <= INT32_MAX ? static_cast<int>(*found) : fallback;
}

std::string string(const weights::Gguf& gguf, const char* key) {
  const weights::GgufValue* value = gguf.find(key);
  const auto found = value == nullptr ? std::nullopt : value->string();
  return std::string(found.value_or(""));
}

// The template and the special tokens of a .gguf.
Result<std::string> from_gguf(const std::string& path, Json& special) {
  TRY(const MappedFile file, MappedFile::open(path));
  TRY(const weights::Gguf gguf, in_file(weights::Gguf::parse(file.bytes()), path));
  TRY(const std::vector<std::string> tokens, string_array(gguf, "tokenizer.ggml.tokens"));
  static constexpr std::pair<const char*, const char*> kRoles[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"}};
  for (const auto& [name, key] : kRoles) {
    const int id = integer(gguf, key, -1);
    if (id >= 0 && static_cast<size_t>(id) < tokens.size()) special[name] = tokens[id];
  }
  return string(gguf, "tokenizer.chat_template");
}

// The template in tokenizer_config.json (the one named "default" of several) and its special
// tokens.
std::string from_config(const Json& config, Json& special) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    const auto it = config.find(name);
    if (it == config.end()) continue;
    if (it->is_string()) special[name] = *it;
    if (it->is_object() && it->contains("content")) special[name] = (*it)["content"];
  }
  const auto it = config.find("chat_template");
  if (it == config.end()) return "";
  if (it->is_string()) return it->get<std::string>();
  std::string found;
  if (!it->is_array()) return found;
  for (const Json& entry : *it) {
    if (!entry.is_object() || !entry.contains("template") || !entry["template"].is_string())
      continue;
    if (found.empty() || entry.value("name", Json()) == "default") found = entry["template"];
  }
  return found;
}

}  // namespace

Result<GgufVocab> gguf_vocab(const weights::Gguf& gguf) {
  GgufVocab v;
  v.model = string(gguf, "tokenizer.ggml.model");
  v.pre = string(gguf, "tokenizer.ggml.pre");
  TRY(v.tokens, string_array(gguf, "tokenizer.ggml.tokens"));
  TRY(v.merges, string_array(gguf, "tokenizer.ggml.merges"));
  if (const weights::GgufValue* types = gguf.find("tokenizer.ggml.token_type")) {
    const weights::GgufArray* array = types->array();
    const bool numbers = array != nullptr && array->strings.empty() && array->arrays.empty();
    if (!numbers) return input_error("tokenizer.ggml.token_type is not an array of integers");
    for (uint64_t i = 0; i < array->count; ++i) {
      const auto type = array->number(i).integer();
      if (!type) return input_error("tokenizer.ggml.token_type is not an array of integers");
      v.token_types.push_back(static_cast<int>(*type));
    }
  }
  v.bos = integer(gguf, "tokenizer.ggml.bos_token_id", -1);
  v.eos = integer(gguf, "tokenizer.ggml.eos_token_id", -1);
  v.unk = integer(gguf, "tokenizer.ggml.unknown_token_id", -1);
  v.pad = integer(gguf, "tokenizer.ggml.padding_token_id", -1);
  const weights::GgufValue* add_bos = gguf.find("tokenizer.ggml.add_bos_token");
  v.add_bos = add_bos != nullptr && add_bos->boolean().value_or(false);
  return v;
}

Result<Tokenizer> load_tokenizer(const std::string& path) {
  const Files files = look(path);
  TRY(const std::string config, read_if_there(files.config));
  if (!files.tokenizer_json.empty()) {
    TRY(const std::string json, read_text_file(files.tokenizer_json));
    return in_file(Tokenizer::from_json(json, config), files.tokenizer_json);
  }
  if (!files.tiktoken.empty()) {
    TRY(const std::string model, read_text_file(files.tiktoken));
    return in_file(Tokenizer::from_tiktoken(model, config), files.tiktoken);
  }
  if (files.gguf.empty()) {
    return input_error(
        "'{}' has no tokenizer: give a directory with tokenizer.json or tiktoken.model, or a .gguf",
        path);
  }
  TRY(const MappedFile file, MappedFile::open(files.gguf));
  TRY(const weights::Gguf gguf, in_file(weights::Gguf::parse(file.bytes()), files.gguf));
  TRY(const GgufVocab vocab, in_file(gguf_vocab(gguf), files.gguf));
  return in_file(Tokenizer::from_gguf(vocab), files.gguf);
}

Result<ChatModel> load_chat_model(const std::string& path) {
  const Files files = look(path);
  ChatModel out;
  std::string source, origin = files.jinja;
  if (!files.config.empty()) {
    TRY(const std::string text, read_text_file(files.config));
    TRY(const Json config, parse_json<Json>(text, files.config));
    if (!config.is_object()) return input_error("{} is not a JSON object", files.config);
    source = from_config(config, out.special_tokens);
    if (origin.empty() && !source.empty()) origin = files.config;
  }
  if (!files.jinja.empty()) {
    TRY(source, read_text_file(files.jinja));
  } else if (source.empty() && !files.gguf.empty()) {
    TRY(source, from_gguf(files.gguf, out.special_tokens));
    origin = files.gguf;
  }
  if (source.empty()) {
    return input_error("'{}' has no chat template (a base model?): use a plain prompt{}", path,
                       files.gguf == path ? "" : ", or put a chat_template.jinja beside it");
  }
  TRY(out.chat_template, in_file(Template::parse(source), origin));
  return out;
}

}  // namespace gridless::text
