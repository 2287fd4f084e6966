#!/usr/bin/env python3
"""How long compression methods take as plain PyTorch on a device: a table for `compression.costs`.

    measure.py [--device cuda] [--methods topk,qsgd,...] [--elements 64,1024,...] [--seconds 60] [--csv FILE]

Every method of docs/compression.md is written here as one would write it in eager PyTorch, from its
definition, without kernels of its own, and its payload has the bytes of ghostrank's. Decompressing
is that of one payload, its addition to the sum of all included. Times are medians over blocks of
calls, one right behind the other, between two CUDA events: on small tensors they are the host's, which
launches kernels. Times that depend on the data are those of Laplace gradients, as in `ghostrank
calibrate compression`.

Before it measures, the script decompresses what it has compressed, and compares the error with a
bound. Needs PyTorch 1.13 or later; on a CPU (--device cpu) it measures wall time.
"""
import argparse
import csv
import math
import statistics
import sys
import time

import torch

RATIO, QUANTUM, THRESHOLD, QUANTILES, ERROR_BOUND = 0.01, 64, 0.01, 64, 2e-10
BYTES = {torch.float32: 4, torch.float16: 2, torch.bfloat16: 2, torch.int32: 4, torch.int16: 2,
         torch.int8: 1, torch.uint8: 1}


def kept(x):
    return max(1, int(x.numel() * RATIO))


# Values and indices of the elements that a mask selects, and back.


def select(x, mask):
    places = mask.nonzero().view(-1).int()
    return x[places.long()], places


def scatter(payload, x):
    values, places = payload
    dense = torch.zeros_like(x)
    dense[places.long()] = values
    return dense


# Methods that send elements: thresholds.


def topk(x):
    places = x.abs().topk(kept(x)).indices
    return x[places], places.int()


def randomk(x):
    """All ranks draw the same places, which are not sent."""
    torch.manual_seed(1)
    places = torch.randint(x.numel(), (kept(x),), device=x.device)
    return (x[places],), places


def threshold(x):
    return select(x, x.abs() >= THRESHOLD)


def sampled_threshold(magnitudes, share, upward=1.25, downward=0.9):
    n = magnitudes.numel()
    sample = magnitudes[torch.randint(n, (max(1, n // 100),), device=magnitudes.device)]
    found = sample.topk(max(1, int(sample.numel() * share))).values[-1].item()
    target = max(1.0, n * share)
    for _ in range(20):
        above = (magnitudes >= found).sum().item()
        if above > 1.25 * target:
            found *= upward
        elif above < 0.8 * target:
            found *= downward
        else:
            break
    return found


def dgc(x):
    magnitudes = x.abs()
    return select(x, magnitudes >= sampled_threshold(magnitudes, RATIO))


def adaq(x):
    sides, means = [], []
    for sign in (1, -1):
        side = (x * sign).clamp_(min=0)
        positive = side[side > 0]
        if positive.numel() == 0:
            positive = side[:1]
        mask = side >= max(sampled_threshold(positive, RATIO), 1e-38)
        places = mask.nonzero().view(-1)
        sides.append(places.int())
        means.append(x[places].mean().nan_to_num())
    return (torch.stack(means), torch.tensor([sides[0].numel()], dtype=torch.int32, device=x.device),
            *sides)


def from_adaq(payload, x):
    means, _, positive, negative = payload
    dense = torch.zeros_like(x)
    dense[positive.long()] = means[0]
    dense[negative.long()] = means[1]
    return dense


def redsync(x):
    magnitudes = x.abs()
    mean, most = torch.stack([magnitudes.mean(), magnitudes.max()]).tolist()
    low, high, k, found = 0.0, 1.0, kept(x), most
    while high - low > 0.2:
        middle = (low + high) / 2
        found = mean + middle * (most - mean)
        above = (magnitudes >= found).sum().item()
        if k < above < 2 * k:
            break
        low, high = (low, middle) if above <= k else (middle, high)
    return select(x, magnitudes >= found)


NORMAL = statistics.NormalDist()


def gaussian_ksgd(x):
    magnitudes = x.abs()
    found = x.std(unbiased=False).item() * NORMAL.inv_cdf(1 - RATIO / 2)
    k = kept(x)
    for _ in range(4):
        above = (magnitudes >= found).sum().item()
        if above < 2 * k / 3:
            found *= 0.5
        elif above > 4 * k / 3:
            found *= 1.5
        else:
            break
    return select(x, magnitudes >= found)


def pareto_quantile(mean, variance, share):
    if variance <= 0:
        return mean
    r = mean * mean / variance
    k, alpha = (r - 1) / 2, mean * (r + 1) / 2
    return -alpha * math.log(share) if abs(k) < 1e-9 else alpha / k * (1 - share ** k)


def gamma_quantile(mean, logs, share):
    """The closed form of a gamma law's tail, which needs no inverse of its function."""
    s = math.log(mean) - logs
    if s <= 1e-12:
        return mean
    alpha = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    return max(mean, -mean / alpha * (math.log(share) + math.lgamma(alpha)))


def sidco(law, step):
    def compress(x):
        first = 0.25
        stages = 1 + max(1, math.ceil(math.log(RATIO / first) / math.log(step) - 1e-9))
        shares = [first] + [step] * (stages - 2) + [RATIO / first / step ** (stages - 2)]
        magnitudes = left = x.abs()
        found = 0.0
        for m, share in enumerate(shares):
            if left.numel() == 0:
                break
            base = left.min().item() if m else 0.0
            excess = left - base
            if law == "e":
                found = base - excess.mean().item() * math.log(share)
            elif law == "gp" and m == 0:
                mean, logs = torch.stack([excess.mean(), (excess + 1e-30).log().mean()]).tolist()
                found = gamma_quantile(mean, logs, share)
            else:
                mean, variance = torch.stack([excess.mean(), excess.var(unbiased=False)]).tolist()
                found = base + pareto_quantile(mean, variance, share)
            if m + 1 < len(shares):
                left = left[left > found]
        return select(x, magnitudes >= found)
    return compress


# Methods that send every element.


def qsgd(x):
    norm = x.norm()
    level = x.abs() * (QUANTUM / norm)
    level = (level + torch.rand_like(x)).floor_() * x.sign()
    return norm.view(1), level.to(torch.int8 if QUANTUM < 128 else torch.int16)


def from_scaled(unit):
    return lambda payload, x: payload[1].float() * (payload[0] * unit)


def terngrad(x):
    clip = 2.5 * x.std(unbiased=False)
    clipped = torch.maximum(torch.minimum(x, clip), -clip)
    scale = clipped.abs().max()
    sent = torch.rand_like(x) < clipped.abs() / scale
    return scale.view(1), (clipped.sign() * sent).to(torch.int8)


def signs(x):
    return (x >= 0).to(torch.uint8)


def plus_or_minus(codes):
    return codes.float() * 2 - 1


def onebit(x):
    negative = x < 0
    below = (x * negative).sum() / negative.sum().clamp(min=1)
    above = (x * ~negative).sum() / (~negative).sum().clamp(min=1)
    return torch.stack([below, above]), negative.to(torch.uint8)


def from_onebit(payload, x):
    means, negative = payload
    return torch.where(negative.bool(), means[0], means[1])


def natural(x):
    bits = x.view(torch.int32)
    fraction = (bits & 0x7fffff).float() * 2.0 ** -23
    exponent = ((bits >> 23) & 0xff) + (torch.rand_like(x) < fraction).int()
    code = exponent.clamp_(18, 145) - 18
    return ((code | ((bits >> 31) << 7)).to(torch.uint8),)


def from_natural(payload, x):
    code = payload[0].int()
    value = (((code & 0x7f) + 18) << 23).view(torch.float32)
    return torch.where((code & 0x7f) == 0, torch.zeros_like(x), value) * (1 - 2 * (code >> 7)).float()


# 128 levels from 0 to 1; ghostrank's 128 levels are others.
LEVELS = [(i / 127) ** 2 for i in range(128)]


def levels(x):
    return torch.tensor(LEVELS, device=x.device)


def eight_bit(x):
    table = levels(x)
    scale = x.abs().max()
    between = (table[1:] + table[:-1]) / 2
    index = torch.bucketize(x.abs() / scale, between)
    return scale.view(1), (index * x.sign()).to(torch.int8)


def from_eight_bit(payload, x):
    scale, code = payload
    index = code.int()
    return levels(x)[index.abs().long()] * index.sign() * scale


def sketch(x):
    order = x.argsort()
    bucket = torch.arange(x.numel(), device=x.device) * QUANTILES // x.numel()
    means = torch.zeros(QUANTILES, device=x.device).index_add_(0, bucket, x[order])
    means /= torch.bincount(bucket, minlength=QUANTILES).clamp(min=1)
    ids = torch.empty(x.numel(), dtype=torch.uint8, device=x.device)
    ids[order] = bucket.to(torch.uint8)
    return means, ids


def from_sketch(payload, x):
    means, ids = payload
    return means[ids.long()]


def inceptionn_exponents():
    least = 127 + int(math.log10(ERROR_BOUND / 2))
    return least, least + (127 - least + 1) // 2


def inceptionn(x):
    least, mid = inceptionn_exponents()
    exponent = (x.view(torch.int32) >> 23) & 0xff
    kind = (exponent >= least).to(torch.uint8) + (exponent >= mid) + (exponent >= 127)
    padded = torch.nn.functional.pad(kind, (0, -kind.numel() % 4)).view(-1, 4)
    tags = padded[:, 0] | padded[:, 1] << 2 | padded[:, 2] << 4 | padded[:, 3] << 6
    half, byte = x[kind == 2], x[kind == 1]
    scale = 128.0 * 2.0 ** (127 - mid)
    return (tags, x[kind == 3],
            ((half.abs() * 2 ** 15).int() * half.sign().int()).to(torch.int16),
            ((byte.abs() * scale).int() * byte.sign().int()).to(torch.int8))


def from_inceptionn(payload, x):
    tags, whole, half, byte = payload
    kind = torch.stack([tags >> s & 3 for s in (0, 2, 4, 6)], 1).view(-1)[:x.numel()]
    dense = torch.zeros_like(x)
    dense[kind == 3] = whole
    dense[kind == 2] = half.float() * 2.0 ** -15
    dense[kind == 1] = byte.float() / (128.0 * 2.0 ** (127 - inceptionn_exponents()[1]))
    return dense


def powersgd(x):
    """Rank 1, on the least square that holds the tensor; both rounds, without their all-reduces."""
    side = math.ceil(math.sqrt(x.numel()))
    matrix = torch.nn.functional.pad(x, (0, side * side - x.numel())).view(side, side)
    q = torch.randn(side, 1, device=x.device)
    p = matrix @ q
    p = p / p.norm()
    return p, matrix.t() @ p


def from_powersgd(payload, x):
    p, q = payload
    return (p @ q.t()).view(-1)[:x.numel()]


class Method:
    """`compress`: tensor -> payload (tensors); `decompress`: payload, tensor -> dense. `most`: by
    how much the error's norm may exceed the tensor's."""

    def __init__(self, compress, decompress, most):
        self.compress, self.decompress, self.most = compress, decompress, most


def selecting(compress):
    return Method(compress, scatter, 1)


METHODS = {
    "fp16": Method(lambda x: (x.half(),), lambda p, x: p[0].float(), 1e-3),
    "bf16": Method(lambda x: (x.bfloat16(),), lambda p, x: p[0].float(), 1e-2),
    "topk": selecting(topk),
    "randomk": Method(randomk, lambda p, x: scatter((p[0][0], p[1]), x), 1),
    "threshold": selecting(threshold),
    "dgc": selecting(dgc),
    "adaq": Method(adaq, from_adaq, 1),
    "redsync": selecting(redsync),
    "gaussian_ksgd": selecting(gaussian_ksgd),
    "sidco-e": selecting(sidco("e", 0.2)),
    "sidco-p": selecting(sidco("p", 0.075)),
    "sidco-gp": selecting(sidco("gp", 0.1)),
    "qsgd": Method(qsgd, from_scaled(1 / QUANTUM), math.inf),
    "terngrad": Method(terngrad, from_scaled(1), 4),
    "signsgd": Method(lambda x: (signs(x),), lambda p, x: plus_or_minus(p[0]), math.inf),
    "signum": Method(lambda x: (signs(x),), lambda p, x: plus_or_minus(p[0]), math.inf),
    "efsignsgd": Method(lambda x: (x.abs().mean().view(1), signs(x)),
                        lambda p, x: plus_or_minus(p[1]) * p[0], 1),
    "onebit": Method(onebit, from_onebit, 1),
    "natural": Method(natural, from_natural, 0.6),
    "8bit": Method(eight_bit, from_eight_bit, 0.1),
    "sketch": Method(sketch, from_sketch, 0.5),
    "inceptionn": Method(inceptionn, from_inceptionn, 1),
    "powersgd": Method(powersgd, from_powersgd, 1.01),
}


def payload_bytes(name, payload):
    if name == "randomk":
        payload = payload[0]
    return sum(part.numel() * BYTES[part.dtype] for part in payload)


def laplace(elements, device):
    generator = torch.Generator().manual_seed(1)
    signed = torch.rand(elements, generator=generator) * 2 - 1
    return (-1e-3 * signed.sign() * torch.log1p(-signed.abs().clamp(max=1 - 1e-7))).to(device)


def check(device):
    """Throws where a method does not decompress what it has compressed."""
    x = laplace(10007, device)
    for name, method in METHODS.items():
        error = (method.decompress(method.compress(x), x) - x).norm() / x.norm()
        if not error.item() <= method.most:
            raise SystemExit(f"measure.py: {name} is off by {error.item():.3g} of its tensor")


class Timer:
    """Nanoseconds of a call: the median over blocks of calls, of which there are at least three."""

    def __init__(self, device):
        self.cuda = device.type == "cuda"

    def block(self, work, calls):
        if not self.cuda:
            began = time.perf_counter()
            for _ in range(calls):
                work()
            return (time.perf_counter() - began) * 1e9 / calls
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e6 / calls

    def __call__(self, work, seconds):
        work()
        self.block(work, 2)
        calls = max(1, min(50, int(seconds * 1e9 / 8 / self.block(work, 1))))
        until, times = time.perf_counter() + seconds, []
        while len(times) < 3 or (time.perf_counter() < until and len(times) < 25):
            times.append(self.block(work, calls))
        return statistics.median(times)


def device_name(device):
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "CPU"


def measure(timer, device, name, x, seconds):
    method, elements = METHODS[name], x.numel()
    payload = method.compress(x)
    total = torch.zeros_like(x)
    compress = timer(lambda: method.compress(x), seconds)
    decompress = timer(lambda: total.add_(method.decompress(payload, x)), seconds)
    return {"method": name, "elements": elements, "payload_bytes": payload_bytes(name, payload),
            "compress_ns": f"{compress / elements:.6g}",
            "decompress_ns": f"{decompress / elements:.6g}", "device": device_name(device),
            "source": f"measured: PyTorch {torch.__version__}, eager"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--elements", default="64,1024,16384,65536,262144,2621440,26214400")
    parser.add_argument("--seconds", type=float, default=60, help="for all, about")
    parser.add_argument("--csv", default="-")
    flags = parser.parse_args()
    device = torch.device(flags.device)
    names, sizes = flags.methods.split(","), [int(size) for size in flags.elements.split(",")]
    for name in names:
        if name not in METHODS:
            parser.error(f"there is no method {name}; known are {', '.join(METHODS)}")
    each = flags.seconds / len(names) / len(sizes) / 2
    with torch.no_grad():
        check(device)
        timer = Timer(device)
        tensors = [laplace(size, device) for size in sizes]
        rows = [measure(timer, device, name, x, each) for name in names for x in tensors]
    file = sys.stdout if flags.csv == "-" else open(flags.csv, "w", newline="", encoding="utf-8")
    writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    file.flush()


if __name__ == "__main__":
    main()
