#!/usr/bin/env python3
"""Measured steps of transformer layers beside those that ghostrank predicts.

    compare.py BINARY STEPS DEVICE [DOCUMENT]

STEPS is what measure.py wrote, DEVICE a device profile's name or path. Every size is planned for one
GPU and played in virtual time. Prints markdown tables, and writes them into the section "fidelity
layers" of DOCUMENT. Exit status 1 where the median distance of a group of sizes is more than MOST.
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "published"))
from published import Player, table, write_section  # noqa: E402
from sizes import SIZES  # noqa: E402

MOST = 0.05
# Columns of the table: the phases that measure.py times, and the labels of the plan's delays.
PHASES = {
    "layers": (["layers"], ["forward h.", "forward layers."]),
    "their backward": (["layers backward"], ["backward h.", "backward layers."]),
    "head, loss": (["head", "head backward"], ["forward head", "backward head"]),
    "embedding": (["embedding", "embedding backward"], ["forward embed", "backward embed"]),
    "optimizer": (["optimizer"], ["optimizer"]),
}
HOST_BOUND = 0.9  # a step whose kernels fill less of it waits for the host


def job(size, device):
    kind = "fp32" if size["mixed"] else "bf16"
    return json.dumps({
        "model": size["model"], "device": device,
        "precision": {"parameters": "bf16", "gradients": kind},
        "cluster": {"nodes": 1, "gpus_per_node": 1, "nics_per_node": 1},
        "parallel": {"framework": "ddp", "micro_batch": size["micro_batch"],
                     "compile": size["compiled"],
                     "optimizer_implementation": "foreach" if size["foreach"] else "fused"},
        "fabric": {"kind": "virtual"}})


def predicted(player, size, device):
    """Seconds of a step as played, and of the plan's delays by phase."""
    text = job(size, device)
    step = player.step(text)
    file, out = player.folder / "job.yaml", player.folder / "programs.json"
    file.write_text(text)
    subprocess.run([player.binary, "plan", file, "--programs", out], check=True,
                   stdout=subprocess.DEVNULL)
    later = json.loads(out.read_text())["program"]["roles"][0]["iterations"][-1]
    delays = [line.split(" ", 2) for line in later["compute"].splitlines()
              if line.startswith("compute ")]
    phases = {}
    for name, (_, labels) in PHASES.items():
        phases[name] = sum(int(ps) for _, ps, label in delays
                           if any(label.startswith(one) for one in labels)) * 1e-12
    return step, phases


def measured(file):
    """The head's line, and of each size seconds: the step, phases, what their kernels take."""
    with open(file, encoding="utf-8") as text:
        head = text.readline().lstrip("# ").strip()
        rows = {row["size"]: row for row in csv.DictReader(text)}
    out = {}
    for name, row in rows.items():
        def seconds(prefix, columns):
            return sum(float(row[prefix + column]) for column in columns) * 1e-6
        phases = {phase: seconds("", columns) for phase, (columns, _) in PHASES.items()}
        kernels = sum(seconds("kernels of ", columns) for columns, _ in PHASES.values())
        out[name] = float(row["step"]) * 1e-6, phases, kernels
    return head, out


def off(ours, theirs):
    return f"{100 * (ours / theirs - 1):+.1f} %"


def name_of(size):
    words = [word for word in ("mixed", "foreach", "compiled") if size[word]]
    m = size["model"]
    said = f"{m['architecture']} {m['hidden']}, {m['layers']} × {m['sequence']} × " \
           f"{size['micro_batch']}"
    return ", ".join([said, *words])


def main(binary, steps, device, document=None):
    head, runs = measured(steps)
    if pathlib.Path(device).exists():
        device = str(pathlib.Path(device).resolve())
    rows = [["layers × sequence × samples", "basis", "measured ms", "predicted", "off", *PHASES]]
    groups = {}
    with tempfile.TemporaryDirectory() as folder:
        player = Player(binary, folder)
        for size in SIZES:
            if size["name"] not in runs:
                continue
            seconds, phases, kernels = runs[size["name"]]
            step, ours = predicted(player, size, device)
            host = kernels < HOST_BOUND * seconds
            basis = "held" if size["held"] else "calibrated"
            rows.append([name_of(size) + (" (host)" if host else ""), basis,
                         f"{1e3 * seconds:.2f}", f"{1e3 * step:.2f}", off(step, seconds),
                         *(off(ours[phase], phases[phase]) for phase in PHASES)])
            for group in ("all", basis) + (("host-bound",) if host else ()):
                groups.setdefault(group, []).append(
                    [abs(step / seconds - 1),
                     *(abs(ours[phase] / phases[phase] - 1) for phase in PHASES)])
    summary = [["sizes", "number", "median distance of a step", *PHASES]]
    for name, distances in groups.items():
        medians = [statistics.median(column) for column in zip(*distances)]
        summary.append([name, str(len(distances)), *(f"{100 * value:.1f} %" for value in medians)])
    text = f"{head}\n\n{table(summary)}\n\n{table(rows)}"
    print(text)
    if document:
        write_section(document, "fidelity layers", text)
    missed = [name for name in ("all", "held")
              if name in groups and statistics.median(d[0] for d in groups[name]) > MOST]
    for name in missed:
        print(f"MISSED: {name} sizes are farther off than {100 * MOST:.0f} %", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
