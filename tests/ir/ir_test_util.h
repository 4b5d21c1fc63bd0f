// Helpers of the IR tests: files, parsing that must succeed, and texts made comparable.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "gridless/ir/text.h"

namespace gridless::ir {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::filesystem::path> corpus_modules() {
  std::vector<std::filesystem::path> out;
  for (const auto& d : std::filesystem::directory_iterator(GRIDLESS_TEST_DATA "/corpus")) {
    if (std::filesystem::exists(d.path() / "module.mlir")) out.push_back(d.path() / "module.mlir");
  }
  std::ranges::sort(out);
  return out;
}

inline std::vector<std::filesystem::path> mlir_files() {
  std::vector<std::filesystem::path> out;
  for (const auto& f : std::filesystem::directory_iterator(GRIDLESS_TEST_DATA "/mlir"))
    out.push_back(f.path());
  std::ranges::sort(out);
  return out;
}

inline Module parse_ok(const std::string& text, const std::string& file = "t.mlir") {
  auto m = parse(text, file);
  EXPECT_TRUE(m.has_value()) << file << "\n" << (m ? "" : to_string(m.error()));
  return m ? std::move(*m) : Module();
}

// A module of one function @main() with `body`, plain form.
inline std::string in_main(const std::string& body, const std::string& args = "",
                           const std::string& types = "") {
  return "\"builtin.module\"() ({\n\"func.func\"() ({\n" +
         (args.empty() ? std::string() : "^bb0(" + args + "):\n") + body +
         "\n\"func.return\"() : () -> ()\n}) {function_type = (" + types +
         ") -> (), sym_name = \"main\"} : () -> ()\n}) : () -> ()\n";
}

// The same text with values renamed in the order in which they appear, spaces folded, and the
// parentheses around a single result type dropped.
inline std::string normalised(const std::string& text) {
  std::map<std::string, int> names;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '%') {
      size_t j = i + 1;
      while (j < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[j])) || text[j] == '_'))
        ++j;
      const auto number = static_cast<int>(names.size());
      out += "%v" + std::to_string(names.try_emplace(text.substr(i, j - i), number).first->second);
      i = j;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      if (!out.empty() && out.back() != ' ' && out.back() != '\n') out += c == '\n' ? '\n' : ' ';
      if (c == '\n' && out.back() == ' ') out.back() = '\n';
      ++i;
    } else {
      out += c;
      ++i;
    }
  }
  std::string flat;
  for (size_t i = 0; i < out.size();) {
    if (out.compare(i, 4, "-> (") == 0) {
      const size_t end = out.find_first_of("()\n", i + 4);
      const std::string inner = out.substr(i + 4, end - i - 4);
      // Commas inside <...> do not separate types; "memref<...>, i32" has one outside.
      int depth = 0;
      bool single = !inner.empty() && out[end] == ')';
      for (char c : inner) {
        depth += (c == '<') - (c == '>');
        if (c == ',' && depth == 0) single = false;
      }
      if (single) {
        flat += "-> " + inner;
        i = end + 1;
        continue;
      }
    }
    flat += out[i++];
  }
  return flat;
}

}  // namespace gridless::ir
