#include "tests/race/race_case.h"

#include <fmt/format.h>

namespace gridless::lang {

using emulate::CheckReport;

emulate::CheckReport check_case(const RaceCase& c, bool fixed, int& line) {
  Kernel k(c.name, c.cores);
  c.build(k, fixed, line);
  auto program = k.finish();
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return {};
  }
  std::vector<std::vector<std::byte>> data(program->call.operands.size());
  for (size_t i = 0; i < data.size(); ++i) {
    if (program->call.operands[i].name != "table") continue;
    const auto bytes = std::as_bytes(std::span(c.table));
    for (int core = 0; core < c.cores; ++core)
      data[i].insert(data[i].end(), bytes.begin(), bytes.end());
  }
  const std::vector<std::span<const std::byte>> spans(data.begin(), data.end());
  auto report = emulate::check(program->module, program->call, c.cores, spans);
  if (!report) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return std::move(*report);
}

void expect_found(const RaceCase& c, const char* file) {
  int line = 0;
  const CheckReport report = check_case(c, false, line);
  const std::string all = to_string(report.diagnostics());
  bool found = false;
  for (const Diagnostic& d : report.diagnostics()) {
    const bool known = d.kind == c.kind || std::ranges::any_of(c.others, [&](const char* other) {
                         return d.kind == other;
                       });
    EXPECT_TRUE(known) << "unexpected " << d.kind << "\n" << all;
    EXPECT_NE(d.hint, "") << d.str();
    if (d.kind != c.kind) continue;
    EXPECT_EQ(d.severity == Diagnostic::Severity::kWarning, c.warning) << d.str();
    found |= d.where.file == file && d.where.line == line;
  }
  EXPECT_TRUE(found) << c.kind << " at line " << line << "\n" << all;
  EXPECT_EQ(report.clean(), c.warning && c.others.empty());
}

void expect_twin_proved(const RaceCase& c) {
  int line = 0;
  const CheckReport report = check_case(c, true, line);
  EXPECT_THAT(report.findings, testing::IsEmpty()) << to_string(report.diagnostics());
  EXPECT_TRUE(report.certificate) << fmt::format("{}", fmt::join(report.notes, "\n"));
}

}  // namespace gridless::lang
