// StableHLO texts as JAX printed them, against the call.json and the body that JAX wrote apart.
#include "gridless/ir/jax_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gridless/base/base64.h"
#include "gridless/ir/call_json.h"
#include "gridless/ir/read_program.h"
#include "tests/ir/ir_test_util.h"

namespace gridless::ir {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

fs::path corpus(const std::string& name) { return fs::path(GRIDLESS_TEST_DATA "/corpus") / name; }

std::vector<fs::path> programs() {
  std::vector<fs::path> out;
  for (const auto& m : corpus_modules()) {
    if (fs::exists(m.parent_path() / "jax.stablehlo.mlir"))
      out.push_back(m.parent_path() / "jax.stablehlo.mlir");
  }
  return out;
}

Program program(const std::string& name) {
  auto p = read_program(corpus(name) / "jax.stablehlo.mlir");
  EXPECT_TRUE(p.has_value()) << to_string(p.error());
  return p ? std::move(*p) : Program{};
}

std::string error_of(const std::string& text) {
  const auto p = read_jax_program(text, "t.mlir");
  return p ? "accepted" : to_string(p.error());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(JaxProgram, IsTheKernelOfItsCallJsonAndBody) {
  ASSERT_EQ(programs().size(), 12u);
  for (const fs::path& path : programs()) {
    const auto p = read_program(path);
    ASSERT_TRUE(p.has_value()) << path << "\n" << to_string(p.error());
    const Module body = parse_ok(read_file(path.parent_path() / "module.mlir"));
    EXPECT_EQ(print(p->module), print(body)) << path;
    const auto call = parse_call_json(read_file(path.parent_path() / "call.json"));
    ASSERT_TRUE(call);
    EXPECT_EQ(p->call.name, call->name) << path;
    EXPECT_EQ(p->call.cores, call->cores) << path;
    EXPECT_EQ(p->call.aliases, call->aliases) << path;
    EXPECT_EQ(p->call.collective_id, call->collective_id) << path;
    EXPECT_EQ(p->call.has_communication, call->has_communication) << path;
    const auto same = [&](const std::vector<CallArg>& a, const std::vector<CallArg>& b) {
      ASSERT_EQ(a.size(), b.size()) << path;
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].type, b[i].type) << path;
        EXPECT_EQ(a[i].name, b[i].name) << path;
      }
    };
    same(p->call.operands, call->operands);
    same(p->call.results, call->results);
  }
}

TEST(JaxProgram, OpsHaveTheirPlaceInTheUsersSource) {
  const Program p = program("p01_dma_add_one");
  const Block& body = p.module.entry()->body();
  const char* names[] = {"x", "o", "s", "sem"};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(body.args[i]->name, names[i]);
  // The first copy is made in a helper; the wait and all others in the kernel itself.
  EXPECT_EQ(body.ops[0]->loc, SourceLoc("corpus_tools/common.py", 25, 44));
  EXPECT_THAT(p.module.callers.at(body.ops[0].get()),
              testing::ElementsAre(SourceLoc("corpus_tools/public.py", 7, 4)));
  EXPECT_EQ(body.ops[1]->loc, SourceLoc("corpus_tools/public.py", 7, 4));
  for (const size_t i : {2, 3, 4, 5, 6, 7})
    EXPECT_EQ(body.ops[i]->loc, SourceLoc("corpus_tools/public.py", 7, 37)) << i;
  for (const size_t i : {8, 9, 10, 11})
    EXPECT_EQ(body.ops[i]->loc, SourceLoc("corpus_tools/public.py", 7, 28)) << i;
  EXPECT_EQ(body.ops[12]->loc, SourceLoc("corpus_tools/common.py", 25, 44));
  EXPECT_THAT(p.module.callers.at(body.ops[12].get()),
              testing::ElementsAre(SourceLoc("corpus_tools/public.py", 7, 51)));
  EXPECT_FALSE(p.module.callers.contains(body.ops[1].get()));
}

// The rest of what a call can say; the corpus has none of it.
TEST(JaxProgram, MemoriesLimitsAndAliasesOfTheConfig) {
  std::string text = read_file(corpus("p01_dma_add_one") / "jax.stablehlo.mlir");
  text = replaced(text, "\\22serialization_format\\22: 1",
                  "\\22serialization_format\\22: 1, \\22disable_bounds_checks\\22: true, "
                  "\\22input_memory_space_colors\\22: [{\\22operand_index\\22: 0, \\22color\\22: "
                  "1}], \\22output_memory_space_colors\\22: [{\\22color\\22: 0}]");
  text = replaced(text, "backend_config = \"{",
                  "backend_config = \"{\\22scoped_memory_configs\\22: [{\\22memory_space\\22: 1, "
                  "\\22offset\\22: 0, \\22size\\22: 67108864}], ");
  text = replaced(text, "kernel_name =",
                  "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices "
                  "= [], operand_index = 0, operand_tuple_indices = []>], kernel_name =");
  const auto p = read_jax_program(text, "t.mlir");
  ASSERT_TRUE(p.has_value()) << to_string(p.error());
  EXPECT_EQ(p->call.operands[0].pinned, Space::kVmem);
  EXPECT_EQ(p->call.results[0].pinned, Space::kHbm);
  EXPECT_EQ(p->call.vmem_limit_bytes, 67108864);
  EXPECT_FALSE(p->call.bounds_checks);
  EXPECT_TRUE(p->call.semaphore_checks);
  EXPECT_EQ(p->call.aliases, (std::vector<std::pair<int, int>>{{0, 0}}));
}

TEST(JaxProgram, BodyAndLocationsAlsoAsText) {
  const std::string body = in_main("\"tpu.delay\"(%n) : (i32) -> ()", "%n: i32", "i32");
  const std::string locations =
      "#loc = loc(\"k.py\":3:4)\n\"builtin.module\"() ({\n}) {tpu.locs = [loc(unknown), "
      "loc(unknown), loc(\"steps\"), loc(\"delay:\"(callsite(#loc at \"k.py\":9:1))), #loc]} : () "
      "-> ()\n";
  const std::string text =
      "module {\n  %0 = stablehlo.custom_call @tpu_custom_call() {backend_config = "
      "\"{\\22custom_call_config\\22: {\\22body\\22: \\22" +
      base64_encode(body) + "\\22, \\22debug_locations\\22: \\22" + base64_encode(locations) +
      "\\22}}\"} : () -> tensor<8xf32>\n}\n";
  const auto p = read_jax_program(text, "t.mlir");
  ASSERT_TRUE(p.has_value()) << to_string(p.error());
  EXPECT_EQ(p->call.name, "main");
  const Block& block = p->module.entry()->body();
  EXPECT_EQ(block.args[0]->name, "steps");
  EXPECT_EQ(block.ops[0]->loc, SourceLoc("k.py", 3, 4));
}

TEST(JaxProgram, ErrorsNameTheLineAndWhatToDo) {
  const std::string good = read_file(corpus("p01_dma_add_one") / "jax.stablehlo.mlir");
  EXPECT_THAT(error_of("module { }"), HasSubstr("no tpu_custom_call"));
  EXPECT_THAT(error_of(good + good), HasSubstr("a second tpu_custom_call"));
  EXPECT_THAT(error_of(replaced(good, "tensor<8x128xf32>) -> tensor<8x128xf32>\n    return",
                                "tensor<?x128xf32>) -> tensor<8x128xf32>\n    return")),
              HasSubstr("t.mlir:3: error: in0 is tensor<?x128xf32>"));
  EXPECT_THAT(error_of(replaced(good, "operand_layouts = [dense<[1, 0]>",
                                "operand_layouts = [dense<[0, 1]>")),
              HasSubstr("row-major"));
  EXPECT_THAT(error_of(replaced(good, "\\22body\\22", "\\22bodi\\22")), HasSubstr("no body"));
  EXPECT_THAT(error_of(replaced(good, "backend_config = \"{", "backend_config = \"")),
              HasSubstr("not valid JSON: line 1, column "));
  EXPECT_THAT(error_of(replaced(good, "mhlo.num_partitions = 1", "mhlo.num_partitions = 0")),
              HasSubstr("num_partitions"));
  // Locations of another body.
  const std::string other = read_file(corpus("p31_exchange_2dev") / "jax.stablehlo.mlir");
  const auto locations = [](const std::string& text) {
    const std::string key = "debug_locations\\22: \\22";
    const size_t from = text.find(key) + key.size();
    return text.substr(from, text.find("\\22", from) - from);
  };
  EXPECT_THAT(error_of(replaced(good, locations(good), locations(other))),
              HasSubstr("for 21 ops and block arguments"));
}

TEST(ReadProgram, AFileIsWhatItHolds) {
  for (const char* file :
       {"module.mlir", "module.mlirbc", "module_v13.mlirbc", "jax.stablehlo.mlir"}) {
    const auto p = read_program(corpus("p31_exchange_2dev") / file);
    ASSERT_TRUE(p.has_value()) << file << to_string(p.error());
    EXPECT_EQ(p->call.cores, 2) << file;
    EXPECT_EQ(p->call.name, "exchange") << file;
  }
  const auto call = corpus("p01_dma_add_one") / "call.json";
  const auto said_twice = read_program(corpus("p01_dma_add_one") / "jax.stablehlo.mlir", call);
  ASSERT_FALSE(said_twice.has_value());
  EXPECT_THAT(to_string(said_twice.error()), HasSubstr("says its own call"));
  EXPECT_THAT(to_string(read_program("no/such.mlir").error()), HasSubstr("cannot open"));
  EXPECT_THAT(to_string(read_program(GRIDLESS_TEST_DATA "/bytecode/attributes.mlirbc").error()),
              HasSubstr("--call call.json"));
  EXPECT_TRUE(read_module(GRIDLESS_TEST_DATA "/bytecode/attributes.mlirbc").has_value());
  EXPECT_THAT(to_string(read_program("/dev/null").error()), HasSubstr("the file is empty"));
}

}  // namespace
}  // namespace gridless::ir
