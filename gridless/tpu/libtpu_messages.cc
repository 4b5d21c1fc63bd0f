#include "gridless/tpu/libtpu_messages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace gridless::tpu {
namespace {

struct Advice {
  std::string_view text;  // a part of the compiler's message
  std::string_view hint;
};

// The refusals that kernels meet most, and what to write instead. First match wins.
constexpr std::array kAdvice = {
    Advice{"aligned to tiles",
           "slice by whole tiles: the last dimension in multiples of 128, the one before in "
           "multiples of 8 rows (16-bit types included), or state a multiple with assume_multiple"},
    Advice{"cannot statically prove that index",
           "load at a multiple of the tile, or state it with assume_multiple"},
    Advice{"scoped vmem limit", "raise vmem_limit_bytes (at most 63.94 MiB) or use less scratch"},
    Advice{"memory space vmem",
           "a core has 63.94 MiB of VMEM in all; make the buffers smaller or fewer"},
    Advice{"memory space smem", "a core has 1 MiB of SMEM; move tables to HBM or VMEM"},
    Advice{"memory space sflag", "a core has 4096 semaphores, about 215 of them taken"},
    Advice{"available HBM",
           "a core has 94.74 GiB of HBM; use more cores or fewer bytes per weight"},
    Advice{"does not match Mosaic layout",
           "the call gives this operand another type or shape than the kernel's signature does"},
    Advice{"'has_communication' not specified", "set has_communication in the call"},
    Advice{"No such compile option", "the flag's name is misspelt or this libtpu does not have it"},
    Advice{"Unsupported version", "write the body at an older version, or use a newer libtpu"},
};

std::optional<int> number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// `file` then, at the front of `text`, ":line:column".
std::optional<SourceLoc> position(std::string_view file, std::string_view text) {
  if (!text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  const auto line = number(text);
  if (!line || !text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  const auto column = number(text);
  if (!column) return std::nullopt;
  return SourceLoc(std::string(file), *line, *column);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Lines that help nobody: where in libtpu it failed, and whom to tell.
bool is_noise(std::string_view line) {
  return line.empty() || line.starts_with("Please report a bug") ||
         line.starts_with("=== Source") || line.starts_with("platforms/") ||
         line.starts_with("third_party/") || line.starts_with("at location:");
}

constexpr std::string_view kPreambles[] = {
    "INTERNAL: ", "Failed to deserialize the Mosaic module: ",
    "Failed to parse the Mosaic module: ", "INTERNAL: "};

std::string_view without_preamble(std::string_view text) {
  for (const std::string_view preamble : kPreambles) {
    if (text.starts_with(preamble)) text.remove_prefix(preamble.size());
  }
  if (text.starts_with("Mosaic failed to compile")) {
    if (const size_t at = text.find("`: "); at != std::string_view::npos)
      text.remove_prefix(at + 3);
  }
  // "-:5:39: error: message"
  if (const size_t at = text.find(": error: "); at < text.find('\n')) text.remove_prefix(at + 9);
  return text;
}

}  // namespace

SourceLoc find_location(std::string_view text, std::string_view body_file) {
  const auto resolve = [&](SourceLoc at) {
    if (at.file == "-") at.file = body_file;
    return at;
  };
  constexpr std::string_view kLoc = "loc(\"";
  for (size_t at = text.find(kLoc); at != std::string_view::npos; at = text.find(kLoc, at + 1)) {
    const std::string_view rest = text.substr(at + kLoc.size());
    const size_t quote = rest.find('"');
    if (quote == std::string_view::npos) break;
    if (const auto found = position(rest.substr(0, quote), rest.substr(quote + 1))) {
      return resolve(*found);
    }
  }
  for (std::string_view line : split_lines(text)) {
    const size_t error = line.find(": error: ");
    if (error == std::string_view::npos) continue;
    line = line.substr(0, error);
    // A preamble may stand before the file name: take what follows its last ": ".
    if (const size_t colon = line.rfind(": "); colon != std::string_view::npos) {
      line.remove_prefix(colon + 2);
    }
    // The two numbers are at the end; the file is what precedes them.
    const size_t second = line.rfind(':');
    if (second == std::string_view::npos || second == 0) continue;
    const size_t first = line.rfind(':', second - 1);
    if (first == std::string_view::npos) continue;
    if (const auto found = position(line.substr(0, first), line.substr(first))) {
      return resolve(*found);
    }
  }
  return {};
}

Diagnostic diagnose(std::string_view text, std::string_view body_file) {
  constexpr size_t kMaxNotes = 8, kMaxNote = 500;
  Diagnostic out;
  out.where = find_location(text, body_file);
  const bool capacity = text.find("RESOURCE_EXHAUSTED") != std::string_view::npos ||
                        text.find("Ran out of memory") != std::string_view::npos ||
                        text.find("exceeds available HBM") != std::string_view::npos;
  out.kind = capacity ? "capacity" : "invalid_ir";
  for (const std::string_view line : split_lines(without_preamble(text))) {
    if (is_noise(line)) continue;
    if (out.message.empty()) {
      out.message = line;
    } else if (out.notes.size() < kMaxNotes) {
      out.notes.emplace_back(line.substr(0, kMaxNote));
    }
  }
  if (out.message.empty()) out.message = "libtpu refused the program without saying why";
  for (const Advice& advice : kAdvice) {
    if (text.find(advice.text) == std::string_view::npos) continue;
    out.hint = advice.hint;
    break;
  }
  return out;
}

}  // namespace gridless::tpu
