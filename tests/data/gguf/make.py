"""Writes the two files beside it with the `gguf` and `safetensors` packages (pip install gguf safetensors).

formats.safetensors  random blocks of every readable block type, and their values by gguf.quants
written.gguf         a small file by gguf's own writer
"""
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q
from safetensors.numpy import save_file

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(7)
# Byte offsets of the f16 scales in a block: kept finite, everything else is random.
scales = {Q.Q4_0: [0], Q.Q4_1: [0, 2], Q.Q5_0: [0], Q.Q5_1: [0, 2], Q.Q8_0: [0], Q.Q4_K: [0, 2],
          Q.Q5_K: [0, 2], Q.Q6_K: [208], Q.MXFP4: []}
arrays = {}
for q, offsets in scales.items():
    elements, size = gguf.GGML_QUANT_SIZES[q]
    blocks = rng.integers(0, 256, (8, size), dtype=np.uint8)
    for at in offsets:
        scale = rng.normal(0, 0.02, 8).astype(np.float16)
        scale[0] = np.float16(6e-8)  # a denormal
        blocks[:, at:at + 2] = scale.view(np.uint8).reshape(8, 2)
    if q == Q.MXFP4:
        blocks[:, 0] = [1, 2, 100, 127, 128, 140, 253, 254]
    arrays[q.name + ".blocks"] = blocks
    arrays[q.name + ".values"] = gguf.quants.dequantize(blocks, q).reshape(8, elements)
save_file(arrays, here / "formats.safetensors")

w = gguf.GGUFWriter(here / "written.gguf", "llama")
w.add_name("tiny")
w.add_block_count(1)
w.add_embedding_length(64)
w.add_head_count(4)
w.add_head_count_kv(2)
w.add_layer_norm_rms_eps(1e-5)
w.add_array("test.texts", ["one", "", "drei\u00df"])
w.add_array("test.floats", [0.5, -2.0])
w.add_bool("test.flag", True)
x = np.arange(2 * 64, dtype=np.float32).reshape(2, 64) / 16 - 4
w.add_tensor("token_embd.weight", gguf.quants.quantize(x, Q.Q8_0), raw_dtype=Q.Q8_0)
w.add_tensor("output_norm.weight", x[0])
w.add_tensor("blk.0.ffn_up.weight", x.astype(np.float16))
w.add_tensor("blk.0.ffn_down.weight", gguf.quants.quantize(x, Q.BF16), raw_dtype=Q.BF16)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
