// Runs the built `gridless` command as a user would, for black-box tests.
#pragma once

#include <string>
#include <vector>

namespace gridless::testing {

struct Outcome {
  int status = -1;  // exit status, or 128 + the signal that ended it, as a shell counts
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string input;                     // standard input
  std::string output;                    // a file for standard output, which `out` then lacks
  std::vector<std::string> environment;  // "NAME=value", added to this process's
};

// `arguments` go to the command as they are; no shell is involved.
Outcome run_command(const std::vector<std::string>& arguments, const RunOptions& options = {});

// Any program: words[0] is its path.
Outcome run_program(std::vector<std::string> words, const RunOptions& options = {});

// The subcommands that `gridless --help` lists.
std::vector<std::string> subcommands();

}  // namespace gridless::testing
