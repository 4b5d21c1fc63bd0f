# Writes forms.vN.mlirbc: one kernel as jaxlib's own serializer writes it at several versions.
import base64, json, re, sys
import jax, jax.numpy as jnp
from jax._src import tpu_custom_call
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x, w, o, scratch, dma, sem):
    copy = pltpu.make_async_copy(x, scratch, dma)
    copy.start()
    pl.semaphore_signal(sem, 1)
    pl.semaphore_wait(sem, 1)
    copy.wait()
    a = scratch[...]
    lanes = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 1)
    order = 127 - lanes
    turned = jnp.take_along_axis(a, order, axis=1)
    product = jnp.dot(turned, w[...], preferred_element_type=jnp.float32)
    rows = jnp.sum(product, axis=1, keepdims=True)
    mask = jnp.full((8, 128), True)
    o[...] = jnp.where(mask & (lanes < 64), product, rows)


def call(x, w):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.VMEM)],
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA,
                        pltpu.SemaphoreType.REGULAR],
    )(x, w)


args = [jax.ShapeDtypeStruct((8, 128), jnp.float32), jax.ShapeDtypeStruct((128, 128), jnp.float32)]
for version in (3, 4, 5, 6, 7, 11, 15):
    jax.clear_caches()
    tpu_custom_call._FWD_COMPAT_VERSION = version
    text = jax.jit(call).trace(*args).lower(lowering_platforms=("tpu",)).as_text()
    config = re.search(r'backend_config = "((?:[^"\\]|\\.)*)"', text)[1].replace("\\22", '"')
    body = json.loads(config)["custom_call_config"]["body"]
    open(f"forms.v{version}.mlirbc", "wb").write(base64.b64decode(body))
