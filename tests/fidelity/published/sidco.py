#!/usr/bin/env python3
"""SIDCo's published speed-ups beside what this project plays, by model and ratio.

    sidco.py BINARY [DOCUMENT]

The paper (MLSys'21) says how many times as fast training gets at most: 41.7 times over no
compression, 7.6 times over topk, 1.9 times over DGC. Plays five of its six models on 8 nodes in
virtual time, prints a markdown table, and writes it into the section "sidco" of DOCUMENT. Nothing
is fitted. Sizes of the models that are not in profiles/models, their FLOPs, batches and the network
are assumed.
"""
import dataclasses
import sys
import tempfile

from published import Player, table, write_section

NODES = 8
PUBLISHED = {"none": 41.7, "topk": 7.6, "dgc": 1.9}
RATIOS = (0.1, 0.01, 0.001)
RATES = ("10Gbps", "1Gbps")
FLOPS = 0.64 * 15.7e12  # a second on a V100, fp32: 64 % of its peak, as GRACE's ResNet-50


def layers(parameters, flops):
    """A model of one tensor; FLOPS of a rank's forward pass, the backward pass takes twice as long."""
    forward = 1e6 * flops / FLOPS
    return (f"{{kind: layers, dtype: float32, layers: [{{name: all, parameters: [{parameters}], "
            f"forward_us: {forward:.1f}, backward_us: {2 * forward:.1f}}}]}}")


@dataclasses.dataclass
class Model:
    text: str
    batch: int  # samples a rank

    def job(self, rate, compression):
        return "\n".join([
            f"model: {self.text}", "device: {base: v100-sxm2, efficiency: 0.64}",
            "precision: {optimizer: sgd}",
            f"cluster: {{nodes: {NODES}, gpus_per_node: 1, nics_per_node: 1, "
            f"nic: {{rate: {rate}, latency_us: 5}}}}",
            f"parallel: {{framework: ddp, launch: after_backward, micro_batch: {self.batch}}}",
            "fabric: {kind: virtual}", "run: {warmup: 1, iterations: 1}",
            f"compression: {compression}", ""])


MODELS = {
    "ResNet-20": Model(layers(269_467, 2 * 41e6 * 64), 64),
    "VGG-16 (CIFAR-10)": Model(layers(14_982_987, 2 * 313e6 * 64), 64),
    "ResNet-50": Model("{base: resnet50, classes: 1001}", 32),
    "VGG-19": Model("vgg19", 32),
    "LSTM-PTB": Model("lstm-ptb-large", 20),
}


def speedups(player, model, rate, ratio):
    """{rival: how many times as fast SIDCo's step is}, and SIDCo's step in milliseconds."""
    def step(method):
        return player.step(model.job(rate, "{method: none}" if method == "none" else
                                     f"{{method: {method}, ratio: {ratio}, merge: model}}"))
    ours = step("sidco-e")
    return {rival: step(rival) / ours for rival in PUBLISHED}, 1e3 * ours


def main(binary, document=None):
    rows = [["model", "network", "ratio", "step with sidco-e"] +
            [f"over {rival}" for rival in PUBLISHED]]
    rows.append(["**published, at most**", "", "", ""] +
                [f"**{most}**" for most in PUBLISHED.values()])
    most = dict.fromkeys(PUBLISHED, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        player = Player(binary, folder)
        for name, model in MODELS.items():
            for rate in RATES:
                for ratio in RATIOS:
                    found, step = speedups(player, model, rate, ratio)
                    rows.append([name, rate.replace("Gbps", " Gb/s"), f"{ratio:g}", f"{step:.2f} ms"] +
                                [f"{found[rival]:.2f}" for rival in PUBLISHED])
                    if rate == RATES[0]:
                        most = {rival: max(most[rival], found[rival]) for rival in PUBLISHED}
    rows.append(["**ours, at most**", "10 Gb/s", "", ""] +
                [f"**{most[rival]:.1f}**" for rival in PUBLISHED])
    text = table(rows)
    print(text)
    if document:
        write_section(document, "sidco", text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
