#include "apps/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

namespace gridless::apps {
namespace {

// "12.3 MB", "30 layers".
std::string amount(double value, const std::string& unit) {
  if (unit != "B") return fmt::format("{:.0f} {}", value, unit);
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t i = 0;
  for (; value >= 1000 && i + 1 < kUnits.size(); ++i) value /= 1000;
  return fmt::format("{:.{}f} {}", value, i == 0 ? 0 : 1, kUnits[i]);
}

// Levenshtein distance: insertions, deletions and replacements count one each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replace});
    }
  }
  return row.back();
}

}  // namespace

int report(const Error& error) {
  fmt::print(stderr, "gridless: {}\n", error.message);
  return error.kind == Error::Kind::kInput ? kBadInput : kMachineFault;
}

int report(const Diagnostics& list) {
  fmt::print(stderr, "{}", to_string(list));
  return has_errors(list) ? kBadInput : kDone;
}

nlohmann::json json_of(const Diagnostic& d) {
  return {{"kind", d.kind},
          {"message", d.message},
          {"location", d.where.str_if_known()},
          {"notes", d.notes},
          {"hint", d.hint}};
}

void print_json(const nlohmann::json& object) {
  fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

int finish_output(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  // errno may be gone when the failure was at an earlier flush.
  fmt::print(stderr, "gridless: standard output is incomplete: {}\n",
             errno != 0 ? std::strerror(errno) : "a write to it failed");
  return kMachineFault;
}

Result<void> check_writable(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error))
    return input_error("cannot write '{}': it is a directory, not a file", path.string());
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(parent, error))
    return input_error("cannot write '{}': there is no directory '{}'", path.string(),
                       parent.string());
  if (::access(parent.c_str(), W_OK | X_OK) != 0)
    return input_error("cannot write '{}': {}", path.string(), std::strerror(errno));
  return {};
}

Result<void> write_file(const std::filesystem::path& path, std::string_view bytes) {
  TRY_VOID(check_writable(path));
  std::filesystem::path part = path;
  part += fmt::format(".part{}", ::getpid());
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) {
    return input_error("cannot write '{}': {}", path.string(), std::strerror(errno));
  }
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(part.c_str(), path.c_str()) != 0) {
    const int why = errno;
    std::remove(part.c_str());
    return machine_error("cannot write '{}' ({} bytes): {}", path.string(), bytes.size(),
                         std::strerror(why));
  }
  return {};
}

Result<std::string> read_text(const std::filesystem::path& path) {
  std::string text;
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return input_error("cannot read '{}': {}", path.string(), std::strerror(errno));
  }
  std::array<char, 65536> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;) {
    text.append(buffer.data(), n);
    if (text.size() > kMostText) break;
  }
  const bool failed = std::ferror(file) != 0;  // a directory opens but does not read
  const int why = errno;
  if (file != stdin) std::fclose(file);
  if (failed) return input_error("cannot read '{}': {}", path.string(), std::strerror(why));
  if (text.size() > kMostText) {
    return input_error("'{}' holds more than {} MiB of text: give a smaller file", path.string(),
                       kMostText >> 20);
  }
  return text;
}

void set_examples(CLI::App* command, std::initializer_list<std::string_view> lines) {
  command->footer(fmt::format("Examples:\n  {}", fmt::join(lines, "\n  ")));
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

Progress::Progress(std::string what, std::uint64_t total, std::string unit)
    : what_(std::move(what)),
      total_(total),
      unit_(std::move(unit)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_(start_ + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (terminal_ && drawn_) fmt::print(stderr, "\n");
}

void Progress::update(std::uint64_t done) {
  const Clock::time_point now = Clock::now();
  if (now < next_ && !(drawn_ && done >= total_)) return;
  const std::string text = line(done, std::chrono::duration<double>(now - start_).count());
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", text);  // back to column 0, clear the line
    next_ = now + std::chrono::milliseconds(100);
  } else {
    fmt::print(stderr, "{}\n", text);
    next_ = now + std::chrono::seconds(3);
  }
  std::fflush(stderr);
  drawn_ = true;
}

std::string Progress::line(std::uint64_t done, double seconds) const {
  const double share = total_ == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total_);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0.0;
  std::string bar;
  if (terminal_) {
    constexpr std::size_t kWidth = 24;
    const std::size_t full = static_cast<std::size_t>(std::min(share, 1.0) * kWidth);
    bar = fmt::format("[{}{}] ", std::string(full, '#'), std::string(kWidth - full, '.'));
  }
  std::string left;
  if (rate > 0 && done < total_) {
    left = fmt::format(", {:.0f} s left", static_cast<double>(total_ - done) / rate);
  }
  return fmt::format("{} {}{:.0f} % ({} of {}, {}/s{})", what_, bar, share * 100,
                     amount(static_cast<double>(done), unit_),
                     amount(static_cast<double>(total_), unit_), amount(rate, unit_), left);
}

}  // namespace gridless::apps
