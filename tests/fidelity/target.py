#!/usr/bin/env python3
"""Time to an accuracy: steps that are played, times steps that were published.

    target.py BINARY [DOCUMENT]

ResNet-50 to 75.9 % of ImageNet takes 90 epochs with SGD and 55 with K-FAC, by the scripts of
Distributed K-FAC (SC'20), whose authors and successors train so long. Every algorithm's step on 64
GPUs (kfac.py) times its steps is its time; the same with published steps stands beside it where
there are any. Every algorithm that preconditions with the same factors is taken to need the same
epochs, as its authors claim. Prints markdown tables, and writes them into the section
"fidelity target" of DOCUMENT.
"""
import sys
import tempfile

import kfac
from published import Player, table, write_section

IMAGES = 1_281_167  # ImageNet-1k
SAMPLES = 32 * 64  # of a step
EPOCHS = {"sgd": 90, "kfac": 55}
ETHERNET = "base: rtx2080ti-10gbe"
NETWORKS = {"10 Gb/s Ethernet": ETHERNET, "100 Gb/s InfiniBand": None}
COST = ", kfac_cost: rtx2080ti"
SELDOM = ", fac_update_freq: 10, kfac_update_freq: 100"  # the SC'20 scripts' own
ALGORITHMS = {  # name: variant, seconds of a published step (InfiniBand, every step)
    "SGD": ("ssgd", .1968),
    "D-KFAC": ("d", .8525),
    "MPD-KFAC": ("mpd", .7635),
    "SPD-KFAC": ("spd", .6755),
    "PAD-KFAC": ("pad", None),
    "DP-KFAC": ("dp", None),
}
CLAIMS = [  # of a step: network, whose, over whom, published
    ("100 Gb/s InfiniBand", "SPD-KFAC", "D-KFAC", "26 % for ResNet-50; 10 to 35 % for four models"),
    ("10 Gb/s Ethernet", "PAD-KFAC", "SPD-KFAC", "27 %, mean of four models"),
    ("100 Gb/s InfiniBand", "PAD-KFAC", "SPD-KFAC", "17 %, mean of four models"),
]


def hours(name, step):
    epochs = EPOCHS["sgd" if name == "SGD" else "kfac"]
    return epochs * IMAGES / SAMPLES * step / 3600


def steps_of(breakdown):
    """{name: seconds}, with factors and inverses in every step, and seldom."""
    often, seldom = {}, {}
    for name, (variant, _) in ALGORITHMS.items():
        keys = f"variant: {variant}" + ("" if name == "SGD" else COST)
        often[name] = breakdown.step("ResNet-50", keys)
        if name != "SGD":
            # Once through the longest of the periods.
            seldom[name] = breakdown.mean("ResNet-50", keys + SELDOM, 100)
        print(name, often[name], seldom.get(name), file=sys.stderr, flush=True)
    return often, seldom


def target_rows(steps):
    rows = [["network", "algorithm", "step", "time to 75.9 %", "of SGD's", "by published steps",
             "factors every 10, inverses every 100 steps", "of SGD's"]]
    for network, (often, seldom) in steps.items():
        sgd = hours("SGD", often["SGD"])
        for name, (_, published) in ALGORITHMS.items():
            own = hours(name, often[name])
            row = [network, name, f"{1e3 * often[name]:.0f} ms", f"{own:.2f} h", f"{own / sgd:.2f}",
                   f"{hours(name, published):.2f} h" if published and "Infini" in network else "",
                   "", ""]
            if name in seldom:
                rarely = hours(name, seldom[name])
                row[6:] = [f"{rarely:.2f} h", f"{rarely / sgd:.2f}"]
            rows.append(row)
    return rows


def claim_rows(steps):
    rows = [["network", "algorithm", "over", "published: faster by", "ours, ResNet-50"]]
    for network, name, rival, published in CLAIMS:
        often, _ = steps[network]
        rows.append([network, name, rival, published,
                     f"{100 * (often[rival] / often[name] - 1):+.0f} %"])
    return rows


def main(binary, document=None):
    with tempfile.TemporaryDirectory() as folder:
        player = Player(binary, folder)
        steps = {network: steps_of(kfac.Breakdown(player, cluster))
                 for network, cluster in NETWORKS.items()}
    text = "\n\n".join([table(target_rows(steps)), table(claim_rows(steps))])
    print(text)
    if document:
        write_section(document, "fidelity target", text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
