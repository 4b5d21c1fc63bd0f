// Runs a lesson on the emulator and brings its results back as arrays.
#pragma once

#include <map>
#include <string>

#include "kernels/gallery.h"

namespace gridless::kernels {

struct LessonRun {
  ir::Program program;
  PerCore inputs, want, got;
};

// Fails the current test (and returns false) when the lesson does not build or does not run clean.
bool run_lesson(const Lesson& lesson, const std::map<std::string, std::string>& options,
                uint64_t seed, LessonRun& run);

}  // namespace gridless::kernels
