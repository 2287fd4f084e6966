#!/usr/bin/env python3
"""Compression methods beside the throughput that GRACE published.

    compression.py BINARY ROWS.csv [DOCUMENT]

Plays every throughput row of ROWS (GRACE's release: model, bandwidth, method, 8 workers of one V100,
MPI) in virtual time. One number a model is set: compute, so that a worker takes the time of the row
named in MODELS. Everything else is fitted to ResNet-50 at 10 Gb/s alone: the costs of methods, which
are built in; what their hosts add to gathering payloads (GATHER); and the time of a step that only
the total throughput counts. Prints markdown tables, and writes them into the section "fidelity
compression" of DOCUMENT. Exit status 1 where a bound is missed.
"""
import csv
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

WORKERS = 8
PEAK = 1000  # TFLOP/s, so that an efficiency can stand for any time
MOST_BATCH = 10**6  # that a job can have; the efficiency makes up for what is missing


class Model:
    """A model of ROWS: its profile, samples a worker, and seconds that a worker computes."""

    def __init__(self, profile, batch, seconds, column):
        self.profile, self.batch, self.seconds, self.column = profile, batch, seconds, column


MODELS = {
    # One worker trains 409.5 images/s.
    "resnet50": Model("{base: resnet50, classes: 1001}", 128, 128 / 409.5, "throughput"),
    # The upper bound of randomk 0.01, 1,940 images/s of 8 workers.
    "vgg19": Model("vgg19", 64, 64 * WORKERS / 1939.7, "throughput"),
    # One worker trains 9.33 million samples/s.
    "ncf": Model("ncf", 2**20, 2**20 / 9.33e6, "total_throughput"),
}
# The release has no batches of VGG19 and NCF. Their upper bounds that gather payloads of known size
# (10 each) say how long a batch takes beyond compute; with GATHER and the wire they ask for 50
# images (44 to 53) and 915,000 samples (830,000 to 990,000) a worker: the nearest powers of two.
# With 16 images, or 2^19 samples, the wire alone would take longer than some of these steps.
# Least squares over the 36 upper bounds of ResNet-50 at 10 Gb/s that gather payloads of known size:
# their time beyond compute and the wire's, by tensors (161) and by bytes that a worker receives.
GATHER = "gather_us: 585, gather_ns: 0.59"
NAMES = {  # in ROWS: keys of `compression`
    "none": "method: none", "topk": "method: topk", "randomk": "method: randomk",
    "dgc": "method: dgc", "adaq": "method: adaq", "signsgd": "method: signsgd",
    "signum": "method: signum", "efsignsgd": "method: efsignsgd", "onebit": "method: onebit",
    "natural": "method: natural", "8bit": "method: 8bit", "terngrad": "method: terngrad",
    "powersgd": "method: powersgd", "inceptionn": "method: inceptionn",
}
WITH = {"ratio": "ratio", "q": {"qsgd": "quantum", "sketch": "quantiles"}}
APART = ("none", "randomk")  # of large tensors: by other means than those of ResNet-50's rows
DIFFERENT = 0.03  # pairs of methods that differ by more are ranked
RANKED_ALIKE, MEDIAN_ERROR = 0.85, 0.15
JOB = """model: {model}
device: {{base: v100-sxm2, efficiency: {efficiency!r}, peak_tflops: {{fp32: {peak}}}}}
precision: {{parameters: fp32, gradients: fp32, optimizer: sgd}}
cluster: {{nodes: 8, gpus_per_node: 1, nics_per_node: 1, nic: {{rate: {rate}, latency_us: 25}}}}
parallel: {{framework: ddp, launch: after_backward, micro_batch: {batch}}}
collectives: {{library: openmpi-4.1}}
compression: {{merge: tensor, {gather}, {compression}}}
fabric: {{kind: virtual}}
run: {{warmup: 2, iterations: 1}}
"""


def settings_of(name):
    """Keys of `compression` for a name of ROWS, as topk_mem_ratio=0.1; None: not played."""
    method, *rest = name.replace("_mem", "").split("_")
    keys = [NAMES.get(method, f"method: {method}" if method in ("qsgd", "sketch") else None)]
    for part in rest:
        key, _, value = part.partition("=")
        known = WITH.get(key)
        known = known.get(method) if isinstance(known, dict) else known
        keys.append(f"{known}: {value}" if known else None)
    return None if None in keys else ", ".join(keys)


class Player:
    def __init__(self, binary, folder):
        self.binary = binary
        self.job = pathlib.Path(folder) / "job.yaml"
        self.result = pathlib.Path(folder) / "result.json"
        self.efficiencies, self.steps = {}, {}

    def step(self, model, rate, compression):
        key = (model, rate, compression)
        if key not in self.steps:
            self.steps[key] = self.play(model, rate, compression, self.efficiency(model))
        return self.steps[key]

    def play(self, name, rate, compression, efficiency):
        model = MODELS[name]
        self.job.write_text(JOB.format(model=model.profile, efficiency=efficiency, peak=PEAK, rate=rate,
                                       batch=min(model.batch, MOST_BATCH), gather=GATHER,
                                       compression=compression))
        command = [self.binary, "run", self.job, "-q", "--json", self.result]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return json.loads(self.result.read_text())["step_time"]["median"]

    def efficiency(self, name):
        """With which a worker computes for the time in MODELS: by a network that takes no time."""
        if name not in self.efficiencies:
            found = 0.01
            for _ in range(4):
                alone = self.play(name, "100000Gbps", "method: signsgd, ratio: 1", found)
                free = self.play(name, "100000Gbps", "method: signsgd, ratio: 1", 1.0)
                found *= (alone - free) / MODELS[name].seconds
            self.efficiencies[name] = found
        return self.efficiencies[name]


def uncounted(rows):
    """Seconds of a step that the total throughput counts, and the other does not."""
    return statistics.median(
        WORKERS * MODELS["resnet50"].batch * (1 / float(row["total_throughput"])
                                              - 1 / float(row["throughput"]))
        for row in rows
        if (row["model"], row["bw"], row["mode"]) == ("resnet50", "10g", "throughput")
        and row["workers"] == str(WORKERS) and row["backend"] == "mpi")


def compare(player, rows):
    """{(model, bandwidth): {name: (published, ours)}}."""
    found = {}
    beyond = uncounted(rows)
    for row in rows:
        model = row["model"]
        settings = settings_of(row["name"])
        if (row["mode"], row["backend"], row["workers"]) != ("throughput", "mpi", str(WORKERS)):
            continue
        if model not in MODELS or settings is None or row["bw"] not in ("1g", "10g", "25g"):
            continue
        # The throughput of the 1 Gb/s rows exceeds what their wires carry; their totals do not.
        column = "total_throughput" if row["bw"] == "1g" else MODELS[model].column
        if not row[column] or row[column] == "n/a":
            continue
        step = player.step(model, row["bw"].upper() + "bps", settings)
        if row["bw"] == "1g":
            step += beyond
        ours = WORKERS * MODELS[model].batch / step
        found.setdefault((model, row["bw"]), {})[row["name"]] = (float(row[column]), ours)
    return found


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|"] + lines[1:])


def throughput_table(found):
    places = list(found)
    names = list(dict.fromkeys(name for rows in found.values() for name in rows))
    rows = [["method"] + [f"{model} {bw}" for model, bw in places]]
    for name in names:
        cells = []
        for place in places:
            if name not in found[place]:
                cells.append("")
                continue
            published, ours = found[place][name]
            cells.append(f"{ours:.4g} ({100 * (ours / published - 1):+.0f} %)")
        rows.append([name, *cells])
    return table(rows)


def agreement(found):
    """Pairs of methods ranked alike, and all pairs."""
    alike = pairs = 0
    for methods in found.values():
        for a, b in itertools.combinations(methods.values(), 2):
            if abs(a[0] / b[0] - 1) > DIFFERENT:
                pairs += 1
                alike += (a[0] > b[0]) == (a[1] > b[1])
    return alike, pairs


def summary_table(found):
    rows = [["rows", "number", "median error", "pairs ranked alike"]]
    everything = {"all": found, "all but those fitted (ResNet-50 at 10 Gb/s)":
                  {k: v for k, v in found.items() if k != ("resnet50", "10g")}}
    for (model, bw), methods in found.items():
        everything[f"{model} {bw}"] = {(model, bw): methods}
        if model != "resnet50":
            everything[f"{model} {bw} without none and randomk"] = {
                (model, bw): {name: v for name, v in methods.items() if not name.startswith(APART)}}
    for name, part in everything.items():
        errors = [abs(o / p - 1) for methods in part.values() for p, o in methods.values()]
        alike, pairs = agreement(part)
        rows.append([name, str(len(errors)), f"{100 * statistics.median(errors):.1f} %",
                     f"{alike} of {pairs} ({100 * alike / max(1, pairs):.0f} %)"])
    return table(rows)


def write_section(document, text):
    begin, end = (f"<!-- fidelity compression: {word} -->" for word in ("begin", "end"))
    path = pathlib.Path(document)
    old = path.read_text()
    path.write_text(old[:old.index(begin)] + begin + "\n" + text + "\n" + old[old.index(end):])


def main(binary, source, document=None):
    with open(source, newline="") as file, tempfile.TemporaryDirectory() as folder:
        found = compare(Player(binary, folder), list(csv.DictReader(file)))
    text = "\n\n".join([
        summary_table(found), "Samples/s of 8 workers, and how far from the published ones:",
        throughput_table(found)])
    print(text)
    if document:
        write_section(document, text)
    errors = [abs(o / p - 1) for methods in found.values() for p, o in methods.values()]
    alike, pairs = agreement(found)
    missed = alike < RANKED_ALIKE * pairs or statistics.median(errors) > MEDIAN_ERROR
    if missed:
        print(f"\nMISSED {100 * RANKED_ALIKE:.0f} % of the pairs ranked alike, or a median error of "
              f"{100 * MEDIAN_ERROR:.0f} %")
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
