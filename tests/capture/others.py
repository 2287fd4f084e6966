"""Training scripts that do more than a forward, a backward and a step of an optimizer.

others.py more: 23 steps with activation checkpoints, a ZeroRedundancyOptimizer and a second network beside DDP's
others.py accumulate: as many, with two backwards in each, which all sum gradients
others.py sparse | closure | join: a step of what is not captured
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

WHAT = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group("gloo")


def layers(count=4):
    return torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(count)))


class Checkpointed(torch.nn.Module):
    """Two halves whose forward is computed again in the backward, which runs backwards of its own."""

    def __init__(self):
        super().__init__()
        self.halves = torch.nn.ModuleList(layers(2) for _ in range(2))

    def forward(self, x):
        for half in self.halves:
            x = checkpoint(half, x, use_reentrant=True)
        return x


class Sparse(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.nn.EmbeddingBag(1000, 64, sparse=True, mode="sum")
        self.rest = layers(1)

    def forward(self, x):
        return self.rest(self.rows(x.abs().mul(100).long().clamp(max=999)))


module = Checkpointed() if WHAT == "more" else Sparse() if WHAT == "sparse" else layers()
ddp = DistributedDataParallel(module)
critic = layers()
if WHAT == "more":
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.SGD, lr=1e-3)
else:
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3)
of_critic = torch.optim.SGD(critic.parameters(), lr=1e-3)


def train():
    x = torch.randn(8, 64, requires_grad=True)
    ddp(x).pow(2).mean().backward()
    if WHAT == "accumulate":
        ddp(x).pow(2).mean().backward()
    if WHAT == "more":
        critic(x).pow(2).mean().backward()


with Join([ddp], divide_by_initial_world_size=False) if WHAT == "join" else contextlib.nullcontext():
    for _ in range(23 if WHAT in ("more", "accumulate") else 1):
        optimizer.zero_grad()
        if WHAT == "closure":
            optimizer.step(train)
        else:
            train()
            optimizer.step()
        if WHAT == "more":
            of_critic.step()
dist.destroy_process_group()
