"""More seeded bugs with fixed twins, ported from the usual patterns of Pallas kernels: pipelines of
several slots, accumulators, tables in SMEM, scopes, rings, all-to-alls, barriers and credits.
python patterns.py OUT writes OUT/NAME_{bug,ok}.mlir and adds to OUT/list.json."""
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from bugs import CASES, C, D, R, S, V, barrier, case, cp, f32, main, me, rc
CASES.clear()  # those of bugs.py
M = lambda *s: pltpu.SMEM(s, jnp.int32)
tile = lambda i: pl.ds(i*R, R)

# Pipelines.
@case("race", ins=((6*R, C),), scratch=[V(3, R, C), D((3,))])
def third_slot_too_early(ok, x, o, a, s):
    get = lambda i: cp(x.at[tile(i)], a.at[i % 3], s.at[i % 3])
    ahead = 2 if ok else 3
    for i in range(ahead): get(i).start()
    acc = jnp.zeros((R, C), f32)
    for i in range(6):
        get(i).wait()
        if i + ahead < 6: get(i + ahead).start()
        acc += a[i % 3]
    o[...] = acc
@case("race", ins=((4*R, C),), out=(4*R, C), any_out=True, scratch=[V(2, R, C), V(2, R, C), D((2,)), D((2,))])
def result_slot_overwritten(ok, x, o, a, b, s, t):
    put = lambda i: cp(b.at[i % 2], o.at[tile(i)], t.at[i % 2])
    for i in range(4):
        g = cp(x.at[tile(i)], a.at[i % 2], s.at[i % 2]); g.start(); g.wait()
        if i >= 2 and ok: put(i-2).wait()
        b[i % 2] = a[i % 2] * 2
        if i >= 2 and not ok: put(i-2).wait()
        put(i).start()
    put(2).wait(); put(3).wait()
@case("dma_in_flight_at_end", ins=((4*R, C),), scratch=[V(2, R, C), D((2,))])
def last_prefetch_not_awaited(ok, x, o, a, s):
    get = lambda i, slot: cp(x.at[tile(i % 4)], a.at[slot], s.at[slot])
    get(0, 0).start()
    def body(i, acc):
        slot = i % 2
        if ok: pl.when(i < 3)(lambda: get(i+1, 1-slot).start())
        else: get(i+1, 1-slot).start()
        get(i, slot).wait()
        return acc + a[slot]
    o[...] = jax.lax.fori_loop(0, 4, body, jnp.zeros((R, C), f32))
@case("out_of_bounds", ins=((4*R, C),), scratch=[V(2, R, C), D((2,))])
def prefetch_without_guard(ok, x, o, a, s):
    get = lambda i, slot: cp(x.at[tile(i)], a.at[slot], s.at[slot])
    get(0, 0).start()
    def body(i, acc):
        slot = i % 2
        if ok: pl.when(i < 3)(lambda: get(i+1, 1-slot).start())
        else: get(i+1, 1-slot).start()
        get(i, slot).wait()
        return acc + a[slot]
    o[...] = jax.lax.fori_loop(0, 4, body, jnp.zeros((R, C), f32))
    if not ok: get(0, 0).wait()
@case("race", ins=((4*R, C),), scratch=[V(4, R, C), D((4,))])
def waits_in_even_rounds_only(ok, x, o, a, s):
    get = lambda i: cp(x.at[tile(i)], a.at[i], s.at[i])
    for i in range(4): get(i).start()
    def body(i, acc):
        if ok: get(i).wait()
        else: pl.when(i % 2 == 0)(lambda: get(i).wait())
        return acc + a[i]
    o[...] = jax.lax.fori_loop(0, 4, body, jnp.zeros((R, C), f32))
    if not ok: get(1).wait(); get(3).wait()
@case("race", ins=((2*R, C),), out=(2*R, C), any_out=True, scratch=[V(2*R, C), D, D((2,))])
def results_overlap(ok, x, o, a, s, t):
    pltpu.sync_copy(x, a)
    c = [cp(a.at[pl.ds(0, R)], o.at[pl.ds(0, R)], t.at[0]),
         cp(a.at[pl.ds(R if ok else R//2, R)], o.at[pl.ds(R if ok else R//2, R)], t.at[1])]
    for k in c: k.start()
    for k in c: k.wait()
@case("race", out=(R, C), any_out=True, scratch=[V(R, C), D])
def source_changed_under_copy(ok, x, o, a, s):
    pltpu.sync_copy(x, a)
    c = cp(a, o, s); c.start()
    if ok: c.wait()
    a[...] = jnp.zeros((R, C), f32)
    if not ok: c.wait()
@case("dma_in_flight_at_end", scratch=[V(R, C), D], any_out=True)
def started_twice(ok, x, o, a, s):
    pltpu.sync_copy(x, a)
    cp(a, o, s).start()
    if not ok: cp(a, o, s).start()
    cp(a, o, s).wait()
@case("deadlock", ins=((2*R, C),), scratch=[V(2*R, C), D])
def waits_for_more_bytes(ok, x, o, a, s):
    cp(x.at[pl.ds(0, R)], a.at[pl.ds(0, R)], s).start()
    n = R if ok else 2*R
    cp(x.at[pl.ds(0, n)], a.at[pl.ds(0, n)], s).wait()
    o[...] = a[pl.ds(0, R), :]

# Garbage, bounds, tiles, sizes.
@case("uninitialised_read", ins=((8, R, C),), grid=(2, 4))
def result_accumulates(ok, x, o):
    first = (pl.program_id(0) == 0) & (pl.program_id(1) == (0 if ok else 4))
    @pl.when(first)
    def _(): o[...] = jnp.zeros((R, C), f32)
    o[...] += x[0]
@case("uninitialised_read", ins=((4, R, C),), scratch=[V(R, C), V(R, C)], grid=(4,))
def running_maximum(ok, x, o, m, l):
    @pl.when(pl.program_id(0) == 0)
    def _():
        if ok: m[...] = jnp.full((R, C), -1e30, f32)
        l[...] = jnp.zeros((R, C), f32)
    new = jnp.maximum(m[...], x[0])
    l[...] = l[...] * jnp.exp(m[...] - new) + jnp.exp(x[0] - new)
    m[...] = new
    o[...] = l[...]
@case("uninitialised_read", ins=((R, C),), scratch=[V(2*R, C), D])
def padding_times_zero(ok, x, o, a, s):
    c = cp(x, a.at[pl.ds(0, R)], s); c.start(); c.wait()
    rows = jax.lax.broadcasted_iota(jnp.int32, (2*R, C), 0)
    v = jnp.where(rows < R, a[...], 0) if ok else a[...] * (rows < R).astype(f32)
    o[...] = v[:R] + v[R:]
@case("uninitialised_read", scratch=[V(R, C), M(1)])
def counter_without_start(ok, x, o, a, n):
    pltpu.sync_copy(x, a)
    if ok: n[0] = 0
    def body(i, carry):
        n[0] = n[0] + 1
        return carry
    jax.lax.fori_loop(0, 3, body, 0)
    o[...] = a[...] + n[0].astype(f32)
@case("out_of_bounds", ins=((4*R, C),), scratch=[V(R, C), M(4), D])
def table_entry_too_many(ok, x, o, a, t, s):
    for i in range(4): t[i] = (i * 3) % 4
    def body(i, acc):
        c = cp(x.at[tile(t[i])], a, s); c.start(); c.wait()
        return acc + a[...]
    o[...] = jax.lax.fori_loop(0, 4 if ok else 5, body, jnp.zeros((R, C), f32))
@case("misaligned", ins=((4*R, C),), scratch=[V(R, C), D])
def broken_multiple(ok, x, o, a, s):
    def body(i, acc):
        c = cp(x.at[pl.ds(pl.multiple_of(i * (8 if ok else 4), 8), R)], a, s); c.start(); c.wait()
        return acc + a[...]
    o[...] = jax.lax.fori_loop(0, 3, body, jnp.zeros((R, C), f32))
@case("capacity", scratch=lambda ok: [V(1024 if ok else 512*1024, C), D])
def scratch_beyond_vmem(ok, x, o, a, s):
    c = cp(x, a.at[pl.ds(0, R)], s); c.start(); c.wait()
    o[...] = a[pl.ds(0, R), :]
@case("semaphore_not_zero", scratch=[V(R, C), S])
def one_wait_too_few(ok, x, o, a, s):
    pltpu.sync_copy(x, a)
    def body(i, carry):
        pl.semaphore_signal(s, 1)
        pl.when(i < (4 if ok else 3))(lambda: pl.semaphore_wait(s, 1))
        return carry
    jax.lax.fori_loop(0, 4, body, 0)
    o[...] = a[...]
@case("use_after_scope", ins=((4*R, C),), out=(4*R, C), any_out=True, scratch=[V(R, C), D])
def store_awaited_a_round_later(ok, x, o, a, t):
    put = lambda b, i: cp(b, o.at[tile(i)], t)
    for i in range(4):
        def inner(b):
            pltpu.sync_copy(x.at[tile(i)], b)
            put(b, i).start()
            if ok: put(b, i).wait()
        pl.run_scoped(inner, V(R, C))
        if not ok: put(a, i).wait()
@case("use_after_scope", ins=((4, R, C),), out=(4, R, C), any_out=True, scratch=[D], grid=(4,), alias=True)
def block_stored_a_step_later(ok, x, o, t):
    i = pl.program_id(0)
    put = lambda k: cp(x.at[0], o.at[k], t)
    if not ok: pl.when(i > 0)(lambda: put(i - 1).wait())
    put(i).start()
    if ok: put(i).wait()
    else: pl.when(i == 3)(lambda: put(i).wait())
@case("timing_dependent_read", n=2, scratch=[V(R, C), S, M(1)], cid=11)
def polls_a_count(ok, x, o, a, s, n):
    pltpu.sync_copy(x, a); barrier(2)
    pl.semaphore_signal(s, 1, device_id=(1-me(),))
    if ok: pl.semaphore_wait(s, 1)
    n[0] = pl.semaphore_read(s)
    if not ok: pl.semaphore_wait(s, 1)
    o[...] = a[...] + n[0].astype(f32)

# Between devices.
right = lambda n: (me() + 1) % n
left = lambda n: (me() + n - 1) % n
def everybody(n):
    sem = pltpu.get_barrier_semaphore()
    for d in range(n): pl.semaphore_signal(sem, 1, device_id=(d,))
    pl.semaphore_wait(sem, n)
@case("order_assumption", n=4, scratch=[V(4, R, C), D, lambda ok: D((3,)) if ok else D((1,))], cid=12)
def gather_with_one_receive_semaphore(ok, x, o, a, s, r):
    pltpu.sync_copy(x, a.at[0]); barrier(4)
    for k in range(3):
        c = rc(a.at[k], a.at[k+1], s, r.at[k if ok else 0], right(4)); c.start(); c.wait()
    o[...] = a[0] + a[1] + a[2] + a[3]
@case("race", n=4, ins=((4*R, C),), scratch=[V(4, R, C), V(2, R, C), V(R, C), D, D((2,)), S], cid=13)
def reduce_scatter_without_credit(ok, x, o, a, b, acc, s, r, credit):
    for i in range(4): pltpu.sync_copy(x.at[tile(i)], a.at[i])
    barrier(4)
    acc[...] = a[(me() + 3) % 4]
    for k in range(3):
        if ok and k > 1: pl.semaphore_wait(credit, 1)
        c = rc(acc, b.at[k % 2], s, r.at[k % 2], right(4)); c.start(); c.wait()
        acc[...] = b[k % 2] + a[(me() + 2 - k + 4) % 4]
        if ok and k == 0: pl.semaphore_signal(credit, 1, device_id=(left(4),))
    o[...] = acc[...]
@case("race", n=4, ins=((4*R, C),), scratch=[V(4*R, C), V(4, R, C), D((4,)), D], cid=14)
def all_to_all_to_one_slot(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); everybody(4)
    sends = [rc(a.at[tile(p)], b.at[me() if ok else p], s.at[p], r, p) for p in range(4)]
    for c in sends: c.start()
    for c in sends: c.wait()
    o[...] = b[0] + b[1] + b[2] + b[3]
@case("missing_barrier", n=4, scratch=[V(R, C), V(R, C), D, D], cid=15)
def barrier_with_the_other_side(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a)
    sem = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(sem, 1, device_id=(right(4),))
    if ok: pl.semaphore_signal(sem, 1, device_id=(left(4),))
    pl.semaphore_wait(sem, 2 if ok else 1)
    c = rc(a, b, s, r, right(4)); c.start(); c.wait()
    o[...] = b[...]
@case("semaphore_not_zero", n=4, scratch=[V(R, C)], cid=16)
def barrier_signalled_twice(ok, x, o, a):
    sem = pltpu.get_barrier_semaphore()
    for d in (left(4), right(4)): pl.semaphore_signal(sem, 1 if ok else 2, device_id=(d,))
    pl.semaphore_wait(sem, 2)
    pltpu.sync_copy(x, a); o[...] = a[...]
@case("semaphore_not_zero", n=2, scratch=[V(2, R, C), V(2, R, C), D, D((2,)), S], cid=17)
def credit_after_the_last_round(ok, x, o, a, b, s, r, credit):
    pltpu.sync_copy(x, a.at[0]); pltpu.sync_copy(x, a.at[1]); barrier(2)
    acc = jnp.zeros((R, C), f32)
    for k in range(4):
        if k > 1: pl.semaphore_wait(credit, 1)
        c = rc(a.at[k % 2], b.at[k % 2], s, r.at[k % 2], 1-me()); c.start(); c.wait()
        acc += b[k % 2]
        if not ok or k < 2: pl.semaphore_signal(credit, 1, device_id=(1-me(),))
    o[...] = acc
@case("deadlock", n=2, scratch=[V(R, C), V(R, C), D, D], cid=18)
def receives_before_it_sends(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(2)
    c = rc(a, b, s, r, 1-me())
    if ok: c.start()
    c.wait_recv()
    if not ok: c.start()
    c.wait_send()
    o[...] = b[...]
@case("deadlock", n=4, scratch=[V(R, C), V(R, C), D((4,)), D], cid=19)
def broadcast_awaited_twice(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); everybody(4)
    sends = [rc(a, b, s.at[p], r, p) for p in range(4)]
    @pl.when(me() == 0)
    def _():
        for c in sends: c.start()
        for c in sends: c.wait_send()
    sends[0].wait_recv()
    if not ok: pl.when(me() != 0)(lambda: sends[0].wait_recv())
    o[...] = b[...]
@case("deadlock", n=4, scratch=[V(R, C)], cid=20)
def barrier_not_for_all(ok, x, o, a):
    sem = pltpu.get_barrier_semaphore()
    def join():
        for d in range(4): pl.semaphore_signal(sem, 1, device_id=(d,))
    join() if ok else pl.when(me() != 0)(join)
    pl.semaphore_wait(sem, 4)
    pltpu.sync_copy(x, a); o[...] = a[...]
@case("race", n=2, scratch=[V(R, C), V(R, C), D, D], cid=21)
def source_changed_under_send(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(2)
    c = rc(a, b, s, r, 1-me()); c.start()
    if ok: c.wait_send()
    a[...] = jnp.zeros((R, C), f32)
    if not ok: c.wait_send()
    c.wait_recv()
    o[...] = b[...]
@case("dma_in_flight_at_end", n=2, scratch=[V(R, C), V(R, C), D, D], cid=22)
def send_not_awaited(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(2)
    c = rc(a, b, s, r, 1-me()); c.start()
    c.wait_recv()
    if ok: c.wait_send()
    o[...] = b[...]
@case("race", n=2, scratch=[V(R, C), V(R, C), D, D], cid=23)
def receive_not_awaited(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(2)
    c = rc(a, b, s, r, 1-me()); c.start()
    c.wait_send()
    if ok: c.wait_recv()
    o[...] = b[...]
@case("out_of_bounds", n=4, scratch=[V(R, C), V(R, C), D, D], cid=24)
def device_beyond_the_mesh(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(4)
    c = rc(a, b, s, r, right(4) if ok else me() + 1); c.start(); c.wait()
    o[...] = b[...]
@case("race", n=4, scratch=[V(2, R, C), V(R, C), D, D((2,)), S], cid=25)
def credit_to_the_wrong_side(ok, x, o, a, acc, s, r, credit):
    pltpu.sync_copy(x, a.at[0]); barrier(4)
    acc[...] = a[0]
    for k in range(3):
        if k > 0: pl.semaphore_wait(credit, 1)
        c = rc(a.at[k % 2], a.at[(k+1) % 2], s, r.at[(k+1) % 2], right(4)); c.start(); c.wait()
        acc[...] += a[(k+1) % 2]
        if k < 2: pl.semaphore_signal(credit, 1, device_id=((left if ok else right)(4),))
    o[...] = acc[...]
@case("race", n=4, scratch=[V(R, C), V(2, R, C), D((2,)), D((2,))], cid=26)
def both_sides_on_one_semaphore(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); barrier(4)
    c = [rc(a, b.at[i], s.at[i], r.at[i if ok else 0], (right, left)[i](4)) for i in range(2)]
    for k in c: k.start()
    c[0].wait_recv()
    v = b[0]
    c[1].wait_recv()
    for k in c: k.wait_send()
    o[...] = v + b[1]
@case("missing_barrier", n=2, scratch=[V(R, C), D, D], cid=27)
def scoped_target_in_rounds(ok, x, o, a, s, t):
    pltpu.sync_copy(x, a)
    def round_(k):
        def inner(b, r):
            if ok or k == 0: everybody(2)
            c = rc(a, b, s, r, 1-me()); c.start(); c.wait()
            o[...] = b[...]
        pl.run_scoped(inner, V(R, C), D)
    round_(0); round_(1)
@case("race", n=4, scratch=[V(R, C), V(4, R, C), D((4,)), D], cid=28)
def second_phase_after_a_near_barrier(ok, x, o, a, b, s, r):
    pltpu.sync_copy(x, a); everybody(4)
    for phase in range(2):
        sends = [rc(a, b.at[me()], s.at[p], r, p) for p in range(4)]
        for c in sends: c.start()
        for c in sends: c.wait()
        o[...] = b[0] + b[1] + b[2] + b[3]
        if phase == 0: everybody(4) if ok else barrier(4)
# No pair: without a collective_id the compiler puts a barrier before the kernel, unless told not to.
@case(None, n=4, scratch=[V(R, C), D, D], params=lambda ok: dict(skip_device_barrier=not ok))
def compilers_barrier(ok, x, o, b, s, r):
    c = rc(x, b, s, r, right(4)); c.start(); c.wait()
    o[...] = b[...]
if __name__ == "__main__": main()
