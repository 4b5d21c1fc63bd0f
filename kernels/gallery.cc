#include "kernels/gallery.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "gridless/base/check.h"

namespace gridless::kernels {

int64_t Options::operator[](std::string_view key) const {
  const auto it = values_.find(key);
  GRIDLESS_CHECK(it != values_.end(), "a lesson without option {}", key);
  return it->second;
}

Result<int64_t> Option::parse(const std::string& text) const {
  if (!names.empty()) {
    const auto it = std::ranges::find(names, text);
    if (it != names.end()) return it - names.begin();
    return input_error("{}={}: {} is one of {}", key, text, meaning, fmt::join(names, ", "));
  }
  int64_t v = 0;
  const char* end = text.data() + text.size();
  if (const auto [p, ec] = std::from_chars(text.data(), end, v); ec != std::errc() || p != end) {
    return input_error("{}={}: not a whole number ({})", key, text, meaning);
  }
  if (v < least || v > most || v % multiple_of != 0) {
    const std::string step = multiple_of > 1 ? fmt::format(", a multiple of {}", multiple_of) : "";
    return input_error("{}={}: {} goes from {} to {}{}", key, v, meaning, least, most, step);
  }
  return v;
}

Result<Options> Lesson::with(const std::map<std::string, std::string>& given) const {
  Options out;
  std::string keys;
  for (const Option& o : options) {
    out.set(o.key, o.value);
    if (!keys.empty()) keys += ", ";
    keys += o.key;
  }
  for (const auto& [key, text] : given) {
    const Option* option = nullptr;
    for (const Option& o : options) {
      if (o.key == key) option = &o;
    }
    if (!option) {
      return input_error("kernel {} has no option {}; it has: {}", name, key,
                         keys.empty() ? "none" : keys);
    }
    TRY(const int64_t v, option->parse(text));
    out.set(key, v);
  }
  return out;
}

std::span<const Lesson> lessons() {
  static const std::vector<Lesson> all = {
      lesson_01_add(),
      lesson_02_dma_copy(),
      lesson_03_loop_and_slices(),
      lesson_04_softmax_rows(),
      lesson_05_matmul(),
      lesson_06_table_gather(),
      lesson_07_double_buffer(),
      lesson_08_gemv_stream(),
      lesson_09_rms_norm(),
      lesson_10_rope(),
      lesson_11_paged_attention(),
      lesson_12_top_k(),
      lesson_13_while(),
      lesson_14_barrier_and_shift(),
      lesson_15_all_reduce(),
      lesson_16_quantised_gemv(),
      lesson_17_in_place_state(),
      lesson_18_named_source(),
      lesson_19_layers(),
      lesson_20_collectives(),
  };
  return all;
}

Result<const Lesson*> find_lesson(std::string_view name) {
  std::string names;
  for (const Lesson& l : lessons()) {
    const std::string_view full = l.name;
    if (name == full || name == full.substr(0, 2) || name == full.substr(3)) return &l;
    names += ' ';
    names += l.name;
  }
  return input_error("no kernel {} in the gallery; it has:{}", name, names);
}

}  // namespace gridless::kernels
