#include "gridless/bundles/listing.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <tuple>

#include "gridless/bundles/instruction_reader.h"

namespace gridless::bundles {
namespace {

// Interns source places: a listing of 40,000 instructions names a few hundred lines.
class Places {
 public:
  explicit Places(std::vector<SourceLoc>& list) : list_(list) {}
  Place intern(const SourceLoc& loc) {
    const auto [at, added] =
        index_.try_emplace({loc.file, loc.line, loc.column}, static_cast<int>(list_.size()));
    if (added) list_.push_back(loc);
    return at->second;
  }

 private:
  std::vector<SourceLoc>& list_;
  std::map<std::tuple<std::string, int, int>, Place> index_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), places_(out_.places) {}

  Result<Listing> run() {
    while (at_ < text_.size()) {
      if (!bundle_head()) {
        skip_line();
        continue;
      }
      TRY_VOID(bundle());
    }
    if (out_.bundles.empty()) {
      return input_error("no instruction bundles: this is no listing of the TPU compiler");
    }
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  void skip_line() {
    const size_t end = text_.find('\n', at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
  }
  int64_t line() const { return std::count(text_.begin(), text_.begin() + at_, '\n') + 1; }

  // "  0x1e LB: > {": reads up to and including the brace. Anything else is left alone.
  bool bundle_head() {
    size_t i = at_;
    const auto blanks = [&] {
      while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t')) ++i;
    };
    blanks();
    const int base = text_.substr(i).starts_with("0x") ? 16 : 10;
    if (base == 16) i += 2;
    int64_t address = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + i, text_.data() + text_.size(), address, base);
    if (error != std::errc() || address < 0) return false;
    i = static_cast<size_t>(end - text_.data());
    blanks();
    while (i < text_.size() && std::isupper(static_cast<unsigned char>(text_[i]))) ++i;  // "LB"
    blanks();
    if (i >= text_.size() || text_[i] != ':') return false;
    ++i;
    blanks();
    while (i < text_.size() && text_[i] == '>') ++i;
    blanks();
    if (i >= text_.size() || text_[i] != '{') return false;
    at_ = i + 1;
    Bundle& b = out_.bundles.emplace_back();
    b.address = address;
    b.first = b.last = static_cast<int>(out_.instructions.size());
    return true;
  }

  // From behind "{" to the end of the line behind "}".
  Result<void> bundle() {
    const size_t start = at_;
    InstructionReader reader(rest());
    while (true) {
      std::optional<RawInstruction> raw = reader.next();
      if (!raw) {
        at_ = start;
        return input_error("line {}: the bundle does not end", line());
      }
      if (!raw->text.empty()) add(*raw);
      if (raw->last) break;
    }
    at_ += reader.position();
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    for (const RegionMark& mark : region_marks(text_.substr(at_, end - at_))) {
      Bundle& b = out_.bundles.back();
      if (mark.starts) b.starts.push_back(mark.region);
      if (mark.ends) b.ends.push_back(mark.region);
    }
    at_ = end;
    const size_t n = out_.bundles.size();
    if (n > 1 && out_.bundles[n - 1].address != out_.bundles[n - 2].address + 1) ++out_.gaps;
    return {};
  }

  void add(const RawInstruction& raw) {
    Instruction instruction = read_instruction(raw.text);
    for (const SourceLoc& loc : source_places(raw.comments)) {
      const Place place = places_.intern(loc);
      if (std::ranges::find(instruction.places, place) == instruction.places.end()) {
        instruction.places.push_back(place);
      }
    }
    Bundle& b = out_.bundles.back();
    if (instruction.unit != Unit::kNone) b.empty = false;
    out_.instructions.push_back(std::move(instruction));
    b.last = static_cast<int>(out_.instructions.size());
  }

  std::string_view text_;
  size_t at_ = 0;
  Listing out_;
  Places places_;
};

}  // namespace

int Listing::find_address(int64_t address) const {
  // Addresses rise by one; only a shortened file needs the search.
  if (address >= 0 && address < std::ssize(bundles) && bundles[address].address == address) {
    return static_cast<int>(address);
  }
  const auto at = std::ranges::find(bundles, address, &Bundle::address);
  return at == bundles.end() ? -1 : static_cast<int>(at - bundles.begin());
}

int Listing::find_region(int64_t region) const {
  for (size_t i = 0; i < bundles.size(); ++i) {
    if (std::ranges::find(bundles[i].starts, region) != bundles[i].starts.end()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

Result<Listing> parse_listing(std::string_view text) { return Parser(text).run(); }

}  // namespace gridless::bundles
