"""Records what a training script does under DistributedDataParallel, without a change to the script.

Every rank that has a module writes rankN.jsonl into the folder GHOSTRANK_CAPTURE: a header, then one line for each
step; profiles/capture/records.h says what is in them. Moments are those of ghostrank_clocks. A step ends
when its optimizer has stepped. Events of a GPU are read between blocks, never within a step that is timed.

The hooks are on for a block of steps and off for the next, so that one run shows what they cost and has
steps that the profile does not use. The first step of a block only ends: hooks change within it. The
communication hook stays in both, because DDP cannot give it up; GHOSTRANK_CAPTURE_MODE=plain leaves out
everything but the ends of steps, for a second run that shows the cost of all. GHOSTRANK_CAPTURE_LAYERS=buckets does
without hooks of modules and gradients: DDP's buckets are the layers.

With GHOSTRANK_CAPTURE_RANKS=N the process is rank 0 of N, and there are no others: its process group is PyTorch's fake
one, whose collectives end at once.
"""

import atexit
import functools
import itertools
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ghostrank_clocks import DeviceClock, HostClock, now

WARM_STEPS = 5  # DDP rebuilds its buckets in the first two, allocators and caches settle in the others
BLOCK = int(os.environ.get("GHOSTRANK_CAPTURE_BLOCK", "5"))
FOLDER = os.environ.get("GHOSTRANK_CAPTURE", "")
PLAIN = os.environ.get("GHOSTRANK_CAPTURE_MODE") == "plain"
LAYERS = os.environ.get("GHOSTRANK_CAPTURE_LAYERS", "modules")  # or buckets
RANKS = int(os.environ.get("GHOSTRANK_CAPTURE_RANKS", "0"))  # 0: as many as there are processes
BLOCK_OF_GRADIENTS = int(os.environ.get("GHOSTRANK_CAPTURE_GRADIENTS", "0"))  # elements; 0: no statistics

CALLS = ("all_reduce", "all_gather", "all_gather_into_tensor", "_all_gather_base", "all_to_all", "all_to_all_single",
         "barrier", "broadcast", "gather", "reduce", "reduce_scatter", "reduce_scatter_tensor", "_reduce_scatter_base",
         "scatter", "send", "recv", "isend", "irecv")

recorder = None  # of the process; a process has one DDP module
compiles = False  # torch.compile() was called
stepping = False  # an optimizer is


def type_name(dtype):
    return str(dtype).replace("torch.", "")


class Reduced:
    """Notes the end of an all-reduce of `tensor`; `call` is None in a step without hooks.

    It runs in a thread of gloo's, or with a stream of its own that waits for NCCL's.
    """

    alive = 0

    def __init__(self, tensor, call):
        self.tensor = tensor
        self.call = call
        Reduced.alive += 1

    def __call__(self, _):
        if self.call is not None:
            self.call[3] = recorder.clock.moment()
        return self.tensor

    def __del__(self):
        Reduced.alive -= 1


def outlive_callbacks():
    """Python ends a thread that wants its lock at exit, and C++ then aborts: let gloo's threads be done with theirs."""
    deadline = time.monotonic() + 5
    while Reduced.alive > 0 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)  # behind a callback they take the lock again, to give back what it returned


def magnitudes(gradient):
    """[zeros, [[k, elements], ...]]: elements of magnitude from 2^(k/4) up to 2^((k+1)/4), in order of k."""
    sizes = gradient.detach().abs().flatten().double()
    some = sizes[sizes > 0]
    bins, counts = torch.floor(4 * torch.log2(some)).int().unique(return_counts=True)
    return [sizes.numel() - some.numel(), list(map(list, zip(bins.tolist(), counts.tolist())))]


def nonzero_blocks(tensor):
    """By block of BLOCK_OF_GRADIENTS elements, the last one maybe shorter: 1 if any of them is not zero."""
    whole = tensor.numel() // BLOCK_OF_GRADIENTS * BLOCK_OF_GRADIENTS
    blocks = (tensor[:whole].view(-1, BLOCK_OF_GRADIENTS) != 0).any(1)
    if whole < tensor.numel():
        blocks = torch.cat([blocks, (tensor[whole:] != 0).any().view(1)])
    return blocks.int()


class Recorder:
    def __init__(self, ddp):
        self.ddp = ddp
        self.world = dist.get_world_size(ddp.process_group)
        self.scale = 1.0 / self.world
        self.device = next(iter(ddp.module.parameters())).device
        self.clock = DeviceClock(self.device) if self.device.type == "cuda" else HostClock()
        self.step = 0
        self.mode = "warm"
        self.module_hooks, self.gradient_hooks = [], {}  # handles; of gradients by parameter
        self.ready = []  # parameters, as they got their gradients in the step whose buckets are written down
        self.lines = []
        self.buckets = None  # of a step whose buckets are written down
        self.begin()
        self.within = False  # DDP's forward
        self.depth = 0  # of backwards that run within each other, as reentrant checkpoints do
        self.summed = 0  # buckets since the start
        self.parameters = [(name, p) for name, p in ddp.module.named_parameters() if p.requires_grad]
        self.index_of = {p: i for i, (_, p) in enumerate(self.parameters)}
        names = {id(p): name for name, module in ddp.module.named_modules() for p in module._parameters.values()}
        self.owners = [names.get(id(p), "") for _, p in self.parameters]
        os.makedirs(FOLDER, exist_ok=True)
        self.file = open(os.path.join(FOLDER, f"rank{dist.get_rank()}.jsonl"), "w", encoding="utf-8")
        self.write(self.header())
        self.flush()
        atexit.register(self.flush)
        atexit.register(outlive_callbacks)

    def header(self):
        buffers = list(self.ddp.modules_buffers) if self.ddp.will_sync_module_buffers() else []
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            clock = boot.read().strip()
        return {
            "ghostrank_capture": 1, "mode": "plain" if PLAIN else "hooks", "layers": LAYERS,
            "rank": dist.get_rank(self.ddp.process_group), "world": self.world, "group": self.group(),
            "host": socket.gethostname(),
            "clock": clock, "timer": self.clock.timer, "torch": torch.__version__, "backend": self.backend(),
            "device": self.device.type, "device_name": self.clock.name,
            "model": type(self.ddp.module).__name__,
            "bucket_cap_bytes": int(self.ddp.bucket_bytes_cap), "find_unused": self.finds_unused(),
            "parameters": [[name, owner, p.numel(), type_name(p.dtype)]
                           for (name, p), owner in zip(self.parameters, self.owners)],
            "buffers": [[type_name(b.dtype), b.numel()] for b in buffers],
        }

    def finds_unused(self):
        """Whether DDP looks for unused parameters in every step, and so never forms its buckets anew."""
        return bool(self.ddp.find_unused_parameters) and not getattr(self.ddp, "static_graph", False)

    def group(self):
        """The ranks of the run that are the ranks of the module's group."""
        of = dist.distributed_c10d
        rank_of = getattr(of, "get_global_rank", None) or of._get_global_rank  # before PyTorch 1.13
        if self.ddp.process_group is dist.group.WORLD:
            return list(range(self.world))
        return [rank_of(self.ddp.process_group, rank) for rank in range(self.world)]

    def backend(self):
        """Of the module's device: a group may have one for each type of device."""
        group = self.ddp.process_group
        if hasattr(group, "_get_backend"):
            return group._get_backend(self.device).name()
        return dist.get_backend(group)

    def write(self, line):
        self.lines.append(line)

    def flush(self):
        """Writes down what has gathered. Events get their times, so this waits for the device."""
        self.clock.wait()
        for line in self.lines:
            self.file.write(json.dumps(line, separators=(",", ":"), default=self.clock.nanos) + "\n")
        self.lines.clear()
        self.file.flush()
        self.clock.settle()

    def refuse(self, why):
        """The run goes on, but gives no profile. Does not wait for the device, which may be recording a graph."""
        self.mode = "refused"
        self.buckets = None
        self.file.write(json.dumps({"refused": why}) + "\n")
        self.file.flush()

    def moment(self):
        """Of a step that is recorded; others do without."""
        return self.clock.moment() if self.on() else 0

    # The records of one step; `begin` clears them.

    def begin(self):
        self.forward, self.modules, self.backward, self.gradients = [0, 0, 0], [], [0, 0], []
        self.reduced, self.calls = [], []
        self.data = self.forwards = self.backwards = 0  # `data`: nanoseconds in the data loader

    def on(self):
        return self.mode == "on"

    def register(self):
        """Module and gradient hooks, for the steps that are recorded. There are hundreds in a step, so they do little."""
        if LAYERS == "buckets":
            return
        moment = self.clock.moment
        self.ready.clear()
        for i, (_, p) in enumerate(self.parameters):
            def ready(_, i=i):
                if self.mode == "on":
                    self.gradients.append((i, moment()))
                elif self.mode == "switch":
                    self.ready.append(i)
            self.gradient_hooks[i] = p.register_hook(ready)
        if compiles:
            return  # a hook of a module would be compiled, or break the graph: the forward is one delay
        for module in self.ddp.module.modules():
            own = [self.index_of[p] for p in module._parameters.values() if p is not None and p in self.index_of]
            if own:
                def entered(_, __, first=own[0]):
                    if self.mode == "on" and self.within:  # not where a backward computes it again
                        self.modules.append((first, moment()))
                self.module_hooks.append(module.register_forward_pre_hook(entered))

    def keep_last_of_runs(self):
        """A run of one module's parameters in a bucket is a layer of the profile, ready with the last of them.

        Where one got no gradient all stay: the merge says which.
        """
        place = {p: at for at, p in enumerate(self.ready)}
        if len(place) < len(self.parameters):
            return
        last = {max(run, key=place.get) for *_, parameters in self.buckets
                for _, run in itertools.groupby(parameters, self.owners.__getitem__)}
        for i in self.gradient_hooks.keys() - last:
            self.gradient_hooks.pop(i).remove()

    def remove(self):
        for handle in [*self.module_hooks, *self.gradient_hooks.values()]:
            handle.remove()
        self.module_hooks.clear()
        self.gradient_hooks.clear()

    def ended(self, began, end):
        """A step has ended: writes it down and decides what the next one is."""
        if self.buckets and self.forwards != 1:  # these would be the buckets of several backwards
            self.refuse(f"a step accumulates the gradients of {self.forwards} forwards")
            return
        if self.mode == "on":
            self.write({"step": self.step, "mode": "on", "end": end, "forward": self.forward, "modules": self.modules,
                        "backward": self.backward, "gradients": self.gradients, "buckets": self.reduced,
                        "optimizer": [began, end], "data": self.data, "forwards": self.forwards, "calls": self.calls})
        else:
            self.write({"step": self.step, "mode": self.mode, "end": end})
        if self.buckets:
            self.write({"formed": self.buckets})
            self.keep_last_of_runs()
        self.buckets = None
        self.step += 1
        self.begin()
        if PLAIN:
            self.mode = "off" if self.step >= WARM_STEPS else "warm"
            return
        at = self.step - WARM_STEPS
        if at < 0:
            return
        if at % BLOCK:
            self.mode = "on" if at // BLOCK % 2 == 0 else "off"
            return
        self.mode = "switch"
        self.flush()
        if at // BLOCK % 2 == 0:
            self.register()
            self.buckets = []  # this step's buckets are written down: it is not timed
        else:
            self.remove()

    def note_gradients(self, bucket, tensor):
        """What this rank's gradients are, before any other rank's are added, and how their blocks coincide."""
        odd = (~torch.isfinite(tensor)).any().int().view(1)
        nonzero = torch.cat([nonzero_blocks(tensor), odd])
        dist.all_reduce.untimed(nonzero, group=self.ddp.process_group)
        if nonzero[-1] > 0:  # on any rank
            self.write({"not_finite": bucket.index()})
            return
        blocks, elements, first = [], 0, 0  # up to the tensor's end; the first block that begins in it
        for p in bucket.parameters():
            elements += p.numel()
            end = -(-elements // BLOCK_OF_GRADIENTS)
            if end > first:
                blocks.append([self.index_of[p], torch.bincount(nonzero[first:end], minlength=self.world + 1).tolist()])
            first = end
        self.write({"magnitudes": [[self.index_of[p], *magnitudes(g)]
                                   for p, g in zip(bucket.parameters(), bucket.gradients())],
                    "blocks": blocks, "block": BLOCK_OF_GRADIENTS})

    def all_reduce(self, _, bucket):
        """DDP's communication hook: what DDP does without one, a sum of gradients that are divided before."""
        tensor = bucket.buffer()
        self.summed += 1
        if tensor.is_sparse and self.mode != "refused":
            self.refuse("gradients are sparse (Embedding(sparse=True)), and DDP sends only their rows")
        if self.buckets is not None and BLOCK_OF_GRADIENTS and self.mode != "refused":
            self.note_gradients(bucket, tensor)
        tensor.mul_(self.scale)
        index = bucket.index()
        if self.buckets is not None:
            self.buckets.append([index, type_name(tensor.dtype), tensor.numel(),
                                 [self.index_of[p] for p in bucket.parameters()]])
        call = None
        if self.on():
            call = [index, tensor.numel() * tensor.element_size(), self.moment(), 0]
            self.reduced.append(call)
        reduced = Reduced(tensor, call)
        if RANKS:
            done = torch.futures.Future(devices=[self.device] if self.device.type == "cuda" else None)
            done.set_result(reduced(None))
            return done
        work = dist.all_reduce.untimed(tensor, group=self.ddp.process_group, async_op=True)
        return work.get_future().then(reduced)


def recorder_of(ddp):
    """The recorder, made at the module's first step; None for a second module."""
    global recorder
    if recorder is None:
        recorder = Recorder(ddp)
        if not PLAIN:
            if ddp.__dict__.get("_ghostrank_own_hook"):
                recorder.refuse("the script registers a communication hook of its own: " + ddp._ghostrank_own_hook)
            elif not getattr(ddp, "_divide_by_initial_world_size", True):
                recorder.refuse("Join(divide_by_initial_world_size=False) divides gradients by fewer and fewer ranks")
            else:
                ddp._ghostrank_sums = True
                untimed_register(ddp, None, recorder.all_reduce)
    if recorder.ddp is not ddp:
        recorder.refuse("the script has a second DistributedDataParallel module")
        return None
    return recorder


def register_comm_hook(ddp, state, hook):
    ddp._ghostrank_own_hook = getattr(hook, "__qualname__", str(hook))
    untimed_register(ddp, state, hook)


def hooked_join(join):
    """DDP cannot give up its communication hook, which divides by all ranks."""
    @functools.wraps(join)
    def joined(ddp, **keywords):
        if not keywords.get("divide_by_initial_world_size", True) and ddp.__dict__.get("_ghostrank_sums"):
            sys.exit("ghostrank_hooks: the script joins uneven inputs with divide_by_initial_world_size=False after "
                     "steps without; captured, it would train otherwise")
        return join(ddp, **keywords)

    return joined


def begin_forward(ddp):
    if not torch.is_grad_enabled():
        return
    of = recorder_of(ddp)
    if of is None:
        return
    if of.clock.timer != "host" and torch.cuda.is_current_stream_capturing():
        of.refuse("the script records the forward as a CUDA graph, whose kernels hooks do not see when it is played; "
                  "take a Kineto trace")
        return
    of.forwards += 1
    of.within = True
    of.forward[0] = of.forward[1] = of.moment()


def end_forward():
    if recorder is not None and torch.is_grad_enabled():
        recorder.within = False
        recorder.forward[2] = recorder.moment()


def hooked_forward(forward):
    """Of PyTorch 1, whose forward is one function."""
    @functools.wraps(forward)
    def timed(ddp, *inputs, **keywords):
        begin_forward(ddp)
        out = forward(ddp, *inputs, **keywords)
        end_forward()
        return out

    return timed


def hooked_pre_forward(before):
    @functools.wraps(before)
    def timed(ddp, *inputs, **keywords):
        begin_forward(ddp)
        return before(ddp, *inputs, **keywords)

    return timed


def hooked_post_forward(behind):
    @functools.wraps(behind)
    def timed(ddp, *outputs):
        out = behind(ddp, *outputs)
        end_forward()
        return out

    return timed


def hooked_sync(sync):
    """DDP broadcasts its buffers; the forward begins behind it."""
    @functools.wraps(sync)
    def timed(ddp, *arguments):
        out = sync(ddp, *arguments)
        if recorder is not None:
            recorder.forward[1] = recorder.moment()
        return out

    return timed


def hooked_backward(backward):
    """Notes the backward in which DDP sums gradients; a script may run others, of other networks."""
    @functools.wraps(backward)
    def timed(*arguments, **keywords):
        if recorder is None or recorder.depth:
            return backward(*arguments, **keywords)
        began, summed = recorder.moment(), recorder.summed
        recorder.depth += 1
        try:
            out = backward(*arguments, **keywords)
        finally:
            recorder.depth -= 1
        if PLAIN or recorder.summed > summed:
            recorder.backwards += 1
            recorder.backward = [began, recorder.moment()]
        return out

    return timed


def hooked_step(step):
    """A step of an optimizer ends the run's step, if DDP's module has trained. Some optimizers step others."""
    @functools.wraps(step)
    def timed(*arguments, **keywords):
        global stepping
        if stepping:
            return step(*arguments, **keywords)
        backwards = recorder.backwards if recorder is not None else 0
        trained = backwards > 0 and recorder.forwards > 0 and recorder.mode != "refused"
        began = recorder.moment() if trained else 0
        stepping = True
        try:
            out = step(*arguments, **keywords)
        finally:
            stepping = False
        if recorder is not None and recorder.mode != "refused":
            if recorder.backwards > backwards:
                recorder.refuse("the optimizer runs forward and backward itself, in a closure; call them before its "
                                "step")
            elif trained:
                recorder.ended(began, recorder.clock.moment())
        return out

    timed.of_ghostrank = True
    return timed


def hooked_optimizer(init):
    @functools.wraps(init)
    def made(optimizer, *arguments, **keywords):
        init(optimizer, *arguments, **keywords)
        kind = type(optimizer)
        if not getattr(kind.step, "of_ghostrank", False):
            kind.step = hooked_step(kind.step)

    return made


def hooked_next(fetch):
    @functools.wraps(fetch)
    def timed(iterator):
        began = now()
        try:
            return fetch(iterator)
        finally:
            if recorder is not None:
                recorder.data += now() - began

    return timed


def hooked_call(name, call):
    """A collective that the script calls itself."""
    @functools.wraps(call)
    def timed(*arguments, **keywords):
        if recorder is None or not recorder.on():
            return call(*arguments, **keywords)
        began = recorder.moment()
        out = call(*arguments, **keywords)
        size = sum(a.numel() * a.element_size() for a in arguments if isinstance(a, torch.Tensor))
        recorder.calls.append([name, size, began, recorder.moment()])
        return out

    timed.untimed = call
    return timed


def fake_group(init):
    """In place of the process group that the script asks for."""
    @functools.wraps(init)
    def made(*_, **__):
        try:
            from torch.testing._internal.distributed.fake_pg import FakeStore
        except ImportError:
            sys.exit(f"ghostrank_hooks: PyTorch {torch.__version__} has no fake process group, which --ranks needs; use "
                     "PyTorch 2, or capture a run of all processes")
        return init("fake", rank=0, world_size=RANKS, store=FakeStore())

    return made


def hooked_compile(compiler):
    """Dynamo must not trace hooks. Those of DDP's forward lie around what it compiles, and wrap nothing of it."""
    @functools.wraps(compiler)
    def made(*arguments, **keywords):
        global compiles
        if not compiles:
            compiles = True
            for name in ("_pre_forward", "_post_forward"):
                setattr(DistributedDataParallel, name, torch._dynamo.disable(getattr(DistributedDataParallel, name)))
        return compiler(*arguments, **keywords)

    return made


def install():
    """Patches torch; the script imports what is patched."""
    global untimed_register
    import torch.optim
    import torch.utils.data.dataloader as loader

    if RANKS:
        dist.init_process_group = dist.distributed_c10d.init_process_group = fake_group(dist.init_process_group)
    torch.optim.Optimizer.__init__ = hooked_optimizer(torch.optim.Optimizer.__init__)
    if hasattr(torch, "compile"):
        torch.compile = hooked_compile(torch.compile)
    torch.autograd.backward = hooked_backward(torch.autograd.backward)
    if hasattr(DistributedDataParallel, "_pre_forward"):
        DistributedDataParallel._pre_forward = hooked_pre_forward(DistributedDataParallel._pre_forward)
        DistributedDataParallel._post_forward = hooked_post_forward(DistributedDataParallel._post_forward)
    else:
        DistributedDataParallel.forward = hooked_forward(DistributedDataParallel.forward)
    untimed_register = DistributedDataParallel.register_comm_hook
    for name in CALLS:
        call = getattr(dist, name, None)
        if call is not None:
            wrapped = hooked_call(name, call)
            setattr(dist, name, wrapped)
            if hasattr(dist.distributed_c10d, name):
                setattr(dist.distributed_c10d, name, wrapped)
    if PLAIN:
        return
    DistributedDataParallel.register_comm_hook = register_comm_hook
    if hasattr(DistributedDataParallel, "join_hook"):
        DistributedDataParallel.join_hook = hooked_join(DistributedDataParallel.join_hook)
    DistributedDataParallel._sync_buffers = hooked_sync(DistributedDataParallel._sync_buffers)
    loader._BaseDataLoaderIter.__next__ = hooked_next(loader._BaseDataLoaderIter.__next__)


if not FOLDER:
    sys.exit("ghostrank_hooks: GHOSTRANK_CAPTURE names no folder; start the script by 'ghostrank profile capture'")
