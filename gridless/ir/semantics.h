// What a program of the IR means. This page binds every engine: the emulator computes exactly this,
// the CPU engine computes this or stays within the tolerance that a composite's contract states,
// and the text printed for the TPU asks the chip for it.
//
// 1. Programs, cores, order
// -------------------------
// A kernel is one function. N cores (devices) run it at once, each from its first op to its return;
// tpu.device_id is the core's number, 0 to N-1. A core runs its ops one after the other, in the
// order in which they stand; scf.for counts from the lower bound in steps up to, not including, the
// upper bound, compared as signed numbers (no round when lower >= upper); scf.while runs its first
// region, and its second as long as scf.condition says so. Between cores there is no order but the
// one that semaphores make. With iteration_bounds the function is one step of a grid: the steps run
// one after the other on a core, the last dimension fastest, and the windows of window_params are
// copied in before and out after the steps that use them.
//
// 2. Values and refs
// ------------------
// Scalars (integers, index, floats) and vectors are values: they never change, and they are
// complete when the op that defines them is done. A memref is a ref: a place in a memory of one
// core, with a shape, an element format and a space (vmem, smem, hbm, any, semaphore_mem). `any` is
// what the caller makes it, hbm unless the call says otherwise. Views (memref_slice, squeeze,
// reshape, bitcast, reinterpret_cast) name part of the same place and copy nothing. Row-major order
// is the order of elements in a reshape and in a call's data; tiling is a matter of the chip and
// cannot be seen. A bitcast between widths packs along the second-last dimension: row i of the wide
// view holds rows k*i .. k*i+k-1 of the narrow one, the first in the lowest bits (little end
// first). vector.load reads the whole vector, memref.load one scalar; a store has happened when the
// next op starts. A masked store leaves elements alone whose mask is 0; a masked load gives 0
// there. `strides` step through the ref: element i of the vector is element index + i * stride.
//
// 3. Scopes
// ---------
// memref.alloca and tpu.sem_alloc make memory that lives until the end of the tpu.region (or
// function) around it; a loop body that allocates gets its memory anew in each round. Scratch
// starts undefined, semaphores start at 0. At the end of its scope every semaphore must be 0 again
// and no copy may be in flight that reads, writes or signals something of the scope. Arguments of
// the function live for the whole launch: operands first, then results, then scratch.
//
// 4. Copies (DMA)
// ---------------
// tpu.enqueue_dma(source, [source_sem], target, target_sem, [device]) starts a copy and does not
// wait. From then on, at any time and in any order with other copies and with the ops of every
// core, the source is read and the target written, element by element in no order; then the
// target's semaphore gets the number of bytes of the copy added. A remote copy (`device` given;
// source_sem with it) writes the ref of the same name on that device and signals target_sem there;
// source_sem, on the starting core, gets the bytes when the source has been read. Copies started
// one after the other are not ordered, unless strict_ordering says so; priority changes when they
// happen, never what they mean. Between start and the wait that covers it, the target may not be
// touched and the source not be written: what is read then is undefined. Bytes are those of the
// elements, without tile padding; i1 takes a byte, 4-bit elements half of one.
//
// 5. What a wait guarantees
// -------------------------
// tpu.wait_dma {wait_target = true} on target_sem waits until the semaphore holds the bytes of
// `target`, then takes them off. {wait_target = false} does the same on source_sem with the bytes
// of `source`. The refs say how many bytes, nothing else; device and core ids of a wait are
// ignored. When copies of one core share a semaphore, the wait guarantees that *enough bytes* have
// arrived, not whose: a copy is known to be complete after the waits that together take all bytes
// ever sent to that semaphore up to then. After the wait that covers a copy, the target holds the
// source's data as of the start, and source and target are free again (after wait_target = false:
// only the source). A wait without any copy that will feed it never ends.
//
// 6. Semaphores and other cores
// -----------------------------
// Semaphores are 32-bit counters. sem_signal adds, at once locally, some time later on another
// device (device_id); signals from one core to another arrive in any order, also relative to its
// copies, but a copy's own signal arrives after its data. sem_wait(n) waits for n or more, and
// takes n off. sem_read gives some value the semaphore had at that time. Only the core that owns a
// semaphore waits on it. After a sem_wait that needed a signal, everything the signalling core did
// before that signal, and has itself waited for, can be seen. sem_barrier names a semaphore shared
// by all kernels of one collective_id; before its first remote copy or signal to a peer a kernel
// must know, through it, that the peer has entered (else the peer's memory may still belong to
// another program). Device ids are places in the program's device assignment, row-major over the
// mesh.
//
// 7. Floats
// ---------
// Round to nearest, ties to even, everywhere. Denormals are kept; the chip flushes f32 denormals to
// zero in some units, so a kernel must not depend on them.
//   f32   addf subf mulf divf negf sqrt, tpu.reciprocal, and sitofp, uitofp: the exact result
//         rounded once. negf, absf change the sign bit only. No contraction: mulf then addf rounds
//         twice.
//   bf16  (and f16) arithmetic: operands are exact in f32, the f32 result is rounded once more.
//   remf  the exact remainder with the sign of the dividend (C's fmod).
//   maximumf, minimumf: NaN if either is NaN; -0 < +0.
//   cmpf  predicates 1 to 7 are false on NaN, 8 to 14 true (0 always false, 15 always true).
//   extf  exact. truncf: one rounding; overflow to infinity, or NaN in f8E4M3FN, which has none.
//   fptosi, fptoui: toward zero, saturating at the ends of the integer type; NaN gives 0.
//   round: halves away from zero. roundeven: halves to even. floor, ceil: exact.
//   exp exp2 log log2 log1p tanh tan sin cos erf rsqrt powf atan2, tpu.logistic: the true value
//         rounded to f32, at most one unit in the last place (ulp) away (the emulator rounds the
//         double result once). The chip's own are coarser: a few ulp, and about 2^-8 with
//         approx = true.
//   tpu.weird: infinite or NaN.
// matmul: acc + lhs * rhs, for each element of the result: start with acc, then for k = 0, 1, ..
//   K-1 in this order acc = fma(lhs[k], rhs[k], acc) in f32, one rounding per step. bf16 and fp8
//   operands enter exactly; f32 operands are first rounded to bf16 at the default precision
//   (contract_precision absent or bf16) and enter exactly with fp32 or bf16x3. Contracting several
//   dimensions runs through them in the order of dimension_numbers, the last fastest. Integers: 32
//   bits, wrapping. The chip adds in another order; results agree to rounding, never to the bit.
// matmul_push_rhs, acc_lhs, pop: the same sums; acc_lhs adds to its accumulator, which is zero
//   after a pop; operands as in matmul at the default precision.
// multi_reduction: start with acc, then the elements in row-major order of the reduced dimensions,
//   in f32 (bf16 rounds once at the end). max and min as maximumf, minimumf.
// reduce_index: the first index of the largest (smallest); a NaN never wins.
// stochastic_convert to bf16: the low 16 random bits are added below the kept bits, then cut.
// pack_elementwise: operand s, rounded to target_type, goes to bits [s*w, (s+1)*w) of each word.
//
// 8. Integers
// -----------
// Two's complement; addi subi muli shli wrap, overflowFlags promise nothing. index has the width of
// i32 on the chip; a kernel keeps it inside. divsi, remsi cut toward zero, remsi has the sign of
// the dividend; the smallest number by -1 wraps. Division by zero is an error (the chip gives
// anything). Shift amounts are unsigned; shifting by the width or more gives 0, shrsi the sign.
// extsi of i1 true is -1, extui 1. index_cast keeps the signed value. ctlz of 0 is the width. i1 is
// 0 or 1.
// dynamic_rotate by n: element i of the result is element i - n, modulo the size; with stride, row
// r
//   of stride_dimension rotates by n + r * stride.
// dynamic_gather along d: out[.., i, ..] = in[.., index[.., i, ..], ..], the index at the result's
//   own place, modulo the size.
// prng: a seeded sequence, one per core; which one is up to the engine.
//
// 9. Undefined: no engine need give the same thing twice, and `check` reports it
// ------------------------------------------------------------------------------
//   - a value read from scratch that nobody wrote, once it reaches an output, an address, a branch
//     or a wait (loading it alone is harmless: read-modify-write forms do so);
//   - an access outside of its ref, also inside a larger buffer;
//   - touching the target of a copy, or writing its source, before the wait that covers it; two
//     accesses of which one writes, by a copy or another core, without an order between them;
//   - a copy in flight, or a semaphore not zero, at the end of its scope; use of a ref after its
//     scope;
//   - a wait whose bytes are not the sum of the bytes of copies that it covers;
//   - division of integers by zero; a gather index out of range; a negative semaphore;
//   - writing to a peer that has not entered the kernel.
// Undefined is about values: no engine of this project may crash or touch foreign memory for it.
#pragma once
