// The text side of a checkpoint: its tokenizer and its chat template, wherever they are kept.
//
//   directory   tokenizer.json or tiktoken.model (with tokenizer_config.json), else a single .gguf;
//               chat_template.jinja, else tokenizer_config.json's "chat_template", else the .gguf's
//   .gguf       the tokenizer.* metadata
//   .json       a tokenizer.json, with the files beside it
//   .model, .tiktoken   a tiktoken.model, likewise
//   .jinja      a chat template alone
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "gridless/base/error.h"
#include "gridless/text/chat_template.h"
#include "gridless/text/tokenizer.h"
#include "gridless/weights/gguf.h"

namespace gridless::text {

Result<Tokenizer> load_tokenizer(const std::string& path);

struct ChatModel {
  Template chat_template;
  // bos_token, eos_token and so on, as transformers passes them to the template.
  nlohmann::ordered_json special_tokens = nlohmann::ordered_json::object();
};
// An error when the model has none (a base model), which says so.
Result<ChatModel> load_chat_model(const std::string& path);

// The tokenizer.ggml.* metadata; an error names the key that has the wrong type.
Result<GgufVocab> gguf_vocab(const weights::Gguf& gguf);

}  // namespace gridless::text
