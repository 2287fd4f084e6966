"""Makes real NCCL say what it sends: N processes on one GPU, each a node of its own, under the
tracing plugin, through a sweep of calls for every protocol and number of channels.

    drive.py PLUGIN.so FOLDER [--ranks N] [--library nccl-2.28] [--channels 1,2,4] [--compare PROGRAM]

Writes FOLDER/PROTOCOL-cCHANNELS/trace.RANK; with --compare PROGRAM (nccl_trace_compare) it then holds
them against our schedules. Needs PyTorch with NCCL and one GPU; without them it says so and returns
77, which ctest takes for a test left out. Never run with a GPU so far.
"""

import argparse
import ctypes
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

PROTOCOLS = ("Simple", "LL", "LL128")
FUNCS = ("allreduce", "reduce_scatter", "all_gather", "broadcast", "reduce")
LEFT_OUT = 77
COUNTS = (1, 1000, 25_000, 262_144, 6_553_600)  # elements of 4 bytes, as NCCL's argument


def call_of(func, count, device, n):
    """PyTorch's function for the collective; `count` is NCCL's argument."""
    import torch
    import torch.distributed as dist

    own = torch.zeros(count, device=device)
    blocks = torch.zeros(count * n, device=device) if func in ("reduce_scatter", "all_gather") else None
    return {
        "allreduce": lambda: dist.all_reduce(own),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(own, blocks),
        "all_gather": lambda: dist.all_gather_into_tensor(blocks, own),
        "broadcast": lambda: dist.broadcast(own, 0),
        "reduce": lambda: dist.reduce(own, 0),
    }[func]


def rank_main(options):
    import torch
    import torch.distributed as dist

    plugin = ctypes.CDLL(options.plugin)
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    beside = dist.new_group(backend="gloo")

    def rest():
        torch.cuda.synchronize()
        dist.barrier(group=beside)
        time.sleep(0.2)  # proxies may still send data that the kernels left

    for func, count in itertools.product(FUNCS, COUNTS):
        call = call_of(func, count, "cuda:0", dist.get_world_size())
        call()  # opens connections
        rest()
        mark = {"library": options.library, "func": func, "algorithm": "ring", "count": count,
                "element_bytes": 4, "root": 0, "protocol": options.protocol,
                "channels": options.channel_count}
        plugin.ghostrank_trace_mark(json.dumps(mark).encode())
        call()
        rest()
        plugin.ghostrank_trace_mark(b"end")
    dist.destroy_process_group()


def unavailable():
    """Why there is nothing to run here; empty: there is."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if not torch.cuda.is_available():
        return "PyTorch finds no GPU"
    if not torch.distributed.is_nccl_available():
        return "this PyTorch has no NCCL"
    return ""


def library():
    """Ours for the NCCL that PyTorch has; None: it is not played."""
    import torch

    played = {(2, 28): "nccl-2.28", (2, 29): "nccl-2.30", (2, 30): "nccl-2.30"}
    return played.get(tuple(torch.cuda.nccl.version()[:2]))


def play(options, protocol, channels):
    folder = pathlib.Path(options.folder) / f"{protocol}-c{channels}"
    folder.mkdir(parents=True, exist_ok=True)
    processes = []
    for rank in range(options.ranks):
        environment = dict(
            os.environ, RANK=str(rank), WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1",
            MASTER_PORT="29500", GHOSTRANK_TRACE=str(folder), NCCL_NET_PLUGIN=options.plugin,
            NCCL_HOSTID=f"node{rank}", NCCL_ALGO="Ring", NCCL_PROTO=protocol,
            NCCL_MIN_NCHANNELS=str(channels), NCCL_MAX_NCHANNELS=str(channels),
            NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
        command = [sys.executable, __file__, options.plugin, options.folder, "--as-rank",
                   "--protocol", protocol, "--channel-count", str(channels),
                   "--library", options.library]
        processes.append(subprocess.Popen(command, env=environment))
    failed = sum(process.wait() != 0 for process in processes)
    if failed == 0 and options.compare:
        traces = [str(folder / f"trace.{rank}") for rank in range(options.ranks)]
        print(f"{protocol}, {channels} channels:", flush=True)
        failed = subprocess.run([options.compare, *traces], check=False).returncode
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--library", help="default: by PyTorch's NCCL")
    parser.add_argument("--compare", type=os.path.abspath, metavar="PROGRAM")
    parser.add_argument("--channels", default="1,2,4")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--protocol", help=argparse.SUPPRESS)
    parser.add_argument("--channel-count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_rank:
        rank_main(options)
        return 0
    why = unavailable()
    if not why:
        options.library = options.library or library()
        if not options.library:
            why = "PyTorch's NCCL is of no version that is played; --library says which to compare with"
    if why:
        print(f"left out: {why}")
        return LEFT_OUT
    sweep = itertools.product(PROTOCOLS, [int(c) for c in options.channels.split(",")])
    return 1 if sum(play(options, protocol, channels) for protocol, channels in sweep) else 0


if __name__ == "__main__":
    sys.exit(main())
