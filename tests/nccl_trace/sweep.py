"""What is played: sets of ranks, their communicators, and the launches of each."""

import dataclasses
import random

COUNTS = (1, 3, 1000, 25_000, 262_144, 2_500_001)  # elements
ROOTED = ("broadcast", "reduce")
RING = ("allreduce", "reduce_scatter", "all_gather", *ROOTED)
FUNCS = {"Ring": RING, "Tree": ("allreduce",), "PAT": ("reduce_scatter", "all_gather")}
PROTOCOLS = {"Ring": ("Simple", "LL", "LL128"), "Tree": ("Simple", "LL", "LL128"), "PAT": ("Simple",)}
# Most bytes of a call. Processes share the GPU by time slices, and LL's small messages need many.
MOST_BYTES = {"Simple": 16 << 20, "LL": 1 << 20, "LL128": 10_000_004}


@dataclasses.dataclass
class Communicator:
    channels: int | None  # None: NCCL's own number
    environment: dict     # of NCCL_ALGO and NCCL_PROTO
    mark: dict            # what a mark says of it: algorithm, protocol, channels, environment
    launches: list        # lists of calls: an ncclGroup each


@dataclasses.dataclass
class Set:
    name: str
    ranks: int
    communicators: list
    nics: tuple = (1, 100_000)  # of a node: how many, Mb/s of each
    environment: dict = dataclasses.field(default_factory=dict)


def call(func, count, element_bytes=4, root=0, **more):
    return {"func": func, "count": count, "element_bytes": element_bytes, "root": root, **more}


def forced(algorithm, protocol, channels, launches):
    return Communicator(channels, {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol},
                        {"algorithm": algorithm.lower(), "protocol": protocol, "channels": channels}, launches)


def forced_mixed(algorithm, protocol, channels, launches):
    """For groups of several functions, whose algorithm NCCL and we both take from the environment."""
    environment = {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol}
    return Communicator(channels, environment,
                        {"algorithm": "auto", "environment": environment, "channels": channels}, launches)


def singles(funcs, counts, ranks):
    """Every function in every size, alone; the root is the first rank and the last in turns."""
    return [[call(func, count, root=(i % 2) * (ranks - 1) if func in ROOTED else 0)]
            for func in funcs for i, count in enumerate(counts)]


def grid(ranks, algorithm, protocol, channels=(1, 2, 4)):
    counts = [c for c in COUNTS if 4 * c <= MOST_BYTES[protocol]]
    return Set(f"{algorithm}-{protocol}-{ranks}", ranks,
               [forced(algorithm, protocol, c, singles(FUNCS[algorithm], counts, ranks)) for c in channels])


def transfers(ranks, channels=(1, 2, 4)):
    """Sends and receives: alone, from all to all, to and from a root, around a ring, both ways between two."""
    sizes = (0, 1, 1000, 16_384, 32_768, 65_536, 262_144, 1_000_003)
    launches = [[call("send_recv", c, target=ranks - 1)] for c in sizes]
    launches += [[call("all_to_all", c)] for c in sizes if c]
    launches += [[call(func, c, root=1)] for func in ("gather", "scatter") for c in (1000, 65_536)]
    launches += [[call("send_recv", c, root=r, target=(r + 1) % ranks) for r in range(ranks)] for c in (7, 100_000)]
    launches += [[call("send_recv", 50_000, root=0, target=1), call("send_recv", 3000, root=1, target=0)]]
    chance = random.Random(ranks)
    launches += [[{"func": "all_to_all_v", "element_bytes": width,
                   "counts": [chance.choice((0, 1, 100, 9999, 200_000)) for _ in range(ranks * ranks)]}]
                 for width in (1, 2, 4)]
    return Set(f"p2p-{ranks}", ranks,
               [Communicator(c, {}, {"algorithm": "auto", "channels": c}, launches) for c in channels])


def random_call(chance, func, protocol, ranks):
    width = chance.choice((1, 2, 4, 8))
    most = MOST_BYTES[protocol] // width // (ranks if func in ("reduce_scatter", "all_gather") else 1)
    return call(func, int(2 ** chance.uniform(0, most.bit_length() - 1)), width,
                chance.randrange(ranks) if func in ROOTED else 0)


def drawn(number):
    """Random communicators of random calls, alone and in groups, the same for every run."""
    chance = random.Random(number)
    ranks = chance.choice((2, 3, 4, 4, 5, 6, 7, 8))
    communicators = []
    for _ in range(4):
        algorithm = chance.choice(("Ring", "Ring", "Tree", "PAT"))
        protocol, channels = chance.choice(PROTOCOLS[algorithm]), chance.randint(1, 8)
        of_one, mixed = [], []
        for _ in range(8):
            func = chance.choice(FUNCS[algorithm])
            of_one.append([random_call(chance, func, protocol, ranks) for _ in range(chance.choice((1, 1, 2, 5)))])
        for _ in range(3):
            mixed.append([random_call(chance, chance.choice(FUNCS[algorithm]), protocol, ranks)
                          for _ in range(chance.randint(2, 6))])
        communicators += [forced(algorithm, protocol, channels, of_one),
                          forced_mixed(algorithm, protocol, channels, mixed)]
    return Set(f"drawn-{number}", ranks, communicators)


def own_choice(ranks, nics):
    """Nothing is forced: algorithms, protocols and channels are NCCL's own choice for a node with these NICs."""
    counts = (*COUNTS, 6000, 60_000, 700_000)
    return Set(f"own-{ranks}-{nics[0]}x{nics[1] // 1000}G", ranks,
               [Communicator(None, {}, {"algorithm": "auto"}, singles(RING, counts, ranks) + groups(ranks))], nics)


def groups(ranks):
    """Several calls in one ncclGroup; and PyTorch's all-gather of uneven blocks, a broadcast for each."""
    uneven = [[(1 + r % 3) * block + r for r in range(ranks)] for block in (10, 300_000)]
    return [[call("allreduce", c) for c in (100_000, 30, 90_000)],
            [call("all_gather", 10_000), call("reduce_scatter", 10_000), call("allreduce", 5)],
            *([call("all_gather_v", 0, counts=blocks)] for blocks in uneven),
            [call("all_to_all", 5000)], [call("send_recv", 60_000, target=1)]]


VARIABLES = (
    {"NCCL_BUFFSIZE": "1048576"}, {"NCCL_LL_BUFFSIZE": "131072", "NCCL_LL128_BUFFSIZE": "262144"},
    {"NCCL_NTHREADS": "128", "NCCL_LL128_NTHREADS": "320"}, {"NCCL_P2P_NET_CHUNKSIZE": "32768"},
    {"NCCL_CHUNK_SIZE": "16384"}, {"NCCL_MIN_NCHANNELS": "6", "NCCL_MAX_NCHANNELS": "8"},
    {"NCCL_MIN_NCHANNELS": "8", "NCCL_NCHANNELS_PER_NET_PEER": "4"},
    {"NCCL_MIN_CTAS": "16", "NCCL_MAX_P2P_NCHANNELS": "2"},
    {"NCCL_P2P_SCHEDULE_GROUP_SIZE": "1"}, {"NCCL_MAX_NCHANNELS": "1", "NCCL_CROSS_NIC": "1"})


def with_variables(number):
    """NCCL's own choice, and every algorithm and protocol, under a variable that it reads once per process."""
    ranks, environment = 3 + number % 3, VARIABLES[number]

    def communicator(limits):
        protocol = limits.get("NCCL_PROTO", "LL")
        launches = singles(FUNCS[limits.get("NCCL_ALGO", "Ring")],
                           (5, 30_000, MOST_BYTES[protocol] // 4 // ranks), ranks)
        if not limits:
            launches += groups(ranks)
            launches += [[call("send_recv", c, target=ranks - 1)] for c in (9, 5000, 100_000, 900_000)]
        return Communicator(None, limits, {"algorithm": "auto", "environment": environment | limits}, launches)

    limits = [{}, *({"NCCL_ALGO": a, "NCCL_PROTO": p} for a in FUNCS for p in PROTOCOLS[a])]
    return Set(f"variables-{number}", ranks, [communicator(one) for one in limits], environment=environment)


def recorded(ranks):
    """A little of everything: what tests/nccl_trace/recorded holds."""
    forced_ones = [forced(a, p, 2, singles(FUNCS[a], (1000, 120_001), ranks)) for a in FUNCS for p in PROTOCOLS[a]]
    sends = [c for c in transfers(ranks).communicators if c.channels == 2]
    own = [Communicator(None, {}, {"algorithm": "auto"}, singles(RING, (7, 50_000, 2_000_000), ranks) + groups(ranks))]
    return Set(f"recorded-{ranks}", ranks, own + forced_ones + sends)


def of_ranks(ranks):
    channels = (1, 2) if ranks <= 8 else (2,)
    return [transfers(ranks, channels), own_choice(ranks, (1, 400_000)), own_choice(ranks, (2, 100_000)),
            *(grid(ranks, a, p, channels) for a in FUNCS for p in PROTOCOLS[a])]


def sets():
    """The most telling come first."""
    everything = [recorded(3), recorded(4)]
    everything += [own_choice(4, nics) for nics in ((1, 100_000), (1, 400_000), (2, 200_000))]
    everything += [transfers(4)]
    everything += [grid(4, a, p) for a in FUNCS for p in PROTOCOLS[a]]
    everything += [drawn(i) for i in range(1, 7)]
    everything += [with_variables(i) for i in range(len(VARIABLES))]
    by_ranks = [of_ranks(ranks) for ranks in (8, 2, 16, 3, 5, 12)]
    # In turns: sets that are played at a time share the GPU's multiprocessors.
    everything += [one for turn in zip(*by_ranks) for one in turn]
    return everything + [drawn(i) for i in range(7, 40)]
