"""Makes real NCCL say what it sends: N processes on one GPU, each a node of its own, under the tracing plugin,
through the calls of sweep.py.

    drive.py PLUGIN.so FOLDER [--only PATTERN,..] [--seconds 100] [--at-once 2] [--compare PROGRAM]

Writes FOLDER/SET/trace.RANK and NCCL's log of every rank; with --compare PROGRAM (nccl_trace_compare) it then holds
the traces against our schedules. A set of processes that fails or hangs is killed, the others are still played. Needs
NCCL (PyTorch's will do) and one GPU; without them it says so and returns 77, which ctest takes for a test left out.
"""

import argparse
import concurrent.futures
import contextlib
import ctypes
import fnmatch
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import time

import nccl
import sweep

LEFT_OUT = 77
OUT_OF_TIME = "the time is over"
BUFFER_BYTES = 256 << 20  # of a rank's input, and of its output
PLAYED = {(2, 28): "nccl-2.28", (2, 29): "nccl-2.30", (2, 30): "nccl-2.30"}  # NCCL's version, the library of ours


def environment_of(rank, one_set, options, folder):
    """Variables that hold for a whole process. Every rank is a node, which reaches the others by the plugin alone."""
    return {
        "RANK": str(rank), "WORLD_SIZE": str(one_set.ranks), "NCCL_HOSTID": f"node{rank}",
        "GHOSTRANK_TRACE": str(folder), "GHOSTRANK_TRACE_NICS": str(one_set.nics[0]),
        "GHOSTRANK_TRACE_MEGABITS": str(one_set.nics[1]),
        "NCCL_NET_PLUGIN": options.plugin, "NCCL_NET": "ghostrank-trace",
        "NCCL_NET_PLUGIN_REF_COUNT": "1",  # stays loaded between two communicators
        "NCCL_SOCKET_IFNAME": "lo", "NCCL_RAS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0",
        "NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0",  # no memory is shared between processes
        "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,TUNING,COLL,NET",
        "NCCL_DEBUG_FILE": str(folder / f"log.{rank}"),
        "NCCL_GRAPH_DUMP_FILE": str(folder / "graph.xml"), "NCCL_TOPO_DUMP_FILE": str(folder / "topology.xml"),
        **one_set.environment,
    }


def rank_main(pipe, rank, options, environment):
    """A rank: does what the driver says, and answers each command by its result or by an error."""
    os.environ.update(environment)
    kill_with_parent, sigkill = 1, 9
    ctypes.CDLL(None).prctl(kill_with_parent, sigkill)
    try:
        plugin = ctypes.CDLL(options.plugin)
        one = nccl.Rank(rank, int(environment["WORLD_SIZE"]), options.nccl, options.cuda, BUFFER_BYTES)
        pipe.send((True, None))
        while (command := pipe.recv()) is not None:
            verb, arguments = command
            if verb == "mark":
                plugin.ghostrank_trace_mark(arguments[0].encode())
                pipe.send((True, None))
            else:
                pipe.send((True, getattr(one, verb)(*arguments)))
    except (Exception, KeyboardInterrupt) as e:  # whatever it is, the driver must hear of it
        pipe.send((False, f"{type(e).__name__}: {e}"))
    os._exit(0)  # NCCL's threads and connections end with the process


class Ranks:
    """The processes of one set."""

    def __init__(self, one_set, options, folder):
        self.patience = options.patience
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank in range(one_set.ranks):
            ours, theirs = context.Pipe()
            process = context.Process(target=rank_main, daemon=True,
                                      args=(theirs, rank, options, environment_of(rank, one_set, options, folder)))
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def answers(self):
        """The answer of every rank; an error of any, or silence for so long, ends the set."""
        deadline = time.monotonic() + self.patience
        found = []
        for rank, pipe in enumerate(self.pipes):
            if not pipe.poll(max(0, deadline - time.monotonic())):
                raise TimeoutError(f"rank {rank} says nothing for {self.patience} s")
            good, answer = pipe.recv()
            if not good:
                raise RuntimeError(answer)
            found.append(answer)
        return found

    def tell(self, verb, *arguments):
        for pipe in self.pipes:
            pipe.send((verb, arguments))
        return self.answers()

    def unique_id(self):
        self.pipes[0].send(("unique_id", ()))
        good, identifier = self.pipes[0].recv()
        if not good:
            raise RuntimeError(identifier)
        return identifier

    def end(self):
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self.processes:
            process.join(1)
            process.kill()
        for process in self.processes:
            process.join()


def play(one_set, options, until):
    """Plays the set; returns how many launches were played, and why no more."""
    folder = pathlib.Path(options.folder) / one_set.name
    folder.mkdir(parents=True, exist_ok=True)
    ranks = Ranks(one_set, options, folder)
    played, began = 0, time.monotonic()
    try:
        ranks.answers()
        for communicator in one_set.communicators:
            ranks.tell("open", ranks.unique_id(), communicator.channels, communicator.environment)
            for calls in communicator.launches:
                if time.monotonic() > until:
                    return played, OUT_OF_TIME
                ranks.tell("mark", json.dumps({"library": options.library, **communicator.mark, "calls": calls}))
                ranks.tell("play", calls, 0.8 * options.patience)
                time.sleep(0.01)  # for proxies that still send what no kernel waits for
                ranks.tell("mark", "end")
                played += 1
        return played, ""
    except (RuntimeError, TimeoutError, EOFError, OSError) as e:
        return played, f"{type(e).__name__}: {e}"
    finally:
        ranks.end()
        print(f"{one_set.name}: {played} launches in {time.monotonic() - began:.1f} s", flush=True)


def last_lines(folder, count=12):
    for log in sorted(folder.glob("log.*"))[:2]:
        lines = log.read_text(errors="replace").splitlines()[-count:]
        print(f"  the end of {log.name}:", *lines, sep="\n    ", flush=True)


def play_and_compare(one_set, options, until):
    """True: all of the set's launches were played and are equal to ours; None: there was no time for all. And how many
    launches were played."""
    if time.monotonic() > until:
        return None, 0
    played, why = play(one_set, options, until)
    folder = pathlib.Path(options.folder) / one_set.name
    if why and why != OUT_OF_TIME:
        print(f"{one_set.name}: {why}", flush=True)
        last_lines(folder)
    equal = True
    if options.compare and played:
        traces = [str(folder / f"trace.{rank}") for rank in range(one_set.ranks)]
        told = subprocess.run([options.compare, "--topology", str(folder / "topology.xml"), *traces], check=False,
                              capture_output=True, text=True)
        print(f"{one_set.name}:\n{told.stdout}{told.stderr}", end="", flush=True)
        equal = told.returncode == 0
    return None if why == OUT_OF_TIME and equal else equal and not why, played


def find_libraries(options):
    """Sets the libraries' paths and ours by NCCL's version; returns why it cannot, or nothing."""
    options.nccl = options.nccl or nccl.find_library("libnccl.so.2")
    options.cuda = nccl.find_library("libcudart.so.13") or nccl.find_library("libcudart.so.12")
    if not options.nccl or not options.cuda:
        return "NCCL and the CUDA runtime are not installed"
    count = ctypes.c_int()
    if ctypes.CDLL(options.cuda).cudaGetDeviceCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "there is no GPU"
    version = ctypes.c_int()
    ctypes.CDLL(options.nccl).ncclGetVersion(ctypes.byref(version))
    major, minor, patch = version.value // 10000, version.value // 100 % 100, version.value % 100
    print(f"NCCL {major}.{minor}.{patch}", flush=True)
    options.library = options.library or PLAYED.get((major, minor))
    return "" if options.library else "this version of NCCL is not played; --library says which to compare with"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--only", default="*", help="sets whose name fits one of these patterns: p2p-*,own-4-*")
    parser.add_argument("--seconds", type=float, default=1500, help="after these no further call begins")
    parser.add_argument("--patience", type=float, default=30, help="seconds that a rank may take for a command")
    parser.add_argument("--at-once", type=int, default=1, help="sets played at a time")
    parser.add_argument("--nccl", help="libnccl.so.2; default: the system's, or PyTorch's")
    parser.add_argument("--library", help="ours to compare with; default: by NCCL's version")
    parser.add_argument("--compare", type=os.path.abspath, metavar="PROGRAM")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    if why := find_libraries(options):
        print(f"left out: {why}")
        return LEFT_OUT
    patterns = options.only.split(",")
    sets = [s for s in sweep.sets() if any(fnmatch.fnmatchcase(s.name, pattern) for pattern in patterns)]
    if not sets:
        print(f"no set fits {options.only}")
        return 1
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        told = list(pool.map(lambda s: play_and_compare(s, options, until), sets))
    equal = [verdict for verdict, _ in told]
    print(f"{equal.count(True)} sets are equal, {equal.count(False)} are not; no time for {equal.count(None)}")
    if not any(played for _, played in told):
        print("no launch was played")
        return 1
    return 1 if False in equal else 0


if __name__ == "__main__":
    sys.exit(main())
