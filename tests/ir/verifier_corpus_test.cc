// Kernels that the real compiler accepts pass the verifier.
#include "gridless/ir/verifier.h"
#include "ir_test_util.h"

namespace gridless::ir {
namespace {

TEST(VerifierCorpus, KernelsWrittenByJaxAreClean) {
  for (const auto& file : corpus_modules()) {
    const Module m = parse_ok(read_file(file), file.string());
    EXPECT_EQ(to_string(verify(m)), "") << file;
  }
}

TEST(VerifierCorpus, ZooAndExamplesAreClean) {
  for (const auto& file : mlir_files()) {
    const Module m = parse_ok(read_file(file), file.string());
    EXPECT_EQ(to_string(verify(m)), "") << file;
  }
}

TEST(VerifierCorpus, OlderSpellingsAreCleanToo) {
  for (const auto& file : corpus_modules()) {
    const Module m = parse_ok(print(parse_ok(read_file(file)), {.version = 13}), file.string());
    EXPECT_EQ(to_string(verify(m)), "") << file;
  }
}

}  // namespace
}  // namespace gridless::ir
