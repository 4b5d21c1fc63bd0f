#include "tests/error/error_case.h"

namespace gridless::lang {

using testing::HasSubstr;

namespace {

void expect_diagnostic(const ErrorCase& c, const Diagnostic& d, const char* file, int line) {
  EXPECT_EQ(d.kind, c.kind);
  EXPECT_THAT(d.message, HasSubstr(c.message));
  EXPECT_THAT(d.hint, HasSubstr(c.hint));
  EXPECT_EQ(d.where.file, file) << d.str();
  EXPECT_EQ(d.where.line, line) << d.str();
  if (*c.note) {
    EXPECT_THAT(d.notes, testing::Contains(HasSubstr(c.note)));
  }
}

}  // namespace

void expect_error(const ErrorCase& c, const char* file) {
  Kernel k("wrong", c.cores);
  int line = 0;
  c.build(k, line);
  const auto program = k.finish();
  ASSERT_FALSE(program) << "the mistake was not noticed";
  Diagnostics errors;
  for (const Diagnostic& d : program.error()) {
    if (d.severity == Diagnostic::Severity::kError) errors.push_back(d);
  }
  // One mistake, one message.
  ASSERT_EQ(errors.size(), 1u) << to_string(program.error());
  expect_diagnostic(c, errors[0], file, line);
}

void expect_warning(const ErrorCase& c, const char* file) {
  Kernel k("suspicious", c.cores);
  int line = 0;
  c.build(k, line);
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  ASSERT_EQ(program->warnings.size(), 1u) << to_string(program->warnings);
  expect_diagnostic(c, program->warnings[0], file, line);
}

void with_buffers(Kernel& k, void (*body)(Kernel& k, const Buffers& m, int& line), int& line) {
  const Shape shape = {16, 256};
  Buffers m;
  m.x = k.input("x", Elem::kF32, shape);
  m.y = k.output("y", Elem::kF32, shape);
  k.scope([&] {
    m.a = k.vmem(Elem::kF32, shape);
    m.b = k.vmem(Elem::kF32, shape);
    m.half = k.vmem(Elem::kBf16, shape);
    m.table = k.smem(Elem::kI32, {4});
    m.done = k.dma_sem();
    k.copy(m.x, m.a, m.done).wait();
    body(k, m, line);
    k.copy(m.a, m.y, m.done).wait();
  });
}

}  // namespace gridless::lang
