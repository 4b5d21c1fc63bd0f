import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P

N = 2

def kernel(x, o, recv, sent, received):          # each device gets its neighbour's tile
    me = jax.lax.axis_index("x")
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1)              # meant: device_id=(1 - me,)
    pl.semaphore_wait(barrier, 1)
    copy = pltpu.make_async_remote_copy(x, recv, sent, received, device_id=(1 - me,))
    copy.start()
    copy.wait()
    o[...] = recv[...]

def local(x):
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)] + [pltpu.SemaphoreType.DMA] * 2,
        compiler_params=pltpu.CompilerParams(collective_id=0))(x)

mesh = AbstractMesh((N,), ("x",))
f = jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
args = [jax.ShapeDtypeStruct((N * 8, 128), jnp.float32, sharding=NamedSharding(mesh, P("x")))]
