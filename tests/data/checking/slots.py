import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x, o, buf, sem):                      # the sum of four tiles, two slots
    def get(i):
        return pltpu.make_async_copy(x.at[i], buf.at[i % 2], sem.at[i % 2])
    def wait_for(i):                             # meant: sem.at[i % 2]
        pltpu.make_async_copy(x.at[i], buf.at[i % 2], sem.at[(i + 1) % 2]).wait()
    get(0).start()
    total = jnp.zeros((8, 128), jnp.float32)
    for i in range(4):
        if i < 3:
            get(i + 1).start()
        wait_for(i)
        total += buf[i % 2]
    o[...] = total

def f(x):
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))])(x)

args = [jax.ShapeDtypeStruct((4, 8, 128), jnp.float32)]
