#include "gridless/bundles/trip_count.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "gridless/bundles/instruction_reader.h"

namespace gridless::bundles {
namespace {

constexpr int kMostCopies = 32;  // a chain of copies longer than this is a loop in a broken file

std::string slot_name(const Instruction& instruction) {
  const size_t open = instruction.text.find('[');
  const size_t close = instruction.text.find("]]", open);
  if (open == std::string::npos || close == std::string::npos) return "";
  return instruction.text.substr(open, close + 2 - open);
}

// The operands of a plain instruction, "%s1 = scmp.ge.s32.totalorder %s2, 4", at the commas.
std::vector<std::string> operands(const Instruction& instruction) {
  std::vector<std::string> out;
  const std::string& text = instruction.text;
  size_t at = text.find(instruction.opcode);
  if (at == std::string::npos) return out;
  at += instruction.opcode.size();
  while (at < text.size()) {
    const size_t end = std::min(text.find(',', at), text.size());
    std::string operand = text.substr(at, end - at);
    std::erase(operand, ' ');
    out.push_back(std::move(operand));
    at = end + 1;
  }
  return out;
}

std::optional<int64_t> literal(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // 32-bit registers; negative numbers are printed unsigned.
  if (error != std::errc() || end != text.data() + text.size() || value > UINT32_MAX ||
      value < INT32_MIN) {
    return std::nullopt;
  }
  return static_cast<int32_t>(static_cast<uint32_t>(value));
}

TripCount unknown(std::string why) { return {std::nullopt, std::move(why)}; }

}  // namespace

TripCounter::TripCounter(const Listing& listing) : listing_(listing) {
  for (int i = 0; i < std::ssize(listing.instructions); ++i) {
    const Instruction& instruction = listing.instructions[i];
    if (instruction.def >= 0) {
      const auto [at, added] = defs_.try_emplace(instruction.def, i);
      if (!added) at->second = -1;
    }
    if (!instruction.spill || instruction.uses.empty()) continue;
    const auto [at, added] =
        spill_slots_.try_emplace(slot_name(instruction), instruction.uses.back());
    if (!added) at->second = -1;
  }
}

const Instruction* TripCounter::definition(int value) const {
  for (int i = 0; i < kMostCopies; ++i) {
    const auto at = defs_.find(value);
    if (at == defs_.end() || at->second < 0) return nullptr;
    const Instruction& instruction = listing_.instructions[at->second];
    if (instruction.opcode == "smov.u32" && instruction.uses.size() == 1) {
      value = instruction.uses[0];
    } else if (instruction.fill) {
      const auto slot = spill_slots_.find(slot_name(instruction));
      if (slot == spill_slots_.end() || slot->second < 0) return nullptr;
      value = slot->second;
    } else {
      return &instruction;
    }
  }
  return nullptr;
}

std::optional<int64_t> TripCounter::constant(const std::string& operand) const {
  if (!operand.starts_with('%')) return literal(operand);
  const auto value = value_number(operand);
  if (!value) return std::nullopt;
  const Instruction* made = definition(*value);
  if (made == nullptr || made->opcode != "smov.u32" || !made->uses.empty()) return std::nullopt;
  const std::vector<std::string> list = operands(*made);
  return list.size() == 1 ? literal(list[0]) : std::nullopt;
}

TripCount TripCounter::count(const Instruction& branch) const {
  if (branch.predicate < 0) return unknown("the branch back has no condition");
  const Instruction* test = definition(branch.predicate);
  if (test == nullptr || !test->opcode.starts_with("scmp.ge.s32") || !branch.negated ||
      test->uses.empty()) {
    return unknown("the exit test is no comparison with a bound");
  }
  const std::vector<std::string> compared = operands(*test);
  if (compared.size() != 2) return unknown("the exit test is no comparison with a bound");
  const auto bound = constant(compared[1]);
  if (!bound) return unknown("the bound is computed at run time");
  const Instruction* next = definition(test->uses[0]);
  if (next == nullptr || next->opcode != "sadd.s32" || next->uses.size() != 1) {
    return unknown("the counter does not advance by a constant");
  }
  const std::vector<std::string> sum = operands(*next);
  const int64_t step =
      sum.size() == 2 ? constant(sum[sum[0].starts_with('%') ? 1 : 0]).value_or(0) : 0;
  const Instruction* counter = definition(next->uses[0]);
  if (step < 1 || counter == nullptr || counter->opcode != "sphi") {
    return unknown("the counter does not advance by a constant");
  }
  const std::vector<std::string> start_and_next = operands(*counter);
  const auto start = start_and_next.empty() ? std::nullopt : constant(start_and_next[0]);
  if (!start) return unknown("the start is computed at run time");
  return {std::max<int64_t>(1, (*bound - *start + step - 1) / step), ""};
}

}  // namespace gridless::bundles
