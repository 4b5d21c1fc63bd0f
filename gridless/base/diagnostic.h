// Diagnostic: the user's kernel or model is wrong. Carries where (the C++ line that built the op,
// or the line of a .mlir file), what, notes and a hint. Collected in a list, never thrown.
#pragma once

#include <source_location>
#include <string>
#include <vector>

namespace gridless {

// A place in a source file. `file` is empty when unknown. Lines and columns count from 1.
struct SourceLoc {
  std::string file;
  int line = 0;
  int column = 0;

  SourceLoc() = default;
  SourceLoc(std::string f, int l, int c = 0) : file(std::move(f)), line(l), column(c) {}
  SourceLoc(const std::source_location& s)  // NOLINT: implicit by design, call sites read better
      : file(s.file_name()),
        line(static_cast<int>(s.line())),
        column(static_cast<int>(s.column())) {}
  bool known() const { return !file.empty(); }
  std::string str() const;           // "file:line", or "unknown location"
  std::string str_if_known() const;  // "file:line", or ""
  bool operator==(const SourceLoc&) const = default;
};

struct Diagnostic {
  enum class Severity { kError, kWarning };
  Severity severity = Severity::kError;
  std::string kind;     // one of the kinds of the `check` command's JSON, e.g. "shape_mismatch"
  std::string message;  // what is wrong, one sentence, with the shapes or numbers involved
  SourceLoc where;
  std::vector<std::string> notes;
  std::string hint;  // what to write instead

  const char* severity_name() const { return severity == Severity::kError ? "error" : "warning"; }

  // "file:line: error: message\n  note: ...\n  hint: ..."
  std::string str() const;
};

using Diagnostics = std::vector<Diagnostic>;
bool has_errors(const Diagnostics& list);
std::string to_string(const Diagnostics& list);

}  // namespace gridless
