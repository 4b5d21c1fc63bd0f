// Bad texts: a Diagnostic with the place, never a crash.
#include <gmock/gmock.h>

#include "ir_test_util.h"

namespace gridless::ir {
namespace {

using testing::HasSubstr;

void expect_error(const std::string& text, const std::string& part, int line = 0) {
  const auto m = parse(text, "bad.mlir");
  ASSERT_FALSE(m.has_value()) << text;
  ASSERT_FALSE(m.error().empty());
  EXPECT_THAT(to_string(m.error()), HasSubstr(part)) << text;
  EXPECT_EQ(m.error()[0].where.file, "bad.mlir");
  if (line == 0) return;
  EXPECT_EQ(m.error()[0].where.line, line) << to_string(m.error());
}

TEST(TextError, UnknownOpIsNamed) {
  expect_error(in_main("\"arith.addq\"() : () -> ()"), "unknown op 'arith.addq'", 3);
  expect_error(in_main("\"tpu.a\"() : () -> ()\n\"tpu.b\"() : () -> ()"), "unknown op 'tpu.b'");
}

TEST(TextError, PrettyFormIsRefusedWithAdvice) {
  expect_error("module { func.func @main() { return } }", "generic form", 1);
}

TEST(TextError, Values) {
  expect_error(in_main("\"tpu.delay\"(%x) : (i32) -> ()"), "'%x' is not defined", 3);
  expect_error(
      in_main("%0 = \"tpu.device_id\"() : () -> i32\n%0 = \"tpu.device_id\"() : () -> i32"),
      "'%0' is defined twice", 4);
  expect_error(in_main("%0 = \"tpu.device_id\"() : () -> i32\n\"tpu.delay\"(%0) : (f32) -> ()"),
               "operand 0 is f32 but was defined as i32", 4);
  expect_error(in_main("%0:2 = \"tpu.device_id\"() : () -> i32"), "names 2 results");
  expect_error(in_main("%0 = \"tpu.device_id\"() : () -> (i32, i32)"), "1 results are named");
  expect_error(in_main("%0 = \"tpu.device_id\"() : () -> i32\n\"tpu.delay\"(%0#1) : (i32) -> ()"),
               "no result number 1");
  expect_error(in_main("\"tpu.delay\"() : (i32) -> ()"), "0 operands but 1 operand types");
}

TEST(TextError, ValuesOfOneRegionAreUnknownInItsSibling) {
  expect_error(in_main("\"scf.if\"(%c) ({ %0 = \"tpu.device_id\"() : () -> i32 }, "
                       "{ \"tpu.delay\"(%0) : (i32) -> () }) : (i1) -> ()",
                       "%c: i1"),
               "'%0' is not defined");
}

TEST(TextError, Versions) {
  const auto with = [](const std::string& attrs, const std::string& prefix) {
    return "\"builtin.module\"() ({ \"" + prefix + "tpu.trace_stop\"() : () -> () }) " + attrs +
           " : () -> ()";
  };
  expect_error(with("{stable_mosaic.version = 0 : i64}", "stable_mosaic."), "version 0");
  expect_error(with("{stable_mosaic.version = 19 : i64}", "stable_mosaic."), "version 19");
  expect_error(with("", "stable_mosaic."), "no stable_mosaic.version");
  expect_error(with("{stable_mosaic.version = 13 : i64}", ""), "without the prefix");
  expect_error(with("{stable_mosaic.version = \"x\"}", "stable_mosaic."), "not an integer");
}

TEST(TextError, TypesAndAttributes) {
  const auto attr = [](const std::string& a) {
    return in_main("\"tpu.trace_stop\"() {x = " + a + "} : () -> ()");
  };
  expect_error(attr("i24"), "unknown type 'i24'");
  expect_error(attr("vector<8x128xq8>"), "unknown element type 'q8'");
  expect_error(attr("vector<1000000000x1000000000xf32>"), "more than 2^48 elements");
  expect_error(attr("vector<99999999999999999999xf32>"), "larger than");
  expect_error(attr("memref<8xf32, #tpu.memory_space<moon>>"), "unknown memory space 'moon'");
  expect_error(attr("memref<8xf32, 1>"), "expected a layout");
  expect_error(attr("300 : i8"), "does not fit i8");
  expect_error(attr("-1 : ui8"), "does not fit ui8");
  expect_error(attr("99999999999999999999"), "does not fit i64");
  expect_error(attr("1 : f32"), "expected a float");
  expect_error(attr("0x123456789 : f32"), "do not fit f32");
  expect_error(attr("1.0 : i32"), "expected an integer");
  expect_error(attr("dense<[1, 2]> : vector<3xi32>"), "dense<...> holds 2 but");
  expect_error(attr("dense<[[1], [2, 3]]> : vector<2x1xi32>"), "different lengths");
  expect_error(attr("dense<\"0x00\"> : vector<3xi32>"), "holds 1 bytes");
  expect_error(attr("dense<\"0x0\"> : vector<3xi32>"), "pairs of hex digits");
  expect_error(attr("dense<1> : i32"), "dense<...> of type i32");
  expect_error(attr("#alias"), "unknown attribute alias");
  expect_error(attr("#tpu.x<[1)>"), "closes nothing");
  expect_error(attr("1, x = 2"), "given twice");
  expect_error(attr("\"abc"), "not closed");
  expect_error(attr("\"a\\q\""), "unknown escape");
}

TEST(TextError, CutOffAnywhere) {
  const std::string text = read_file(GRIDLESS_TEST_DATA "/corpus/p17_cond_branch/module.mlir");
  // Without the last ": () -> ()" and anything before it the text is not a module.
  for (size_t n = 0; n + 4 < text.size(); n += 7) {
    const auto m = parse(text.substr(0, n), "cut.mlir");
    ASSERT_FALSE(m.has_value()) << n;
    ASSERT_FALSE(m.error().empty());
  }
}

TEST(TextError, NestingIsLimited) {
  const auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  const int n = 100000;
  expect_error(repeat("\"scf.if\"() ({ ", n), "nested more than 256 deep");
  expect_error(in_main("\"tpu.trace_stop\"() {x = " + repeat("[", n) + "} : () -> ()"),
               "nested more than 256 deep");
  expect_error(in_main("\"tpu.trace_stop\"() {x = " + repeat("{a = ", n) + "} : () -> ()"),
               "nested more than 256 deep");
  expect_error(in_main("\"tpu.trace_stop\"() {x = " + repeat("(", n) + "} : () -> ()"),
               "nested more than 256 deep");
  expect_error(in_main("\"tpu.trace_stop\"() : () -> () loc(" + repeat("\"a\"(", n)),
               "nested more than 256 deep");
  expect_error(in_main("\"tpu.trace_stop\"() {x = dense<" + repeat("[", n) + "} : () -> ()"),
               "nested too deep");
  expect_error("\"builtin.module\"() {x = #a.b" + repeat("<", n), "never closed");
}

}  // namespace
}  // namespace gridless::ir
