// The gallery: numbered kernels, each a lesson with one idea. The text at the top of each file is
// the lesson; docs/gallery/ has a page for each. Every lesson is also a test: it carries inputs and
// an independent computation of the outputs in plain C++.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"
#include "gridless/ir/call.h"
#include "kernels/array.h"

namespace gridless::kernels {

using Built = std::expected<ir::Program, Diagnostics>;
// [core][operand] and [core][result], in the order of the call.
using PerCore = std::vector<std::vector<Array>>;

// A knob of a lesson: `kernel:05_matmul?k=1024`.
struct Option {
  std::string key;
  int64_t value = 0;    // default
  std::string meaning;  // with the unit
  int64_t least = 0, most = 0, multiple_of = 1;
  // Where the value is one of some words: they stand for 0, 1, ...
  std::vector<std::string> names = {};

  // Errors: not a number, out of range, not one of the words.
  Result<int64_t> parse(const std::string& text) const;
};

// A full set of values, defaults filled in.
class Options {
 public:
  int64_t operator[](std::string_view key) const;  // of a key that the lesson has
  void set(std::string key, int64_t value) { values_[std::move(key)] = value; }

 private:
  std::map<std::string, int64_t, std::less<>> values_;
};

struct Lesson {
  std::string name;   // "05_matmul"
  std::string title;  // one line
  std::vector<Option> options;
  Built (*build)(const Options&);
  PerCore (*inputs)(const Options&, uint64_t seed);
  // Computed from the inputs alone, in double precision where the kernel rounds less than its
  // result.
  PerCore (*reference)(const Options&, const PerCore& inputs);
  // |got - want| <= absolute + relative * |want|; where the numbers come from stands in the lesson.
  double absolute = 0, relative = 0;

  // The defaults with `given` on top. Errors: an unknown key or a value out of range.
  Result<Options> with(const std::map<std::string, std::string>& given = {}) const;
};

std::span<const Lesson> lessons();
// By "05_matmul", "05" or "matmul". Errors: no such lesson; the message lists the names.
Result<const Lesson*> find_lesson(std::string_view name);

// One per file.
Lesson lesson_01_add();
Lesson lesson_02_dma_copy();
Lesson lesson_03_loop_and_slices();
Lesson lesson_04_softmax_rows();
Lesson lesson_05_matmul();
Lesson lesson_06_table_gather();
Lesson lesson_07_double_buffer();
Lesson lesson_08_gemv_stream();
Lesson lesson_09_rms_norm();
Lesson lesson_10_rope();
Lesson lesson_11_paged_attention();
Lesson lesson_12_top_k();
Lesson lesson_13_while();
Lesson lesson_14_barrier_and_shift();
Lesson lesson_15_all_reduce();
Lesson lesson_16_quantised_gemv();
Lesson lesson_17_in_place_state();
Lesson lesson_18_named_source();
Lesson lesson_19_layers();
Lesson lesson_20_collectives();

}  // namespace gridless::kernels
