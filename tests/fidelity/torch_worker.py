"""One rank of PyTorch over gloo that obeys orders, line by line on standard input.

    steps N                       N training steps of the model under DistributedDataParallel
    collective NAME BYTES W N     N calls back to back, after W calls that are not timed
    apart NAME BYTES W N MS       the same, but before each call a barrier, then rank r sleeps r * MS
                                  milliseconds; both are timed
    quit

The model is a list of layers, each a sleep forward, a sleep backward and its parameters:
`{"bucket_cap_mb": .., "layers": [{"parameters": [..], "forward_us": .., "backward_us": ..}, ..],
"optimizer_us": ..}`. Answers every command with one line of JSON in the file REPLIES; the first line
has PyTorch's version and the sizes of the buckets. All times are seconds. Started with torchrun's
variables.
"""

import json
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Times:
    """The time at which each sleep of the current step began, by pass and layer."""

    def __init__(self):
        self.began = {}


class Layer(torch.autograd.Function):
    """Sleeps forward and backward; its gradients are constants made beforehand."""

    @staticmethod
    def forward(ctx, x, module, *parameters):
        ctx.module = module
        module.times.began["forward", module.index] = time.monotonic()
        time.sleep(module.forward_seconds)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        module = ctx.module
        module.times.began["backward", module.index] = time.monotonic()
        time.sleep(module.backward_seconds)
        return (gradient, None, *module.gradients)


class SleepingLayer(torch.nn.Module):
    def __init__(self, layer, index, times):
        super().__init__()
        self.index, self.times = index, times
        self.forward_seconds = layer["forward_us"] * 1e-6
        self.backward_seconds = layer["backward_us"] * 1e-6
        self.weights = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.zeros(count)) for count in layer["parameters"]]
        )
        self.gradients = [torch.zeros_like(weights) for weights in reversed(self.weights)]

    def forward(self, x):
        # The gradients of one node become ready in the order of its inputs: put the last parameter
        # first.
        return Layer.apply(x, self, *reversed(self.weights))


class Training:
    """The model under DDP, after three steps: DDP rebuilds its buckets in the first two."""

    def __init__(self, model):
        self.times = Times()
        self.layers = len(model["layers"])
        self.optimizer_seconds = model["optimizer_us"] * 1e-6
        stack = torch.nn.Sequential(
            *[SleepingLayer(layer, i, self.times) for i, layer in enumerate(model["layers"])]
        )
        self.ddp = DistributedDataParallel(stack, bucket_cap_mb=model["bucket_cap_mb"])
        self.input = torch.zeros(1, requires_grad=True)
        for _ in range(3):
            self.step()

    def step(self):
        """Plays one step. Seconds of each layer forward and backward, of the optimizer, and in all."""
        began = time.monotonic()
        out = self.ddp(self.input)
        out.backward()
        passed = time.monotonic()
        time.sleep(self.optimizer_seconds)
        ended = time.monotonic()
        return self.split(began, passed, ended)

    def split(self, began, passed, ended):
        at = self.times.began
        n = self.layers
        starts = [began] + [at["forward", i] for i in range(1, n)]
        starts += [at["backward", i] for i in reversed(range(n))] + [passed, ended]
        spans = [b - a for a, b in zip(starts, starts[1:])]
        return {"seconds": ended - began, "forward": spans[:n], "backward": spans[2 * n - 1 : n - 1 : -1],
                "optimizer": spans[2 * n]}

    def buckets(self):
        sizes = self.ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"]
        return [int(size) for size in sizes.split(",")]


def collective(name, size):
    """Returns the call as a function; `size` is the bytes of a rank's larger buffer."""
    n = dist.get_world_size()
    count = size // 4
    if name == "barrier":
        return dist.barrier
    if name == "all_reduce":
        buffer = torch.zeros(count)
        return lambda: dist.all_reduce(buffer)
    if name == "broadcast":
        buffer = torch.zeros(count)
        return lambda: dist.broadcast(buffer, 0)
    own = torch.zeros(count // n)
    if name == "all_gather":
        parts = [torch.zeros(count // n) for _ in range(n)]
        return lambda: dist.all_gather(parts, own)
    if name == "all_to_all":
        source, target = torch.zeros(count // n * n), torch.zeros(count // n * n)
        return lambda: dist.all_to_all_single(target, source)
    raise ValueError(f"there is no collective {name}")


def late(call, seconds):
    def meet_sleep_and_call():
        dist.barrier()
        time.sleep(seconds)
        call()

    return meet_sleep_and_call


def timed(call, warmups, calls):
    """Seconds per call on average, and of each call."""
    for _ in range(warmups):
        call()
    dist.barrier()
    moments = [time.monotonic()]
    for _ in range(calls):
        call()
        moments.append(time.monotonic())
    return {"seconds": (moments[-1] - moments[0]) / calls,
            "calls": [b - a for a, b in zip(moments, moments[1:])]}


def obey(line, training):
    command, *arguments = line.split()
    if command == "steps":
        return {"steps": [training.step() for _ in range(int(arguments[0]))]}
    if command == "collective":
        name, size, warmups, calls = arguments
        return timed(collective(name, int(size)), int(warmups), int(calls))
    if command == "apart":
        name, size, warmups, calls, milliseconds = arguments
        seconds = dist.get_rank() * float(milliseconds) * 1e-3
        return timed(late(collective(name, int(size)), seconds), int(warmups), int(calls))
    raise ValueError(f"there is no command {command}")


def main():
    model = json.loads(open(sys.argv[1], encoding="utf-8").read())
    with open(sys.argv[2], "w", encoding="utf-8", buffering=1) as replies:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
        training = Training(model)
        print(json.dumps({"torch": torch.__version__, "buckets": training.buckets()}), file=replies)
        for line in sys.stdin:
            if line.strip() == "quit":
                break
            print(json.dumps(obey(line, training)), file=replies)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
