// An IR call in XLA's terms.
#include <gtest/gtest.h>

#include "gridless/tpu/compile_kernel.h"

namespace gridless::tpu {
namespace {

TEST(CallSpecFromIr, CarriesEveryField) {
  ir::Call call{
      .name = "step",
      .operands = {{"w", ir::Type::memref({64, 128}, ir::Elem::kBf16, ir::Space::kHbm)},
                   {"t", ir::Type::memref({4}, ir::Elem::kI32, ir::Space::kSmem)},
                   {"q", ir::Type::memref({8, 128}, ir::Elem::kF4E2M1FN, ir::Space::kAny)}},
      .results = {{"w", ir::Type::memref({64, 128}, ir::Elem::kBf16, ir::Space::kHbm)}},
      .aliases = {{0, 0}},
      .cores = 8,
      .collective_id = 3,
      .has_communication = true,
      .vmem_limit_bytes = 1 << 20};
  const CallSpec spec = call_spec(call);
  ASSERT_TRUE(validate(spec)) << validate(spec).error().message;
  EXPECT_EQ(spec.kernel_name, "step");
  ASSERT_EQ(spec.operands.size(), 3u);
  EXPECT_EQ(spec.operands[0].shape, (std::vector<int64_t>{64, 128}));
  EXPECT_EQ(spec.operands[0].dtype, "bf16");
  EXPECT_EQ(spec.operands[0].space, Space::kHbm);
  EXPECT_EQ(spec.operands[1].space, Space::kAny);
  EXPECT_EQ(byte_size(spec.operands[2]).value(), 512);
  ASSERT_EQ(spec.aliases.size(), 1u);
  EXPECT_EQ(spec.cores, 8);
  EXPECT_EQ(spec.collective_id, 3);
  EXPECT_TRUE(spec.has_communication);
  EXPECT_EQ(spec.vmem_limit_bytes, 1 << 20);
  call.vmem_limit_bytes = 0;
  EXPECT_FALSE(call_spec(call).vmem_limit_bytes);
}

// Every element type that a ref can have must be one that XLA knows by the same name.
TEST(CallSpecFromIr, EveryElementTypeOfTheIrHasASize) {
  using ir::Elem;
  for (const Elem elem : {Elem::kI1, Elem::kI4, Elem::kI8, Elem::kI16, Elem::kI32, Elem::kUi4,
                          Elem::kUi8, Elem::kUi16, Elem::kUi32, Elem::kF32, Elem::kF16, Elem::kBf16,
                          Elem::kF8E4M3FN, Elem::kF8E5M2, Elem::kF8E8M0FNU, Elem::kF4E2M1FN}) {
    EXPECT_TRUE(byte_size({.shape = {8, 128}, .dtype = ir::spelling(elem)})) << ir::spelling(elem);
  }
}

}  // namespace
}  // namespace gridless::tpu
