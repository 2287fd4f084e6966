#!/usr/bin/env python3
"""Claims of papers beside what this project plays of them.

    papers.py BINARY [DOCUMENT]

Plays the jobs of every row of CLAIMS in virtual time and prints a markdown table: what a paper says,
in which setting, and how much faster the same comparison comes out here. A row is data: two sets of
jobs and what is known of the setting. Parameters come from the papers, or the row names them as
assumed; nothing is fitted to a claim. A row whose jobs the command refuses (a scheme that does not
exist yet) says so, with the command's own words, and is played as soon as it does not. With DOCUMENT
the table is written into its section "papers".
"""
import dataclasses
import re
import subprocess
import sys
import tempfile

import kfac
import schedulers
from published import Player, table, write_section

AGREES = 0.10  # by which a ratio may differ from the published one


@dataclasses.dataclass
class Claim:
    paper: str
    setting: str  # what is assumed stands in brackets
    published: str
    ratios: tuple  # published, of times: least (None: "up to") and most
    play: object  # Player -> [(what, ratio)], how much longer the rival's step or training takes
    why: str = ""  # where ours differs


class Refused(Exception):
    pass


class Asked(Player):
    """A Player that turns down what the command refuses, in its words."""

    def result(self, job):
        if job not in self.results:
            file = self.folder / "asked.yaml"
            file.write_text(job)
            asked = subprocess.run([self.binary, "plan", file], capture_output=True, text=True,
                                   check=False)
            if asked.returncode != 0:
                said = asked.stderr.strip().splitlines()
                raise Refused(re.sub(r"^ghostrank: \S*?\d+:\d+: ", "", said[-1]) if said
                              else "no reason given")
        return super().result(job)

    def mean(self, job):
        return self.result(job)["step_time"]["mean"]


def job(model, parallel, nodes, rate, *more, gpus=1, device="v100-sxm2", latency=5,
        steps="{warmup: 1, iterations: 3}"):
    return "\n".join([
        f"model: {model}", f"device: {device}", "precision: {optimizer: sgd}",
        f"cluster: {{nodes: {nodes}, gpus_per_node: {gpus}, nics_per_node: 1, "
        f"nic: {{rate: {rate}, latency_us: {latency}}}}}",
        f"parallel: {{{parallel}}}", "fabric: {kind: virtual}", f"run: {steps}", *more, ""])


# A V100 as fast as GRACE's release has it (images/s in fp32): ResNet-50 409.5; VGG-16 307, which is
# its VGG-19's 242 by FLOPs. More than its peak: convolutions need fewer FLOPs than counted.
V100_OF_GRACE = {"resnet50": "{base: v100-sxm2, efficiency: 0.64}",
                 "vgg16": "{base: v100-sxm2, peak_tflops: {fp32: 100}, efficiency: 0.285}"}


def against(pairs):
    """Of {what: (job, rival's job)}."""
    return lambda player: [(what, player.step(rival) / player.step(ours))
                           for what, (ours, rival) in pairs.items()]


# What NCCL over RDMA reached of a ring's bound at 100 Gb/s, by the chart in the README of SwitchML's
# code: an input. A rival with that share has links as much slower, and is a ring that fills them.
NCCL_SHARE = {4: 0.72, 8: 0.76, 16: 0.63}


def switchml(cases, share):
    """Of (what, model, plan, nodes, Gb/s, slots, device); SHARE: of the rival's links, by nodes."""
    once = "{warmup: 0, iterations: 1}"
    return against({
        what: (
            job(model, plan, nodes, f"{rate}Gbps", "collectives: {allreduce: switchml}",
                f"switch: {{slots: {slots}}}", device=device, steps=once),
            job(model, plan, nodes, f"{rate * share.get(nodes, 1):g}Gbps", device=device, steps=once))
        for what, model, plan, nodes, rate, slots, device in cases})


SWITCHML_CALLS = [(f"{nodes} workers", "{kind: layers, layers: [{parameters: [26214400]}]}",
                   "framework: ddp, bucket_cap_mb: 200, first_bucket_mb: 200", nodes, 100, 512, "v100-sxm2")
                  for nodes in NCCL_SHARE]
SWITCHML_10_25 = [(f"{model} at {rate}Gbps", model, "framework: ddp, micro_batch: 64", 8, rate, slots, device)
                  for model, device in V100_OF_GRACE.items() for rate, slots in ((10, 128), (25, 256))]
# Of the four models that gained most, three; DeepLight's layers are not known.
SWITCHML_100 = [(what, model, f"framework: ddp, micro_batch: {batch}", 8, 100, 512, "v100-sxm2")
                for what, model, batch in (("BERT", "bert-large", 4), ("LSTM", "lstm-ptb-large", 20),
                                           ("NCF", "ncf", 2**18))]


def omnireduce():
    tensor = "{kind: layers, layers: [{name: tensor, parameters: [26214400]}]}"
    return against({
        f"density {density}": (
            job(tensor, "framework: ddp", 8, "10Gbps", "collectives: {allreduce: omnireduce}",
                f"tensors: {{density: {density}, block: 256}}",
                "servers: {count: 8, nic: {rate: 10Gbps, latency_us: 5}}"),
            job(tensor, "framework: ddp", 8, "10Gbps"))
        for density in (0.1, 0.01)})


# Samples of a step on one worker, whose ids follow Zipf's law: of NCF as many as in GRACE's release
# (fidelity compression), of the large LSTM 20 sentences.
EMBEDDED = {"NCF": ("ncf", 2**18), "LSTM": ("lstm-ptb-large", 20)}


def omnireduce_models():
    sparse = "tensors: {embeddings: zipf}"
    servers = "servers: {count: 8, nic: {rate: 100Gbps, latency_us: 5}}"
    return against({
        what: (job(model, f"framework: ddp, micro_batch: {batch}", 8, "100Gbps",
                   "collectives: {allreduce: omnireduce}", sparse, servers),
               job(model, f"framework: ddp, micro_batch: {batch}", 8, "100Gbps", sparse))
        for what, (model, batch) in EMBEDDED.items()})


def one_call(call, nodes, rate, *more, gpus=1):
    """A job of a single call of float32, on all ranks."""
    ranks = nodes * gpus
    return "\n".join([
        f"cluster: {{nodes: {nodes}, gpus_per_node: {gpus}, nics_per_node: 1, "
        f"nic: {{rate: {rate}, latency_us: 5}}}}", "fabric: {kind: virtual}",
        "run: {warmup: 0, iterations: 1}", *more,
        f"program: {{ranks: {ranks}, groups: {{dp: [0-{ranks - 1}]}}, roles: [{{name: all, "
        f"ranks: 0-{ranks - 1}, iterations: [{{comm: '{call}'}}]}}]}}", ""])


# Rounds of a topic model's training, in megabytes that a sender gives to four receivers.
ORCA_MB = (88, 176, 352, 704, 1408)


def orca():
    packet = "switch: {packet_elements: 256}"
    call = lambda mb: f"broadcast dp float32 {mb * 1000000 // 33 // 4}"
    return against({
        f"{mb} MB": (one_call(call(mb), 5, "10Gbps", "collectives: {broadcast: orca}", packet),
                     one_call(call(mb), 5, "10Gbps", "collectives: {broadcast: unicast}", packet))
        for mb in ORCA_MB})


# GPUs of a DGX-1V that a scheduler leaves a job: with rings of NVLinks, and without.
BLINK_GPUS = ("0, 1, 2, 5", "0, 1, 2, 3, 4", "0, 1, 2, 3, 4, 5", "0, 1, 2, 3, 4, 5, 6, 7")


def blink():
    def play(gpus, collectives):
        return one_call("allreduce dp float32 26214400", 1, "100Gbps",
                        f"collectives: {{{collectives}}}", gpus=gpus.count(",") + 1).replace(
                            "nics_per_node: 1,", f"nics_per_node: 1, intra_node: {{links: dgx-1v, "
                            f"gpus: [{gpus}]}},")
    return against({f"GPUs {gpus}": (play(gpus, "library: nccl-2.28, allreduce: blink"),
                                     play(gpus, "library: nccl-2.28")) for gpus in BLINK_GPUS})


def byteps():
    return against({
        model: (
            job(model, "framework: byteps, micro_batch: 64, partition_bytes: 1048576, "
                       "credit_bytes: 16000000", 8, "20Gbps",
                "servers: {count: 8, nic: {rate: 20Gbps, latency_us: 5}}", gpus=8, device=device),
            job(model, "framework: horovod, micro_batch: 64", 8, "20Gbps", gpus=8, device=device))
        for model, device in V100_OF_GRACE.items()})


def sidco():
    plan = "framework: ddp, launch: after_backward, micro_batch: 32"
    return against({
        f"{model}, ratio {ratio}": (
            job(model, plan, 8, "10Gbps",
                f"compression: {{method: sidco-e, ratio: {ratio}, merge: model}}"),
            job(model, plan, 8, "10Gbps"))
        for model in ("resnet50", "vgg19") for ratio in (0.01, 0.001)})


GRACE_METHODS = ("dgc", "topk", "qsgd", "powersgd", "randomk")


def grace(rate):
    """With the settings of profiles/jobs/resnet50-grace.yaml."""
    def text(compression):
        return job("{base: resnet50, classes: 1001}",
                   "framework: ddp, launch: after_backward, micro_batch: 128", 8, rate,
                   "collectives: {library: openmpi-4.1}", compression, latency=25,
                   device="{base: v100-sxm2, efficiency: 0.64}")
    return against({
        method: (text(f"compression: {{method: {method}, ratio: 0.01, merge: tensor}}"
                      if method not in ("qsgd", "powersgd") else
                      f"compression: {{method: {method}, merge: tensor}}"), text(""))
        for method in GRACE_METHODS})


def dear(net):
    def play(player):
        rates = schedulers.Rates(player)
        batches = {"ResNet-50": 64, "BERT-Base": 64, "BERT-Large": 8}
        out = []
        for name, batch in schedulers.CLAIM["models"].items():
            ours, *rivals = (
                rates.throughput(name, batch, net, 64, parallel, batches[name])
                for parallel in ["framework: dear, tune: bo", *schedulers.CLAIM["rivals"].values()])
            out.append((name, ours / max(rivals)))
        return out
    return play


def mean_of(play):
    """One ratio, the mean of those of PLAY."""
    def played(player):
        found = play(player)
        return [(f"mean of {len(found)} models", sum(r for _, r in found) / len(found))]
    return played


def kfac_steps(keys, rival, cluster=None):
    """Of every model of the breakdown; CLUSTER in place of its cluster."""
    def play(player):
        breakdown = kfac.Breakdown(player, cluster)
        return [(name, breakdown.step(name, rival) / breakdown.step(name, keys))
                for name in kfac.BREAKDOWN]
    return play


def kfac_parts(player):
    """Of ResNet-50: what D-KFAC with shared inverses adds to SGD, over what DP-KFAC adds."""
    breakdown = kfac.Breakdown(player)
    added = {}
    for variant in ("mpd", "dp"):
        sgd, factors, reduced, inverted, whole = breakdown.cumulative("ResNet-50", variant)
        added[variant] = (factors - sgd + inverted - reduced, reduced - factors + whole - inverted)
    return [(what, added["mpd"][i] / added["dp"][i])
            for i, what in enumerate(("computation", "communication"))]


EPOCHS = {"sgd": 90, "kfac": 55}  # defaults of the paper's scripts for ImageNet


def time_to_target(player):
    """Training to 75.9 % of ImageNet with SGD over that with K-FAC, by mean steps."""
    def steps(variant, count):
        return player.mean(job("resnet50", "framework: kfac, micro_batch: 32, " + variant, 16,
                               "100Gbps", "collectives: {broadcast: chain, slice: 16KiB}", gpus=4,
                               steps=f"{{warmup: 0, iterations: {count}}}"))
    sgd = EPOCHS["sgd"] * steps("variant: ssgd", 3)
    second = "variant: mpd, fac_update_freq: 10, kfac_update_freq: 100"
    return [("ResNet-50", sgd / (EPOCHS["kfac"] * steps(second, 100)))]


ETHERNET = "base: rtx2080ti-10gbe"
CYCLES = ("it broadcasts every inverse, each in a cycle of Horovod's, which takes as long as fitted for "
          "MPD-KFAC")
FILLS = "the rival here is a ring that fills the link; theirs was NCCL or Gloo, which did not"
AS_NCCL = ("input: the rival reaches 72, 76, 63 % of a ring with 4, 8, 16 workers, as NCCL was measured "
           "at 100 Gb/s")
# As SPD-KFAC's authors' code is since July 2021 (kfac_pytorch, commit 976db82).
SPD_FUSED = kfac.SPD + ", factor_fusion: optimal"
CLAIMS = [
    Claim("SwitchML (NSDI'21)", "one all-reduce of 100 MB, 100 Gb/s [5 us, 512 slots]; over NCCL",
          "2.05, 2.26 and 2.90 times NCCL over RDMA", (2.05, 2.9), switchml(SWITCHML_CALLS, {}), FILLS),
    Claim("SwitchML (NSDI'21)", f"the same, {AS_NCCL}", "as above", (2.05, 2.9),
          switchml(SWITCHML_CALLS, NCCL_SHARE)),
    Claim("SwitchML (NSDI'21)", "8 workers, 10 and 25 Gb/s [V100 of GRACE's release in place of P100, "
          "64 samples, 5 us, 128 and 256 slots]", "20 to 310 % more training throughput", (1.2, 4.1),
          switchml(SWITCHML_10_25, {}), f"{FILLS}, and the sums take at most twice the time of the "
          "switch's"),
    Claim("SwitchML (NSDI'21)", f"the same, {AS_NCCL}", "as above", (1.2, 4.1),
          switchml(SWITCHML_10_25, NCCL_SHARE), "at these rates theirs was TCP, whose share is not known"),
    Claim("SwitchML (NSDI'21)", "BERT, an LSTM [of 66 million parameters] and NCF, 8 workers, 100 Gb/s [V100; "
          "4 samples, 20 sentences, 2^18 samples a worker; 5 us, 512 slots]",
          "up to 2.27 times as fast as with NCCL over RDMA", (None, 2.27), switchml(SWITCHML_100, {}), FILLS),
    Claim("SwitchML (NSDI'21)", f"the same, {AS_NCCL}", "as above", (None, 2.27),
          switchml(SWITCHML_100, NCCL_SHARE), "the most is of one model, which may be DeepLight: its "
          "layers are not known"),
    Claim("OmniReduce (SIGCOMM'21)", "8 workers, 8 aggregators, 10 Gb/s, 100 MB, blocks of 256 [5 us]",
          "up to 8.2 times as fast", (None, 8.2), omnireduce()),
    Claim("OmniReduce (SIGCOMM'21)", "NCF and an LSTM [of 66 million parameters], 8 workers [V100], 8 "
          "aggregators, 100 Gb/s [2^18 samples and 20 sentences a worker, ids by Zipf's law; 5 us]",
          "1.4 to 2.9 times as fast where the network limits training", (1.4, 2.9),
          omnireduce_models(), "hardly a row of NCF's tables is zero at all workers; a quarter of this "
          "LSTM's weights are its embedding"),
    Claim("Orca (NSDI'22)", "1 sender, 4 receivers of a rack, 10 Gb/s, 33 rounds [5 us; one broadcast is a "
          "round's]; over a copy for each", "3.2 to 4.3 times as fast, 88 to 1,408 MB (its report of 2020)",
          (3.2, 4.3), orca()),
    Claim("Blink (MLSys'20)", "one all-reduce of 100 MB on some GPUs of a DGX-1V [links of the node as "
          "recalled]; over NCCL [2.28's search and tuner]", "up to 8 times as fast", (None, 8.0), blink(),
          "the most is of a set of GPUs that is not known; NCCL was of 2019"),
    Claim("BytePS (OSDI'20)", "8 x 8 V100 [of GRACE's release], 20 Gb/s TCP, 64 samples, fp32 [8 "
          "servers of 20 Gb/s, partitions of 1 MiB, credit 16 MB]",
          "44 % (ResNet-50) and 100 % (VGG-16) over Horovod; up to 84 % in the paper", (1.44, 2.0),
          byteps(), "the ring of ResNet-50's gradients is nearly all under its backward pass here"),
    Claim("SIDCo (MLSys'21)", "8 nodes [V100, 10 Gb/s, 32 samples]",
          "up to 41.7 times as fast as without compression", (None, 41.7), sidco(),
          "theirs is an LSTM of 66 million parameters and little compute; models, ratios and rivals one "
          "by one below"),
    Claim("GRACE (ICDCS'21)", "ResNet-50, 8 V100, 10 Gb/s, ratio 0.01 [128 samples, 25 us]; over no "
          "compression", "dgc 0.47, topk 0.66, qsgd 0.70, powersgd 0.82, randomk 1.35 times as fast",
          (0.47, 1.35), grace("10Gbps"),
          "methods' costs are those of `fidelity compression`, fitted at 10 Gb/s"),
    Claim("DeAR (ICDCS'23)", "64 RTX 2080 Ti, 10 Gb/s Ethernet; best of PyTorch DDP, Horovod, MG-WFBP",
          "up to 83 % faster (five models)", (None, 1.83), dear("10GbE with TCP/IP"),
          "of its five models three are played, and rivals reach what a ring can"),
    Claim("DeAR (ICDCS'23)", "64 RTX 2080 Ti, 100 Gb/s InfiniBand", "up to 15 % faster", (None, 1.15),
          dear("100GbIB with RDMA"), "as above"),
    Claim("SPD-KFAC (ICDCS'21)", "64 RTX 2080 Ti, 100 Gb/s InfiniBand, four models; over D-KFAC",
          "10 to 35 % faster", (1.10, 1.35),
          kfac_steps(kfac.SPD, "variant: d")),
    Claim("PAD-KFAC (INFOCOM'23)", "64 RTX 2080 Ti, 10 Gb/s Ethernet, four models; over SPD-KFAC",
          "27 % faster on average", (1.27, 1.27),
          mean_of(kfac_steps("variant: pad", SPD_FUSED, ETHERNET)), CYCLES),
    Claim("PAD-KFAC (INFOCOM'23)", "the same, 100 Gb/s InfiniBand", "17 % faster on average",
          (1.17, 1.17),
          mean_of(kfac_steps("variant: pad", SPD_FUSED)), CYCLES),
    Claim("DP-KFAC (TCC'22)", "64 GPUs, what the second order adds to a step of ResNet-50, over MPD-KFAC",
          "computation 1.55 to 1.65 times, communication 2.79 to 3.15 times as fast", (1.55, 3.15),
          kfac_parts, "what its breakdown counts as computation and communication is not published"),
    Claim("Distributed K-FAC (SC'20)", "ResNet-50 to 75.9 % of ImageNet: 55 epochs against SGD's 90, "
          "factors every 10 and inverses every 100 steps [64 V100, 4 a node, 100 Gb/s, 32 samples]",
          "18 to 25 % less time than SGD", (1.22, 1.33), time_to_target,
          "epochs are what the paper's scripts train for; the time of steps alone is played"),
]


def verdict(ratios, found):
    least, most = ratios
    low, high = min(r for _, r in found), max(r for _, r in found)
    if abs(high / most - 1) <= AGREES and (least is None or abs(low / least - 1) <= AGREES):
        return "agrees"
    if (high > 1) != (most > 1):
        return "contradicts"
    if least is not None and least <= low and high <= most:
        return "in the range"
    return "less than that" if high < most else "more than that"


def row_of(claim, player):
    try:
        found = claim.play(player)
    except Refused as error:
        return [claim.paper, claim.setting, claim.published, "not played", "the command refuses it: "
                f"`{error}`"]
    ours = ", ".join(f"{what} {ratio:.2f}" for what, ratio in found)
    said = verdict(claim.ratios, found)
    if said != "agrees" and claim.why:
        said += ": " + claim.why
    return [claim.paper, claim.setting, claim.published, ours, said]


def main(binary, document=None):
    rows = [["paper", "setting, [assumed]", "published", "ours, times as fast", "verdict"]]
    with tempfile.TemporaryDirectory() as folder:
        player = Asked(binary, folder)
        for claim in CLAIMS:
            rows.append(row_of(claim, player))
            print(": ".join(rows[-1][i] for i in (0, 3, 4)), file=sys.stderr, flush=True)
    text = table(rows)
    print(text)
    if document:
        write_section(document, "papers", text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
