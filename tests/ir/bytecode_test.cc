// Bytecode against text: JAX wrote both from one module, so reading either must give one module.
#include "gridless/ir/bytecode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gridless/ir/verifier.h"
#include "tests/ir/ir_test_util.h"

namespace gridless::ir {
namespace {

using testing::HasSubstr;

class Bytecode : public testing::TestWithParam<std::string> {};

TEST_P(Bytecode, EveryVersionOfEveryCorpusModuleIsTheModuleOfItsText) {
  for (const auto& text_path : corpus_modules()) {
    const auto path = text_path.parent_path() / GetParam();
    const Module text = parse_ok(read_file(text_path), text_path.string());
    const auto module = read_bytecode(read_file(path), path.string());
    ASSERT_TRUE(module.has_value()) << to_string(module.error());
    EXPECT_EQ(print(*module, {.version = 18}), print(text, {.version = 18})) << path;
    EXPECT_EQ(print(*module, {.version = 13}), print(text, {.version = 13})) << path;
    EXPECT_FALSE(has_errors(verify(*module))) << path << "\n" << to_string(verify(*module));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Bytecode,
                         testing::Values("module.mlirbc", "module_v15.mlirbc", "module_v13.mlirbc"),
                         [](const auto& info) {
                           return info.param == "module.mlirbc" ? std::string("v18")
                                                                : info.param.substr(7, 3);
                         });

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(GRIDLESS_TEST_DATA "/bytecode") / name;
}

std::string error_of(const std::string& bytes) {
  const auto module = read_bytecode(bytes, "t.mlirbc");
  return module ? "accepted" : to_string(module.error());
}

// Written by MLIR's own writer from the text beside it.
TEST(BytecodeAttributes, EveryKindIsWhatItsTextSays) {
  const auto module = read_bytecode(read_file(data("attributes.mlirbc")));
  ASSERT_TRUE(module.has_value()) << to_string(module.error());
  const Module text = parse_ok(read_file(data("attributes.mlir")));
  ASSERT_EQ(module->top->attrs.size(), text.top->attrs.size());
  for (size_t i = 0; i < text.top->attrs.size(); ++i) {
    const auto& [name, value] = text.top->attrs[i];
    EXPECT_EQ(module->top->attrs[i].first, name);
    EXPECT_EQ(print(module->top->attrs[i].second), print(value)) << name;
    EXPECT_TRUE(module->top->attrs[i].second == value) << name;
  }
}

TEST(BytecodeAttributes, ResourcesBecomeDenseConstants) {
  const auto module = read_bytecode(read_file(data("resources.mlirbc")));
  ASSERT_TRUE(module.has_value()) << to_string(module.error());
  EXPECT_EQ(print_dict(module->top->attrs),
            "{x.r = dense<[1, 2, 3]> : tensor<3xi32>, "
            "x.s = dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>}");
}

TEST(BytecodeLocations, TheFirstPlaceWithAFileAndItsCallers) {
  const auto module = read_bytecode(read_file(data("location.mlirbc")));
  ASSERT_TRUE(module.has_value()) << to_string(module.error());
  EXPECT_EQ(module->top->loc, SourceLoc("a.py", 1, 2));
  EXPECT_THAT(module->callers.at(module->top.get()),
              testing::ElementsAre(SourceLoc("b.py", 3, 4), SourceLoc("c.py", 6, 7)));
}

TEST(BytecodeLocations, AnOpWithoutPlaceIsNamedByItsNumber) {
  const auto path = corpus_modules()[0].parent_path().parent_path() / "p01_dma_add_one";
  const auto module = read_bytecode(read_file(path / "module.mlirbc"), "add.mlirbc");
  ASSERT_TRUE(module.has_value());
  const Op& first = *module->entry()->body().ops[0];
  EXPECT_EQ(first.loc.str(), "add.mlirbc:stable_mosaic.tpu.enqueue_dma:3");
}

TEST(BytecodeErrors, SayWhatIsWrong) {
  const std::string good = read_file(GRIDLESS_TEST_DATA "/corpus/p01_dma_add_one/module.mlirbc");
  EXPECT_THAT(error_of("hello"), HasSubstr("not MLIR bytecode"));
  EXPECT_THAT(error_of(""), HasSubstr("not MLIR bytecode"));
  EXPECT_THAT(error_of(read_file(data("version6.mlirbc"))), HasSubstr("only version 0"));
  std::string unknown = good;
  unknown.replace(unknown.find("arith.addf"), 10, "arith.addg");
  EXPECT_THAT(error_of(unknown), HasSubstr("unknown op 'arith.addg'"));
  EXPECT_THAT(error_of(unknown), HasSubstr("t.mlirbc:stable_mosaic.arith.addg:10"));
  std::string space = good;
  space.replace(space.find("vmem>"), 4, "vmen");
  EXPECT_THAT(error_of(space), HasSubstr("unknown memory space 'vmen'"));
}

TEST(BytecodeErrors, EveryTruncationIsRefused) {
  const std::string good = read_file(GRIDLESS_TEST_DATA "/corpus/p31_exchange_2dev/module.mlirbc");
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(error_of(good.substr(0, n)), "accepted") << n;
}

}  // namespace
}  // namespace gridless::ir
