// A few of the programs on which certificate and explorer are compared (bench/agreement.cc: all).
#include "tests/certificate/library/agreement.h"

#include <gtest/gtest.h>

namespace gridless::certificate {
namespace {

struct Kind {
  const char* name;
  Generated (*make)(uint64_t);
  bool spoilt;
};
void PrintTo(const Kind& k, std::ostream* out) { *out << k.name; }

class Agree : public testing::TestWithParam<Kind> {};

TEST_P(Agree, CertificateAndExplorer) {
  const Kind& kind = GetParam();
  Tally tally{.name = kind.name};
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Generated g = kind.make(seed);
    if (kind.spoilt) spoil(g, seed);
    const Comparison c = compare(g.program, g.cores, g.views(), {.states = 500, .steps = 50'000});
    tally.add(c);
    EXPECT_NE(c.agreement, Agreement::kUnsound) << "seed " << seed << "\n" << c.details;
    EXPECT_NE(c.agreement, Agreement::kFlagged) << "seed " << seed << "\n" << c.details;
  }
  EXPECT_LE(tally.open, 6);
  if (kind.spoilt) {
    EXPECT_GE(tally.deadlock + tally.racy + tally.other, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(On, Agree,
                         testing::Values(Kind{"Woven", woven, false},
                                         Kind{"WovenWithMistakes", woven, true},
                                         Kind{"Patterns", patterned, false},
                                         Kind{"PatternsWithMistakes", patterned, true}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gridless::certificate
