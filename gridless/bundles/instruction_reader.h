// The text of one instruction, and what is in it. Internal to the parser of listings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/bundles/listing.h"

namespace gridless::bundles {

struct RawInstruction {
  std::string text;      // comments removed, blanks at the ends too
  std::string comments;  // all of them, one after the other
  bool last = false;     // the bundle ends behind it
};

// Splits the inside of a bundle, `ins ;; ins ;; ... }`, at ";;". Braces in comments and in
// brackets ("shape index: {}") are not the end of the bundle.
class InstructionReader {
 public:
  explicit InstructionReader(std::string_view text) : text_(text) {}
  // The next instruction, empty for a bundle without any; nullopt when the text ends first.
  std::optional<RawInstruction> next();
  size_t position() const { return at_; }  // behind what was read

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// The number of a value: 91 of "%s91_s0", of "%91" and of "%vm91_vm3". Text behind it is ignored.
std::optional<int> value_number(std::string_view name);

// Everything but the places.
Instruction read_instruction(const std::string& text);

// Every loc("file":line:column) of a comment, in order. "-", the body text itself, is kept as "-".
std::vector<SourceLoc> source_places(std::string_view comments);

// "/* Start region 0 :: End region 2 :: Start/End empty region 5 */"
struct RegionMark {
  int region = 0;
  bool starts = false, ends = false;
};
std::vector<RegionMark> region_marks(std::string_view text);

}  // namespace gridless::bundles
