#pragma once

#include "gridless/text/jinja/interpreter.h"

namespace gridless::text::jinja {

// Counts nested evaluations while it lives.
struct Interpreter::Recursion {
  Recursion(int& counter, int limit) : count(counter) {
    if (count >= limit) throw Fault{"the template recurses too deeply"};
    ++count;
  }
  ~Recursion() { --count; }
  int& count;
};

}  // namespace gridless::text::jinja
