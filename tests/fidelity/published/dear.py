#!/usr/bin/env python3
"""What each part of DeAR is worth.

    dear.py BINARY [DOCUMENT]

Plays DeAR on 64 GPUs of the cluster that it was measured on, in virtual time, with parts of it taken
away as its repository does: no fusion, groups of so many layers, groups by waiting time, reduce and
broadcast in place of reduce-scatter and all-gather; and with its tuner. The device's efficiency is
set by the published throughput of one GPU (schedulers.py); nothing is fitted. Prints a markdown
table, and writes it into the section "fidelity dear" of DOCUMENT.
"""
import sys
import tempfile

import schedulers
from published import Player, table, write_section

GPUS = 64
# Of a reduce and a broadcast, which NCCL pipelines along a ring.
PIPELINED = "collectives: {reduce: chain, broadcast: chain, slice: 64KiB}"
ABLATIONS = {  # what: keys of `parallel` after framework: dear
    "DeAR, 25 MiB": "",
    "tuned": ", tune: bo",
    "no fusion": ", fusion: none",
    "4 layers": ", fusion: layers, nearby_layers: 4",
    "waiting time, 5 ms": ", fusion: waiting_time, wait_ms: 5",
    "reduce + broadcast": ", decouple: reduce",
    "both, no fusion": ", decouple: reduce, fusion: none",
}


def main(binary, document=None):
    calibrated = {"ResNet-50": 64, "BERT-Base": 64, "BERT-Large": 8}  # batch of the one-GPU rows
    rows = [["model", "network", *ABLATIONS]]
    with tempfile.TemporaryDirectory() as folder:
        rates = schedulers.Rates(Player(binary, folder))
        for net in schedulers.CLAIM["nets"]:
            for name, batch in schedulers.CLAIM["models"].items():
                steps = [GPUS * batch / rates.throughput(name, batch, net, GPUS,
                                                         "framework: dear" + keys,
                                                         calibrated[name],
                                                         PIPELINED if "decouple" in keys else "")
                         for keys in ABLATIONS.values()]
                cells = [f"{1e3 * steps[0]:.1f} ms"]
                cells += [f"{1e3 * step:.1f} ms ({100 * (step / steps[0] - 1):+.0f} %)"
                          for step in steps[1:]]
                rows.append([name, net.split()[0], *cells])
                print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    text = table(rows)
    print(text)
    if document:
        write_section(document, "fidelity dear", text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
