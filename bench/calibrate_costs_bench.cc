// Measures what vector operations cost on TPU v7: compiles a micro-kernel per operation and element
// format with libtpu and reads slots and latency off the schedule. No TPU is needed.
//   calibrate_costs_bench [--libtpu PATH] > gridless/chips/tpu7x_op_costs.inc
// Run it again with another libtpu; docs/time.md says what the columns mean.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "gridless/bundles/analysis.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/time/registers.h"
#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/worker.h"

namespace {

using namespace gridless;        // NOLINT
using namespace gridless::lang;  // NOLINT

using Make = std::function<Vec(Kernel&, Vec, Vec)>;

struct Probe {
  std::string op;  // MLIR name
  Elem from, to;
  Make make;
  bool mask = false;  // the result is a mask: stored through a select
};

struct Measured {
  double cycles = 0, valu = 0, eup = 0, xlu = 0;
};

class Laboratory {
 public:
  explicit Laboratory(tpu::Compiler& compiler) : compiler_(compiler) {}

  // A kernel that loads two vectors of `shape`, makes one of them and stores it. `more`: first
  // makes the operand by so many rounds of the same and an addition; between formats, of a cast and
  // the cast back.
  std::optional<Measured> measure(const Probe& p, const Shape& shape, int more = 0) {
    Kernel k("probe");
    const Ref y = k.output("y", p.to, shape);
    k.scope([&] {
      const Ref a = k.vmem(p.from, shape), b = k.vmem(p.from, shape), out = k.vmem(p.to, shape);
      Vec x = a.load();
      const Vec other = b.load();
      for (int n = 0; n < more; ++n) {
        const Vec made = p.make(k, x, other);
        x = p.from == p.to ? made + other : cast(made, p.from);
      }
      out.store(p.make(k, x, other));
      k.copy(out, y, k.dma_sem()).wait();
    });
    auto program = k.finish();
    if (!program) return std::nullopt;
    const auto call = tpu::compile_kernel(compiler_, std::move(*program), {});
    if (!call || !call->result.compiled || !call->result.compiled->schedule) return std::nullopt;
    auto listing = bundles::parse_listing(call->result.compiled->schedule->dump.schedule);
    if (!listing) return std::nullopt;
    const bundles::Cost total = bundles::analyse(std::move(*listing)).total;
    const auto issued = [&](bundles::Unit u) {
      return static_cast<double>(total.issued[static_cast<size_t>(u)]);
    };
    return Measured{total.cycles, issued(bundles::Unit::kValu), issued(bundles::Unit::kEup),
                    issued(bundles::Unit::kXlu)};
  }

 private:
  tpu::Compiler& compiler_;
};

std::vector<Probe> probes() {
  std::vector<Probe> all;
  const auto f1 = [&](const char* op, Vec (*make)(Vec, Where),
                      std::initializer_list<Elem> formats) {
    for (const Elem e : formats)
      all.push_back({op, e, e, [=](Kernel&, Vec a, Vec) { return make(a, Where::current()); }});
  };
  const auto f2 = [&](const char* op, const std::function<Vec(Vec, Vec)>& make,
                      std::initializer_list<Elem> formats) {
    for (const Elem e : formats)
      all.push_back({op, e, e, [=](Kernel&, Vec a, Vec b) { return make(a, b); }});
  };
  const auto floats = {Elem::kF32, Elem::kBf16};
  const auto ints = {Elem::kI32};
  f2("arith.addf", [](Vec a, Vec b) { return a + b; }, floats);
  f2("arith.subf", [](Vec a, Vec b) { return a - b; }, floats);
  f2("arith.mulf", [](Vec a, Vec b) { return a * b; }, floats);
  f2("arith.divf", [](Vec a, Vec b) { return b / a; }, floats);
  f2("arith.maximumf", [](Vec a, Vec b) { return max(a, b); }, floats);
  f2("arith.minimumf", [](Vec a, Vec b) { return min(a, b); }, floats);
  f2("arith.remf", [](Vec a, Vec b) { return remainder(b, a); }, {Elem::kF32});
  f2("math.powf", [](Vec a, Vec b) { return pow(a, b); }, {Elem::kF32});
  f1("arith.negf", [](Vec a, Where w) { return neg(a, w); }, floats);
  f1("math.absf", abs, floats);
  f1("math.exp", exp, floats);
  f1("math.exp2", exp2, floats);
  f1("math.log", log, floats);
  f1("math.tanh", tanh, floats);
  f1("math.sin", sin, {Elem::kF32});
  f1("math.cos", cos, {Elem::kF32});
  f1("math.sqrt", sqrt, {Elem::kF32});
  f1("math.rsqrt", rsqrt, floats);
  f1("math.erf", erf, {Elem::kF32});
  f1("math.log1p", log1p, {Elem::kF32});
  f1("math.floor", floor, {Elem::kF32});
  f1("math.ceil", ceil, {Elem::kF32});
  f1("math.roundeven", round_even, {Elem::kF32});
  f1("tpu.logistic", logistic, floats);
  f1("tpu.reciprocal", [](Vec a, Where w) { return reciprocal(a, false, w); }, {Elem::kF32});
  f2("arith.addi", [](Vec a, Vec b) { return a + b; }, ints);
  f2("arith.subi", [](Vec a, Vec b) { return a - b; }, ints);
  f2("arith.muli", [](Vec a, Vec b) { return a * b; }, ints);
  f2("arith.divsi", [](Vec a, Vec b) { return divide_ints(b, a); }, ints);
  f2("arith.remsi", [](Vec a, Vec b) { return remainder(b, a); }, ints);
  f2("arith.andi", [](Vec a, Vec b) { return a & b; }, ints);
  f2("arith.ori", [](Vec a, Vec b) { return a | b; }, ints);
  f2("arith.xori", [](Vec a, Vec b) { return a ^ b; }, ints);
  f2("arith.shli", [](Vec a, Vec b) { return shift_left(a, b); }, ints);
  f2("arith.shrui", [](Vec a, Vec b) { return shift_right_logical(a, b); }, ints);
  f2("arith.shrsi", [](Vec a, Vec b) { return shift_right(a, b); }, ints);
  f2("arith.maxsi", [](Vec a, Vec b) { return max(a, b); }, ints);
  f2("arith.minsi", [](Vec a, Vec b) { return min(a, b); }, ints);
  f1("math.ctlz", leading_zeros, ints);
  f1("math.ctpop", count_ones, ints);
  const auto to = [&](const char* op, Elem from, Elem into) {
    all.push_back({op, from, into, [=](Kernel&, Vec a, Vec) { return cast(a, into); }});
  };
  to("arith.extf", Elem::kBf16, Elem::kF32);
  to("arith.truncf", Elem::kF32, Elem::kBf16);
  to("arith.extf", Elem::kF8E4M3FN, Elem::kF32);
  to("arith.extf", Elem::kF8E4M3FN, Elem::kBf16);
  to("arith.truncf", Elem::kF32, Elem::kF8E4M3FN);
  to("arith.truncf", Elem::kBf16, Elem::kF8E4M3FN);
  to("arith.sitofp", Elem::kI32, Elem::kF32);
  to("arith.fptosi", Elem::kF32, Elem::kI32);
  to("arith.sitofp", Elem::kI8, Elem::kF32);
  to("arith.sitofp", Elem::kI8, Elem::kBf16);
  to("arith.extsi", Elem::kI8, Elem::kI32);
  to("arith.trunci", Elem::kI32, Elem::kI8);
  // A mask and what it chooses: the compare is what is left after the select of the next probe.
  for (const Elem e : {Elem::kF32, Elem::kBf16, Elem::kI32})
    all.push_back({e == Elem::kI32 ? "arith.cmpi" : "arith.cmpf", e, e,
                   [](Kernel&, Vec a, Vec b) { return where(a < b, a, b); }, true});
  return all;
}

// One register of the format that packs most, and many.
Shape small_shape(const Probe& p) {
  return {std::max(time::register_rows(p.from), time::register_rows(p.to)), 128};
}
const Shape kLarge = {128, 1024};

// Of the operation alone: a round also adds, or casts back, which is taken to cost the same.
double latency(const Probe& p, const Measured& few, const Measured& many, int rounds) {
  const double round = (many.cycles - few.cycles) / rounds;
  return std::max(1.0, p.from == p.to ? round - 2 : round / 2);
}

void print(const Probe& p, double latency, const Measured& small, const Measured& large,
           const Measured& base_small, const Measured& base_large) {
  const auto wide = [&](const Shape& s) {
    const auto n = [&](Elem e) { return time::registers_of(ir::Type::vector(s, e)).count(); };
    return static_cast<double>(std::max(n(p.from), n(p.to)));
  };
  const double registers = wide(kLarge) - wide(small_shape(p));
  const auto slope = [&](double Measured::* m) {
    return std::max(0.0, ((large.*m - base_large.*m) - (small.*m - base_small.*m)) / registers);
  };
  const double valu = slope(&Measured::valu), eup = slope(&Measured::eup);
  const char* to = p.mask ? "i1" : ir::spelling(p.to);
  // A compare with its select: two cycles and one slot are the select's.
  fmt::print("{{\"{}\", \"{}\", \"{}\", {:.3g}, {:.3g}, {:.3g}, {:.3g}}},\n", p.op,
             ir::spelling(p.from), to, p.mask ? std::max(0.0, valu - 1) : valu, eup,
             slope(&Measured::xlu), p.mask ? std::max(1.0, latency - 2) : latency);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "tpu-worker") == 0) return tpu::worker_main();
  const auto libtpu = tpu::find_libtpu(argc > 2 ? argv[2] : "");
  if (!libtpu) {
    fmt::print(stderr, "{}\n", libtpu.error().message);
    return 1;
  }
  tpu::CompilerOptions options{.libtpu = *libtpu};
  options.schedule = true;
  tpu::Compiler compiler(options);
  Laboratory laboratory(compiler);
  fmt::print("// Written by bench/calibrate_costs_bench from schedules of libtpu {}.\n",
             libtpu->wheel_version);
  fmt::print(
      "// op, format of the operand, of the result, slots per register of the wider: VALU, "
      "EUP, XLU; latency\n");
  std::map<std::pair<Elem, int64_t>, std::optional<Measured>> bases;
  const auto base = [&](Elem e, const Shape& shape) -> const std::optional<Measured>& {
    const auto [it, fresh] = bases.try_emplace({e, shape[0]});
    const Probe copy{"", e, e, [](Kernel&, Vec a, Vec) { return a; }};
    if (fresh) it->second = laboratory.measure(copy, shape);
    return it->second;
  };
  for (const Probe& p : probes()) {
    const Shape shape = small_shape(p);
    const auto small = laboratory.measure(p, shape), large = laboratory.measure(p, kLarge);
    const auto base_small = base(p.from, shape), base_large = base(p.from, kLarge);
    const auto few = laboratory.measure(p, shape, 3), many = laboratory.measure(p, shape, 9);
    if (!small || !large || !base_small || !base_large || !few || !many) {
      fmt::print(stderr, "{} {}: not compiled\n", p.op, ir::spelling(p.from));
      continue;
    }
    print(p, latency(p, *few, *many, 6), *small, *large, *base_small, *base_large);
  }
  return 0;
}
