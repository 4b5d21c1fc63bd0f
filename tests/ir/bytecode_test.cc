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
                         testing::Values("module.mlirbc", "module_v15.mlirbc",
                                         "module_v13.mlirbc"),
                         [](const auto& info) {
                           return info.param == "module.mlirbc" ? std::string("v18")
                                                                : info.param.substr(7, 3);
                         });

}  // namespace
}  // namespace gridless::ir
