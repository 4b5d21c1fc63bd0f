// Measures what vector operations cost on TPU v7: compiles a micro-kernel per operation and element
// format with libtpu and reads slots and latency off the schedule. No TPU is needed.
//   calibrate_costs_bench [--libtpu PATH] > gridless/chips/tpu7x_op_costs.inc
//   calibrate_costs_bench --units [--libtpu PATH] > gridless/chips/tpu7x_unit_costs.inc
// The second form measures what belongs to units, copies and waits instead (unit_probes.h). Run it
// again with another libtpu; docs/time.md says what the columns mean.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <optional>

#include "bench/unit_probes.h"
#include "gridless/bundles/analysis.h"
#include "gridless/chips/op_costs.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/time/registers.h"
#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/worker.h"

namespace {

using namespace gridless;        // NOLINT
using namespace gridless::lang;  // NOLINT

// Of a vector and another one, whose elements nobody knows.
using Make = std::function<Vec(Vec, Vec)>;

struct Probe {
  std::string op;  // MLIR name
  Elem from, to;
  Make make;
  // What `make` does beside the operation, for the difference; null: nothing.
  Make rest = nullptr;
  std::string row_from = "", row_to = "";  // formats of the row where they are not those above
};

struct Measured {
  double cycles = 0, valu = 0, eup = 0, xlu = 0;
};

// A kernel that loads two vectors of `shape`, makes one of them and stores it. `more`: first
// makes the operand by so many rounds of the same and an addition; between formats, of a cast and
// the cast back.
std::optional<Measured> measure(Laboratory& laboratory, Elem from, Elem to, const Make& make,
                                const Shape& shape, int more = 0) {
  Kernel k("probe");
  const Ref y = k.output("y", to, shape);
  k.scope([&] {
    const Ref a = k.vmem(from, shape), b = k.vmem(from, shape), out = k.vmem(to, shape);
    Vec x = a.load();
    const Vec other = b.load();
    for (int n = 0; n < more; ++n) {
      const Vec made = make(x, other);
      x = from == to ? made + other : cast(made, from);
    }
    out.store(make(x, other));
    k.copy(out, y, k.dma_sem()).wait();
  });
  auto program = k.finish();
  if (!program) return std::nullopt;
  auto listing = laboratory.schedule(std::move(*program));
  if (!listing) return std::nullopt;
  const bundles::Cost total = bundles::analyse(std::move(*listing)).total;
  const auto issued = [&](bundles::Unit u) {
    return static_cast<double>(total.issued[static_cast<size_t>(u)]);
  };
  return Measured{total.cycles, issued(bundles::Unit::kValu), issued(bundles::Unit::kEup),
                  issued(bundles::Unit::kXlu)};
}

Vec emit(ir::OpCode code, Vec a, Elem to, std::vector<ir::Value*> operands) {
  Kernel& k = *a.kernel();
  return {&k, k.emit1(code, std::move(operands), ir::Type::vector(a.shape(), to), {},
                      Where::current())};
}

// Every element-wise operation of the table that keeps the format of its operands.
void same_format(std::vector<Probe>& all) {
  for (int c = 0; c < ir::num_op_codes(); ++c) {
    const auto code = static_cast<ir::OpCode>(c);
    const ir::OpInfo& op = ir::info(code);
    const bool floats = op.rule == ir::Rule::kSameFloat, ints = op.rule == ir::Rule::kSameInt;
    if (op.effect != ir::Effect::kPure || (!floats && !ints)) continue;
    const auto formats = floats ? std::vector{Elem::kF32, Elem::kBf16}
                                : std::vector{Elem::kI32, Elem::kI16, Elem::kI8};
    for (const Elem e : formats)
      all.push_back({op.name, e, e, [code, e, op](Vec a, Vec b) {
                       // What changes from round to round comes last: a reciprocal of what
                       // does not would be taken once.
                       std::vector<ir::Value*> operands = {a.value()};
                       if (op.least_operands == 2) operands = {b.value(), a.value()};
                       return emit(code, a, e, operands);
                     }});
  }
}

void casts(std::vector<Probe>& all) {
  const auto add = [&](ir::OpCode code, Elem from, Elem to) {
    all.push_back({ir::info(code).name, from, to,
                   [=](Vec a, Vec) { return emit(code, a, to, {a.value()}); }});
  };
  using Op = ir::OpCode;
  const std::vector floats = {Elem::kF32, Elem::kBf16, Elem::kF8E4M3FN, Elem::kF8E5M2,
                              Elem::kF4E2M1FN};
  const std::vector ints = {Elem::kI32, Elem::kI16, Elem::kI8, Elem::kI4};
  for (const Elem a : floats)
    for (const Elem b : floats) {
      if (ir::bit_width(a) < ir::bit_width(b)) add(Op::kArithExtf, a, b);
      if (ir::bit_width(a) > ir::bit_width(b)) add(Op::kArithTruncf, a, b);
    }
  for (const Elem a : ints)
    for (const Elem b : ints) {
      if (ir::bit_width(a) < ir::bit_width(b)) {
        add(Op::kArithExtsi, a, b);
        add(Op::kArithExtui, a, b);
      }
      if (ir::bit_width(a) > ir::bit_width(b)) add(Op::kArithTrunci, a, b);
    }
  for (const Elem i : ints)
    for (const Elem f : {Elem::kF32, Elem::kBf16}) {
      add(Op::kArithSitofp, i, f);
      add(Op::kArithUitofp, i, f);
      add(Op::kArithFptosi, f, i);
      add(Op::kArithFptoui, f, i);
    }
}

// Masks cannot be loaded: they are made by comparisons and seen by selections. A selection is the
// difference of two by one mask and one; a comparison what is left of one with it; an operation on
// masks the difference to the same without it.
void masks(std::vector<Probe>& all) {
  for (const Elem e : {Elem::kF32, Elem::kBf16, Elem::kI32, Elem::kI16}) {
    const Make one = [](Vec a, Vec b) { return where(a < b, a, b); };
    const Make two = [](Vec a, Vec b) {
      const Vec m = a * b < b;
      return where(m, where(m, b, a) + b, a);
    };
    const Make one_and_sum = [](Vec a, Vec b) { return where(a * b < b, a + b, b); };
    all.push_back({"arith.select", e, e, two, one_and_sum, "i1", ir::spelling(e)});
    const Make sum = [](Vec a, Vec b) { return a + b; };
    all.push_back(
        {ir::is_float(e) ? "arith.cmpf" : "arith.cmpi", e, e, one, sum, ir::spelling(e), "i1"});
  }
  const Make without = [](Vec a, Vec b) { return where(a < b, a, 1.0) + where(b < 7.0, b, 1.0); };
  const auto mask_op = [&](const char* name, const std::function<Vec(Vec, Vec)>& join) {
    all.push_back({name, Elem::kF32, Elem::kF32,
                   [join](Vec a, Vec b) {
                     const Vec n = b < 7.0;
                     return where(join(a < b, n), a, 1.0) + where(n, b, 1.0);
                   },
                   without, "i1", "i1"});
  };
  mask_op("arith.andi", [](Vec m, Vec n) { return m & n; });
  mask_op("arith.ori", [](Vec m, Vec n) { return m | n; });
  mask_op("arith.xori", [](Vec m, Vec n) { return m ^ n; });
  all.push_back({"arith.extui", Elem::kI32, Elem::kI32,
                 [](Vec a, Vec b) {
                   const Vec m = a < b;
                   return emit(ir::OpCode::kArithExtui, m, Elem::kI32, {m.value()});
                 },
                 [](Vec a, Vec b) { return a + b; }, "i1", "i32"});
}

// Operations with shapes or operands of their own.
void others(std::vector<Probe>& all) {
  const Make sum = [](Vec a, Vec b) { return a + b; };
  all.push_back({"tpu.iota", Elem::kI32, Elem::kI32,
                 [](Vec a, Vec) { return a + iota(*a.kernel(), a.shape(), 1); }, sum});
  all.push_back({"tpu.prng_random_bits", Elem::kI32, Elem::kI32,
                 [](Vec a, Vec) { return a + random_bits(*a.kernel(), a.shape()); }, sum});
  // Of a sine and a cosine of one angle, the one that comes second.
  all.push_back({"math.sin+math.cos", Elem::kF32, Elem::kF32,
                 [](Vec a, Vec) { return sin(a) + cos(a); },
                 [](Vec a, Vec b) { return sin(a) + b; }});
  all.push_back({"tpu.pack_elementwise", Elem::kF32, Elem::kI32,
                 [](Vec a, Vec b) { return pack_pairs(a, b, Elem::kBf16); }});
  all.push_back({"tpu.unpack_elementwise", Elem::kI32, Elem::kF32,
                 [](Vec a, Vec) { return unpack_half(a, 1, Elem::kBf16); }});
  all.push_back({"tpu.stochastic_convert", Elem::kF32, Elem::kBf16, [](Vec a, Vec b) {
                   return cast_stochastic(a, bitcast(b, Elem::kI32), Elem::kBf16);
                 }});
}

std::vector<Probe> probes() {
  std::vector<Probe> all;
  same_format(all);
  casts(all);
  masks(all);
  others(all);
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
  return std::max(1.0, p.from == p.to ? round - chips::tpu7x_unit_costs().valu_latency : round / 2);
}

// A row of the data file; false: libtpu does not compile the operation in these formats.
bool measure(Laboratory& laboratory, const Probe& p) {
  const Shape shape = small_shape(p);
  const Make rest = p.rest ? p.rest : [](Vec a, Vec) { return a; };
  const Elem rest_to = p.rest ? p.to : p.from;
  const auto small = measure(laboratory, p.from, p.to, p.make, shape);
  if (!small) return false;
  const auto large = measure(laboratory, p.from, p.to, p.make, kLarge);
  const auto base_small = measure(laboratory, p.from, rest_to, rest, shape),
             base_large = measure(laboratory, p.from, rest_to, rest, kLarge);
  if (!large || !base_small || !base_large) return false;
  const auto wide = [&](const Shape& s) {
    const auto n = [&](Elem e) { return time::registers_of(ir::Type::vector(s, e)).count(); };
    return static_cast<double>(std::max(n(p.from), n(p.to)));
  };
  const double registers = wide(kLarge) - wide(shape);
  const auto slope = [&](double Measured::* m) {
    return std::max(0.0, ((*large.*m - *base_large.*m) - (*small.*m - *base_small.*m)) / registers);
  };
  // What masks take is short and not seen alone.
  double cycles = 1;
  if (!p.rest) {
    const auto few = measure(laboratory, p.from, p.to, p.make, shape, 3),
               many = measure(laboratory, p.from, p.to, p.make, shape, 9);
    // No way back from the format: what the single operation adds to a copy.
    cycles = few && many ? latency(p, *few, *many, 6)
                         : std::max(1.0, small->cycles - base_small->cycles);
  }
  fmt::print("{{\"{}\", \"{}\", \"{}\", {:.3g}, {:.3g}, {:.3g}, {:.3g}}},\n", p.op,
             p.row_from.empty() ? ir::spelling(p.from) : p.row_from,
             p.row_to.empty() ? ir::spelling(p.to) : p.row_to, slope(&Measured::valu),
             slope(&Measured::eup), slope(&Measured::xlu), cycles);
  std::fflush(stdout);
  return true;
}

void print_op_costs(Laboratory& laboratory) {
  fmt::print(
      "// op, format of the operand, of the result, slots per register of the wider: VALU, "
      "EUP, XLU; latency\n");
  int rows = 0;
  std::string left_out;
  for (const Probe& p : probes()) {
    if (measure(laboratory, p)) {
      ++rows;
      continue;
    }
    left_out += fmt::format("{} {} {}\n", p.op, ir::spelling(p.from), ir::spelling(p.to));
  }
  fmt::print(stderr, "{} rows; libtpu does not compile\n{}", rows, left_out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "tpu-worker") == 0) return tpu::worker_main();
  bool units_alone = false;
  std::string path;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--units") == 0) units_alone = true;
    if (std::strcmp(argv[k], "--libtpu") == 0 && k + 1 < argc) path = argv[++k];
  }
  const auto libtpu = tpu::find_libtpu(path);
  if (!libtpu) {
    fmt::print(stderr, "{}\n", libtpu.error().message);
    return 1;
  }
  tpu::CompilerOptions options{.libtpu = *libtpu};
  options.schedule = true;
  tpu::Compiler compiler(options);
  Laboratory laboratory(compiler);
  fmt::print("// Written by bench/calibrate_costs_bench{} from schedules of libtpu {}.\n",
             units_alone ? " --units" : "", libtpu->wheel_version);
  if (units_alone) {
    fmt::print("// Cycles; op_costs.h says of what.\n");
    return units::print_unit_costs(laboratory) ? 0 : 1;
  }
  print_op_costs(laboratory);
  return 0;
}
