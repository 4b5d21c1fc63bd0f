// Refs: spaces, bounds, tiles, lifetimes.
#include "tests/error/error_case.h"

namespace gridless::lang {
namespace {

template <void (*kBody)(Kernel&, const Buffers&, int&)>
void in_scope(Kernel& k, int& line) {
  with_buffers(k, kBody, line);
}

void load_from_hbm(Kernel&, const Buffers& m, int& line) { MISTAKE(void) m.x.load(); }
void store_to_hbm(Kernel&, const Buffers& m, int& line) { MISTAKE m.y.store(m.a.load()); }
void scalar_from_vmem(Kernel&, const Buffers& m, int& line) { MISTAKE(void) m.a.get({0, 0}); }
void scalar_indices(Kernel&, const Buffers& m, int& line) { MISTAKE(void) m.table.get({0, 0}); }
void scalar_bounds(Kernel&, const Buffers& m, int& line) { MISTAKE m.table.set({4}, 1); }
void load_bounds(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) m.a.load({8, 0}, {16, 256});
}
void store_bounds(Kernel&, const Buffers& m, int& line) { MISTAKE m.a.store(m.b.load(), {1, 0}); }
void slice_bounds(Kernel&, const Buffers& m, int& line) { MISTAKE(void) m.x.rows(8, 16); }
void slice_rank(Kernel&, const Buffers& m, int& line) { MISTAKE(void) m.x.slice({0}, {8}); }
void at_bounds(Kernel& k, const Buffers&, int& line) {
  const Sems many = k.dma_sems(2);
  MISTAKE(void) many.at(2);
}
void vector_slice_bounds(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) slice(m.a.load(), {8, 0}, {16, 256});
}
void lanes_of_a_slice(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) m.x.slice({0, 64}, {16, 128});
}
void size_of_a_slice(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) m.x.slice({0, 0}, {16, 64});
}
void rows_of_bf16(Kernel&, const Buffers& m, int& line) { MISTAKE(void) m.half.rows(4, 8); }
void unproven_lane(Kernel& k, const Buffers& m, int& line) {
  k.loop(0, 2, [&](Scalar i) { MISTAKE(void) m.a.load({0, i}, {16, 128}); });
}
void unproven_table(Kernel&, const Buffers& m, int& line) {
  const Scalar start = m.table.get({0});
  MISTAKE(void) m.half.slice({start, 0}, {8, 256});
}
void false_promise(Kernel& k, const Buffers&, int& line) { MISTAKE(void) k.assume_multiple(12, 8); }
void ref_after_scope(Kernel& k, const Buffers& m, int& line) {
  Ref inner;
  k.scope([&] { inner = k.vmem(Elem::kF32, {16, 256}); });
  MISTAKE m.a.store(inner.load());
}
void value_after_loop(Kernel& k, const Buffers& m, int& line) {
  Vec last;
  k.loop(0, 4, [&](Scalar) { last = m.b.load(); });
  MISTAKE m.a.store(last);
}
void scalar_after_branch(Kernel& k, const Buffers& m, int& line) {
  Scalar n;
  k.if_(m.table.get({0}) > 0, [&] { n = m.table.get({1}); });
  MISTAKE m.table.set({2}, n);
}
void reshape_of_ref(Kernel&, const Buffers& m, int& line) { MISTAKE(void) m.x.reshape({8, 256}); }
void bitcast_of_ref(Kernel& k, const Buffers&, int& line) {
  const Ref flat = k.vmem(Elem::kF32, {128});
  MISTAKE(void) flat.bitcast(Elem::kI32);
}

const ErrorCase kCases[] = {
    {"LoadFromHbm", "invalid_ir", "a vector load in memref<16x256xf32, #tpu.memory_space<hbm>>",
     "copy() the data", in_scope<load_from_hbm>},
    {"StoreToHbm", "invalid_ir", "a vector store in memref", "copy() the data",
     in_scope<store_to_hbm>},
    {"ScalarFromVmem", "invalid_ir", "a scalar read with 2 indices", "extract()",
     in_scope<scalar_from_vmem>},
    {"ScalarIndices", "invalid_ir", "a scalar read with 2 indices in memref<4xi32",
     "every dimension needs an index", in_scope<scalar_indices>},
    {"ScalarBounds", "out_of_bounds", "index 4 of dimension 0", "has 4 elements",
     in_scope<scalar_bounds>},
    {"LoadBounds", "out_of_bounds", "a load of elements 8 to 24 of dimension 0", "has 16 elements",
     in_scope<load_bounds>},
    {"StoreBounds", "out_of_bounds", "a store of elements 1 to 17 of dimension 0",
     "has 16 elements", in_scope<store_bounds>},
    {"SliceBounds", "out_of_bounds", "a slice of elements 8 to 24 of dimension 0",
     "has 16 elements", in_scope<slice_bounds>},
    {"SliceRank", "shape_mismatch", "a slice with 1 starts and 1 sizes of a ref of rank 2",
     "every dimension", in_scope<slice_rank>},
    {"AtBounds", "out_of_bounds", "elements 2 to 3 of dimension 0", "has 2 elements",
     in_scope<at_bounds>},
    {"VectorSliceBounds", "out_of_bounds", "slice [8x0] + [16x256] of vector<16x256xf32>",
     "inside the vector", in_scope<vector_slice_bounds>},
    {"LanesOfASlice", "misaligned", "a slice that starts at 64 of dimension 1", "the tile has 128",
     in_scope<lanes_of_a_slice>},
    {"SizeOfASlice", "misaligned", "a slice of 64 elements of dimension 1",
     "take a multiple of 128", in_scope<size_of_a_slice>},
    {"RowsOfBf16", "misaligned", "a slice that starts at 4 of dimension 0", "the tile has 8",
     in_scope<rows_of_bf16>},
    {"UnprovenLane", "misaligned", "not known to be a multiple of 128",
     "assume_multiple(start, 128)", in_scope<unproven_lane>},
    {"UnprovenTable", "misaligned", "not known to be a multiple of 8", "assume_multiple(start, 8)",
     in_scope<unproven_table>},
    {"FalsePromise", "misaligned", "assume_multiple(12, 8)", "the promise is false",
     in_scope<false_promise>},
    {"RefAfterScope", "use_after_scope", "ref memref<16x256xf32", "a scope that surrounds both",
     in_scope<ref_after_scope>, 1, "made at "},
    {"ValueAfterLoop", "use_after_scope", "value vector<16x256xf32> is used after its scope",
     "carry it out", in_scope<value_after_loop>, 1, "memory_test.cc:"},
    {"ScalarAfterBranch", "use_after_scope", "value i32 is used after its scope", "choose()",
     in_scope<scalar_after_branch>, 1, "made at "},
    {"ReshapeOfRef", "shape_mismatch", "to 8x256", "number of elements", in_scope<reshape_of_ref>},
    {"BitcastOfRef", "shape_mismatch", "bitcast of memref<128xf32", "two dimensions",
     in_scope<bitcast_of_ref>},
};
ERROR_SUITE(Memory, kCases);

}  // namespace
}  // namespace gridless::lang
