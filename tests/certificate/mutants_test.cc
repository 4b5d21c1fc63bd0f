// A part of the mutants (bench/mutants.cc judges all): of each kernel here every few, from all
// operators.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/certificate/library/judge.h"

namespace gridless::certificate {
namespace {

struct Part {
  const char* name;
  std::function<Subject()> subject;
  size_t step;  // every so many
};
void PrintTo(const Part& p, std::ostream* out) { *out << p.name; }

class Mutants : public testing::TestWithParam<Part> {};

TEST_P(Mutants, ThatChangeSomeExecutionAreFound) {
  const Subject subject = GetParam().subject();
  const Judge judge(subject);
  ir::Program program = subject.make();
  const std::vector<Mutation> all = mutations(program.module);
  int killed = 0;
  for (size_t k = 0; k < all.size(); k += GetParam().step) {
    const Judgement j = judge(all[k]);
    killed += j.fate == Fate::kKilled;
    EXPECT_NE(j.fate, Fate::kMissed)
        << name(all[k].op) << " " << all[k].where << fmt::format("{}", fmt::join(j.faults, " "));
  }
  EXPECT_GE(killed, 8);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Mutants,
    testing::Values(Part{"DmaCopy", [] { return lesson("02", {{"blocks", "3"}}); }, 5},
                    Part{"DoubleBuffer", [] { return lesson("07", {{"tiles", "3"}}); }, 5},
                    Part{"Shift", [] { return lesson("14", {{"cores", "3"}}); }, 5},
                    Part{"AllReduce", [] { return lesson("15", {{"cores", "2"}}); }, 5},
                    Part{"Stream", [] { return corpus("p02_double_buffer_stream"); }, 3},
                    Part{"Exchange", [] { return corpus("p31_exchange_2dev"); }, 2},
                    Part{"Credits", [] { return corpus("p35_producer_consumer_credits"); }, 17}),
    [](const auto& info) { return std::string(info.param.name); });

// Each operator finds a place in one of two lessons.
TEST(Mutations, AreListedForEachOperator) {
  const Subject subject = lesson("14", {{"cores", "3"}});
  ir::Program program = subject.make();
  std::set<Operator> seen;
  for (const Mutation& m : mutations(program.module)) seen.insert(m.op);
  ir::Program other = lesson("07").make();
  for (const Mutation& m : mutations(other.module)) seen.insert(m.op);
  for (int op = 0; op < kOperators; ++op)
    EXPECT_TRUE(seen.contains(static_cast<Operator>(op))) << name(static_cast<Operator>(op));
}

}  // namespace
}  // namespace gridless::certificate
