// Loops, regions, empty cycles and the bill per source line, on listings small enough to work out
// by hand, and on recorded ones.
#include "gridless/bundles/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "gridless/bundles/critical_path.h"
#include "tests/bundles/recorded.h"

namespace gridless::bundles {
namespace {

using testing::HasSubstr;

// One bundle per line, addresses by position; "" is an empty cycle.
std::string listing(const std::vector<std::string>& bundles) {
  std::string out;
  for (size_t i = 0; i < bundles.size(); ++i) {
    out += fmt::format("{:#x} : {{ {} }}\n", i, bundles[i]);
  }
  return out;
}

// Two nested loops: the outer runs 5 times, the inner one from 2 to 16 by 4.
std::vector<std::string> nested() {
  return {
      /* 0*/ "%s10_s0 = smov.u32 0",
      /* 1*/ "%s1_s0 = sphi %s10_s0, %s2_s0 ;; %s20_s1 = smov.u32 2",
      /* 2*/ "%s3_s1 = sphi %s20_s1, %s4_s1 ;; %s4_s1 = sadd.s32 4, %s3_s1",
      /* 3*/ "%p5_p0 = scmp.ge.s32.totalorder %s4_s1, 16",
      /* 4*/
      "%6 = sbr.rel (!%p5_p0) /* loc(\"in.cc\":7:1) */ target bundleno = 2 (0x2), region = 9",
      "",
      "",
      "",
      "",
      "",
      "",
      /*11*/ "%s2_s0 = sadd.s32 1, %s1_s0",
      /*12*/ "%p7_p1 = scmp.ge.s32.totalorder %s2_s0, 5",
      /*13*/
      "%8 = sbr.rel (!%p7_p1) /* loc(\"out.cc\":3:1) */ target bundleno = 1 (0x1), region = 8",
      "",
      "",
      "",
      "",
      "",
      "",
      /*20*/ "%9 = vsyncadd [#a], 1",
  };
}

TEST(Structure, FindsLoopsTheirNestingAndTrips) {
  const Listing l = parsed(listing(nested()));
  const Structure s = find_structure(l);
  ASSERT_EQ(s.loops.size(), 2u);
  EXPECT_EQ(s.loops[0].begin, 1);
  EXPECT_EQ(s.loops[0].end, 20);
  EXPECT_EQ(s.loops[0].trips, 5);
  EXPECT_EQ(l.places[s.loops[0].place], SourceLoc("out.cc", 3, 1));
  EXPECT_EQ(s.loops[1].begin, 2);
  EXPECT_EQ(s.loops[1].end, 11);
  EXPECT_EQ(s.loops[1].parent, 0);
  EXPECT_EQ(s.loops[1].depth, 2);
  EXPECT_EQ(s.loops[1].trips, 4);  // 2, 6, 10, 14
  EXPECT_EQ(s.loop_of[0], -1);
  EXPECT_EQ(s.loop_of[1], 0);
  EXPECT_EQ(s.loop_of[10], 1);
  EXPECT_EQ(s.loop_of[19], 0);
}

TEST(Structure, RegionsCoverTheListingAndCountTheirRuns) {
  const Structure s = find_structure(parsed(listing(nested())));
  ASSERT_EQ(s.regions.size(), 5u);
  const int64_t runs[] = {1, 5, 20, 5, 1};
  const int begins[] = {0, 1, 2, 11, 20};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(s.regions[i].runs, runs[i]);
    EXPECT_EQ(s.regions[i].begin, begins[i]);
    EXPECT_EQ(s.regions[i].end, i < 4 ? begins[i + 1] : 21);
  }
  EXPECT_EQ(s.regions[0].ends, Region::End::kTarget);
  EXPECT_EQ(s.regions[2].ends, Region::End::kBranch);
  EXPECT_EQ(s.regions[4].ends, Region::End::kEnd);
}

TEST(Structure, AWaitEndsARegion) {
  const Structure s = find_structure(parsed(listing(
      {"%1 = dma.done.wait [#a], 64", "%2 = vsyncadd [#a], 1", "%3 = vwait.ge [#b], 1", ""})));
  ASSERT_EQ(s.regions.size(), 3u);
  EXPECT_EQ(s.regions[0].ends, Region::End::kWait);
  EXPECT_EQ(s.regions[0].cycles(), 1);
  EXPECT_EQ(s.regions[1].cycles(), 2);
}

TEST(Structure, ACounterMayPassThroughCopiesAndSpillSlots) {
  auto text = nested();
  text[1] += " ;; %30 = sst [smem:[#a_spill]] %s1_s0";
  text[11] = "%s31_s0 = sld [smem:[#a_spill]] ;; %s2_s0 = sadd.s32 1, %s31_s0";
  EXPECT_EQ(find_structure(parsed(listing(text))).loops[0].trips, 5);
}

TEST(Structure, SaysWhyTripsAreUnknown) {
  const auto why = [](size_t line, const std::string& instruction) {
    auto text = nested();
    text[line] = instruction;
    const Structure s = find_structure(parsed(listing(text)));
    EXPECT_FALSE(s.loops[1].trips);
    EXPECT_FALSE(s.regions[2].runs);
    EXPECT_EQ(s.regions[0].runs, 1);
    return s.loops[1].why_unknown;
  };
  EXPECT_THAT(why(3, "%p5_p0 = scmp.ge.s32.totalorder %s4_s1, %s99_s3"), HasSubstr("bound"));
  EXPECT_THAT(why(3, "%p5_p0 = por %p1_p1, %p2_p2"), HasSubstr("exit test"));
  EXPECT_THAT(why(2, "%s3_s1 = sphi %s20_s1, %s4_s1 ;; %s4_s1 = sadd.s32 %s30_s3, %s3_s1"),
              HasSubstr("advance"));
  EXPECT_THAT(why(1, "%s20_s1 = sld [smem:[#a]]"), HasSubstr("start"));
}

TEST(Stalls, NameWhatIsWaitedFor) {
  const Analysis a = analyse(parsed(listing({
      /* 0*/ "%1 = vadd.xlane.f32.xlu0 %v90_v0 /* loc(\"k.cc\":1:1) */",
      "",
      "",
      "",
      /* 4*/ "%v2_v0 = vpop.xlane.xlu0 %1 /* loc(\"k.cc\":2:1) */",
      /* 5*/ "%3 = vmatpush1.bf16.msra.mxu1 %v91_v1",
      "",
      "",
      "",
      /* 9*/ "%4 = vmatprep.subr.bf16.mxu1 %v92_v1",
      /*10*/ "%5 = vmatmul.mubr.bf16.mrb[4].mxu1 %v93_v1",
      "",
      /*12*/ "%v6_v1 = vpop.f32.mrb[6].mxu1",
      /*13*/ "%s7_s0 = sld [smem:[#a]]",
      "",
      "",
      /*16*/ "%s8_s0 = sadd.s32 1, %s7_s0",
  })));
  ASSERT_EQ(a.stalls.size(), 4u);
  EXPECT_EQ(a.stalls[0].cause, StallCause::kXlu);
  EXPECT_EQ(a.stalls[0].producer, 0);
  EXPECT_EQ(a.stalls[0].cycles(), 3);
  EXPECT_EQ(a.stalls[1].cause, StallCause::kMxuBusy);
  EXPECT_EQ(a.stalls[2].cause, StallCause::kMxuResult);
  EXPECT_EQ(a.listing.instructions[a.stalls[2].producer].opcode, "vmatmul.mubr.bf16.mrb[4].mxu1");
  EXPECT_EQ(a.stalls[3].cause, StallCause::kScalarLoad);
  EXPECT_EQ(a.total.stalls, 9);
  EXPECT_EQ(a.total.cycles, 17);
}

TEST(Stalls, DelaySlotsBelongToTheirBranch) {
  const Analysis a = analyse(parsed(listing(nested())));
  EXPECT_EQ(a.stall_cycles[static_cast<size_t>(StallCause::kBranch)], 12);
  EXPECT_EQ(a.run_stall_cycles[static_cast<size_t>(StallCause::kBranch)], 20 * 6 + 5 * 6);
}

TEST(Analysis, ABundleIsSharedByItsInstructionsAndAGapPaidByWhoWaits) {
  const Analysis a = analyse(parsed(listing({
      "%v1_v0 = vld [vmem:[#a]] /* loc(\"k.cc\":1:1) */ ;; %v2_v1 = vld [vmem:[#b]] /* "
      "loc(\"k.cc\":2:1) :: loc(\"k.cc\":3:1) */",
      "",
      "%v3_v0 = vadd.f32 %v1_v0, %v2_v1 /* loc(\"k.cc\":3:9) */",
      "%s4_s0 = smov.u32 7 /* materialized constant */",
  })));
  const auto cycles = [&](int line) {
    for (const LineCost& cost : a.lines) {
      if (cost.where == SourceLoc(line == 0 ? "" : "k.cc", line)) return cost.cost.cycles;
    }
    return -1.0;
  };
  EXPECT_DOUBLE_EQ(cycles(1), 0.5);
  EXPECT_DOUBLE_EQ(cycles(2), 0.25);
  EXPECT_DOUBLE_EQ(cycles(3), 0.25 + 1 + 1);
  EXPECT_DOUBLE_EQ(cycles(0), 1);  // the compiler's own
  EXPECT_EQ(a.total.issued[static_cast<size_t>(Unit::kLoad)], 2);
}

class RecordedAnalysis : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kernels, RecordedAnalysis,
                         testing::Values("matmul", "softmax", "double_buffer", "all_reduce",
                                         "while"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RecordedAnalysis, LinesRegionsAndCausesAddUpToTheTotal) {
  const Analysis a = analyse(parsed(recorded(GetParam(), "packed-bundles-post-ra.txt")));
  double lines = 0, run_lines = 0, regions = 0;
  for (const LineCost& line : a.lines) {
    lines += line.cost.cycles;
    run_lines += line.cost.run_cycles;
  }
  for (size_t i = 0; i < a.regions.size(); ++i) {
    regions += a.regions[i].cycles;
    EXPECT_EQ(a.regions[i].cycles, a.structure.regions[i].cycles());
  }
  EXPECT_EQ(a.total.cycles, static_cast<double>(a.listing.bundles.size()));
  EXPECT_NEAR(lines, a.total.cycles, 1e-6);
  EXPECT_NEAR(run_lines, a.total.run_cycles, 1e-6 * a.total.run_cycles);
  EXPECT_EQ(regions, a.total.cycles);
  EXPECT_EQ(std::reduce(a.stall_cycles.begin(), a.stall_cycles.end()), a.total.stalls);
}

// kernels/05_matmul.cc: one loop over k = 1024 in blocks of 256.
TEST(RecordedMatmul, SpendsItsTimeInTheProductOfTheLoop) {
  const Analysis a = analyse(parsed(recorded("matmul", "packed-bundles-post-ra.txt")));
  ASSERT_EQ(a.structure.loops.size(), 1u);
  EXPECT_EQ(a.structure.loops[0].trips, 4);
  EXPECT_EQ(a.loops[0].cycles, 293);
  EXPECT_EQ(a.total.run_cycles, 333 + 3 * 293);
  // Two MXUs take 16 pushes of 16 rows each, in pairs every four cycles, and deliver 211 later.
  EXPECT_EQ(a.total.issued[static_cast<size_t>(Unit::kMxu)], 2 * (2 * 16 + 4));
  EXPECT_GT(a.stall_cycles[static_cast<size_t>(StallCause::kMxuResult)], 190);
  EXPECT_EQ(a.lines[0].where.str(), "kernels/05_matmul.cc:40");
  EXPECT_GT(a.lines[0].cost.run_cycles, 0.9 * a.total.run_cycles);
}

TEST(RecordedWhile, SaysThatTheTripsAreNotKnown) {
  const Analysis a = analyse(parsed(recorded("while", "packed-bundles-post-ra.txt")));
  EXPECT_FALSE(a.all_trips_known);
}

// "Length to end: 292" is the chain of the loop, which takes 293 cycles: bound by latency.
TEST(CriticalPaths, AreReadPerRegion) {
  const auto paths = parse_critical_paths(recorded("matmul", "critical-path.txt"));
  const auto loop = std::ranges::find(paths, 43, &CriticalPath::region);
  ASSERT_NE(loop, paths.end());
  EXPECT_EQ(loop->cycles, 292);
  EXPECT_EQ(loop->chain[5].instruction, "%158 = vmatprep.subr.bf16.mxu0 %v115");
  EXPECT_EQ(loop->chain[5].where, SourceLoc("kernels/05_matmul.cc", 40, 21));
  EXPECT_TRUE(parse_critical_paths("nothing of the kind\n").empty());
}

}  // namespace
}  // namespace gridless::bundles
