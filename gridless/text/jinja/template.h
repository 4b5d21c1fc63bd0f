// The door of the template engine: the part of Jinja that chat templates use, with the settings of
// Hugging Face transformers (trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson
// without HTML escaping, an immutable sandbox). What is not supported is named in an error with its
// line.
//
// Thread contract: a Template is immutable; any number of threads may render it.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless::text {

struct RenderOptions {
  // What strftime_now sees; none: the local time of the call.
  std::optional<std::tm> now;
  // Bound on time and memory, roughly in bytes of text made (a step of the interpreter counts as
  // 16).
  size_t work_limit = 128 << 20;
};

class Template {
 public:
  // An error names the line of the template.
  static Result<Template> parse(std::string_view source);

  // `variables` is an object; its members are the template's variables, in insertion order where
  // that shows.
  Result<std::string> render(const nlohmann::ordered_json& variables,
                             const RenderOptions& options = {}) const;

 private:
  struct Tree;
  std::shared_ptr<const Tree> tree_;
};

}  // namespace gridless::text
