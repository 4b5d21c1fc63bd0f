"""Seeded bugs with fixed twins: python bugs.py OUT writes OUT/NAME_{bug,ok}.mlir and list.json."""
import json, os, sys
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AbstractDevice, NamedSharding, PartitionSpec as P, use_abstract_mesh
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
f32 = jnp.float32
R, C = 8, 128
CASES = []
def case(kind, n=1, ins=((R, C),), out=(R, C), scratch=(), cid=None, grid=None, any_out=False, alias=False, params=None):
    def reg(fn):
        CASES.append((fn.__name__, kind, n, ins, out, scratch, cid, grid, any_out, alias, params, fn)); return fn
    return reg
V = lambda *s, dt=f32: pltpu.VMEM(s, dt)
D, S = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
cp = pltpu.make_async_copy
me = lambda: jax.lax.axis_index("x")

@case("race", scratch=[V(R, C), D])
def dropped_wait(ok, x, o, a, s):
    c = cp(x, a, s); c.start()
    if ok: c.wait()
    o[...] = a[...] + 1
    if not ok: c.wait()
@case("race", ins=((4*R, C),), out=(4*R, C), scratch=[V(2, R, C), V(R, C), D((2,)), D], any_out=True)
def wrong_slot_wait(ok, x, o, a, b, s, t):
    def get(i, slot): return cp(x.at[pl.ds(i*R, R)], a.at[slot], s.at[slot])
    get(0, 0).start()
    def body(i, carry):
        slot = i % 2
        @pl.when(i < 3)
        def _(): get(i+1, 1-slot).start()
        get(i, slot).wait()
        b[...] = a[slot if ok else 1-slot] * 2
        w = cp(b, o.at[pl.ds(i*R, R)], t); w.start(); w.wait()
        return carry
    jax.lax.fori_loop(0, 4, body, 0)
@case("race", ins=((4*R, C),), out=(4*R, C), scratch=[V(2, R, C), D((2,)), D((2,))], any_out=True)
def refill_before_store_over(ok, x, o, a, s, t):
    def put(i): return cp(a.at[i % 2], o.at[pl.ds(i*R, R)], t.at[i % 2])
    for i in range(4):
        if i >= 2 and ok: put(i-2).wait()
        g = cp(x.at[pl.ds(i*R, R)], a.at[i % 2], s.at[i % 2]); g.start(); g.wait()
        if i >= 2 and not ok: put(i-2).wait()
        put(i).start()
    put(2).wait(); put(3).wait()
@case("semaphore_not_zero", scratch=[V(R, C), D, S])
def signal_left(ok, x, o, a, s, r):
    pltpu.sync_copy(x, a)
    pl.semaphore_signal(r, 2); pl.semaphore_wait(r, 2 if ok else 1)
    o[...] = a[...]
@case("deadlock", scratch=[V(R, C), D, S])
def waits_for_more(ok, x, o, a, s, r):
    pltpu.sync_copy(x, a)
    pl.semaphore_signal(r, 2); pl.semaphore_wait(r, 2 if ok else 3)
    o[...] = a[...]
@case("uninitialised_read", ins=((4, R, C),), scratch=[V(R, C)], grid=(4,))
def accumulator(ok, x, o, acc):
    @pl.when(pl.program_id(0) == (0 if ok else 7))
    def _(): acc[...] = jnp.zeros_like(acc)
    acc[...] += x[0]
    o[...] = acc[...]
@case("out_of_bounds", ins=((4*R, C),), scratch=[V(R, C), D])
def copy_beyond(ok, x, o, a, s):
    def body(i, acc):
        c = cp(x.at[pl.ds(i*R, R)], a, s); c.start(); c.wait()
        return acc + a[...]
    o[...] = jax.lax.fori_loop(0 if ok else 1, 4 if ok else 5, body, jnp.zeros((R, C), f32))
@case("dma_in_flight_at_end", out=(R, C), scratch=[V(R, C), D, D], any_out=True)
def store_not_awaited(ok, x, o_, a, s, t):
    o = o_
    pltpu.sync_copy(x, a)
    c = cp(a, o, t); c.start()
    if ok: c.wait()
@case("wait_bytes_mismatch", ins=((2*R, C),), scratch=[V(2*R, C), D])
def wait_for_half(ok, x, o, a, s):
    cp(x, a, s).start()
    n = 2*R if ok else R
    cp(x.at[pl.ds(0, n)], a.at[pl.ds(0, n)], s).wait()
    o[...] = a[pl.ds(0, R), :]
@case("use_after_scope", out=(R, C), scratch=[V(R, C), D], any_out=True)
def scoped_copy(ok, x, o, a, t):
    pltpu.sync_copy(x, a)
    def inner(b):
        b[...] = a[...] * 3
        c = cp(b, o, t); c.start()
        if ok: c.wait()
        return None
    pl.run_scoped(inner, V(R, C))
    if not ok: cp(a, o, t).wait()
def barrier(n, count=None):
    b = pltpu.get_barrier_semaphore()
    for d in (1, n-1): pl.semaphore_signal(b, 1, device_id=((me()+d) % n,))
    pl.semaphore_wait(b, count or 2)
rc = lambda a, b, s, r, d: pltpu.make_async_remote_copy(a, b, s, r, device_id=(d,))
@case("missing_barrier", n=4, scratch=[V(R, C), V(R, C), D, D], cid=1)
def no_barrier(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a)
    if ok: barrier(4)
    else:
        sem = pltpu.get_barrier_semaphore(); pl.semaphore_signal(sem, 1); pl.semaphore_wait(sem, 1)
    c = rc(a, b, s, r, (me()+1) % 4); c.start(); c.wait()
    o[...] = b[...]
@case("deadlock", n=4, scratch=[V(R, C)], cid=2)
def barrier_one_more(ok, x, o, a):
    barrier(4, 2 if ok else 3); pltpu.sync_copy(x, a); o[...] = a[...]
@case("deadlock", n=4, scratch=[V(R, C), V(R, C), D, D], cid=3)
def all_to_one(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(4)
    c = rc(a, b, s, r, (me()+1) % 4 if ok else 0); c.start(); c.wait()
    o[...] = b[...]
@case("race", n=2, scratch=[V(R, C), V(R, C), D, D], cid=4)
def reads_before_arrival(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(2)
    c = rc(a, b, s, r, 1-me()); c.start(); c.wait_send()
    if ok: c.wait_recv()
    o[...] = b[...]
    if not ok: c.wait_recv()
@case("race", n=4, out=(4*R, C), scratch=[V(2, R, C), V(R, C), D, D((2,)), S, D], cid=5, any_out=True)
def ring_without_credit(ok, x, o, a, b, s, r, credit, t):
    pltpu.sync_copy(x, a.at[0]); barrier(4)
    right, left = (me()+1) % 4, (me()+3) % 4
    for k in range(3):
        src, dst = k % 2, (k+1) % 2
        if ok and k > 0: pl.semaphore_wait(credit, 1)
        c = rc(a.at[src], a.at[dst], s, r.at[dst], right); c.start()
        b[...] = a[src]
        w = cp(b, o.at[pl.ds(k*R, R)], t); w.start(); w.wait()
        c.wait()
        if ok and k < 2: pl.semaphore_signal(credit, 1, device_id=(left,))
    b[...] = a[1]
    w = cp(b, o.at[pl.ds(3*R, R)], t); w.start(); w.wait()
@case("missing_barrier", n=8, scratch=[V(R, C), V(R, C), D, D], cid=6)
def far_peer_near_barrier(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a)
    if ok:
        sem = pltpu.get_barrier_semaphore()
        for d in range(8): pl.semaphore_signal(sem, 1, device_id=(d,))
        pl.semaphore_wait(sem, 8)
    else: barrier(8)
    c = rc(a, b, s, r, (me()+4) % 8); c.start(); c.wait()
    o[...] = b[...]
@case("race", ins=((2*R, C),), scratch=[V(2, R, C), D])
def one_semaphore_two_copies(ok, x, o, a, s):
    c0, c1 = [cp(x.at[pl.ds(i*R, R)], a.at[i], s) for i in range(2)]
    c0.start(); c1.start(); c0.wait()
    if ok: c1.wait()
    y = a[0]
    if not ok: c1.wait()
    o[...] = y + a[1]
@case("race", scratch=[V(R, C), D])
def overlapping_self_copy(ok, x, o, a, s):
    pltpu.sync_copy(x, a)
    c = cp(a.at[pl.ds(0, 4)], a.at[pl.ds(4 if ok else 2, 4)], s); c.start(); c.wait()
    o[...] = a[...]
@case("deadlock", n=2, scratch=[V(R, C), V(R, C), D, D], cid=7)
def one_sided_send(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); b[...] = a[...]; barrier(2)
    c = rc(a, b, s, r, 1-me())
    if ok: c.start()
    else: pl.when(me() == 0)(lambda: c.start())
    pl.when(me() == 0)(lambda: c.wait_send()) if not ok else c.wait_send()
    c.wait_recv()
    o[...] = b[...]
@case("deadlock", scratch=[V(R, C), D, D])
def waits_on_other_semaphore(ok, x, o, a, s, t):
    c = cp(x, a, s); c.start()
    cp(x, a, s if ok else t).wait()
    o[...] = a[...]

def build(c, ok):
    name, kind, n, ins, out, scratch, cid, grid, any_out, alias, params, fn = c
    kw = {}
    if cid is not None: kw["compiler_params"] = pltpu.CompilerParams(collective_id=cid)
    if params: kw["compiler_params"] = pltpu.CompilerParams(**params(ok))
    if alias: kw["input_output_aliases"] = {0: 0}
    # Scratch, or what of it differs between the two, may be a function of `ok`.
    scratch = [v(ok) if getattr(v, "__name__", "") == "<lambda>" else v for v in (scratch(ok) if callable(scratch) else scratch)]
    out_spec = pl.BlockSpec(memory_space=pl.ANY if any_out else pltpu.VMEM)
    if grid:
        step = lambda *i: (sum(k * m for k, m in zip(i, (grid[-1], 1) if len(grid) > 1 else (1,))), 0, 0)
        specs = dict(grid=grid, in_specs=[pl.BlockSpec((1, R, C), step)], out_specs=out_spec if any_out else pl.BlockSpec((R, C), lambda *i: (0, 0)))
    else:
        specs = dict(in_specs=[pl.BlockSpec(memory_space=pl.ANY)]*len(ins), out_specs=out_spec)
    call = lambda *xs: pl.pallas_call(lambda *refs: fn(ok, *refs), out_shape=jax.ShapeDtypeStruct(out, f32), scratch_shapes=list(scratch), name=name, **specs, **kw)(*xs)
    if n == 1:
        chip = AbstractDevice(device_kind="TPU7x", num_cores=1, platform="tpu")
        with use_abstract_mesh(AbstractMesh((1,), ("d",), abstract_device=chip)):
            return jax.jit(call).trace(*[jax.ShapeDtypeStruct(s, f32) for s in ins]).lower(lowering_platforms=("tpu",)).as_text()
    mesh = AbstractMesh((n,), ("x",), abstract_device=AbstractDevice(device_kind="TPU7x", num_cores=1, platform="tpu"))
    f = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    args = [jax.ShapeDtypeStruct((n*s[0], *s[1:]), f32, sharding=NamedSharding(mesh, P("x"))) for s in ins]
    return jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",)).as_text()

def main():
    out = sys.argv[1]; os.makedirs(out, exist_ok=True)
    listing = json.load(open(f"{out}/list.json")) if os.path.exists(f"{out}/list.json") else {}
    for c in CASES:
        for ok in (False, True):
            try:
                open(f"{out}/{c[0]}_{'ok' if ok else 'bug'}.mlir", "w").write(build(c, ok))
            except Exception as e: print(c[0], ok, type(e).__name__, str(e)[:300])
        if c[1]: listing[c[0]] = c[1]
    json.dump(listing, open(f"{out}/list.json", "w"))
if __name__ == "__main__": main()
