// Every operation of the language gives IR that the verifier takes and that the real compiler for
// TPU v7 takes (skipped, with the reason, where libtpu is not).
#include <gtest/gtest.h>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/libtpu_path.h"

namespace gridless::lang {
namespace {

using Program = std::expected<ir::Program, Diagnostics>;

// x and y are 16x256 f32; `body` maps a loaded x to what is stored in y.
Program kernel(const char* name, const std::function<Vec(Kernel&, Ref, Vec)>& body) {
  const Shape shape = {16, 256};
  Kernel k(name);
  const Ref x = k.input("x", Elem::kF32, shape), y = k.output("y", Elem::kF32, shape);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, shape), b = k.vmem(Elem::kF32, shape);
    const Sem done = k.dma_sem();
    k.copy(x, a, done, Kernel::Priority::kUrgent).wait();
    b.store(body(k, a, a.load()));
    k.copy(b, y, done).wait();
  });
  return k.finish();
}

Vec sum_of(std::initializer_list<Vec> parts) {
  Vec total;
  for (const Vec& v : parts) total = total ? total + v : v;
  return total;
}

Program floats() {
  return kernel("floats", [](Kernel&, Ref, Vec v) {
    const Vec p = abs(v) + 1.0;
    return sum_of({exp(v),
                   exp2(v),
                   log(p),
                   log1p(p),
                   tanh(v),
                   sin(v),
                   cos(v),
                   sqrt(p),
                   rsqrt(p),
                   erf(v),
                   floor(v),
                   ceil(v),
                   round_even(v),
                   pow(p, v),
                   remainder(v, p),
                   reciprocal(p),
                   reciprocal(p, true),
                   logistic(v),
                   max(v, 0.0),
                   min(v, p),
                   2.0 - v,
                   1.0 / p,
                   -v});
  });
}

Program integers() {
  return kernel("integers", [](Kernel& k, Ref, Vec v) {
    const Vec i = iota(k, {16, 256}, 1), r = iota(k, {16, 256}, 0) + 1;
    Vec n = sum_of({i & r, i | r, i ^ 3, shift_left(i, 2), shift_right(i, 1),
                    shift_right_logical(i, 1), divide_ints(i, r), remainder(i, r), leading_zeros(i),
                    count_ones(i), abs(-i), max(i, r)});
    n = n + cast((i < r) & (i != 3), Elem::kI32) + cast(cast(i, Elem::kI8), Elem::kI32);
    return v + cast(n, Elem::kF32) + bitcast(i, Elem::kF32);
  });
}

Program shapes() {
  return kernel("shapes", [](Kernel& k, Ref, Vec v) {
    const Vec lane = iota(k, {16, 256}, 1);
    const Vec half = slice(v, {0, 128}, {16, 128});
    const Vec pairs = pack_pairs(v, v * 2.0, Elem::kBf16);
    const Vec best = cast(arg_max(v, 1) + arg_min(v, 1), Elem::kF32);
    return sum_of({concat({half, half}, 1),
                   concat({slice(v, {0, 0}, {8, 256}), slice(v, {8, 0}, {8, 256})}, 0),
                   transpose(transpose(v)), roll(v, 3, 1), roll(v, 1, 0),
                   concat({gather(half, slice(lane, {0, 0}, {16, 128}), 1), half}, 1),
                   unpack_half(pairs, 0, Elem::kBf16), unpack_half(pairs, 1, Elem::kBf16),
                   best + sum(v, 1) + max_over(v, 1) + min_over(v, 1), v * sum(v, 0),
                   reshape(reshape(v, {2, 8, 256}), {16, 256}),
                   v * extract(max_over(max_over(v, 1), 0), {0, 0})});
  });
}

Program refs() {
  return kernel("refs", [](Kernel& k, Ref a, Vec v) {
    a.store_masked(v * 2.0, v > 0.0);
    const Ref narrow = k.vmem(Elem::kF32, {16, 128});
    narrow.store(slice(v, {0, 0}, {16, 128}));
    narrow.store_strided(narrow.load_strided({0, 0}, {8, 128}, {2, 1}), {1, 0}, {2, 1});
    a.store(narrow.load(), {0, 128});
    const Ref table = k.smem(Elem::kI32, {4}), numbers = k.smem(Elem::kF32, {4});
    table.set({0}, 8);
    numbers.set({1}, 0.5);
    const Scalar row = k.assume_multiple(table.get({0}), 8);
    const Scalar half = max(numbers.get({1}) * 3.0, 1.0) - 0.5;
    k.require(row < 16, "row in range");
    k.delay(10);
    Vec out = v;
    k.trace("middle", [&] {
      out = out + a.load({row, 0}, {8, 256}).kernel()->constant({16, 256}, Elem::kF32, 1);
    });
    out = k.choose(row > 4, [&] { return out * half; }, [&] { return out; });
    const Sem count = k.sem();
    k.signal(count, 2);
    const Scalar seen = cast(k.read(count), Elem::kF32);
    k.wait(count, 2);
    return out + seen + a.reshape({2, 8, 256}).at(1).load({0, 0}, {1, 256});
  });
}

Program products() {
  return kernel("products", [](Kernel& k, Ref, Vec v) {
    const Vec b = cast(v, Elem::kBf16), acc = zeros(k, Elem::kF32, {16, 16});
    const Vec small = dot_nt(b, b, acc) + dot_nt(v, v, acc, Precision::kF32);
    return dot(cast(small, Elem::kBf16), b, zeros(k, Elem::kF32, {16, 256}));
  });
}

Program matrix_units() {
  return kernel("matrix_units", [](Kernel& k, Ref, Vec v) {
    mxu_push(full(k, Elem::kBf16, {256, 256}, 0.5), 0, 0);
    mxu_accumulate(cast(v, Elem::kBf16), 0, 0, 0);
    return mxu_pop(k, 16, 0, 0);
  });
}

Program random() {
  return kernel("random", [](Kernel& k, Ref, Vec v) {
    seed_random(k, 7);
    const Vec bits = random_bits(k, {16, 256});
    return cast(cast_stochastic(v, bits, Elem::kBf16), Elem::kF32);
  });
}

const std::pair<const char*, Program (*)()> kPrograms[] = {{"floats", floats},
                                                           {"integers", integers},
                                                           {"shapes", shapes},
                                                           {"refs", refs},
                                                           {"products", products},
                                                           {"random", random},
                                                           {"matrix_units", matrix_units}};

TEST(EveryOp, IsValidIr) {
  for (const auto& [name, build] : kPrograms) {
    const Program program = build();
    EXPECT_TRUE(program) << name << ": " << to_string(program.error());
  }
}

TEST(EveryOp, IsTakenByLibtpu) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "libtpu is not built for the sanitizers";
#endif
  const auto libtpu = tpu::find_libtpu("");
  if (!libtpu) GTEST_SKIP() << libtpu.error().message;
  tpu::Compiler compiler(tpu::CompilerOptions{.libtpu = *libtpu});
  for (const auto& [name, build] : kPrograms) {
    Program program = build();
    ASSERT_TRUE(program) << name;
    const auto call = tpu::compile_kernel(compiler, std::move(*program), *chips::smallest_slice(1));
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_TRUE(call->result.compiled) << name << ": " << to_string(call->result.diagnostics);
  }
}

}  // namespace
}  // namespace gridless::lang
