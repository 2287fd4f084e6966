"""What is played: sets of ranks, their communicators, and the calls on each."""

import dataclasses

COUNTS = (1, 3, 1000, 25_000, 262_144, 2_500_001)
ROOTED = ("broadcast", "reduce")
RING = ("allreduce", "reduce_scatter", "all_gather", *ROOTED)
PROTOCOLS = ("Simple", "LL", "LL128")
# Elements of a call by protocol: the small messages of LL and LL128 take many turns of the processes on the GPU.
MOST = {"Simple": 2_500_001, "LL": 262_144, "LL128": 2_500_001}


@dataclasses.dataclass
class Communicator:
    channels: int | None  # None: NCCL's own number
    environment: dict     # of NCCL_ALGO and NCCL_PROTO
    mark: dict            # what a mark says of it: algorithm, protocol, channels
    launches: list        # of lists of calls: one ncclGroup each


@dataclasses.dataclass
class Set:
    name: str
    ranks: int
    communicators: list
    environment: dict = dataclasses.field(default_factory=dict)


def forced(algorithm, protocol, channels, launches):
    return Communicator(channels, {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol},
                        {"algorithm": algorithm.lower(), "protocol": protocol, "channels": channels}, launches)


def single(funcs, counts, ranks):
    """Every function in every size, alone; rooted ones alternate between the first and the last root."""
    return [[{"func": func, "count": count, "element_bytes": 4, "root": (i % 2) * (ranks - 1) if func in ROOTED else 0}]
            for func in funcs for i, count in enumerate(counts)]


def of(ranks, algorithm, protocol, funcs, channels=(1, 2, 4)):
    counts = [c for c in COUNTS if c <= MOST[protocol]]
    return Set(f"{algorithm}-{protocol}-{ranks}", ranks,
               [forced(algorithm, protocol, c, single(funcs, counts, ranks)) for c in channels])


def transfers(ranks, channels=(1, 2, 4)):
    """Sends and receives in groups: NCCL cuts them by their size."""
    sizes = (0, 1, 1000, 16_384, 32_768, 65_536, 262_144, 1_000_003)
    launches = [[{"func": "send_recv", "count": c, "element_bytes": 4, "root": 0, "target": ranks - 1}] for c in sizes]
    launches += [[{"func": "all_to_all", "count": c, "element_bytes": 4}] for c in sizes if c]
    launches += [[{"func": func, "count": c, "element_bytes": 4, "root": 1}]
                 for func in ("gather", "scatter") for c in (1000, 65_536)]
    return Set(f"p2p-{ranks}", ranks,
               [Communicator(c, {}, {"algorithm": "p2p", "channels": c}, launches) for c in channels])


def own_choice(ranks):
    """Nothing is forced: NCCL's log says what it chose, and its dumps why."""
    files = {"NCCL_GRAPH_DUMP_FILE": "{folder}/graph.xml", "NCCL_TOPO_DUMP_FILE": "{folder}/topology.xml"}
    launches = single(RING, COUNTS, ranks)
    return Set(f"own-{ranks}", ranks, [Communicator(None, {}, {"algorithm": "tuned"}, launches)], files)


def sets():
    """The most telling come first."""
    return [of(4, "Ring", "Simple", RING), own_choice(4), of(4, "Ring", "LL", RING), of(4, "Tree", "Simple", ("allreduce",)),
            transfers(4), of(4, "PAT", "Simple", ("reduce_scatter", "all_gather")), of(4, "Ring", "LL128", RING),
            *(of(4, "Tree", p, ("allreduce",)) for p in ("LL", "LL128")),
            *(of(n, "Ring", p, RING, (1, 2)) for n in (2, 3, 5, 8) for p in PROTOCOLS),
            *(of(n, "Tree", p, ("allreduce",), (1, 2)) for n in (2, 3, 5, 8) for p in PROTOCOLS),
            *(of(n, "PAT", "Simple", ("reduce_scatter", "all_gather"), (1, 2)) for n in (2, 3, 5, 8)),
            *(transfers(n, (1, 2)) for n in (2, 3, 5, 8))]
