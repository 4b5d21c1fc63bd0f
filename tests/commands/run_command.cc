#include "tests/commands/run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "gridless/base/check.h"

namespace gridless::testing {
namespace {

// An unnamed temporary file: unlike a pipe it never fills up, so nothing has to be drained
// meanwhile.
class Scratch {
 public:
  Scratch() : file_(std::tmpfile()) { GRIDLESS_CHECK(file_ != nullptr, "no temporary file"); }
  ~Scratch() { std::fclose(file_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  int fd() const { return ::fileno(file_); }
  void fill(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), file_);
    std::rewind(file_);
  }
  std::string text() {
    std::string all;
    std::rewind(file_);
    std::array<char, 65536> buffer;
    for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), file_)) > 0;) {
      all.append(buffer.data(), n);
    }
    return all;
  }

 private:
  std::FILE* file_;
};

}  // namespace

Outcome run_command(const std::vector<std::string>& arguments, const RunOptions& options) {
  std::vector<std::string> words = {GRIDLESS_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(std::move(words), options);
}

Outcome run_program(std::vector<std::string> words, const RunOptions& options) {
  Scratch in, out, err;
  in.fill(options.input);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> added = options.environment;

  const pid_t child = ::fork();
  GRIDLESS_CHECK(child >= 0, "fork failed");
  if (child == 0) {
    for (std::string& entry : added) ::putenv(entry.data());
    ::dup2(in.fd(), 0);
    ::dup2(options.output.empty() ? out.fd() : ::open(options.output.c_str(), O_WRONLY), 1);
    ::dup2(err.fd(), 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int state = 0;
  ::waitpid(child, &state, 0);
  const int status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return {status, out.text(), err.text()};
}

std::vector<std::string> subcommands() {
  std::vector<std::string> names;
  std::istringstream help(run_command({"--help"}).out);
  bool listing = false;
  for (std::string line; std::getline(help, line);) {
    if (line == "Subcommands:") {
      listing = true;
    } else if (listing && !line.starts_with("  ")) {
      break;
    } else if (listing && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

}  // namespace gridless::testing
