// libtpu's own words (0.0.51, copied from its answers) as Diagnostics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gridless/tpu/libtpu_messages.h"

namespace gridless::tpu {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(LibtpuMessages, ParserErrorsPointIntoTheBody) {
  const Diagnostic d = diagnose(
      "Failed to parse the Mosaic module: -:5:39: error: expected ')' to end operand list\n",
      "ring.mlir");
  EXPECT_EQ(d.message, "expected ')' to end operand list");
  EXPECT_EQ(d.where, SourceLoc("ring.mlir", 5, 39));
  EXPECT_EQ(d.kind, "invalid_ir");
}

TEST(LibtpuMessages, UnknownOperation) {
  const Diagnostic d = diagnose(
      "Failed to deserialize the Mosaic module: INTERNAL: unregistered operation 'tpu.sem_allocq' "
      "found in dialect ('tpu') that does not allow unknown operations\n\nat location: "
      "loc(\"-\":5:9)\n\nThe MLIR operation involved:\n  %0 = \"tpu.sem_allocq\"() : () -> "
      "memref<!tpu.dma_semaphore>\n\nPlease report a bug at: https://github.com/jax-ml/jax\n\n"
      "=== Source Location Trace: ===\nplatforms/xla/mosaic/python/mosaic_emitter_base.cc:409\n",
      "ring.mlir");
  EXPECT_THAT(d.message, testing::StartsWith("unregistered operation 'tpu.sem_allocq'"));
  EXPECT_EQ(d.where, SourceLoc("ring.mlir", 5, 9));
  EXPECT_THAT(d.notes, Contains(HasSubstr("tpu.sem_allocq\"()")));
  EXPECT_THAT(d.notes, testing::Not(Contains(HasSubstr("report a bug"))));
  EXPECT_THAT(d.notes, testing::Not(Contains(HasSubstr("platforms/"))));
}

TEST(LibtpuMessages, VerifierErrorsAtALineOfOurs) {
  EXPECT_EQ(
      find_location("Failed to deserialize the Mosaic module: INTERNAL: blocks/norm.cc:110:10: "
                    "error: 'tpu.enqueue_dma' op source and target",
                    "b"),
      SourceLoc("blocks/norm.cc", 110, 10));
}

TEST(LibtpuMessages, FileNamesMayHoldSpacesAndColons) {
  EXPECT_EQ(find_location("at location: loc(\"my dir/a:b.cc\":7:1)", "b"),
            SourceLoc("my dir/a:b.cc", 7, 1));
}

TEST(LibtpuMessages, ANamedLocationIsNotAPosition) {
  EXPECT_EQ(find_location("loc(\"name\") then loc(\"f.cc\":3:4)", "b"), SourceLoc("f.cc", 3, 4));
  EXPECT_FALSE(find_location("loc(\"name\"", "b").known());
  EXPECT_FALSE(find_location("", "b").known());
  EXPECT_FALSE(find_location("status: error: 12", "b").known());
}

TEST(LibtpuMessages, AlignmentGetsAHint) {
  const Diagnostic d = diagnose(
      "INTERNAL: Mosaic failed to compile TPU kernel with MLIR module name `m` HLO name `m.1`: "
      "Offsets "
      "along tiled dimensions must be aligned to tiles. Failed to verify that the index at "
      "dimension 1 "
      "is divisible by the tile dimension 128.",
      "b");
  EXPECT_THAT(d.message, testing::StartsWith("Offsets along tiled dimensions"));
  EXPECT_THAT(d.hint, HasSubstr("multiples of 128"));
}

TEST(LibtpuMessages, MemoryThatDoesNotFitIsACapacityError) {
  const Diagnostic d = diagnose(
      "E1001: CompileTimeScopedVmemOom: Ran out of memory in memory space vmem while allocating on "
      "stack for %k.1 ... Scoped allocation with size 62.00M and limit 60.00M exceeded scoped vmem "
      "limit by 2.00M.",
      "b");
  EXPECT_EQ(d.kind, "capacity");
  EXPECT_THAT(d.hint, HasSubstr("vmem_limit_bytes"));
}

TEST(LibtpuMessages, AnEmptyTextStillSaysSomething) {
  EXPECT_FALSE(diagnose("", "b").message.empty());
}

}  // namespace
}  // namespace gridless::tpu
