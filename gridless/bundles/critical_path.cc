#include "gridless/bundles/critical_path.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "gridless/bundles/instruction_reader.h"

namespace gridless::bundles {
namespace {

constexpr std::string_view kBlock = "New basic block in region: region";
constexpr std::string_view kLink = "Length to end: ";

// The number at `at`, and where it ends; negative when there is none.
int number(std::string_view text, size_t at, size_t* end = nullptr) {
  int value = -1;
  const auto [behind, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (end != nullptr) *end = static_cast<size_t>(behind - text.data());
  return error == std::errc() ? value : -1;
}

ChainLink read_link(std::string_view line, size_t at) {
  ChainLink out;
  size_t end = 0;
  out.to_end = number(line, at, &end);
  std::string_view rest = line.substr(std::min(end, line.size()));
  if (rest.starts_with(", ")) rest.remove_prefix(2);
  const std::string closed = std::string(rest) + "}";
  if (const auto raw = InstructionReader(closed).next()) {
    out.instruction = raw->text;
    const std::vector<SourceLoc> places = source_places(raw->comments);
    if (!places.empty()) out.where = places[0];
  }
  return out;
}

}  // namespace

std::vector<CriticalPath> parse_critical_paths(std::string_view text) {
  std::vector<CriticalPath> out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (const size_t at = line.find(kBlock); at != std::string_view::npos) {
      out.push_back({.region = number(line, at + kBlock.size())});
    } else if (const size_t link = line.find(kLink);
               link != std::string_view::npos && !out.empty()) {
      out.back().chain.push_back(read_link(line, link + kLink.size()));
    }
  }
  for (CriticalPath& path : out) {
    if (!path.chain.empty()) path.cycles = path.chain.front().to_end;
  }
  std::erase_if(out, [](const CriticalPath& path) { return path.chain.empty(); });
  return out;
}

void place_critical_paths(const Listing& listing, std::vector<CriticalPath>& paths) {
  std::map<int, std::pair<int, const Instruction*>> defs;  // number -> bundle, instruction
  for (int b = 0; b < std::ssize(listing.bundles); ++b) {
    for (int i = listing.bundles[b].first; i < listing.bundles[b].last; ++i) {
      const Instruction& instruction = listing.instructions[i];
      if (instruction.def >= 0) defs[instruction.def] = {b, &instruction};
    }
  }
  for (CriticalPath& path : paths) {
    for (const ChainLink& link : path.chain) {
      const Instruction theirs = read_instruction(link.instruction);
      const auto at = defs.find(theirs.def);
      if (at == defs.end() || at->second.second->opcode != theirs.opcode) continue;
      const int bundle = at->second.first;
      path.begin = path.begin < 0 ? bundle : std::min(path.begin, bundle);
      path.end = std::max(path.end, bundle + 1);
    }
  }
}

}  // namespace gridless::bundles
