"""NCCL's choice of algorithm, protocol and number of channels (2.28.9, 2.30.7, hosts of Intel).

Worked out from the rules, by a way of its own: every combination gets a time in microseconds,
latency + bytes / bandwidth, and the least of them wins. Tables have a column per protocol (LL,
LL128, Simple) or per number of nodes (one, two, more). Bandwidths are in GB/s.
"""

import math

PROTOCOLS = ("LL", "LL128", "Simple")
ALGORITHMS = ("tree", "ring", "nvls", "nvlstree", "pat")  # of equal times the first wins

BASE = {"tree": (6.8, 14, 8.4), "ring": (6.6, 14, 8.4), "pat": (0, 0, 8)}
NVLINK = {"tree": (.6, 1.25, 4), "ring": (.6, 1.9, 3.4)}
PCI = {"tree": (1, 1.9, 4), "ring": (1, 2.5, 5.7)}
NET = {"tree": (5, 8.5, 14), "ring": (2.7, 4, 14), "nvlstree": (0, 0, 20.9), "pat": (0, 0, 14)}
NVLS_HOP = 25
LL_BETWEEN_NODES = (None, 39, 20.4)
MOST = {  # by Hopper or not: limits of a channel; ll: of all channels together on one node
    True: {"ll": 141, "ring_ll128": (36.7,) * 3, "tree": (38.7, 41.4, 36),
           "tree_ll128": (36.7, 36.7, 29), "nvlstree": (0, 57.7, 45.5), "switch": .85},
    False: {"ll": 87.7, "ring_ll128": (20,) * 3, "tree": (24, 23.6, 17.8),
            "tree_ll128": (20,) * 3, "nvlstree": (24, 23.6, 17.8), "switch": 0},
}
TREE_SHARE = {  # share of its bandwidth that a tree reaches, by log2(bytes / 64), 0 to 22
    "LL": (1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1),
    "LL128": (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1),
    "Simple": (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8,
               .9, .9),
}


def say(text, func, name):
    """What NCCL_ALGO or NCCL_PROTO says of a name: True, False, or None for nothing."""
    verdict = None
    for entry in filter(None, text.lower().split(";")):
        prefix, _, names = entry.rpartition(":")
        if prefix and prefix != func.replace("_", ""):
            continue
        listed = name.lower() in names.lstrip("^").split(",")
        verdict = listed != names.startswith("^")
    return verdict


class Question:
    def __init__(self, asked):
        self.ranks, self.nodes, self.func = asked["ranks"], asked["nodes"], asked["func"]
        self.blocks = self.func in ("all_gather", "reduce_scatter")
        self.bytes = asked["count"] * asked["elt"] * (self.ranks if self.blocks else 1)
        self.channels, self.asked = asked["channels"], asked
        self.most = MOST[asked["hopper"]]
        self.column = min(self.nodes, 3) - 1
        self.steps = {"allreduce": 2 * (self.ranks - 1), "broadcast": self.ranks,
                      "reduce": self.ranks}.get(self.func, self.ranks - 1)
        tree, ring, nvls = asked["graphs"]
        self.graphs = {"tree": tree, "ring": ring, "nvls": nvls, "nvlstree": nvls, "pat": tree}

    def allowed(self, algorithm, protocol):
        if say(self.asked["NCCL_ALGO"], self.func, algorithm) is False:
            return False
        said = say(self.asked["NCCL_PROTO"], self.func, protocol)
        if said is False or (said is None and protocol == "LL128"
                             and not self.graphs[algorithm]["ll128"]):
            return False
        reduces = self.func == "allreduce"
        switch = (self.asked["nvls"] and self.asked["elt"] > 1 and reduces and protocol == "Simple"
                  and self.graphs["nvls"]["channels"] > 1)
        return {"ring": True, "tree": reduces, "nvls": switch and self.nodes == 1,
                "nvlstree": switch and 1 < self.nodes < self.ranks,
                "pat": self.blocks and self.nodes == self.ranks and protocol == "Simple"}[algorithm]

    def bandwidth(self, algorithm, protocol):
        graph, most, at = self.graphs[algorithm], self.most, self.column
        channels = graph["channels"]
        bus = channels * graph["inside" if self.nodes <= 2 else "between"]
        ll = most["ll"] if self.nodes == 1 else LL_BETWEEN_NODES[at]
        of_call = self.ranks / self.steps
        if algorithm == "ring":
            return of_call * {"LL": min(ll, bus / 2), "Simple": bus,
                              "LL128": min(bus * .92, channels * most["ring_ll128"][at])}[protocol]
        if algorithm == "pat":
            return bus * .75
        if algorithm == "tree":
            tree = min(bus * .92, channels * most["tree"][at])
            tree = {"LL": min(tree / 3.8, ll), "Simple": tree,
                    "LL128": min(tree * (7 / 9 if self.nodes == 1 else 120 / 128),
                                 channels * most["tree_ll128"][at])}[protocol]
            tree *= .85 if self.asked["tree"] == "plain" else 1
            size = int(math.log2(self.bytes / 64)) if self.bytes >= 64 else -1
            share = TREE_SHARE[protocol]
            return tree / 2 * (share[size] if 0 <= size < len(share) else 1)
        inside = 2 * graph["inside"] * most["switch"] * (channels - 1) / channels
        between = graph["between"] * (2 if algorithm == "nvlstree" and self.nodes == 2 else 1)
        limits = [inside, between] + ([most["nvlstree"][at]] if algorithm == "nvlstree" else [])
        return channels * min(limits) * of_call

    def latency(self, algorithm, protocol):
        graph, p = self.graphs[algorithm], PROTOCOLS.index(protocol)
        lone = self.ranks == self.nodes
        hops = NVLINK if graph["nvlink"] and not lone else PCI
        nic = graph["latency"] * (2 if protocol == "Simple" else 1)  # Simple flushes
        levels = int(math.log2(self.nodes))

        def net(name):
            return NET["tree" if lone else name][p] + nic

        if algorithm == "nvls":
            return NVLS_HOP if graph["nvlink"] else 0
        if algorithm == "nvlstree":
            return (NVLS_HOP if graph["nvlink"] else 0) + 2 * levels * net("nvlstree")
        base = BASE[algorithm][p]
        if algorithm == "pat":
            return base + levels * net("pat") / 3.5 + 2.8 * self.ranks
        if algorithm == "tree":
            return base + 2 * ((self.ranks // self.nodes - 1) * hops["tree"][p] + levels * net("tree"))
        if self.func in ("broadcast", "reduce"):
            table = NET if self.nodes > 1 else hops
            if graph["same_channels"]:
                return base + table["ring"][p]
            return base + self.steps * table["tree" if protocol == "Simple" else "ring"][p]
        inner = hops["ring"][p]
        if self.nodes > 1:
            inner = max(inner, 3 if protocol == "Simple" else 1)
        crossings = (self.nodes - 1) * (2 if self.func == "allreduce" else 1)
        latency = base + (self.steps - crossings) * inner + crossings * net("ring")
        plateau = (protocol == "Simple" and self.func == "allreduce" and self.nodes > 1
                   and self.bytes // (self.channels * self.ranks) >= 64)
        return latency * (1.4 if plateau else 1)

    def max_channels(self, algorithm, protocol):
        if algorithm == "pat":
            return self.channels
        graph = self.graphs[algorithm]
        slow = (algorithm == "ring" and protocol == "Simple"
                and graph["inside"] * graph["channels"] <= 12)
        threads = {"LL": 512, "LL128": 640, "Simple": 256 if slow else 512}[protocol]
        least = threads * (64 if protocol == "Simple" else 8)
        if (algorithm, protocol) == ("ring", "LL"):
            least *= self.ranks
        return max(1, min(self.channels, self.bytes // least))


def choose(asked):
    """The choice for a question of nccl_planned.json; None: no combination is allowed."""
    question, best = Question(asked), None
    for algorithm in ALGORITHMS:
        for protocol in PROTOCOLS:
            if not question.allowed(algorithm, protocol):
                continue
            time = (question.latency(algorithm, protocol)
                    + question.bytes / (1000 * question.bandwidth(algorithm, protocol)))
            if best is None or time < best[0]:
                best = time, algorithm, protocol
    if best is None:
        return None
    _, algorithm, protocol = best
    choice = {"algorithm": algorithm, "protocol": protocol}
    if not algorithm.startswith("nvls"):  # NVLS has channels of its own
        choice["max_channels"] = question.max_channels(algorithm, protocol)
    return choice
