"""A synthetic Llama for timing: 0.81 G parameters that no cache holds, as a BF16 GGUF file.

usage: synth.py OUT.gguf

24 layers, width 1536, 12 heads of 128 over 4 key/value heads, inner width 4608, 98304 tokens, the
head tied to the embedding. The weights are normal numbers with the deviation that keeps activations
near 1; they come from a pool of 2 M whose length shares no factor with the widths, so rows differ.
Only the standard library is used: a fresh machine has no numpy.
"""
import array
import pathlib
import random
import struct
import sys

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, INNER, VOCAB = 24, 1536, 12, 4, 128, 4608, 98304
POOL = 2_097_143  # a prime

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # types of GGUF metadata
TENSOR_F32, TENSOR_BF16 = 0, 30


def kv_bytes(tokens):
    """What a decode step reads of keys and values of 16 bits with `tokens` in the context."""
    return LAYERS * tokens * 2 * KV_HEADS * HEAD * 2


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    formats = {U32: "<I", F32: "<f", BOOL: "<?"}
    data = string(value) if kind == STRING else struct.pack(formats[kind], value)
    return string(key) + struct.pack("<I", kind) + data


def list_entry(key, kind, values):
    data = b"".join(string(v) if kind == STRING else struct.pack("<I", v) for v in values)
    return string(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + data


def byte_alphabet():
    """The characters by which byte-level BPE writes the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(rest))]


def metadata():
    # The least vocabulary that loaders take: the bytes, one merge, and unused entries (type 5).
    tokens = byte_alphabet() + ["ab", "<|end|>"]
    types = [1] * (len(tokens) - 1) + [3]
    end = len(tokens) - 1
    types += [5] * (VOCAB - len(tokens))
    tokens += [f"<|unused{i}|>" for i in range(len(tokens), VOCAB)]
    return [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, "synthetic-0.8G"),
        entry("general.file_type", U32, 32),
        entry("llama.block_count", U32, LAYERS),
        entry("llama.context_length", U32, 4096),
        entry("llama.embedding_length", U32, WIDTH),
        entry("llama.feed_forward_length", U32, INNER),
        entry("llama.attention.head_count", U32, HEADS),
        entry("llama.attention.head_count_kv", U32, KV_HEADS),
        entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        entry("llama.rope.dimension_count", U32, HEAD),
        entry("llama.rope.freq_base", F32, 10000.0),
        entry("llama.vocab_size", U32, VOCAB),
        entry("tokenizer.ggml.model", STRING, "gpt2"),
        entry("tokenizer.ggml.pre", STRING, "gpt-2"),
        list_entry("tokenizer.ggml.tokens", STRING, tokens),
        list_entry("tokenizer.ggml.token_type", I32, types),
        list_entry("tokenizer.ggml.merges", STRING, ["a b"]),
        entry("tokenizer.ggml.bos_token_id", U32, end),
        entry("tokenizer.ggml.eos_token_id", U32, end),
        entry("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


def tensors():
    """(name, dimensions fastest first, type)"""
    matrix = lambda name, rows, columns: (name, (columns, rows), TENSOR_BF16)
    vector = lambda name: (name, (WIDTH,), TENSOR_F32)
    yield matrix("token_embd.weight", VOCAB, WIDTH)
    yield vector("output_norm.weight")
    for layer in range(LAYERS):
        p = f"blk.{layer}."
        yield vector(p + "attn_norm.weight")
        yield matrix(p + "attn_q.weight", HEADS * HEAD, WIDTH)
        yield matrix(p + "attn_k.weight", KV_HEADS * HEAD, WIDTH)
        yield matrix(p + "attn_v.weight", KV_HEADS * HEAD, WIDTH)
        yield matrix(p + "attn_output.weight", WIDTH, HEADS * HEAD)
        yield vector(p + "ffn_norm.weight")
        yield matrix(p + "ffn_gate.weight", INNER, WIDTH)
        yield matrix(p + "ffn_up.weight", INNER, WIDTH)
        yield matrix(p + "ffn_down.weight", WIDTH, INNER)


def bf16_pool():
    """2 * POOL bytes: the upper halves of normal floats, rounded by truncation."""
    source = random.Random(7)
    floats = array.array("f", (source.gauss(0.0, 0.02) for _ in range(POOL)))
    halves = array.array("H", floats.tobytes())
    if sys.byteorder != "little":
        sys.exit("synth.py: a little-endian machine is needed")
    return halves[1::2].tobytes()


def write(path):
    path = pathlib.Path(path)
    listed, offset = [], 0
    for name, dims, kind in tensors():
        elements = dims[0] * (dims[1] if len(dims) == 2 else 1)
        listed.append((name, dims, kind, offset, elements * (2 if kind == TENSOR_BF16 else 4)))
        offset += -(-listed[-1][4] // 32) * 32
    pool = bf16_pool()
    starts = random.Random(8)
    entries = metadata()
    part = path.with_suffix(".part")  # a broken run leaves no file that looks whole
    with open(part, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(entries)) + b"".join(entries))
        for name, dims, kind, at, _ in listed:
            out.write(string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at))
        out.write(bytes(-out.tell() % 32))
        for _, dims, kind, _, size in listed:
            if kind == TENSOR_F32:
                out.write(struct.pack("<f", 1.0) * dims[0])
            else:
                begin, left = 2 * starts.randrange(POOL), size
                while left > 0:
                    piece = pool[begin:begin + left]
                    out.write(piece)
                    left -= len(piece)
                    begin = 0
            out.write(bytes(-size % 32))
    part.rename(path)


if __name__ == "__main__":
    write(sys.argv[1])
