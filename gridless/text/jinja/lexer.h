// Template text to tokens, with Jinja's rules for white space around blocks as transformers sets
// them: trim_blocks (the newline after a block goes), lstrip_blocks (spaces before a block at the
// start of its line go), one newline at the end of the template goes; "-" strips more, "+" keeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gridless/text/jinja/value.h"

namespace gridless::text::jinja {

struct Token {
  enum class Type {
    kText,
    kVarBegin,
    kVarEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInt,
    kFloat,
    kOp,
    kEnd
  };
  Type type = Type::kEnd;
  std::string text;  // text, name, operator, or the value of a string literal
  int line = 1;
  int64_t integer = 0;
  double real = 0;
};

// Throws Fault.
std::vector<Token> tokenize(std::string_view source);

}  // namespace gridless::text::jinja
