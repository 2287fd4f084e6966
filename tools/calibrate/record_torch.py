#!/usr/bin/env python3
"""record_torch.py TRACE.json.gz: kernels of PyTorch that cuBLASLt does not have, over a range of sizes, on GPU 0.

Fused attention, norms, sums over columns, the loss, embeddings, casts and dropout, forward and
backward, each a few times under PyTorch's profiler with record_shapes. `ghostrank calibrate device
--kineto TRACE.json.gz` makes tables of them. Between them the GPU multiplies integers, so that its
clock is about that of training; those products are no rows of the tables.
"""
import argparse
import itertools

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

TIMES = 4  # the first is slower, the median is not
LOAD = 4096  # of the products between kernels
SCORES = 2 ** 33  # of an attention, at most
BYTES = 3 * 2 ** 30  # of an operand, at most


def tensor(*shape, dtype=torch.bfloat16, grad=True):
    return torch.randn(shape, device="cuda", dtype=dtype, requires_grad=grad)


def both(output):
    output.backward(torch.ones_like(output))


def attention(batch, heads, key_heads, positions, width, causal, dropout):
    query = tensor(batch, heads, positions, width)
    key, value = (tensor(batch, key_heads, positions, width) for _ in range(2))
    return lambda: both(F.scaled_dot_product_attention(
        query, key, value, is_causal=causal, dropout_p=dropout, enable_gqa=heads != key_heads))


def attentions():
    for positions, matrices, width in itertools.product((512, 1024, 2048, 4096, 8192),
                                                        (16, 32, 64, 128, 256), (64, 128)):
        if matrices * positions * positions > SCORES:
            continue
        heads = min(matrices, 32)
        yield attention(matrices // heads, heads, heads, positions, width, True, 0.0)
    for positions, width in itertools.product((1024, 4096), (64, 128)):
        yield attention(2, 32, 8, positions, width, True, 0.0)
        yield attention(4, 16, 16, positions, width, True, 0.1)
        yield attention(4, 16, 16, positions, width, False, 0.0)
    for width in (80, 96, 192, 256):
        yield attention(4, 16, 16, 2048, width, True, 0.0)


def norms():
    for rows, width, dtype in itertools.product((1024, 4096, 16384), (1024, 2048, 4096, 8192),
                                                (torch.bfloat16, torch.float32)):
        x, weight, bias = (tensor(*shape, dtype=dtype) for shape in ((rows, width), (width,), (width,)))
        yield lambda x=x, w=weight, b=bias: both(F.layer_norm(x, w.shape, w, b))
        yield lambda x=x, w=weight: both(F.rms_norm(x, w.shape, w))


def sums():
    for rows, width in itertools.product((1024, 4096, 16384), (1024, 3072, 8192, 32768)):
        x = tensor(rows, width, grad=False)
        yield lambda x=x: x.sum(0, keepdim=True)


def heads():
    for rows, words in itertools.product((512, 2048, 8192), (32000, 50304, 128256)):
        if rows * words * 4 > BYTES:
            continue
        logits = tensor(rows, words)
        ids = torch.randint(0, words, (rows,), device="cuda")
        yield lambda logits=logits, ids=ids: F.cross_entropy(logits.float(), ids).backward()


def embeddings():
    for rows, words, width in itertools.product((1024, 8192, 32768), (32000, 128256), (1024, 4096)):
        table = tensor(words, width)
        ids = torch.randint(0, words, (rows,), device="cuda")
        yield lambda table=table, ids=ids: both(F.embedding(ids, table))


def pointwise():
    for elements in (2 ** 18, 2 ** 21, 2 ** 24, 2 ** 27):
        x = tensor(elements // 1024, 1024, grad=False)
        wide = x.float()
        yield lambda x=x, wide=wide: (x.float(), wide + x)
        yield lambda x=x: F.dropout(x, 0.1)
        yield lambda wide=wide: F.dropout(wide, 0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", help="where the profile goes: a path that ends in .json.gz")
    trace = parser.parse_args().trace
    torch.manual_seed(1)
    factors = [torch.randint(-8, 8, (LOAD, LOAD), device="cuda", dtype=torch.int8)
               for _ in range(2)]
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 record_shapes=True) as found:
        for kernels in (attentions, norms, sums, heads, embeddings, pointwise):
            for run in kernels():
                for _ in range(TIMES):
                    torch._int_mm(*factors)  # pylint: disable=protected-access
                    run()
                torch.cuda.synchronize()
    found.export_chrome_trace(trace)
    print(f"{trace}: {len(found.events())} events")


if __name__ == "__main__":
    main()
