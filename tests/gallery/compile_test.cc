// The real compiler for TPU v7 takes every lesson. Skipped, with the reason, where libtpu is not.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/libtpu_path.h"
#include "kernels/gallery.h"

namespace gridless::kernels {
namespace {

// Fails the current test unless libtpu compiles the lesson.
void expect_compiled(tpu::Compiler& compiler, const Lesson& lesson,
                     const std::map<std::string, std::string>& options = {}) {
  Built built = lesson.build(*lesson.with(options));
  ASSERT_TRUE(built) << to_string(built.error());
  const auto slice = chips::smallest_slice(built->call.cores);
  const auto call = tpu::compile_kernel(compiler, std::move(*built), *slice);
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_TRUE(call->result.compiled) << to_string(call->result.diagnostics);
}

class GalleryOnTpu : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "libtpu is not built for the sanitizers";
#endif
    const auto libtpu = tpu::find_libtpu("");
    if (!libtpu) GTEST_SKIP() << libtpu.error().message;
    compiler_.emplace(tpu::CompilerOptions{.libtpu = *libtpu});
  }
  std::optional<tpu::Compiler> compiler_;
};

TEST_F(GalleryOnTpu, LibtpuTakesEveryLesson) {
  for (const Lesson& lesson : lessons()) {
    SCOPED_TRACE(lesson.name);
    expect_compiled(*compiler_, lesson);
  }
}

TEST_F(GalleryOnTpu, LibtpuTakesEveryCollective) {
  const Lesson& lesson = **find_lesson("20_collectives");
  for (const Option& kind : lesson.options) {
    if (kind.key != "kind") continue;
    for (const std::string& name : kind.names)
      for (const char* algorithm : {"direct", "ring", "hierarchical", "scattered"}) {
        SCOPED_TRACE(name + " " + algorithm);
        expect_compiled(*compiler_, lesson,
                        {{"cores", "8"}, {"kind", name}, {"algorithm", algorithm}});
      }
  }
}

}  // namespace
}  // namespace gridless::kernels
