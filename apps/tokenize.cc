// gridless tokenize: text to token ids and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/common.h"
#include "gridless/models/registry.h"
#include "gridless/text/text_model.h"

namespace gridless::apps {
namespace {

struct Arguments {
  std::string model, text, file, decode;
  bool has_text = false, has_decode = false, special = false, json = false;
};

// "1,2,3", with or without spaces.
Result<std::vector<int32_t>> parse_ids(std::string_view list) {
  std::vector<int32_t> ids;
  for (size_t pos = 0; pos < list.size();) {
    const size_t start = list.find_first_not_of(", \t\n[]", pos);
    if (start == std::string_view::npos) break;
    const size_t end = std::min(list.find_first_of(", \t\n[]", start), list.size());
    const std::string_view word = list.substr(start, end - start);
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size()) {
      return input_error("--decode: '{}' is not a token id; write ids as 1,2,3", word);
    }
    ids.push_back(id);
    pos = end;
  }
  return ids;
}

Result<void> tokenize(const Arguments& a) {
  if (a.has_text + a.has_decode + !a.file.empty() > 1) {
    return input_error("give one of --text, --file and --decode");
  }
  TRY(const std::filesystem::path path, models::resolve_weights(a.model));
  TRY(const text::Tokenizer tokenizer, text::load_tokenizer(path.string()));
  if (a.has_decode) {
    TRY(const std::vector<int32_t> ids, parse_ids(a.decode));
    TRY(const std::string text, tokenizer.decode(ids, /*skip_special=*/!a.special));
    if (a.json) {
      print_json({{"text", text}});
    } else {
      fmt::print("{}\n", text);
    }
    return {};
  }
  std::string text = a.text;
  if (!a.has_text) {
    TRY(text, read_text(a.file.empty() ? "-" : a.file));
  }
  TRY(const std::vector<int32_t> ids, tokenizer.encode(text, {.specials = a.special}));
  if (a.json) {
    std::vector<std::string> pieces;
    for (const int32_t id : ids) pieces.emplace_back(tokenizer.piece(id));
    print_json({{"ids", ids}, {"pieces", pieces}});
    return {};
  }
  for (const int32_t id : ids) {
    fmt::print("{:>7}  {}\n", id,
               nlohmann::json(tokenizer.piece(id))
                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return {};
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("tokenize", "Turn text into token ids, or ids back into text");
  const auto a = std::make_shared<Arguments>();
  command
      ->add_option(
          "MODEL", a->model,
          "A model's name, a checkpoint directory, a .gguf, a tokenizer.json or a tiktoken.model")
      ->required();
  CLI::Option* text = command->add_option("--text", a->text, "The text to encode");
  command->add_option(
      "--file", a->file,
      "A file to encode; without --text, --file and --decode standard input is read");
  CLI::Option* decode = command->add_option("--decode", a->decode, "Token ids to decode, as 1,2,3");
  command->add_flag(
      "--special", a->special,
      "Special tokens (<|im_end|>) in the text become their ids; with --decode they are "
      "printed");
  command->add_flag("--json", a->json, "Print {\"ids\", \"pieces\"}, or {\"text\"} with --decode");
  set_examples(command, {"gridless tokenize smollm2 --text 'Hello, world'",
                         "gridless tokenize smollm2 --decode 19556,28,905"});
  command->callback([a, text, decode, &exit_code] {
    a->has_text = text->count() > 0;
    a->has_decode = decode->count() > 0;
    const Result<void> done = tokenize(*a);
    exit_code = done ? kDone : report(done.error());
  });
}

}  // namespace gridless::apps
