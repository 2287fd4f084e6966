#!/usr/bin/env python3
"""Schedulers of communication beside their published throughput.

    schedulers.py BINARY ROWS.csv [DOCUMENT]

Plays every all-reduce row of ROWS (model, batch, net, method, gpus, throughput: samples/s of
ddl-benchmarks, nodes of four RTX 2080 Ti) in virtual time, and the rows of parameter servers
(BytePS) on 10GbE and InfiniBand. The device's efficiency is set so that
one GPU reaches the published one-GPU throughput; nothing else is fitted. Prints markdown tables, and
writes them into the section "fidelity schedulers" of DOCUMENT. Exit status 1 where a bound is missed.
"""
import csv
import itertools
import sys
import tempfile

from published import Player, efficiency, off, table, write_section

BERT = "{{base: {}, sequence: 64, positions: 512}}"
MODELS = {  # name in ROWS: model, samples/s of one GPU
    "ResNet-50": ("resnet50", 253.1),
    "BERT-Base": (BERT.format("bert-base"), 212.8),
    "BERT-Large": (BERT.format("bert-large"), 49.0),
}
NETWORKS = {  # name in ROWS: cluster, framing
    "10GbE with TCP/IP": ("rtx2080ti-10gbe", "tcp"),
    "100GbE with TCP/IP": ("rtx2080ti-100gbe", "tcp"),
    "100GbIB with RDMA": ("rtx2080ti-100gbib", "none"),
}
METHODS = {  # name in ROWS: keys of `parallel`
    "BSP-A2A": "framework: ddp, launch: after_backward",
    "WFBP-A2A": "framework: wfbp",
    "MG-WFBP": "framework: mgwfbp",
    # The benchmark's partition of 4,000,000 and credit of 16,000,000 count parameters. Its steps
    # end in a synchronisation, and Horovod's cycle was 5 ms then.
    "ByteScheduler-A2A":
        "framework: bytescheduler, launch: after_backward, partition_bytes: 16000000, "
        "credit_bytes: 64000000, cycle_ms: 5",
}
# BytePS as the benchmark's scripts start it: a server on a machine of its own for every node, which
# schedules only for ByteScheduler. A node alone has none, so those rows are left out.
SERVER_METHODS = {
    "BSP-PS": "framework: byteps, launch: after_backward",
    "WFBP-PS": "framework: byteps",
    "ByteScheduler-PS": "framework: byteps, server_schedule: true",
}
SERVER_NICS = {  # as those of the nodes
    "10GbE with TCP/IP": "rate: 10Gbps, latency_us: 30",
    "100GbIB with RDMA": "rate: 100Gbps, latency_us: 6.5",
}
CLAIM = {  # DeAR's gain over the best rival at 64 GPUs: network, samples per GPU, published at most
    "models": {"ResNet-50": 64, "BERT-Base": 64, "BERT-Large": 32},
    "nets": {"10GbE with TCP/IP": "83 %", "100GbIB with RDMA": "15 %"},
    "rivals": {"PyTorch DDP": "framework: ddp", "Horovod": "framework: horovod",
               "MG-WFBP": "framework: mgwfbp"},
}
DIFFERENT = 0.03  # pairs of methods that differ by more are ranked
RANKED_ALIKE = 0.85
RANKED_ALIKE_WITH_SERVERS = 0.80
JOB = """model: {model}
device: {{base: rtx2080ti, efficiency: {efficiency!r}}}
precision: {{optimizer: sgd}}
cluster: {{base: {cluster}, nodes: {nodes}, gpus_per_node: {gpus}}}
parallel: {{micro_batch: {batch}, {parallel}}}
fabric: {{kind: virtual, framing: {framing}}}
run: {{warmup: 2, iterations: 5}}
{more}
"""


class Rates:
    """Throughput of jobs on one device, whose efficiency is set by what one GPU published."""

    def __init__(self, player):
        self.player = player
        self.known = {}  # efficiency by model and batch

    def step(self, more="", **keys):
        return self.player.step(JOB.format(more=more, **keys))

    def efficiency(self, name, batch):
        """With which one GPU takes the published time for its batch."""
        if (name, batch) not in self.known:
            model, rate = MODELS[name]
            self.known[name, batch] = efficiency(
                lambda share: self.step(model=model, efficiency=share, cluster="rtx2080ti-10gbe",
                                        nodes=1, gpus=1, batch=batch, parallel="framework: ddp",
                                        framing="none"), batch / rate)
        return self.known[name, batch]

    def throughput(self, name, batch, net, gpus, parallel, calibrated_batch=None, more=""):
        """Samples/s of the whole job."""
        cluster, framing = NETWORKS[net]
        share = self.efficiency(name, calibrated_batch or batch)
        step = self.step(model=MODELS[name][0], efficiency=share, cluster=cluster, nodes=gpus // 4,
                         gpus=4, batch=batch, parallel=parallel, framing=framing, more=more)
        return gpus * batch / step


def compare(player, rows):
    """[(model, net, gpus), {method: (published, ours)}] in the order of the rows."""
    settings = {}
    for row in rows:
        name, net, method = row["model"], row["net"], row["method"]
        if name not in MODELS or net not in NETWORKS or method not in METHODS:
            continue
        gpus, batch = int(row["gpus"]), int(row["batch"])
        ours = player.throughput(name, batch, net, gpus, METHODS[method])
        settings.setdefault((name, net, gpus), {})[method] = (float(row["throughput"]), ours)
    return settings


def compare_servers(player, rows, settings):
    """As compare(), for settings that have rows of servers; with the others' rows from `settings`."""
    served = {}
    for row in rows:
        name, net, method, gpus = row["model"], row["net"], row["method"], int(row["gpus"])
        if name not in MODELS or net not in SERVER_NICS or method not in SERVER_METHODS or gpus < 8:
            continue
        ours = player.throughput(
            name, int(row["batch"]), net, gpus, SERVER_METHODS[method],
            more=f"servers: {{count: {gpus // 4}, nic: {{{SERVER_NICS[net]}}}}}")
        key = (name, net, gpus)
        served.setdefault(key, dict(settings[key]))[method] = (float(row["throughput"]), ours)
    return served


def throughput_table(settings, methods):
    rows = [["model", "network", "GPUs"] + [m.removesuffix("-A2A") for m in methods]]
    for (name, net, gpus), found in settings.items():
        cells = [f"{ours:.0f} ({off(ours, published)})"
                 for published, ours in (found[m] for m in methods)]
        rows.append([name, net.split()[0], str(gpus), *cells])
    return table(rows)


def agreement(settings, methods, among=None):
    """Pairs of methods ranked alike, and all pairs, of which one is `among` some."""
    alike = pairs = 0
    for found in settings.values():
        for a, b in itertools.combinations([m for m in methods if m in found], 2):
            if among and a not in among and b not in among:
                continue
            published = found[a][0] / found[b][0]
            if abs(published - 1) > DIFFERENT:
                pairs += 1
                alike += (published > 1) == (found[a][1] > found[b][1])
    return alike, pairs


def share(alike, pairs):
    return f"{alike} of {pairs} ({100 * alike / pairs:.0f} %)"


def dear_table(player):
    batches = {"ResNet-50": 64, "BERT-Base": 64, "BERT-Large": 8}  # of the one-GPU throughput
    rows = [["model", "network", "DeAR, tuned", *CLAIM["rivals"], "gain over the best",
             "published, of five models"]]
    for net, published in CLAIM["nets"].items():
        for name, batch in CLAIM["models"].items():
            rates = [player.throughput(name, batch, net, 64, parallel, batches[name])
                     for parallel in ["framework: dear, tune: bo", *CLAIM["rivals"].values()]]
            rows.append([name, net.split()[0], *(f"{rate:.0f}" for rate in rates),
                         f"{100 * (rates[0] / max(rates[1:]) - 1):+.1f} %", f"up to {published}"])
    return table(rows)


def main(binary, source, document=None):
    with open(source, newline="") as file, tempfile.TemporaryDirectory() as folder:
        player = Rates(Player(binary, folder))
        source_rows = list(csv.DictReader(file))
        settings = compare(player, source_rows)
        served = compare_servers(player, source_rows, settings)
        dear = dear_table(player)
    kept = [m for m in METHODS if not m.startswith("ByteScheduler")]
    alike, pairs = agreement(settings, METHODS)
    alike_kept, pairs_kept = agreement(settings, kept)
    every = [*METHODS, *SERVER_METHODS]
    alike_served, pairs_served = agreement(served, every, SERVER_METHODS)
    alike_kept_served, pairs_kept_served = agreement(served, [*kept, *SERVER_METHODS],
                                                     SERVER_METHODS)
    if 0 in (pairs, pairs_kept, pairs_served, pairs_kept_served):
        sys.exit(f"schedulers.py: {source} has no methods to rank, with or without servers and "
                 "ByteScheduler; give it all rows of ddl-benchmarks")
    text = "\n\n".join([
        "Samples/s, and how far from the published ones:", throughput_table(settings, METHODS),
        f"Pairs of methods that differ by more than {100 * DIFFERENT:.0f} % and are ranked alike: "
        f"{share(alike_kept, pairs_kept)} without ByteScheduler, {share(alike, pairs)} with it.",
        "With BytePS's servers, one for every node:", throughput_table(served, SERVER_METHODS),
        f"Pairs with a method of servers that differ by more than {100 * DIFFERENT:.0f} % and are "
        f"ranked alike: {share(alike_served, pairs_served)}.",
        f"All of these pairs together: {share(alike + alike_served, pairs + pairs_served)}; without "
        "ByteScheduler's all-reduce "
        f"{share(alike_kept + alike_kept_served, pairs_kept + pairs_kept_served)}.",
        "DeAR at 64 GPUs, samples/s:", dear])
    print(text)
    if document:
        write_section(document, "fidelity schedulers", text)
    missed = [bound for bound, is_met in (
        (RANKED_ALIKE, alike >= RANKED_ALIKE * pairs),
        (RANKED_ALIKE_WITH_SERVERS, alike_served >= RANKED_ALIKE_WITH_SERVERS * pairs_served),
    ) if not is_met]
    for bound in missed:
        print(f"\nMISSED {100 * bound:.0f} % of the pairs ranked alike")
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
