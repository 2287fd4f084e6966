"""Trains a model under DistributedDataParallel, and knows nothing of ghostrank.

    train.py mlp|resnet|gpt STEPS                    on CPUs, over gloo
    train.py resnet18|gpt2 STEPS [compile]           on a GPU, over NCCL, in bfloat16 (PyTorch 2)

mlp: four layers; resnet: ResNet-18's blocks with an eighth of its channels, on 32 x 32 images; gpt: two
transformer blocks with tied embeddings; resnet18: 128 images of 224 x 224; gpt2: 124 million parameters, 8 sequences of
1,024 tokens. Data are random. With KINETO=FILE two more steps are recorded by PyTorch's profiler.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.path(x) + self.short(x))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.before(x)).chunk(3, dim=-1))
        if x.is_cuda:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
            mask = torch.ones(length, length, dtype=torch.bool).triu(1)
            mixed = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(x)


class Gpt(nn.Module):
    def __init__(self, vocabulary=1000, width=128, layers=2, heads=4, length=64):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return (self.norm(self.blocks(x)) @ self.tokens.weight.T).flatten(0, 1)


def mlp():
    model = nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(384, 384), nn.ReLU())], nn.Linear(384, 10))
    return model, lambda: (torch.randn(32, 384), torch.randint(0, 10, (32,)))


def residual(first, classes):
    """ResNet-18 behind its first convolution, of which there are `first` channels."""
    widths, layers = [first << i for i in range(4)], [nn.BatchNorm2d(first), nn.ReLU(inplace=True)]
    for i, width in enumerate(widths):
        layers += [Residual(widths[max(i - 1, 0)], width, 1 if i == 0 else 2), Residual(width, width, 1)]
    return layers + [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes)]


def resnet():
    layers = [nn.Conv2d(3, 8, 3, 1, 1, bias=False), *residual(8, 10)]
    return nn.Sequential(*layers), lambda: (torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,)))


def resnet18():
    norm, relu, *blocks = residual(64, 1000)
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), norm, relu, nn.MaxPool2d(3, 2, 1), *blocks]
    return nn.Sequential(*layers), lambda: (torch.randn(128, 3, 224, 224), torch.randint(0, 1000, (128,)))


def gpt():
    return Gpt(), lambda: (torch.randint(0, 1000, (2, 64)), torch.randint(0, 1000, (128,)))


def gpt2():
    model = Gpt(vocabulary=50304, width=768, layers=12, heads=12, length=1024)
    return model, lambda: (torch.randint(0, 50304, (8, 1024)), torch.randint(0, 50304, (8 * 1024,)))


def on_cpus(model, batch, steps):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9)
    for _ in range(steps):
        inputs, labels = batch()
        optimizer.zero_grad()
        nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()


def on_a_gpu(model, batch, steps, compiles):
    """The batch is on the GPU before; steps do not wait for the host."""
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    ddp = DistributedDataParallel(model.to(device), device_ids=[0])
    run = torch.compile(ddp) if compiles else ddp
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-4, fused=True)
    inputs, labels = (one.to(device) for one in batch())

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(run(inputs).float(), labels)
        loss.backward()
        optimizer.step()

    for _ in range(steps):
        step()
    if "KINETO" in os.environ:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        schedule = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
        with torch.profiler.profile(activities=activities, schedule=schedule) as profiler:
            for _ in range(3):
                step()
                profiler.step()
        profiler.export_chrome_trace(os.environ["KINETO"])


def main():
    torch.manual_seed(1)
    name, steps, compiles = sys.argv[1], int(sys.argv[2]), "compile" in sys.argv[3:]
    model, batch = {"mlp": mlp, "resnet": resnet, "gpt": gpt, "resnet18": resnet18, "gpt2": gpt2}[name]()
    if name in ("resnet18", "gpt2"):
        on_a_gpu(model, batch, steps, compiles)
    else:
        on_cpus(model, batch, steps)
    dist.destroy_process_group()


main()
