#include "gridless/bundles/instruction_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace gridless::bundles {
namespace {

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

template <typename T>
std::optional<T> number_at(std::string_view text, int base = 10) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && value >= 0 ? std::optional<T>(value) : std::nullopt;
}

// All values named in `text`, in order.
std::vector<int> values_in(std::string_view text) {
  std::vector<int> out;
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    if (const auto number = value_number(text.substr(at))) out.push_back(*number);
  }
  return out;
}

// "(%p3)" or "(!%p3)": an operand in parentheses that is a single predicate.
void read_predicate(std::string_view operands, Instruction& out) {
  for (size_t at = operands.find('('); at != std::string_view::npos;
       at = operands.find('(', at + 1)) {
    std::string_view inside = operands.substr(at + 1);
    const bool negated = inside.starts_with('!');
    if (negated) inside.remove_prefix(1);
    if (!inside.starts_with("%p") && !inside.starts_with("%vm")) continue;
    const size_t end = inside.find_first_of("), ");
    if (end == std::string_view::npos || inside[end] != ')') continue;  // "(%p0, %s1)": a select
    if (const auto number = value_number(inside)) {
      out.predicate = *number;
      out.negated = negated;
      return;
    }
  }
}

int64_t number_after(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return -1;
  return number_at<int64_t>(trim(text.substr(at + words.size()))).value_or(-1);
}

// ".mxu0", ".xlu1"
int unit_index(std::string_view opcode) {
  for (const std::string_view name : {".mxu", ".xlu"}) {
    const size_t at = opcode.find(name);
    if (at == std::string_view::npos || at + name.size() >= opcode.size()) continue;
    const char digit = opcode[at + name.size()];
    if (digit >= '0' && digit <= '9') return digit - '0';
  }
  return -1;
}

}  // namespace

std::optional<int> value_number(std::string_view name) {
  if (!name.starts_with('%')) return std::nullopt;
  name.remove_prefix(1);
  while (!name.empty() && std::islower(static_cast<unsigned char>(name.front()))) {
    name.remove_prefix(1);
  }
  return number_at<int>(name);
}

std::optional<RawInstruction> InstructionReader::next() {
  RawInstruction out;
  int brackets = 0;
  while (at_ < text_.size()) {
    if (text_.substr(at_).starts_with("/*")) {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) break;
      out.comments += text_.substr(at_ + 2, end - at_ - 2);
      at_ = end + 2;
      continue;
    }
    const char c = text_[at_];
    if (brackets == 0 && (c == '}' || text_.substr(at_).starts_with(";;"))) {
      at_ += c == '}' ? 1 : 2;
      out.last = c == '}';
      out.text = std::string(trim(out.text));
      return out;
    }
    if (c == '[') ++brackets;
    if (c == ']' && brackets > 0) --brackets;
    out.text += c;
    ++at_;
  }
  return std::nullopt;
}

Instruction read_instruction(const std::string& text) {
  Instruction out;
  out.text = text;
  std::string_view rest = text;
  const size_t equals = rest.find(" = ");
  if (rest.starts_with('%') && equals != std::string_view::npos) {
    out.def = value_number(rest.substr(0, equals)).value_or(-1);
    rest = trim(rest.substr(equals + 3));
  }
  const size_t blank = std::min(rest.find_first_of(" \t\n"), rest.size());
  out.opcode = std::string(rest.substr(0, blank));
  const std::string_view operands = rest.substr(blank);
  out.unit = unit_of(out.opcode);
  out.uses = values_in(operands);
  out.unit_index = unit_index(out.opcode);
  read_predicate(operands, out);
  if (out.opcode.starts_with("sbr")) {
    out.target_address = number_after(operands, "bundleno = ");
    out.target_region = number_after(operands, "region = ");
    if (out.target_region < 0) out.target_region = number_after(operands, "target = $region");
  }
  const bool slot = operands.find("_spill") != std::string_view::npos;
  out.spill = slot && (out.opcode.starts_with("vst") || out.opcode.starts_with("sst"));
  out.fill = slot && !out.spill;
  return out;
}

std::vector<SourceLoc> source_places(std::string_view comments) {
  constexpr std::string_view kOpen = "loc(\"";
  std::vector<SourceLoc> out;
  for (size_t at = comments.find(kOpen); at != std::string_view::npos;
       at = comments.find(kOpen, at + 1)) {
    const std::string_view rest = comments.substr(at + kOpen.size());
    const size_t quote = rest.find('"');
    if (quote == std::string_view::npos || !rest.substr(quote).starts_with("\":")) continue;
    const std::string_view numbers = rest.substr(quote + 2);
    const auto line = number_at<int>(numbers);
    if (!line) continue;
    const size_t colon = numbers.find_first_not_of("0123456789");
    int column = 0;
    if (colon != std::string_view::npos && numbers[colon] == ':') {
      column = number_at<int>(numbers.substr(colon + 1)).value_or(0);
    }
    out.emplace_back(std::string(rest.substr(0, quote)), *line, column);
  }
  return out;
}

std::vector<RegionMark> region_marks(std::string_view text) {
  constexpr std::string_view kWord = "region ";
  std::vector<RegionMark> out;
  for (size_t at = text.find(kWord); at != std::string_view::npos; at = text.find(kWord, at + 1)) {
    const auto number = number_at<int>(text.substr(at + kWord.size()));
    if (!number) continue;
    const size_t separator = text.substr(0, at).rfind("::");
    const std::string_view words = separator == std::string_view::npos
                                       ? text.substr(0, at)
                                       : text.substr(separator, at - separator);
    out.push_back({*number, words.find("Start") != std::string_view::npos,
                   words.find("End") != std::string_view::npos});
  }
  return out;
}

}  // namespace gridless::bundles
