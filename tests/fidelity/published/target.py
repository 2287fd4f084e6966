#!/usr/bin/env python3
"""Time to an accuracy: steps that are played, times steps that were published.

    target.py BINARY [DOCUMENT]

ResNet-50 to 75.9 % of ImageNet takes 90 epochs with SGD and 55 with K-FAC, by the scripts of
Distributed K-FAC (SC'20), whose authors and successors train so long. Every algorithm's step on 64
GPUs (kfac.py) times its steps is its time; the same with published steps stands beside it where
there are any. Every algorithm that preconditions with the same factors is taken to need the same
epochs, as its authors claim.

ResNet-32 on CIFAR-10 is what the same authors measured in full (kfac_pytorch, docs/results.md of
March 2020): seconds of an epoch, epochs and accuracy on a node of four V100. The device's
efficiency is set so that an epoch of SGD on one GPU takes the published time; the other rows are
predicted, with the device's costs of K-FAC and with those fitted to an RTX 2080 Ti.

Prints markdown tables, and writes them into the section "fidelity target" of DOCUMENT.
"""
import sys
import tempfile

import kfac
from published import Player, efficiency, off, table, write_section

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

CIFAR_IMAGES, CIFAR_SAMPLES = 50_000, 128  # of CIFAR-10's training set; of a GPU's step
CIFAR = [  # algorithm, GPUs, epochs, accuracy in %, seconds of an epoch
    ("SGD", 1, 200, 92.89, 27.5),
    ("SGD", 4, 200, 92.74, 8.5),
    ("K-FAC", 1, 200, 93.12, 82.0),
    ("K-FAC", 4, 200, 92.85, 16.0),
    ("K-FAC", 4, 100, 92.52, 17.0),
]
# Their scripts' periods: factors in every step, inverses every 10. Assumed of the links between the
# V100 of a node: three bricks of NVLink 2.0, 5 us.
CIFAR_KEYS = {"SGD": "variant: ssgd", "K-FAC": "variant: mpd, kfac_update_freq: 10"}
CIFAR_JOB = """model: cifar-resnet32
device: {{base: v100-sxm2, efficiency: {share!r}}}
precision: {{optimizer: sgd}}
cluster: {{nodes: 1, gpus_per_node: {gpus}, intra_node: {{rate: 600Gbps, latency_us: 5}}}}
parallel: {{framework: kfac, micro_batch: {batch}, {keys}}}
collectives: {{reduce: chain, broadcast: chain, slice: 16KiB}}
fabric: {{kind: virtual}}
run: {{warmup: 0, iterations: 10}}
"""


def hours(name, step):
    epochs = EPOCHS["sgd" if name == "SGD" else "kfac"]
    return epochs * IMAGES / SAMPLES * step / 3600


def steps_of(breakdown):
    """{name: seconds}, with factors and inverses in every step, and seldom."""
    often, seldom = {}, {}
    for name, (variant, _) in ALGORITHMS.items():
        keys = kfac.SPD if variant == "spd" else f"variant: {variant}"
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


def cifar_rows(player):
    def epoch(algorithm, gpus, share, cost=""):
        """Seconds; the last batch of an epoch is taken to be full."""
        result = player.result(CIFAR_JOB.format(share=share, gpus=gpus, batch=CIFAR_SAMPLES,
                                                keys=CIFAR_KEYS[algorithm] + cost))
        return -(-CIFAR_IMAGES // (CIFAR_SAMPLES * gpus)) * result["step_time"]["mean"]

    algorithm, gpus, _, _, seconds = CIFAR[0]
    share = efficiency(lambda one: epoch(algorithm, gpus, one), seconds)
    rows = [["algorithm", "GPUs", "epochs", "reached", "published epoch", "ours",
             "ours, an RTX 2080 Ti's costs of K-FAC", "published, all epochs", "ours",
             "with those costs"]]
    for algorithm, gpus, epochs, accuracy, published in CIFAR:
        ours = [epoch(algorithm, gpus, share)]
        if algorithm != "SGD":
            ours.append(epoch(algorithm, gpus, share, COST))
        fitted = len(rows) == 1
        cells = [f"{one:.1f} s ({'fitted' if fitted else off(one, published)})" for one in ours]
        minutes = [f"{epochs * one / 60:.0f} min" for one in ours]
        pad = [""] * (2 - len(ours))
        rows.append([algorithm, str(gpus), str(epochs), f"{accuracy} %", f"{published} s",
                     *cells, *pad, f"{epochs * published / 60:.0f} min", *minutes, *pad])
    return rows


def main(binary, document=None):
    with tempfile.TemporaryDirectory() as folder:
        player = Player(binary, folder)
        cifar = cifar_rows(player)
        steps = {network: steps_of(kfac.Breakdown(player, cluster))
                 for network, cluster in NETWORKS.items()}
    text = "\n\n".join(["ResNet-50 on ImageNet:", table(target_rows(steps)),
                         table(claim_rows(steps)), "ResNet-32 on CIFAR-10, one node of V100:",
                         table(cifar)])
    print(text)
    if document:
        write_section(document, "fidelity target", text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
