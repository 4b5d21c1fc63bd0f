"""Seeded bugs with fixed twins that need a call of their own: blocks of a grid that the pipeline moves too early
or too late, operands aliased to results, meshes of two axes, emit_pipeline, checks, loops.
python mixed.py OUT writes OUT/NAME_{bug,ok}.mlir and adds to OUT/list.json (JAX 0.12.0.1)."""
import json, os, sys
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AbstractDevice, NamedSharding, PartitionSpec as P, use_abstract_mesh
from bugs import C, D, R, S, V, cp, f32, me
from patterns import everybody
sds = jax.ShapeDtypeStruct
ANY = pl.BlockSpec(memory_space=pl.ANY)
ALL = []
def k(kind, n=1, axes=None):
    def reg(f): ALL.append((f.__name__, kind, n, axes, f)); return f
    return reg
def rc(a, b, s, r, d): return pltpu.make_async_remote_copy(a, b, s, r, device_id=d if isinstance(d, tuple) else (d,))
def call(body, ins, out, scratch=(), cid=None, **kw):
    if cid is not None: kw["compiler_params"] = pltpu.CompilerParams(collective_id=cid)
    kw.setdefault("in_specs", [ANY]*len(ins)); kw.setdefault("out_specs", ANY)
    return lambda *xs: pl.pallas_call(body, out_shape=sds(*out), scratch_shapes=list(scratch), **kw)(*xs), ins

# the pipeline fetches the next block before the step before it has written it (in place)
@k("race")
def in_place_shifted_window(ok):
    def body(x, o): o[...] = x[...] + 1
    return call(body, [((5*R, C), f32)], ((5*R, C), f32), grid=(4,), input_output_aliases={0: 0},
        in_specs=[pl.BlockSpec((R, C), lambda i: (i, 0))], out_specs=pl.BlockSpec((R, C), lambda i: (i if ok else i + 1, 0)))
# result block visited again after another
@k("uninitialised_read")
def result_block_visited_again(ok):
    def body(x, o):
        @pl.when((pl.program_id(0) < 2) if not ok else (pl.program_id(0) % 2 == 0))
        def _(): o[...] = jnp.zeros((R, C), f32)
        o[...] += x[...]
    m = (lambda i: (i // 2, 0)) if ok else (lambda i: (i % 2, 0))
    return call(body, [((4*R, C), f32)], ((2*R, C), f32), grid=(4,), in_specs=[pl.BlockSpec((R, C), lambda i: (i, 0))], out_specs=pl.BlockSpec((R, C), m))
# semaphore index beyond
@k("out_of_bounds")
def semaphore_beyond_its_array(ok):
    def body(x, o, a, s):
        def it(i, c):
            g = cp(x.at[pl.ds(i*R, R)], a.at[i % 2], s.at[i % 2 if ok else i]); g.start(); g.wait()
            g = cp(a.at[i % 2], o.at[pl.ds(i*R, R)], s.at[0]); g.start(); g.wait(); return c
        jax.lax.fori_loop(0, 4, it, 0)
    return call(body, [((4*R, C), f32)], ((4*R, C), f32), [V(2, R, C), D((2,))])
# aliased result written while the operand is still read by its other name
@k("race")
def alias_written_before_read(ok):
    def body(x, o, a, b, s):
        pltpu.sync_copy(x.at[pl.ds(0, R)], a)
        b[...] = a[...] * 2
        w = cp(b, o.at[pl.ds(R, R)], s.at[0]); w.start()
        if ok: w.wait()
        g = cp(x.at[pl.ds(R, R)], a, s.at[1]); g.start(); g.wait()
        if not ok: w.wait()
        b[...] = a[...]
        pltpu.sync_copy(b, o.at[pl.ds(0, R)])
    return call(body, [((2*R, C), f32)], ((2*R, C), f32), [V(R, C), V(R, C), D((2,))], input_output_aliases={0: 0})
# swap in place between two devices
@k("race", n=2)
def swap_in_place(ok):
    def body(x, o, a, b, s, r):
        pltpu.sync_copy(x, a); everybody(2)
        c = rc(a, b if ok else a, s, r, 1 - me()); c.start(); c.wait()
        pltpu.sync_copy(b if ok else a, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(R, C), V(R, C), D, D], cid=1)
# mesh axes swapped in the device id
@k("deadlock", n=4, axes=("y", "x"))
def axes_swapped(ok):
    def body(x, o, a, b, s, r):
        y, x_ = jax.lax.axis_index("y"), jax.lax.axis_index("x")
        pltpu.sync_copy(x, a)
        sem = pltpu.get_barrier_semaphore()
        for i in range(2):
            for j in range(2): pl.semaphore_signal(sem, 1, device_id=(i, j))
        pl.semaphore_wait(sem, 4)
        c = rc(a, b, s, r, (y, 1 - x_) if ok else (x_, 1 - x_)); c.start(); c.wait()
        pltpu.sync_copy(b, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(R, C), V(R, C), D, D], cid=2)
# prefetch over grid steps goes into the slot in use
@k("race")
def grid_prefetch_into_slot_in_use(ok):
    def body(x, o, a, s):
        i, n = pl.program_id(0), pl.num_programs(0)
        get = lambda j: cp(x.at[pl.ds(j*R, R)], a.at[j % 2 if ok else 0], s.at[j % 2])
        pl.when(i == 0)(lambda: get(0).start())
        pl.when(i + 1 < n)(lambda: get(i + 1).start())
        get(i).wait()
        o[...] = a[i % 2 if ok else 0]
    return call(body, [((4*R, C), f32)], ((4*R, C), f32), [V(2, R, C), D((2,))], grid=(4,), out_specs=pl.BlockSpec((R, C), lambda i: (i, 0)))
# started under one condition, awaited under another
@k("deadlock")
def other_condition(ok):
    def body(x, o, a, s):
        def it(i, acc):
            c = cp(x.at[pl.ds(i*R, R)], a, s)
            pl.when(i % 2 == 0)(lambda: c.start())
            pl.when((i % 2 == 0) if ok else (i < 3))(lambda: c.wait())
            return acc + a[...]
        pltpu.sync_copy(x.at[pl.ds(0, R)], a)
        a[...] = jax.lax.fori_loop(0, 4, it, jnp.zeros((R, C), f32))
        pltpu.sync_copy(a, o)
    return call(body, [((4*R, C), f32)], ((R, C), f32), [V(R, C), D])
# endless loop
@k("step_limit")
def loop_without_end(ok):
    def body(x, o, a, m):
        pltpu.sync_copy(x, a); m[0] = 0
        def it(v):
            m[0] = m[0] + (1 if ok else 0); return m[0]
        jax.lax.while_loop(lambda v: v < 5, it, m[0])
        pltpu.sync_copy(a, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(R, C), pltpu.SMEM((1,), jnp.int32)])
# a check of the kernel's own
@k("assertion")
def check_fails(ok):
    def body(x, o, a, m):
        pltpu.sync_copy(x, a)
        def it(i, c):
            m[0] = i
            pl.debug_check(m[0] < (4 if ok else 3), "beyond the pages"); return c
        jax.lax.fori_loop(0, 4, it, 0)
        pltpu.sync_copy(a, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(R, C), pltpu.SMEM((1,), jnp.int32)])
# window and ANY ref of one buffer: step i writes the block that step i+1 has fetched already
@k("race")
def block_changed_after_its_fetch(ok):
    def body(x, o_any, a, s):
        i = pl.program_id(0)
        a[...] = x[...] + 1
        j = i if ok else jnp.minimum(i + 1, 3)
        c = cp(a, o_any.at[pl.ds(j*R, R)], s); c.start(); c.wait()
    return call(body, [((4*R, C), f32)], ((4*R, C), f32), [V(R, C), D], grid=(4,), input_output_aliases={0: 0}, in_specs=[pl.BlockSpec((R, C), lambda i: (i, 0))])
# accumulator of the wrong rows: bf16 store between two packed rows
@k("misaligned")
def bf16_rows_between_words(ok):
    def body(x, o, a, s):
        def it(i, c):
            g = cp(x.at[pl.ds(i*8, 8)], a.at[pl.ds(i*(8 if ok else 3), 8)], s); g.start(); g.wait(); return c
        jax.lax.fori_loop(0, 3, it, 0)
        pltpu.sync_copy(a, o)
    return call(body, [((32, C), jnp.bfloat16)], ((32, C), jnp.bfloat16), [V(32, C, dt=jnp.bfloat16), D])
# send semaphore waited with the size of something smaller in a loop
@k("semaphore_not_zero")
def waits_with_smaller_ref(ok):
    def body(x, o, a, s):
        pltpu.sync_copy(x, a)
        def it(i, c):
            cp(a, o.at[i], s).start()
            (cp(a, o.at[i], s) if ok else cp(a.at[pl.ds(0, 4)], o.at[i, pl.ds(0, 4)], s)).wait(); return c
        jax.lax.fori_loop(0, 3, it, 0)
    return call(body, [((R, C), f32)], ((3, R, C), f32), [V(R, C), D])
# result of all devices summed by remote copies into one place
@k("race", n=4)
def all_write_the_same_row(ok):
    def body(x, o, a, b, s, r):
        pltpu.sync_copy(x, a); everybody(4)
        cs = [rc(a, b.at[me() if ok else 0], s.at[d], r, d) for d in range(4)]
        for c in cs: c.start()
        for c in cs: c.wait()
        a[...] = b[0] + b[1] + b[2] + b[3] if ok else b[0]
        pltpu.sync_copy(a, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(R, C), V(4, R, C), D((4,)), D], cid=3)
# dynamic grid bound by data: one block too many
@k("out_of_bounds")
def index_map_beyond(ok):
    def body(t, x, o): o[...] = x[...]
    gs = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((R, C), lambda i, t: (i + (0 if ok else 1), 0))], out_specs=pl.BlockSpec((R, C), lambda i, t: (i, 0)))
    f = lambda t, x: pl.pallas_call(body, out_shape=sds((4*R, C), f32), grid_spec=gs)(t, x)
    return f, [((4,), jnp.int32), ((4*R, C), f32)]
# emit_pipeline whose output is read by a second one without... (it waits) -> reads while a started copy writes
@k("race")
def pipeline_reads_under_copy(ok):
    def body(x, y, o, s):
        c = cp(y, o.at[pl.ds(4*R, 4*R)], s); c.start()
        if ok: c.wait()
        def step(xb, ob): ob[...] = xb[...] * 2
        pltpu.emit_pipeline(step, grid=(4,), in_specs=[pl.BlockSpec((R, C), lambda i: (i + 4, 0))], out_specs=[pl.BlockSpec((R, C), lambda i: (i, 0))])(o, o)
        if not ok: c.wait()
    return call(body, [((4*R, C), f32), ((4*R, C), f32)], ((8*R, C), f32), [D])
# signal counts swapped between two semaphores by a scalar table: consumer too early
@k("race", n=2)
def flag_before_data(ok):
    def body(x, o, a, b, s, r, flag):
        pltpu.sync_copy(x, a); everybody(2)
        c = rc(a, b, s, r, 1 - me()); c.start(); c.wait_send()
        pl.semaphore_signal(flag, 1, device_id=(1 - me(),))
        pl.semaphore_wait(flag, 1)
        if ok: c.wait_recv()
        a[...] = b[...]
        if not ok: c.wait_recv()
        pltpu.sync_copy(a, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(R, C), V(R, C), D, D, S], cid=5)
# remote DMA straight into the peer's HBM result which that one is writing itself
@k("race", n=2)
def both_write_the_result(ok):
    def body(x, o, a, s, r, t):
        pltpu.sync_copy(x, a); everybody(2)
        w = cp(a, o.at[0], t); w.start()
        c = rc(a, o.at[1 if ok else 0], s, r, 1 - me()); c.start()
        w.wait(); c.wait()
    return call(body, [((R, C), f32)], ((2, R, C), f32), [V(R, C), D, D, D], cid=6)
# int8 mask that multiplies NaN-able padding through the MXU
@k("uninitialised_read")
def padded_k_of_a_matmul(ok):
    def body(x, w, o, a, b, acc, s):
        cp(x, a.at[:, pl.ds(0, C)], s).start(); cp(x, a.at[:, pl.ds(0, C)], s).wait()
        pltpu.sync_copy(w, b)
        if ok: a[:, pl.ds(C, C)] = jnp.zeros((R, C), f32)
        acc[...] = jnp.dot(a[...], b[...], preferred_element_type=f32)
        pltpu.sync_copy(acc, o)
    return call(body, [((R, C), f32), ((2*C, C), f32)], ((R, C), f32), [V(R, 2*C), V(2*C, C), V(R, C), D])
# two results, second never awaited in the last step of a grid
@k("dma_in_flight_at_end")
def grid_store_never_drained(ok):
    def body(x, o, a, s):
        i = pl.program_id(0)
        pl.when(i >= 2)(lambda: cp(a.at[i % 2], o.at[i - 2], s.at[i % 2]).wait())
        a[i % 2] = x[...]
        cp(a.at[i % 2], o.at[i], s.at[i % 2]).start()
        @pl.when(i == 3)
        def _():
            cp(a.at[1], o.at[3], s.at[1]).wait()
            if ok: cp(a.at[0], o.at[2], s.at[0]).wait()
    return call(body, [((4*R, C), f32)], ((4, R, C), f32), [V(2, R, C), D((2,))], grid=(4,), in_specs=[pl.BlockSpec((R, C), lambda i: (i, 0))])
# all devices wait in ring order for a token that nobody starts
@k("deadlock", n=4)
def token_ring_without_first(ok):
    def body(x, o, a, tok):
        pltpu.sync_copy(x, a); everybody(4)
        if ok: pl.when(me() == 0)(lambda: pl.semaphore_signal(tok, 1, device_id=(0,)))
        pl.semaphore_wait(tok, 1)
        pl.when(me() < 3 if ok else me() >= 0)(lambda: pl.semaphore_signal(tok, 1, device_id=((me()+1) % 4,)))
        pltpu.sync_copy(a, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(R, C), S], cid=8)
# reads the window of the result after its values were taken for next step: o kept across steps with changed index
@k("uninitialised_read")
def reads_result_of_step_before(ok):
    def body(x, o, keep):
        i = pl.program_id(0)
        prev = keep if ok else o
        o[...] = x[...] + jnp.where(i > 0, prev[...], 0.0)
        keep[...] = o[...]
    return call(body, [((4*R, C), f32)], ((4*R, C), f32), [V(R, C)], grid=(4,), in_specs=[pl.BlockSpec((R, C), lambda i: (i, 0))], out_specs=pl.BlockSpec((R, C), lambda i: (i, 0)))
# store to one ref view, load by other view (bitcast): race through a reshaped ref
@k("race")
def race_through_bitcast(ok):
    def body(x, o, a, b, s):
        c = cp(x, a.reshape(R, C), s); c.start()
        if ok: c.wait()
        b[...] = a[...].reshape(R, C)
        if not ok: c.wait()
        pltpu.sync_copy(b, o)
    return call(body, [((R, C), f32)], ((R, C), f32), [V(2, 4, C), V(R, C), D])
# one wait for the bytes of all copies: a slice larger than its ref, without bounds checks
@k("race")
def one_wait_for_all_pieces(ok):
    def body(x, o, a, n, s):
        n[0] = (4 if ok else 3)*R
        for i in range(4): cp(x.at[i], a.at[i], s).start()
        w = a.at[0, pl.ds(0, n[0])]
        cp(w, w, s).wait()
        a[0] = a[0] + a[1] + a[2] + a[3]
        if not ok: cp(x.at[3], a.at[3], s).wait()
        pltpu.sync_copy(a.at[0], o)
    return call(body, [((4, R, C), f32)], ((R, C), f32), [V(4, R, C), pltpu.SMEM((1,), jnp.int32), D], compiler_params=pltpu.CompilerParams(disable_bounds_checks=True))
# No pair: blocks of a result that nothing is stored in are a warning.
@k(None)
def odd_result_blocks_not_written(ok):
    def body(x, o):
        @pl.when((pl.program_id(0) % 2 == 0) | ok)
        def _(): o[...] = x[...]
    return call(body, [((4*R, C), f32)], ((4*R, C), f32), grid=(4,), in_specs=[pl.BlockSpec((R, C), lambda i: (i, 0))], out_specs=pl.BlockSpec((R, C), lambda i: (i, 0)))

def lower(entry, ok):
    name, kind, n, axes, fn = entry
    f, ins = fn(ok)
    dev = AbstractDevice(device_kind="TPU7x", num_cores=1, platform="tpu")
    with pl.enable_debug_checks():
        if n == 1:
            with use_abstract_mesh(AbstractMesh((1,), ("d",), abstract_device=dev)):
                return jax.jit(f).trace(*[sds(*i) for i in ins]).lower(lowering_platforms=("tpu",)).as_text()
        mesh = AbstractMesh((2, 2) if axes else (n,), axes or ("x",), abstract_device=dev)
        spec = P(axes or "x")
        g = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        return jax.jit(g).trace(*[sds((n*s[0], *s[1:]), t, sharding=NamedSharding(mesh, spec)) for s, t in ins]).lower(lowering_platforms=("tpu",)).as_text()

def main():
    out = sys.argv[1]; os.makedirs(out, exist_ok=True)
    path = f"{out}/list.json"
    listing = json.load(open(path)) if os.path.exists(path) else {}
    for e in ALL:
        for ok in (False, True):
            with open(f"{out}/{e[0]}_{'ok' if ok else 'bug'}.mlir", "w") as f: f.write(lower(e, ok))
        if e[1]: listing[e[0]] = e[1]
    with open(path, "w") as f: json.dump(listing, f, indent=1); f.write("\n")
if __name__ == "__main__": main()
