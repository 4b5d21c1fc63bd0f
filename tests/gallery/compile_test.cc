// The real compiler for TPU v7 takes every lesson. Skipped, with the reason, where libtpu is not.
#include <gtest/gtest.h>

#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/libtpu_path.h"
#include "kernels/gallery.h"

namespace gridless::kernels {
namespace {

TEST(GalleryOnTpu, LibtpuTakesEveryLesson) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "libtpu is not built for the sanitizers";
#endif
  const auto libtpu = tpu::find_libtpu("");
  if (!libtpu) GTEST_SKIP() << libtpu.error().message;
  tpu::Compiler compiler(tpu::CompilerOptions{.libtpu = *libtpu});
  for (const Lesson& lesson : lessons()) {
    SCOPED_TRACE(lesson.name);
    Built built = lesson.build(*lesson.with());
    ASSERT_TRUE(built) << to_string(built.error());
    const auto slice = chips::smallest_slice(built->call.cores);
    const auto call = tpu::compile_kernel(compiler, std::move(*built), *slice);
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_TRUE(call->result.compiled) << to_string(call->result.diagnostics);
  }
}

}  // namespace
}  // namespace gridless::kernels
