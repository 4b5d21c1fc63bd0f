// Which state a communicating kernel updates without a copy, and what the program then looks like.
#include "gridless/tpu/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gridless/ir/text.h"
#include "gridless/ir/verifier.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/stablehlo.h"

namespace gridless::tpu {
namespace {

using lang::Kernel;
using lang::Ref;
using testing::HasSubstr;
using testing::Not;

constexpr auto kF32 = ir::Elem::kF32;

// State of 4 MiB, doubled tile by tile through VMEM, in a kernel that talks to the others.
void double_tiles(Kernel& k, const Ref& state) {
  const Ref tile = k.vmem(kF32, {8, 128});
  const lang::Sem done = k.dma_sem();
  k.loop(0, 1024, [&](lang::Scalar i) {
    k.copy(state.at(i), tile, done).wait();
    tile.store(tile.load() * 2.0);
    k.copy(tile, state.at(i), done).wait();
  });
}

ir::Program build(int cores, const std::function<void(Kernel&, Ref, Ref)>& body) {
  Kernel k("state", cores);
  const Ref x = k.input("x", kF32, {8, 128});
  const Ref a = k.inout("a", kF32, {1024, 8, 128});
  const Ref y = k.output("y", kF32, {8, 128});
  const Ref b = k.inout("b", kF32, {1024, 8, 128});
  k.scope([&] {
    k.copy(x, y, k.dma_sem()).wait();
    body(k, a, b);
  });
  auto program = k.finish();
  EXPECT_TRUE(program) << to_string(program.error());
  return std::move(*program);
}

ir::Program talkative(const std::function<void(Kernel&, Ref, Ref)>& body) {
  return build(4, [&](Kernel& k, const Ref& a, const Ref& b) {
    k.barrier_all();
    body(k, a, b);
  });
}

struct Rewritten {
  ir::Program program;
  CallSpec spec;
  explicit Rewritten(ir::Program p) : program(std::move(p)), spec(call_spec(program.call)) {
    write_through_operands(program, spec);
  }
  size_t arguments() const { return program.module.entry()->body().args.size(); }
};

TEST(InPlace, StateThatNobodyElseWritesGoesThroughItsOperand) {
  const Rewritten r(talkative([](Kernel& k, const Ref& a, const Ref& b) {
    double_tiles(k, a);
    double_tiles(k, b);
  }));
  ASSERT_EQ(r.spec.aliases.size(), 2u);
  EXPECT_TRUE(r.spec.aliases[0].through_operand);
  EXPECT_TRUE(r.spec.aliases[1].through_operand);
  EXPECT_THAT(kernel_results(r.spec), testing::ElementsAre(1));
  EXPECT_EQ(r.arguments(), 4u);  // x, a, b, y
  EXPECT_FALSE(has_errors(ir::verify(r.program.module)));
  const std::string body = ir::print(r.program.module, {});
  const auto text = stablehlo_text(r.spec, body);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, Not(HasSubstr("output_operand_aliases")));
  EXPECT_THAT(*text, HasSubstr("%call = stablehlo.custom_call"));
  EXPECT_THAT(*text, HasSubstr("sdy.return %shard1, %call, %shard2 : "));
  EXPECT_THAT(*text, HasSubstr("tf.aliasing_output = 0"));
  EXPECT_THAT(*text, HasSubstr("tf.aliasing_output = 2"));
  EXPECT_THAT(*text, HasSubstr("has_side_effect = true"));
}

TEST(InPlace, StateThatPeersCopyIntoKeepsItsResult) {
  const Rewritten r(talkative([](Kernel& k, const Ref& a, const Ref& b) {
    double_tiles(k, a);
    const lang::Sems sems = k.dma_sems(2);
    const lang::Copy copy = k.copy_to((k.core() + 1) % 4, a.at(0), b.at(1), sems.at(0), sems.at(1));
    copy.wait_sent();
    k.wait_received(b.at(1), sems.at(1));
  }));
  EXPECT_TRUE(r.spec.aliases[0].through_operand);
  EXPECT_FALSE(r.spec.aliases[1].through_operand);
  EXPECT_EQ(r.arguments(), 5u);
  const auto text = stablehlo_text(r.spec, ir::print(r.program.module, {}));
  EXPECT_THAT(*text, HasSubstr("output_tuple_indices = [1], operand_index = 2"));
  EXPECT_THAT(*text, HasSubstr("sdy.return %shard1, %call#0, %call#1 : "));
}

TEST(InPlace, KernelsWithoutCommunicationAreLeftAlone) {
  const Rewritten r(build(4, [](Kernel& k, const Ref& a, const Ref& b) {
    double_tiles(k, a);
    double_tiles(k, b);
  }));
  EXPECT_FALSE(r.spec.aliases[0].through_operand);
  EXPECT_EQ(r.arguments(), 6u);
}

TEST(InPlace, StateOutsideOfHbmIsLeftAlone) {
  ir::Program program = talkative([](Kernel& k, const Ref& a, const Ref& b) {
    double_tiles(k, a);
    double_tiles(k, b);
  });
  CallSpec spec = call_spec(program.call);
  spec.operands[1].space = spec.results[0].space = Space::kVmem;
  write_through_operands(program, spec);
  EXPECT_FALSE(spec.aliases[0].through_operand);
  EXPECT_TRUE(spec.aliases[1].through_operand);
}

}  // namespace
}  // namespace gridless::tpu
