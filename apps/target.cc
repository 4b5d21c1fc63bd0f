#include "apps/target.h"

#include <algorithm>

#include "kernels/gallery.h"

namespace gridless::apps {

Result<Target> parse_target(std::string_view text) {
  const std::string_view whole = text;
  Target target;
  for (const auto& [prefix, kind] : {std::pair{std::string_view("kernel:"), Target::Kind::kKernel},
                                     {"model:", Target::Kind::kModel}}) {
    if (!text.starts_with(prefix)) continue;
    text.remove_prefix(prefix.size());
    target.kind = kind;
    break;
  }
  // A path may hold a '?' of its own only if no key follows it: the last one counts.
  const size_t question = std::min(text.rfind('?'), text.size());
  target.name = text.substr(0, question);
  if (target.name.empty()) return input_error("{}: a name or a path is missing", whole);
  text.remove_prefix(std::min(question + 1, text.size()));
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return input_error("{}: '{}' is not key=value", whole, pair);
    }
    const std::string key(pair.substr(0, equals));
    if (!target.keys.emplace(key, pair.substr(equals + 1)).second) {
      return input_error("{}: {} is given twice", whole, key);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return target;
}

Result<kernels::Options> lesson_options(const kernels::Lesson& lesson, const Target& target,
                                        int cores) {
  std::map<std::string, std::string> keys = target.keys;
  if (cores != 0) {
    const bool has = std::ranges::any_of(lesson.options,
                                         [](const kernels::Option& o) { return o.key == "cores"; });
    if (!has && cores != 1) return input_error("kernel {} is for one core", lesson.name);
    if (has) keys["cores"] = std::to_string(cores);
  }
  return lesson.with(keys);
}

Result<ir::Program> build_kernel(const Target& target, int cores) {
  TRY(const kernels::Lesson* lesson, kernels::find_lesson(target.name));
  TRY(const kernels::Options options, lesson_options(*lesson, target, cores));
  kernels::Built built = lesson->build(options);
  if (!built) return input_error("{}", to_string(built.error()));
  return std::move(*built);
}

}  // namespace gridless::apps
