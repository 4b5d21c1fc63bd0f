// The parser of listings, by hand and against libtpu's own statistics of the same kernels.
#include "gridless/bundles/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "tests/bundles/recorded.h"

namespace gridless::bundles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Comments with braces and newlines, brackets with braces, the decimal first address.
constexpr std::string_view kText = R"(= control target key start
LB: loop body
= control target key end

     0   :  { %s9_s1 = inlined_call_operand.hbm [shape: f32[8], index: 0, shape index: {}] /* } */ } /* Start region 0 :: Start region 2 */
   0x1   :  {}
   0x2   :  { %7 = dma.hbm_to_vmem [thread:$0] (%p3_p1), /*hbm=*/%s9_s1, /*size_in_granules=*/64 /*
bounds: (2, 40) } */  ;;  %v5_v0 = vld [vmem:[#allocation4_spill] sm:$0xff] /* loc("a.cc":12:3 to :8) :: loc("b.cc":4:1) */ }
   0x3 LB: >> { %s6_s2 = smov.u32 (!%p3_p1, %s9_s1), %s4_s4 /* loc("a.cc":12:3) :: loc("a.cc":12:3) */  ;;  %8 = vst [vmem:[#allocation4_spill]] (!%p3_p1), %v5_v0 } /* End region 2 :: Start/End empty region 5 */
)";

TEST(Listing, HoldsBundlesInstructionsAndPlaces) {
  const Listing listing = parsed(kText);
  ASSERT_EQ(listing.bundles.size(), 4u);
  EXPECT_EQ(listing.gaps, 0);
  EXPECT_TRUE(listing.bundles[0].empty);  // only a note
  EXPECT_TRUE(listing.bundles[1].empty);
  EXPECT_THAT(listing.bundles[0].starts, ElementsAre(0, 2));
  EXPECT_THAT(listing.bundles[3].starts, ElementsAre(5));
  EXPECT_THAT(listing.bundles[3].ends, ElementsAre(2, 5));
  EXPECT_EQ(listing.find_region(2), 0);
  EXPECT_EQ(listing.find_address(3), 3);
  EXPECT_EQ(listing.find_address(4), -1);

  ASSERT_EQ(listing.instructions.size(), 5u);
  const Instruction& copy = listing.instructions[1];
  EXPECT_EQ(copy.opcode, "dma.hbm_to_vmem");
  EXPECT_EQ(copy.unit, Unit::kDma);
  EXPECT_EQ(copy.predicate, 3);
  EXPECT_FALSE(copy.negated);
  EXPECT_THAT(copy.uses, ElementsAre(3, 9));
  const Instruction& load = listing.instructions[2];
  EXPECT_EQ(load.def, 5);
  EXPECT_TRUE(load.fill);
  ASSERT_EQ(load.places.size(), 2u);
  EXPECT_EQ(listing.places[load.places[0]], SourceLoc("a.cc", 12, 3));
  EXPECT_EQ(listing.places[load.places[1]], SourceLoc("b.cc", 4, 1));
  const Instruction& select = listing.instructions[3];
  EXPECT_EQ(select.predicate, -1);  // chooses between two values
  EXPECT_EQ(select.places.size(), 1u);
  const Instruction& store = listing.instructions[4];
  EXPECT_TRUE(store.spill);
  EXPECT_TRUE(store.negated);
  EXPECT_EQ(store.text, "%8 = vst [vmem:[#allocation4_spill]] (!%p3_p1), %v5_v0");
}

TEST(Listing, ReadsBothFormsOfABranch) {
  const Listing listing = parsed(
      "0x4 : { %5 = sbr.rel (!%p8_p0) /* loc(\"a.cc\":1:1) */ target bundleno = 30 (0x1e), region "
      "= "
      "43 }\n0x6 : { %5 = sbr.rel (%p8_p0) target = $region93 }\n");
  EXPECT_EQ(listing.instructions[0].target_address, 30);
  EXPECT_EQ(listing.instructions[0].target_region, 43);
  EXPECT_EQ(listing.instructions[1].target_address, -1);
  EXPECT_EQ(listing.instructions[1].target_region, 93);
  EXPECT_EQ(listing.gaps, 1);
}

TEST(Listing, RefusesWhatIsNone) {
  EXPECT_THAT(parse_listing("").error().message, HasSubstr("no instruction bundles"));
  EXPECT_THAT(parse_listing("module {}\n").error().message, HasSubstr("no instruction bundles"));
  EXPECT_THAT(parse_listing("0 : {}\n0x1 : { %1 = vld /* \n").error().message,
              HasSubstr("line 2: the bundle does not end"));
}

class Recorded : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kernels, Recorded,
                         testing::Values("matmul", "softmax", "double_buffer", "all_reduce",
                                         "while"),
                         [](const auto& info) { return std::string(info.param); });

// "total scheduled bundles: 333", "empty scheduled bundles: 237"
TEST_P(Recorded, HasAsManyCyclesAndEmptyOnesAsLibtpuCounts) {
  const std::string theirs = recorded(GetParam(), "schedule-analysis.txt");
  const auto count = [&](std::string_view words) {
    return std::stoll(theirs.substr(theirs.find(words) + words.size()));
  };
  const Listing listing = parsed(recorded(GetParam(), "packed-bundles-post-ra.txt"));
  int64_t empty = 0;
  for (const Bundle& b : listing.bundles) empty += b.empty;
  EXPECT_EQ(std::ssize(listing.bundles), count("\ttotal scheduled bundles:"));
  EXPECT_EQ(empty, count("\tempty scheduled bundles:"));
  EXPECT_EQ(listing.gaps, 0);
}

// libtpu's table of slots, one row per bundle of the code. Its MATMUL, MATPUSH, XLU and EUP columns
// say how long a unit is busy; the others what the bundle holds.
TEST_P(Recorded, FillsTheSlotsThatLibtpuCounts) {
  if (std::string_view(GetParam()) == "while") GTEST_SKIP() << "its code is not recorded";
  const std::string table = recorded(GetParam(), "utilization.txt");
  std::istringstream rows(table.substr(table.find("UTILIZATION:") + 13));
  const Listing listing = parsed(recorded(GetParam(), "final_bundles.txt"));
  for (const Bundle& b : listing.bundles) {
    std::array<int, kUnits> issued{};
    int fills = 0, spills = 0;
    for (int i = b.first; i < b.last; ++i) {
      const Instruction& instruction = listing.instructions[i];
      ++issued[static_cast<size_t>(instruction.unit)];
      if (!instruction.opcode.starts_with('v')) continue;
      fills += instruction.fill;
      spills += instruction.spill;
    }
    const auto of = [&](Unit unit) { return issued[static_cast<size_t>(unit)]; };
    int matmul, matpush, xlu, valu, pop, eup, load, fill, store, spill, scalar;
    ASSERT_TRUE(rows >> matmul >> matpush >> xlu >> valu >> pop >> eup >> load >> fill >> store >>
                spill >> scalar);
    EXPECT_EQ(of(Unit::kValu) + of(Unit::kEup), valu) << b.address;
    EXPECT_EQ(of(Unit::kPop), pop) << b.address;
    EXPECT_EQ(of(Unit::kLoad) + of(Unit::kSync), load) << b.address;
    EXPECT_EQ(of(Unit::kStore), store) << b.address;
    EXPECT_EQ(of(Unit::kScalar) + of(Unit::kDma), scalar) << b.address;
    EXPECT_EQ(fills, fill) << b.address;
    EXPECT_EQ(spills, spill) << b.address;
  }
  int more;
  EXPECT_FALSE(rows >> more) << "libtpu has more bundles";
}

}  // namespace
}  // namespace gridless::bundles
