// Latencies of units and the bundles around copies, checks and waits, read off the schedules of
// small kernels: what chips::UnitCosts holds.
//
// A latency is the least distance in the schedule between an instruction and the first that uses
// what it makes, in a chain of such instructions, where nothing else can hold the second one up.
// The cost of a copy, a signal or a wait is the least distance between two of them in a row. The
// run-time check of a copy's end is a row
// of scalar instructions that ends with a halt; that of the second end begins behind the halt of
// the first, so the distance of the two halts is what it takes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/laboratory.h"
#include "gridless/base/check.h"
#include "gridless/bundles/structure.h"
#include "gridless/ir/text.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"

namespace gridless::units {

using namespace gridless::lang;  // NOLINT
using bundles::Instruction;
using bundles::Listing;

// Which instructions are meant, by their opcode.
using Pick = std::function<bool(const Instruction&)>;

inline Pick starting(std::string prefix) {
  return
      [prefix = std::move(prefix)](const Instruction& in) { return in.opcode.starts_with(prefix); };
}
inline Pick reduces_lanes() {
  return [](const Instruction& in) {
    return in.opcode.find(".xlane") != std::string::npos && !in.opcode.starts_with("vpop");
  };
}

struct At {
  int cycle;
  const Instruction* in;
};

inline std::vector<At> all_of(const Listing& listing, const Pick& pick) {
  std::vector<At> out;
  for (size_t b = 0; b < listing.bundles.size(); ++b)
    for (int i = listing.bundles[b].first; i < listing.bundles[b].last; ++i) {
      const Instruction& in = listing.instructions[static_cast<size_t>(i)];
      if (in.unit != bundles::Unit::kNone && pick(in)) out.push_back({static_cast<int>(b), &in});
    }
  return out;
}

inline constexpr int kNever = 1 << 20;  // nothing of the kind in the schedule

// Least cycles from one of `from` to the first instruction that uses what it makes.
inline int to_use(const Listing& listing, const Pick& from) {
  int least = kNever;
  for (const At& a : all_of(listing, from)) {
    const auto uses = all_of(listing, [&](const Instruction& in) {
      return a.in->def >= 0 &&
             (std::ranges::find(in.uses, a.in->def) != in.uses.end() || in.predicate == a.in->def);
    });
    for (const At& u : uses)
      if (u.cycle > a.cycle) {
        least = std::min(least, u.cycle - a.cycle);
        break;
      }
  }
  return least;
}

// To the first use of what is popped: results of the queues of MXU, XLU and EUP.
inline int through_queue(const Listing& listing, const Pick& from) {
  return to_use(listing, from) + to_use(listing, starting("vpop"));
}

// Least cycles between one of `from` and the next of `to` behind it; on the same unit where both
// say which.
inline int between(const Listing& listing, const Pick& from, const Pick& to) {
  int least = kNever;
  const auto ends = all_of(listing, to);
  for (const At& a : all_of(listing, from)) {
    const auto next = std::ranges::find_if(ends, [&](const At& e) {
      return e.cycle > a.cycle && e.in->unit_index == a.in->unit_index;
    });
    if (next != ends.end()) least = std::min(least, next->cycle - a.cycle);
  }
  return least;
}
inline int apart(const Listing& listing, const Pick& of) { return between(listing, of, of); }
// Least cycles of the check of a copy's second end: between the last two halts before its start.
inline int second_check(const Listing& listing) {
  int least = kNever;
  const auto halts = all_of(listing, starting("shalt"));
  for (const At& copy : all_of(listing, [](const Instruction& in) {
         return in.opcode == "dma.hbm_to_vmem" || in.opcode == "dma.vmem_to_hbm";
       })) {
    const auto behind =
        std::ranges::find_if(halts, [&](const At& h) { return h.cycle > copy.cycle; });
    if (behind - halts.begin() < 2) continue;
    least = std::min(least, (behind - 1)->cycle - (behind - 2)->cycle);
  }
  return least;
}

// Bundles behind a branch up to where code begins that can be branched to.
inline int delay_slots(const Listing& listing) {
  int least = kNever;
  for (const At& branch : all_of(listing, starting("sbr"))) {
    size_t b = static_cast<size_t>(branch.cycle) + 1;
    while (b < listing.bundles.size() && listing.bundles[b].starts.empty()) ++b;
    if (b < listing.bundles.size()) least = std::min(least, static_cast<int>(b) - branch.cycle - 1);
  }
  return least;
}

// Least cycles from one of `from` to one of `to` that depends on it, by the newest of them.
inline int from_source(const Listing& listing, const Pick& from, const Pick& to) {
  std::map<int, int> since;  // by value: the cycle of the newest of `from` that it depends on
  int least = kNever;
  for (size_t b = 0; b < listing.bundles.size(); ++b)
    for (int i = listing.bundles[b].first; i < listing.bundles[b].last; ++i) {
      const Instruction& in = listing.instructions[static_cast<size_t>(i)];
      const int cycle = static_cast<int>(b);
      int newest = from(in) ? cycle : -1;
      for (const int use : in.uses)
        if (const auto it = since.find(use); it != since.end())
          newest = std::max(newest, it->second);
      if (newest < 0) continue;
      if (in.def >= 0) since[in.def] = newest;
      if (to(in)) least = std::min(least, cycle - newest);
    }
  return least;
}

// Cycles per instruction of one unit where it takes them one after the other without a pause.
inline double pace(const Listing& listing, const Pick& of, size_t in_a_row) {
  double least = kNever;
  for (const int unit : {0, 1}) {
    const auto all =
        all_of(listing, [&](const Instruction& in) { return of(in) && in.unit_index == unit; });
    for (size_t k = 0; k + in_a_row < all.size(); ++k)
      least =
          std::min(least, (all[k + in_a_row].cycle - all[k].cycle) / static_cast<double>(in_a_row));
  }
  return least;
}

// Kernels to read them off. Each loads what nobody knows from HBM, so that nothing is computed
// beforehand.

inline ir::Program take(Kernel& k) {
  auto program = k.finish();
  GRIDLESS_CHECK(program, "a probe is no valid kernel: {}", to_string(program.error()));
  return std::move(*program);
}

// y = make(x), of f32.
inline ir::Program on_vectors(const std::function<Vec(Vec)>& make, const Shape& shape = {8, 128}) {
  Kernel k("probe");
  const Ref x = k.input("x", Elem::kF32, shape), y = k.output("y", Elem::kF32, shape);
  k.scope([&] {
    const Ref in = k.vmem(Elem::kF32, shape), out = k.vmem(Elem::kF32, shape);
    const Sem done = k.dma_sem();
    k.copy(x, in, done).wait();
    out.store(make(in.load()));
    k.copy(out, y, done).wait();
  });
  return take(k);
}

// Of vector units, one after the other.
inline ir::Program chain_of_units() {
  return on_vectors([](Vec x) {
    for (int n = 0; n < 3; ++n) x = (x + x) * x;
    for (int n = 0; n < 3; ++n) x = tanh(x);
    for (int n = 0; n < 2; ++n) x = broadcast(sum(x, 1), x.shape()) * x;
    for (int n = 0; n < 2; ++n) x = roll(x, 1 + n, 1);
    const Scalar s = extract(x, {0, 0});
    return x + broadcast(s, x.shape());
  });
}

inline ir::Program transposition() {
  return on_vectors([](Vec x) { return transpose(x); }, {128, 128});
}

inline ir::Program random_numbers() {
  return on_vectors([](Vec x) {
    seed_random(*x.kernel(), 7);
    return x + cast(random_bits(*x.kernel(), x.shape()), Elem::kF32);
  });
}

// A scalar from a table in SMEM, as a factor.
inline ir::Program table() {
  Kernel k("probe");
  const Ref t = k.input("t", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kI32, {8, 128});
  k.scope([&] {
    const Ref out = k.vmem(Elem::kI32, {8, 128});
    const Scalar n = t.get({2});
    out.store(iota(k, {8, 128}, 1) + n * n);
    k.copy(out, y, k.dma_sem()).wait();
  });
  return take(k);
}

inline ir::Program product(int64_t depth, int64_t columns) {
  const Shape a = {16, depth}, b = {depth, columns}, c = {16, columns};
  Kernel k("probe");
  const Ref x = k.input("x", Elem::kBf16, a), w = k.input("w", Elem::kBf16, b),
            y = k.output("y", Elem::kF32, c);
  k.scope([&] {
    const Ref in = k.vmem(Elem::kBf16, a), weights = k.vmem(Elem::kBf16, b),
              out = k.vmem(Elem::kF32, c);
    const Sem done = k.dma_sem();
    k.copy(x, in, done).wait();
    k.copy(w, weights, done).wait();
    out.store(dot(in.load(), weights.load(), zeros(k, Elem::kF32, c)));
    k.copy(out, y, done).wait();
  });
  return take(k);
}

enum class End { kHbm, kHbmPart, kVmem };
inline constexpr int kInARow = 6;

// Copies of [rows, columns] in a row, all started before the first is waited for. Parts lie at
// places that only the kernel's argument says, as those of a loop do.
inline ir::Program copies(Elem e, int64_t rows, int64_t columns, End from, End to, bool checked) {
  const Shape shape = {rows, columns}, whole = {kInARow * rows, columns};
  Kernel k("probe");
  std::vector<Ref> x, y;
  const Ref at = k.input("at", Elem::kI32, {kInARow}, Space::kSmem);
  const Ref parts = k.input("parts", e, {4 * kInARow, rows, columns}),
            to_parts = k.output("to_parts", e, {4 * kInARow, rows, columns});
  for (int n = 0; n < kInARow; ++n) x.push_back(k.input(fmt::format("x{}", n), e, shape));
  for (int n = 0; n < kInARow; ++n) y.push_back(k.output(fmt::format("y{}", n), e, shape));
  k.scope([&] {
    const Sems done = k.dma_sems(kInARow);
    std::vector<Ref> source, target;
    for (int n = 0; n < kInARow; ++n) {
      const auto end = [&](End kind, const std::vector<Ref>& arrays, const Ref& array) {
        return kind == End::kHbm       ? arrays[static_cast<size_t>(n)]
               : kind == End::kHbmPart ? array.at(at.get({n}))
                                       : k.vmem(e, shape);
      };
      source.push_back(end(from, x, parts));
      target.push_back(end(to, y, to_parts));
    }
    std::vector<Copy> started;
    for (int n = 0; n < kInARow; ++n)
      started.push_back(
          k.copy(source[static_cast<size_t>(n)], target[static_cast<size_t>(n)], done.at(n)));
    for (const Copy& c : started) c.wait();
  });
  ir::Program out = take(k);
  out.call.bounds_checks = checked;
  return out;
}

// Copies, or signals, each to a core that a table names.
inline ir::Program messages(bool signals) {
  const Shape shape = {8, 128};
  Kernel k("probe", 2);
  const Ref to = k.input("to", Elem::kI32, {kInARow}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, shape);
  k.scope([&] {
    const Ref in = k.vmem(Elem::kF32, {kInARow, 8, 128});
    const Sem sent = k.dma_sem(), received = k.dma_sem(), told = k.sem();
    k.barrier_all();
    std::vector<Copy> started;
    for (int n = 0; n < kInARow; ++n) {
      if (signals)
        k.signal(told, 1, to.get({n}));
      else
        started.push_back(k.copy_to(to.get({n}), in.at(n), in.at(n), sent, received));
    }
    for (const Copy& c : started) c.wait();
    for (const Copy& c : started) c.wait_sent();
    if (signals) k.wait(told, kInARow);
    k.copy(in.at(0), y, sent).wait();
  });
  return take(k);
}

// A loop whose length a table says.
inline ir::Program counted_loop() {
  Kernel k("probe");
  const Ref t = k.input("t", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kI32, {8, 128});
  k.scope([&] {
    const Ref out = k.vmem(Elem::kI32, {8, 128});
    out.store(iota(k, {8, 128}, 1));
    k.loop(0, t.get({0}), [&](Scalar n) { out.store(out.load() * n); });
    k.copy(out, y, k.dma_sem()).wait();
  });
  return take(k);
}

// Loads of a part that a store, at a place that a table says, may have changed.
inline ir::Program reload() {
  Kernel k("probe");
  const Ref t = k.input("t", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {64, 128}), y = k.output("y", Elem::kF32, {64, 128});
  k.scope([&] {
    const Ref in = k.vmem(Elem::kF32, {64, 128}), kept = k.vmem(Elem::kF32, {64, 128});
    const Sem done = k.dma_sem();
    k.copy(x, in, done).wait();
    const Scalar at = k.assume_multiple(t.get({0}), 8);
    kept.rows(at, 8).store(in.rows(0, 8).load() + 1.0);
    in.rows(8, 8).store(kept.rows(8, 8).load() * 2.0);
    k.copy(in, y, done).wait();
  });
  return take(k);
}

// A kernel that does nothing, with so many semaphores as scratch.
inline ir::Program semaphores(int count) {
  const std::string any = "memref<8x128xf32, #tpu.memory_space<any>>";
  const std::string flags =
      fmt::format("memref<{}x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>", count);
  auto module = ir::parse(fmt::format(
      R"("builtin.module"() <{{sym_name = "probe"}}> ({{
  "stable_mosaic.func.func"() ({{
  ^bb0(%x: {0}, %y: {0}, %s: {1}):
    "stable_mosaic.func.return"() : () -> ()
  }}) {{dimension_semantics = [], function_type = ({0}, {0}, {1}) -> (), scalar_prefetch = 0 : i64,
        scratch_operands = 1 : i64, sym_name = "probe", tpu.core_type = #tpu.core_type<tc>}} : () -> ()
}}) {{stable_mosaic.version = 18 : i64}} : () -> ()
)",
      any, flags));
  GRIDLESS_CHECK(module, "{}", to_string(module.error()));
  const ir::Type type = module->entry()->body().args[0]->type;
  ir::Call call{.name = "probe",
                .operands = {{.name = "x", .type = type, .pinned = ir::Space::kHbm}},
                .results = {{.name = "y", .type = type, .pinned = ir::Space::kHbm}}};
  return {.module = std::move(*module), .call = std::move(call)};
}

// One line of the data file per field of chips::UnitCosts. False: libtpu does not compile a probe,
// or its schedule does not show what is looked for; then nothing is printed but the field's name.
inline bool print_unit_costs(Laboratory& laboratory) {
  bool whole = true;
  const auto see = [&](ir::Program program) {
    auto listing = laboratory.schedule(std::move(program));
    return listing ? std::move(*listing) : Listing();
  };
  const auto line = [&](const char* field, double cycles) {
    if (cycles < kNever) {
      fmt::print(".{} = {},\n", field, std::lround(cycles));
    } else {
      fmt::print(stderr, "{} cannot be seen in the schedules of this libtpu\n", field);
      whole = false;
    }
  };
  const Pick copy = [](const Instruction& in) {
    return in.opcode.starts_with("dma.") && in.opcode != "dma.done.wait" &&
           in.opcode != "dma.vmem_to_smem";
  };
  const Pick push = [](const Instruction& in) {
    return in.opcode.starts_with("vmatprep.subr") || in.opcode.starts_with("vmatpush");
  };

  const Listing chain = see(chain_of_units());
  line("valu_latency", to_use(chain, starting("vadd.f32")));
  line("eup_latency", through_queue(chain, starting("vtanh")));
  line("load_latency", to_use(chain, starting("vld")));
  line("store_to_load", between(see(reload()), starting("vst"), starting("vld")));
  line("lane_reduce_latency", through_queue(chain, reduces_lanes()));
  line("lane_permute_latency", through_queue(chain, starting("vrot.lane")));
  const Listing turned = see(transposition());
  line("transpose_latency", between(turned, starting("vxpose"), starting("vpop.trf")) +
                                to_use(turned, starting("vpop")));
  line("to_scalar_latency", between(chain, starting("vpush"), starting("spop")));
  const int scalar_load = to_use(see(table()), starting("sld"));
  line("scalar_load_latency", scalar_load);
  const Listing dot = see(product(256, 256));
  line("mxu_push_interval", pace(dot, push, 16));
  line("mxu_push_to_multiply", between(dot, push, starting("vmatmul")));
  line("mxu_latency", between(dot, starting("vmatmul"), starting("vpop.f32.mrb")));
  line("branch_delay", delay_slots(see(counted_loop())));

  const Listing plain = see(copies(Elem::kF32, 8, 128, End::kHbm, End::kVmem, false));
  line("copy_start", apart(plain, copy));
  line("copy_start_strided_row",
       apart(see(copies(Elem::kBf16, 16, 256, End::kHbm, End::kVmem, false)), copy));
  line("copy_start_strided",
       apart(see(copies(Elem::kBf16, 64, 256, End::kHbm, End::kVmem, false)), copy));
  const Listing sends = see(messages(false));
  // From the number of the other core on.
  const auto from_number = [&](const Listing& listing, const char* event) {
    return from_source(listing, starting("sld"), starting(event)) - scalar_load + 1;
  };
  line("remote_start", from_number(sends, "dma.general"));
  line("check_hbm_part",
       second_check(see(copies(Elem::kF32, 8, 128, End::kVmem, End::kHbmPart, true))));
  line("check_hbm", second_check(see(copies(Elem::kF32, 8, 128, End::kVmem, End::kHbm, true))));
  line("check_vmem", second_check(see(copies(Elem::kF32, 8, 128, End::kHbm, End::kVmem, true))));
  line("wait", apart(plain, starting("dma.done.wait")));
  line("signal", from_number(see(messages(true)), "vsyncadd.remote"));
  // The number of the chip and that of the core on it, put together.
  line("device_id_latency", between(sends, starting("sld"), starting("sadd")) + 1);
  const Listing random = see(random_numbers());
  line("prng_seed_latency", between(random, starting("vlaneseq"), starting("vrng")) -
                                to_use(random, starting("vlaneseq")));
  line("semaphore_check", apart(see(semaphores(8)), starting("shalt")));
  return whole;
}

}  // namespace gridless::units
