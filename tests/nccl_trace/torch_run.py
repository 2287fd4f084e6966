"""One rank of a short run of PyTorch over NCCL, which leaves every kind of trace that PyTorch can write of it:

    RANK=.. WORLD_SIZE=.. MASTER_ADDR=.. MASTER_PORT=.. torch_run.py FOLDER

kineto.RANK.json, et_rankRANK.json (execution trace), flight_rank_RANK (JSON). Set NCCL_HOSTID and the tracing plugin to
play several ranks on one GPU, NCCL_PROFILER_PLUGIN and NCCL_DEBUG_FILE for NCCL's own side, and
TORCH_NCCL_TRACE_BUFFER_SIZE for the flight recorder. Calls are the same in each of STEPS steps.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

STEPS = 3


def step(rank, size, device, count=1 << 16):
    """One call of each kind; `count` is what a rank contributes, or a rank's block."""
    own = torch.ones(count, device=device)
    blocks = torch.ones(count * size, device=device)
    half = torch.ones(count, device=device, dtype=torch.bfloat16)
    matrix = torch.ones(256, 256, device=device)
    dist.all_reduce(own)
    matrix = matrix @ matrix
    dist.reduce_scatter_tensor(own, blocks)
    dist.all_gather_into_tensor(blocks, own)
    dist.broadcast(half, 0)
    dist.all_to_all_single(torch.empty_like(blocks), blocks)
    following, preceding = (rank + 1) % size, (rank - 1) % size
    arrived = torch.empty_like(own)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own, following),
                                        dist.P2POp(dist.irecv, arrived, preceding)]):
        work.wait()
    with dist._coalescing_manager(device=device):
        for tensor in (own, arrived, matrix):
            dist.all_reduce(tensor)


def main():
    folder, rank, size = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda:0")
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    print("PyTorch", torch.__version__, "NCCL", torch.cuda.nccl.version(), flush=True)
    observer = ExecutionTraceObserver().register_callback(f"{folder}/et_rank{rank}.json")
    step(rank, size, device)  # opens connections
    torch.cuda.synchronize()
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 schedule=schedule(wait=0, warmup=1, active=STEPS),
                 on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/kineto.{rank}.json"),
                 execution_trace_observer=observer) as profiler:
        for _ in range(1 + STEPS):
            step(rank, size, device)
            torch.cuda.synchronize()
            profiler.step()
    observer.unregister_callback()
    with open(f"{folder}/flight_rank_{rank}", "wb") as out:
        out.write(c10d._dump_nccl_trace_json())
    dist.barrier()
    dist.destroy_process_group()  # NCCL's profiler plugin writes its last lines
    print("rank", rank, "is done", flush=True)


main()
