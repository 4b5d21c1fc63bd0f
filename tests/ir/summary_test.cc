#include "gridless/ir/summary.h"

#include "ir_test_util.h"

namespace gridless::ir {
namespace {

Summary of(const std::string& kernel) {
  return summarise(parse_ok(read_file(GRIDLESS_TEST_DATA "/corpus/" + kernel + "/module.mlir")));
}

TEST(Summary, CountsWhatTheTextSays) {
  const Summary s = of("p01_dma_add_one");
  EXPECT_EQ(s.kernel, "add_one");
  EXPECT_EQ(s.version, 18);
  EXPECT_EQ(s.args.size(), 4U);
  EXPECT_EQ(s.vmem_bytes, 8 * 128 * 4);
  EXPECT_EQ(s.semaphores, 1);
  EXPECT_EQ(s.copies, 2);
  EXPECT_EQ(s.remote_copies, 0);
  EXPECT_FALSE(s.communicates);
  EXPECT_EQ(s.ops.at("tpu.wait_dma"), 2);
}

TEST(Summary, RemoteCopiesAndBarriersAreCommunication) {
  const Summary s = of("p31_exchange_2dev");
  EXPECT_EQ(s.remote_copies, 1);
  EXPECT_TRUE(s.communicates);
}

TEST(Summary, LoopsNest) {
  EXPECT_EQ(of("p01_dma_add_one").deepest_loop, 0);
  EXPECT_EQ(of("p16_while_scalar").deepest_loop, 1);
}

}  // namespace
}  // namespace gridless::ir
