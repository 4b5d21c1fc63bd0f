// One program per diagnostic. Each case builds a kernel with one mistake; the mistake's line
// carries the word MISTAKE, which notes where it is, and the diagnostic must name exactly that
// line.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <expected>
#include <ostream>
#include <string>
#include <vector>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"

namespace gridless::lang {

struct ErrorCase {
  const char* name;
  const char* kind;
  const char* message;  // a fragment
  const char* hint;     // a fragment
  void (*build)(Kernel& k, int& line);
  int cores = 1;
  const char* note = "";  // a fragment of a note, where there must be one
};

inline void PrintTo(const ErrorCase& c, std::ostream* out) { *out << c.name; }

// NOLINTNEXTLINE: a macro because __LINE__ must be that of the statement behind it
#define MISTAKE line = __LINE__;

// The mistake gives this one diagnostic, an error, and no program.
void expect_error(const ErrorCase& c, const char* file);
// The mistake gives this one warning, and a program.
void expect_warning(const ErrorCase& c, const char* file);

// A suite of a table of cases. The file name is taken where the table stands.
#define ERROR_SUITE(suite, table)                                                    \
  class suite : public testing::TestWithParam<ErrorCase> {};                         \
  TEST_P(suite, NamesTheLineAndSaysWhatToDo) { expect_error(GetParam(), __FILE__); } \
  INSTANTIATE_TEST_SUITE_P(Each, suite, testing::ValuesIn(table),                    \
                           [](const auto& info) { return std::string(info.param.name); })

// What most cases start from.
struct Buffers {
  Ref x, y;   // operand and result in HBM, 16x256 f32
  Ref a, b;   // VMEM, of the same shape
  Ref half;   // VMEM, 16x256 bf16
  Ref table;  // SMEM, 4 x i32
  Sem done;   // one DMA semaphore
};
// Declares operands and calls `body` in a scope with the buffers. The result is written.
void with_buffers(Kernel& k, void (*body)(Kernel& k, const Buffers& m, int& line), int& line);

}  // namespace gridless::lang
