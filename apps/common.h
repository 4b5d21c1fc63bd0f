// What every subcommand shares: exit statuses, messages on stderr, the one JSON object on stdout,
// progress of long work, and examples in --help.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"

namespace gridless::apps {

constexpr int kDone = 0;          // done and clean
constexpr int kBadInput = 1;      // the file, option or kernel is at fault
constexpr int kMachineFault = 2;  // our bug or the machine's

// Prints "gridless: message" to stderr; returns the exit status that the error's kind asks for.
int report(const Error& error);
// Prints every diagnostic to stderr; returns kBadInput if one of them is an error, else kDone.
int report(const Diagnostics& list);

// kind, message, location ("" where unknown), notes, hint.
nlohmann::json json_of(const Diagnostic& diagnostic);

// Prints `object` and a newline to stdout. With --json this is called exactly once per run, and
// nothing else goes to stdout. Bytes that are not UTF-8 (a broken token) become U+FFFD.
void print_json(const nlohmann::json& object);

// Call last: the exit status of a command that would end with `status`. Output that a full disk or
// a closed pipe swallowed is a machine fault, which is said on stderr.
int finish_output(int status);

// That a file can be written there, before the work whose result it takes: not a directory, and in
// one that exists and may be written to.
Result<void> check_writable(const std::filesystem::path& path);

// Replaces the file whole or not at all: writes beside it, then renames.
Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

// The text of a file (pipes and devices too), or of standard input for "-": at most kMostText
// bytes.
constexpr std::size_t kMostText = std::size_t{64} << 20;
Result<std::string> read_text(const std::filesystem::path& path);

// The "Examples:" block under --help. Each line is a whole command.
void set_examples(CLI::App* command, std::initializer_list<std::string_view> lines);

// The name in `known` nearest to `word` by edit distance, or "" when none is near enough to be
// what the user meant (more than a third of the letters wrong).
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Progress of long work on stderr: a bar that redraws on a terminal, a plain line every few seconds
// otherwise; work that is over within a second prints nothing. One thread only.
class Progress {
 public:
  // `what` is a present participle ("packing layer weights"); `total` in `unit` ("layers"), or in
  // bytes when unit is "B".
  Progress(std::string what, std::uint64_t total, std::string unit);
  ~Progress();  // ends the line on a terminal
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done);  // cheap enough to call in a loop over megabytes

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(std::uint64_t done, double seconds) const;

  std::string what_;
  std::uint64_t total_;
  std::string unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace gridless::apps
