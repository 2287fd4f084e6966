"""Records what lies beside it: traces of small trainings on one GPU, by PyTorch's profiler.

    record.py eager|compile|reduce-overhead|graph FOLDER           one process
    record.py fsdp2|collectives FOLDER                             two, see README.md

Every kind trains the same small network for two recorded steps, `collectives` for one, which also has a call
of each kind; its execution trace is recorded with it. Data are random.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

WIDTH, CLASSES, SAMPLES = 512, 16, 256
DEVICE = torch.device("cuda", 0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.norm = nn.Linear(WIDTH, 4 * WIDTH), nn.LayerNorm(4 * WIDTH)
        self.narrow, self.head = nn.Linear(4 * WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(x + self.narrow(functional.gelu(self.norm(self.wide(x)))))


def data():
    return torch.randn(SAMPLES, WIDTH, device=DEVICE), torch.randint(0, CLASSES, (SAMPLES,), device=DEVICE)


def training(model):
    """A function that trains for a step, and its optimizer."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    inputs, labels = data()

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step, optimizer


def record(step, path, steps=2, execution=None):
    """`steps` steps into a trace of Kineto's, after three that are not recorded."""
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    more = {}
    if execution:
        more["execution_trace_observer"] = ExecutionTraceObserver().register_callback(execution)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 schedule=schedule(wait=0, warmup=1, active=steps, repeat=1), **more) as profiler:
        for _ in range(steps + 1):
            step()
            torch.cuda.synchronize()
            profiler.step()
    profiler.export_chrome_trace(path)


def graph(path):
    """The whole step as one CUDA graph."""
    step, optimizer = training(Net().to(DEVICE))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    whole = torch.cuda.CUDAGraph()
    with torch.cuda.graph(whole):
        step()
    record(whole.replay, path)


def fsdp2(folder):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = Net().to(DEVICE)
    for part in (model.wide, model.narrow, model):
        fully_shard(part, mesh=mesh)
    record(training(model)[0], f"{folder}/kineto-fsdp2-rank{dist.get_rank()}.json")


def collectives(folder):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    train, _ = training(nn.parallel.DistributedDataParallel(Net().to(DEVICE), device_ids=[0], bucket_cap_mb=1))
    whole, part = torch.ones(ranks * 1024, device=DEVICE), torch.empty(1024, device=DEVICE)
    splits = [768, 1280] if rank == 0 else [1280, 768]

    def step():
        train()
        dist.all_reduce(whole)
        dist.all_gather_into_tensor(torch.empty(ranks * ranks * 1024, device=DEVICE), whole)
        dist.reduce_scatter_tensor(part, whole)
        dist.broadcast(whole, 0)
        dist.all_to_all_single(torch.empty_like(whole), whole)
        dist.all_to_all_single(torch.empty_like(whole), whole, splits, splits)
        for call in (dist.send, dist.recv) if rank == 0 else (dist.recv, dist.send):
            call(whole, 1 - rank)
        dist.reduce(part, 0)
        dist.barrier()

    record(step, f"{folder}/kineto-collectives-rank{rank}.json", 1, f"{folder}/et-collectives-rank{rank}.json")


def main():
    kind, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    torch.cuda.set_device(0)
    path = f"{folder}/kineto-{kind}.json"
    if kind == "eager":
        record(training(Net().to(DEVICE))[0], path)
    elif kind == "graph":
        graph(path)
    elif kind in ("compile", "reduce-overhead"):
        mode = None if kind == "compile" else kind
        record(training(torch.compile(Net().to(DEVICE), mode=mode))[0], path)
    else:
        dist.init_process_group("nccl")
        {"fsdp2": fsdp2, "collectives": collectives}[kind](folder)
        dist.destroy_process_group()


main()
