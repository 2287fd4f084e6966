#!/usr/bin/env python3
"""Times training steps of transformer layers on a GPU, as PyTorch plays them.

    measure.py FOLDER SECONDS [NAME...]

For each of the sizes of sizes.py (or those named) a model of a few layers is trained; the size is
skipped where SECONDS have gone by. FOLDER/steps.csv gets a line per size: the medians of the phases
of a step, by CUDA events, microseconds; FOLDER/kernels.csv what one step launches: the phase, the
operation, its shapes, the kernel, how often and for how long; FOLDER/NAME.json.gz is that step's
trace, for sizes that may be calibrated. Needs a GPU and PyTorch 2.9 or later.

A step in bf16 has weights, gradients and the optimizer's state in bf16; a mixed one has them in
fp32, and products in bf16 by autocast. Phases are cut apart by detaching the hidden states, which
launches nothing.
"""
import csv
import datetime
import gzip
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from sizes import SIZES

PHASES = ["embedding", "layers", "head", "head backward", "layers backward", "embedding backward",
          "optimizer"]
# A busy GPU slows its clocks down to keep to its power, so steps are timed once it has been busy.
WARM_UP_SECONDS, MEASURED_SECONDS = 0.6, 0.5
FEWEST, MOST = 5, 30  # steps that are timed
BEFORE_TRACE_SECONDS = 0.4


class GptLayer(nn.Module):
    def __init__(self, m):
        super().__init__()
        h, self.heads, self.drop = m["hidden"], m["heads"], 0.1 if m["dropout"] else 0.0
        self.norm1, self.norm2 = nn.LayerNorm(h), nn.LayerNorm(h)
        self.qkv, self.projection = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.fc1, self.fc2 = nn.Linear(h, m["ffn"]), nn.Linear(m["ffn"], h)

    def attention(self, x):
        b, s, h = x.shape
        q, k, v = (t.view(b, s, self.heads, h // self.heads).transpose(1, 2)
                   for t in self.qkv(x).split(h, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop, is_causal=True)
        return self.projection(y.transpose(1, 2).reshape(b, s, h))

    def forward(self, x):
        x = x + F.dropout(self.attention(self.norm1(x)), self.drop)
        inner = F.gelu(self.fc1(self.norm2(x)), approximate="tanh")
        return x + F.dropout(self.fc2(inner), self.drop)


class LlamaLayer(nn.Module):
    """Rotary positions as complex numbers, in fp32, as in Meta's models and TorchTitan."""

    def __init__(self, m):
        super().__init__()
        h, self.heads, self.kv_heads = m["hidden"], m["heads"], m["kv_heads"]
        self.width = h // self.heads
        kv = self.kv_heads * self.width
        self.norm1, self.norm2 = nn.RMSNorm(h, eps=1e-5), nn.RMSNorm(h, eps=1e-5)
        self.q, self.k, self.v = (nn.Linear(h, n, bias=False) for n in (h, kv, kv))
        self.projection = nn.Linear(h, h, bias=False)
        self.gate, self.up = (nn.Linear(h, m["ffn"], bias=False) for _ in range(2))
        self.down = nn.Linear(m["ffn"], h, bias=False)
        angles = torch.outer(torch.arange(m["sequence"]).float(),
                             10000.0 ** (-torch.arange(0, self.width, 2).float() / self.width))
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def rotated(self, x, turns):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns).flatten(3).type_as(x)

    def attention(self, x):
        b, s, h = x.shape
        q, k, v = (t.view(b, s, -1, self.width) for t in (self.q(x), self.k(x), self.v(x)))
        turns = self.turns[:s].view(1, s, 1, -1)
        q, k, v = (t.transpose(1, 2)
                   for t in (self.rotated(q, turns), self.rotated(k, turns), v))
        grouped = {"enable_gqa": True} if self.kv_heads < self.heads else {}
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, **grouped)
        return self.projection(y.transpose(1, 2).reshape(b, s, h))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, m, compiled):
        super().__init__()
        is_gpt, h = m["architecture"] == "gpt2", m["hidden"]
        self.words = nn.Embedding(m["vocabulary"], h)
        self.positions = nn.Embedding(m["sequence"], h) if is_gpt else None
        self.layers = nn.ModuleList((GptLayer if is_gpt else LlamaLayer)(m)
                                    for _ in range(m["layers"]))
        self.norm = nn.LayerNorm(h) if is_gpt else nn.RMSNorm(h, eps=1e-5)
        self.head = nn.Linear(h, m["vocabulary"], bias=False)
        self.drop = 0.1 if m["dropout"] else 0.0
        self.played = [torch.compile(one) if compiled else one for one in self.layers]

    def embedded(self, tokens):
        x = self.words(tokens)
        if self.positions is not None:
            x = F.dropout(x + self.positions(torch.arange(tokens.shape[1], device=x.device)),
                          self.drop)
        return x

    def loss(self, x, targets):
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def detached(x):
    return x.detach().requires_grad_()


class Trainer:
    def __init__(self, size):
        m = size["model"]
        torch.manual_seed(1)
        kind = torch.float32 if size["mixed"] else torch.bfloat16
        with torch.device("cuda"):
            torch.set_default_dtype(kind)
            self.model = Model(m, size["compiled"])
            torch.set_default_dtype(torch.float32)
        self.mixed = size["mixed"]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4,
                                           **{"foreach" if size["foreach"] else "fused": True})
        shape = (size["micro_batch"], m["sequence"])
        self.tokens, self.targets = (torch.randint(0, m["vocabulary"], shape, device="cuda")
                                     for _ in range(2))

    def step(self, between):
        """BETWEEN(i): before phase i, and after the last."""
        model = self.model
        with torch.autocast("cuda", torch.bfloat16, enabled=self.mixed):
            between(0)
            embedded = model.embedded(self.tokens)
            between(1)
            x = start = detached(embedded)
            for layer in model.played:
                x = layer(x)
            between(2)
            end = detached(x)
            loss = model.loss(end, self.targets)
        between(3)
        loss.backward()
        between(4)
        x.backward(end.grad)
        between(5)
        embedded.backward(start.grad)
        between(6)
        self.optimizer.step()
        between(7)
        self.optimizer.zero_grad(set_to_none=True)


def timed(trainer):
    """The phases of the steps, microseconds: of each a list of all phases."""
    def play(steps):
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(len(PHASES) + 1)]
                  for _ in range(steps)]
        began = time.monotonic()
        for of_step in events:
            trainer.step(lambda i: of_step[i].record())
        torch.cuda.synchronize()
        return events, time.monotonic() - began

    play(1)
    seconds = play(2)[1] / 2
    play(max(1, int(WARM_UP_SECONDS / seconds)))
    events, _ = play(max(FEWEST, min(MOST, int(MEASURED_SECONDS / seconds))))
    return [[1e3 * a.elapsed_time(b) for a, b in zip(of_step, of_step[1:])] for of_step in events]


def traced(trainer, file, seconds):
    """What a step of so many seconds launches: phase, operation, shapes, types, kernel -> number,
    microseconds. The GPU is busy without a pause before it."""
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
    open_phase = []

    def between(i):
        if open_phase:
            open_phase.pop().__exit__(None, None, None)
        if i < len(PHASES):
            open_phase.append(record_function("phase " + PHASES[i]))
            open_phase[0].__enter__()

    before = int(BEFORE_TRACE_SECONDS / seconds) + 2
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, record_shapes=True,
                 schedule=schedule(wait=0, warmup=before, active=1, repeat=1),
                 on_trace_ready=lambda found: found.export_chrome_trace(file)) as profiler:
        for _ in range(before + 1):
            trainer.step(between)
            profiler.step()
    with gzip.open(file, "rt", encoding="utf-8") as text:
        return kernels_of(json.load(text)["traceEvents"])


def kernels_of(events):
    """Of a trace by Kineto. A kernel's operation is the one that launched it, its phase the one in
    which it was launched."""
    phases, operations, launches = [], {}, {}
    for event in events:
        category, args = event.get("cat"), event.get("args", {})
        if category == "user_annotation" and event["name"].startswith("phase "):
            phases.append((event["ts"], event["ts"] + event["dur"], event["name"][6:]))
        elif category == "cpu_op":
            operations[args.get("External id")] = (event["name"], str(args.get("Input Dims", "")),
                                                   str(args.get("Input type", "")))
        elif category in ("cuda_runtime", "cuda_driver") and "correlation" in args:
            launches[args["correlation"]] = event["ts"]
    out = {}
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memset", "gpu_memcpy"):
            continue
        args = event["args"]
        at = launches.get(args.get("correlation"), -1)
        phase = next((name for begin, end, name in phases if begin <= at <= end), "none")
        operation = operations.get(args.get("External id"), ("none", "", ""))
        of_kind = out.setdefault((phase, *operation, event["name"]), [0, 0.0])
        of_kind[0] += 1
        of_kind[1] += event["dur"]
    return out


def clock(trainer):
    """The multiprocessors' clock, MHz, while steps run."""
    for _ in range(3):
        trainer.step(lambda i: None)
    asked = subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits"],
                           capture_output=True, text=True, check=False).stdout.split()
    torch.cuda.synchronize()
    return asked[0] if asked else ""


def measure(size, folder, steps, kernels):
    trainer = Trainer(size)
    phases = timed(trainer)
    mhz = clock(trainer)
    trace = os.path.join(folder, size["name"] + ".json.gz")
    whole = statistics.median(sum(of) for of in phases)
    launched = traced(trainer, trace, whole * 1e-6)
    if size["held"]:
        os.remove(trace)
    medians = [statistics.median(of) for of in zip(*phases)]
    busy = [sum(us for (phase, *_), (_, us) in launched.items() if phase == name)
            for name in PHASES]
    steps.writerow([size["name"], len(phases), mhz, f"{whole:.1f}",
                    *(f"{value:.1f}" for value in medians), *(f"{value:.1f}" for value in busy)])
    for (*what, kernel), (number, us) in sorted(launched.items()):
        kernels.writerow([size["name"], *(word[:200] for word in what), kernel[:160], number,
                          f"{us:.1f}"])
    print(f"{size['name']}: step {whole:.0f} us, kernels {sum(busy):.0f} us", flush=True)


def main(folder, seconds, *names):
    deadline = time.monotonic() + float(seconds)
    chosen = [size for size in SIZES if not names or size["name"] in names]
    with open(os.path.join(folder, "steps.csv"), "w", encoding="utf-8") as steps_out, \
            open(os.path.join(folder, "kernels.csv"), "w", encoding="utf-8") as kernels_out:
        steps_out.write(f"# {torch.cuda.get_device_name()}, driver {driver()}, PyTorch "
                        f"{torch.__version__}, {datetime.date.today()}\n")
        steps, kernels = csv.writer(steps_out), csv.writer(kernels_out)
        steps.writerow(["size", "steps", "mhz", "step", *PHASES, *("kernels of " + p for p in PHASES)])
        kernels.writerow(["size", "phase", "operation", "shapes", "types", "kernel", "number", "us"])
        for size in chosen:
            if time.monotonic() > deadline:
                print(f"{size['name']}: no time left", flush=True)
                continue
            began = time.monotonic()
            try:
                measure(size, folder, steps, kernels)
            except Exception as error:  # one size that fails must not cost the others
                print(f"{size['name']}: {error}", flush=True)
            torch.cuda.empty_cache()
            steps_out.flush()
            kernels_out.flush()
            print(f"  took {time.monotonic() - began:.1f} s", flush=True)


def driver():
    asked = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, check=False).stdout.split()
    return asked[0] if asked else "unknown"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
