"""NCCL and the CUDA runtime by ctypes: what a process needs to be one rank. PyTorch is not imported, which takes
seconds per process, but its libraries are used where they are installed."""

import contextlib
import ctypes
import glob
import importlib.util
import os
import time

# NCCL's numbers of the types that stand for elements of 1, 2, 4 and 8 bytes: uint8, bfloat16, float, double.
TYPE_OF_BYTES = {1: 1, 2: 9, 4: 7, 8: 8}
SUM = 0
ID_BYTES = 128


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * ID_BYTES)]


class Config(ctypes.Structure):
    """ncclConfig_t as of 2.18; later versions take it and fill in what they have added."""

    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("blocking", ctypes.c_int), ("cga_cluster_size", ctypes.c_int),
                ("min_channels", ctypes.c_int), ("max_channels", ctypes.c_int),
                ("net_name", ctypes.c_char_p), ("split_share", ctypes.c_int)]
    UNDEFINED = -(2**31)

    def __init__(self, channels):
        limit = channels or self.UNDEFINED
        super().__init__(ctypes.sizeof(Config), 0xCAFEBEEF, 21800, 1, self.UNDEFINED, limit, limit, None,
                         self.UNDEFINED)


def find_library(name):
    """The path of a shared library of PyTorch's packages, or of the system; None: there is none."""
    for package in ("nvidia", "torch"):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations if spec else ():
            found = sorted(glob.glob(f"{folder}/**/{name}*", recursive=True))
            if found:
                return found[0]
    with contextlib.suppress(OSError):
        ctypes.CDLL(name)
        return name
    return None


class Rank:
    """One rank of a job: its process's GPU, a stream, buffers, communicators."""

    def __init__(self, rank, size, nccl, cuda, buffer_bytes):
        self.rank, self.size = rank, size
        self.cuda, self.nccl = ctypes.CDLL(cuda), ctypes.CDLL(nccl)
        self.nccl.ncclGetErrorString.restype = ctypes.c_char_p
        self.check_cuda(self.cuda.cudaSetDevice(0), "cudaSetDevice")
        self.stream = ctypes.c_void_p()
        self.check_cuda(self.cuda.cudaStreamCreateWithFlags(ctypes.byref(self.stream), 1), "cudaStreamCreate")
        self.input, self.output = self.allocate(buffer_bytes), self.allocate(buffer_bytes)
        self.communicator = None

    def check_cuda(self, result, what):
        if result != 0:
            raise RuntimeError(f"rank {self.rank}: {what} fails with {result}")

    def check(self, result, what):
        if result != 0:
            why = self.nccl.ncclGetErrorString(result).decode()
            raise RuntimeError(f"rank {self.rank}: {what} fails: {why}")

    def allocate(self, size):
        pointer = ctypes.c_void_p()
        self.check_cuda(self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)), "cudaMalloc")
        self.check_cuda(self.cuda.cudaMemset(pointer, 0, ctypes.c_size_t(size)), "cudaMemset")
        return pointer.value

    def unique_id(self):
        identifier = UniqueId()
        self.check(self.nccl.ncclGetUniqueId(ctypes.byref(identifier)), "ncclGetUniqueId")
        return bytes(identifier)

    def open(self, identifier, channels, environment):
        """A new communicator, the one before is left open. NCCL reads NCCL_ALGO and NCCL_PROTO when it makes one."""
        for name in ("NCCL_ALGO", "NCCL_PROTO"):
            os.environ.pop(name, None)
        os.environ.update(environment)
        self.communicator = ctypes.c_void_p()
        self.check(self.nccl.ncclCommInitRankConfig(ctypes.byref(self.communicator), self.size,
                                                    UniqueId.from_buffer_copy(identifier), self.rank,
                                                    ctypes.byref(Config(channels))), "ncclCommInitRankConfig")

    def play(self, calls, seconds):
        """Submits the calls as one group and waits for their end."""
        self.check(self.nccl.ncclGroupStart(), "ncclGroupStart")
        for call in calls:
            self.submit(call)
        self.check(self.nccl.ncclGroupEnd(), "ncclGroupEnd")
        deadline = time.monotonic() + seconds
        while (result := self.cuda.cudaStreamQuery(self.stream)) != 0:
            not_ready = 600
            if result != not_ready:
                self.check_cuda(result, "a call")
            if time.monotonic() > deadline:
                raise RuntimeError(f"rank {self.rank}: no end after {seconds} s: {calls}")
            time.sleep(0.0005)

    def submit(self, call):
        func, count, width = call["func"], call.get("count", 0), call.get("element_bytes", 4)
        root, target = call.get("root", 0), call.get("target", 1)

        def collective(name, *of_it):
            self.check(getattr(self.nccl, name)(ctypes.c_void_p(self.input), ctypes.c_void_p(self.output),
                                                ctypes.c_size_t(count), TYPE_OF_BYTES[width], *of_it,
                                                self.communicator, self.stream), name)

        def transfer(name, buffer, elements, offset, peer):
            self.check(getattr(self.nccl, name)(ctypes.c_void_p(buffer + offset * width), ctypes.c_size_t(elements),
                                                TYPE_OF_BYTES[width], peer, self.communicator, self.stream), name)

        def exchange(elements):
            """Sends and receives; `elements` from one rank to another, None: no operation."""
            to = from_ = 0
            for peer in range(self.size):
                sent, received = elements(self.rank, peer), elements(peer, self.rank)
                if sent is not None:
                    transfer("ncclSend", self.input, sent, to, peer)
                    to += sent
                if received is not None:
                    transfer("ncclRecv", self.output, received, from_, peer)
                    from_ += received

        if func == "allreduce":
            collective("ncclAllReduce", SUM)
        elif func == "reduce_scatter":
            collective("ncclReduceScatter", SUM)
        elif func == "all_gather":
            collective("ncclAllGather")
        elif func == "broadcast":
            collective("ncclBroadcast", root)
        elif func == "reduce":
            collective("ncclReduce", SUM, root)
        elif func == "all_gather_v":
            offset = 0
            for source, elements in enumerate(call["counts"]):
                self.check(self.nccl.ncclBroadcast(ctypes.c_void_p(self.input), ctypes.c_void_p(self.output + offset),
                                                   ctypes.c_size_t(elements), TYPE_OF_BYTES[width], source,
                                                   self.communicator, self.stream), "ncclBroadcast")
                offset += elements * width
        elif func == "all_to_all":
            exchange(lambda source, to: count)
        elif func == "all_to_all_v":
            exchange(lambda source, to: call["counts"][source * self.size + to])
        elif func == "send_recv":
            exchange(lambda source, to: count if (source, to) == (root, target) else None)
        elif func == "gather":
            exchange(lambda source, to: count if to == root else None)
        elif func == "scatter":
            exchange(lambda source, to: count if source == root else None)
        else:
            raise ValueError(f"no function {func}")
