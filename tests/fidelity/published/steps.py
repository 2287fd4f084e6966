#!/usr/bin/env python3
"""Steps of published training runs beside blind predictions.

    steps.py BINARY [DOCUMENT] [--row TEXT]

Plays every row of steps.csv in virtual time, and prints what was measured, what was predicted when
the row was played first, before anything was changed because of it (`blind`: kept in the file), and
what is predicted now. Writes the section "fidelity published" of DOCUMENT. --row plays only rows
with TEXT in "TABLE | RUN | GPUS", and writes nothing.

A row is what its source publishes. What no source says is below, alike for all rows.
"""
import argparse
import csv
import pathlib
import sys
import tempfile

from published import Player, table, write_section

ROWS = pathlib.Path(__file__).parent / "steps.csv"
MOST_BY_MESSAGE = 16  # GPUs; larger runs are played as flows


def cluster(nics, rate, node, latency):
    return (f"nics_per_node: {nics}, nic: {{rate: {rate}Gbps, latency_us: 2}}, "
            f"intra_node: {{rate: {node}Gbps, latency_us: {latency}}}")


# NVLink as in tests/fidelity/measured_steps.cpp; that of a B200 twice an H100's. NICs are
# published but for the H100s' and B200s', which are those of a DGX.
CLUSTERS = {
    "dgx-h100": cluster(8, 400, 2900, 3.4), "h100-800g": cluster(8, 100, 2900, 3.4),
    "dgx-b200": cluster(8, 400, 5800, 3.4),
    "dgx-a100": cluster(8, 200, 1774, 5.5), "a100-400g": cluster(4, 100, 1774, 5.5),
}
DEVICES = {"h100-500w": "base: h100-sxm, memory_GBps: 2400"}  # TorchTitan's, with HBM2e


def gpt(layers, hidden, heads, sequence, vocabulary, more=""):
    return (f"{{kind: transformer, name: gpt, architecture: gpt2, layers: {layers}, "
            f"hidden: {hidden}, heads: {heads}, ffn: {4 * hidden}, sequence: {sequence}, "
            f"vocabulary: {vocabulary}, tied_embeddings: true, position_embeddings: learned, "
            f"norm: layernorm, bias: true{more}}}")


def llama(layers, hidden, heads, key_heads, ffn, sequence, vocabulary, more="gated_ffn: true"):
    return (f"{{kind: transformer, name: llama, architecture: llama, layers: {layers}, "
            f"hidden: {hidden}, heads: {heads}, kv_heads: {key_heads}, ffn: {ffn}, "
            f"sequence: {sequence}, vocabulary: {vocabulary}, tied_embeddings: false, "
            f"position_embeddings: rope, norm: rmsnorm, bias: false, {more}}}")


def nemotron(layers, hidden, heads, key_heads):  # squared ReLU: not gated
    return llama(layers, hidden, heads, key_heads, 4 * hidden, 4096, 256000, "gated_ffn: false")


def mpt(layers, hidden, heads, sequence=2048):
    return gpt(layers, hidden, heads, sequence, 50368, ", dropout: false")


def grok(layers, sequence):
    return llama(layers, 6144, 48, 8, 32768, sequence, 128256,
                 "gated_ffn: true, experts: {count: 8, top_k: 2, ffn: 32768}")


MODELS = {
    "llama3-70b": "{base: llama3-70b, sequence: 8192}",
    "llama3.1-405b": "{base: llama3.1-405b, sequence: 8192}",
    "405b-of-50257": "{base: llama3.1-405b, sequence: 8192, vocabulary: 50257}",
    "7-layers-of-405b": "{base: llama3.1-405b, sequence: 8192, vocabulary: 50257, layers: 7}",
    "llama2-7b-32k": "{base: llama2-7b, sequence: 32768}",
    "llama2-7b-128k": "{base: llama2-7b, sequence: 131072}",
    "llama2-7b-512k": "{base: llama2-7b, sequence: 524288}",
    "gpt3-5b": gpt(24, 4096, 32, 2048, 50257), "gpt3-20b": gpt(44, 6144, 48, 2048, 50257),
    "gpt3-175b": gpt(96, 12288, 96, 2048, 50257),
    "nemotron4-15b": nemotron(32, 6144, 48, 8), "nemotron4-340b": nemotron(96, 18432, 96, 8),
    "nemotron-22b": nemotron(40, 6144, 48, 48),
    "grok-1": grok(64, 8192), "2-layers-of-grok-1": grok(2, 4096),
    "qwen3-30b-a3b": llama(48, 2048, 32, 4, 6144, 4096, 151936,
                           "head_width: 128, gated_ffn: true, "
                           "experts: {count: 128, top_k: 8, ffn: 768}"),
    "codellama-34b": llama(48, 8192, 64, 8, 22016, 4096, 32000),
    "mpt-1b": mpt(24, 2048, 16), "mpt-7b": mpt(32, 4096, 32), "mpt-13b": mpt(40, 5120, 40),
    "mpt-30b": mpt(48, 7168, 56), "mpt-70b": mpt(80, 8192, 64),
    "mpt-13b-32k": mpt(40, 5120, 40, 32768),
    "bloom": gpt(70, 14336, 112, 2048, 250680), "mt-nlg": gpt(105, 20480, 128, 2048, 51200),
}


def job_of(row):
    gpus = int(row["gpus"])
    batch = f"global_batch: {row['global_batch']}, " if row["global_batch"] else ""
    network = "flow" if gpus > MOST_BY_MESSAGE else "loggp"
    return f"""schema: ghostrank/job/1
model: {MODELS.get(row["model"], row["model"])}
device: {{{DEVICES.get(row["device"], "base: " + row["device"])}, memory_bytes: 0}}
precision: {{parameters: {row["precision"]}}}
cluster: {{nodes: {gpus // 8}, {CLUSTERS[row["cluster"]]}}}
parallel: {{{row["parallel"]}, {batch}micro_batch: {row["micro_batch"]}}}
collectives: {{library: nccl-2.30}}
fabric: {{kind: virtual, network: {network}}}
run: {{warmup: 0, iterations: 1, seed: 1}}
"""


def seconds_of(row, sequence):
    """The measured step."""
    measured = float(row["measured"])
    if row["unit"] == "s":
        return measured
    samples = int(row["global_batch"] or int(row["micro_batch"]) * int(row["gpus"]))
    return samples * sequence / int(row["gpus"]) / measured


def error(predicted, measured):
    return 100 * (predicted / measured - 1)


def play(player, row):
    result = player.result(job_of(row))
    step = result["iterations"][0]
    measured = seconds_of(row, result["config"]["model"]["sequence"])
    share = [f"{100 * step[part] / step['seconds']:.0f} %"
             for part in ("compute_seconds", "exposed_comm_seconds", "bubble_seconds")]
    return measured, step["seconds"], share


def mean(values):
    return sum(values) / len(values)


def summary(tables):
    rows = [["table", "runs", "blind: mean distance", "mean error", "farthest",
             "now: mean distance", "mean error", "farthest"]]
    for name, errors in tables.items():
        row = [name, str(len(errors))]
        for these in zip(*errors):
            far = max(these, key=abs)
            row += [f"{mean([abs(e) for e in these]):.1f} %", f"{mean(these):+.1f} %",
                    f"{far:+.1f} %"]
        rows.append(row)
    return table(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("document", nargs="?")
    parser.add_argument("--row", default="")
    arguments = parser.parse_args()
    tables = {}
    lines = [["table", "run", "GPUs", "measured s", "blind s", "error", "now s", "error",
              "compute", "exposed", "bubble"]]
    with tempfile.TemporaryDirectory() as folder, ROWS.open() as file:
        player = Player(arguments.binary, folder)
        for row in csv.DictReader(file):
            name = f"{row['table']} | {row['run']} | {row['gpus']}"
            if arguments.row not in name:
                continue
            measured, now, shares = play(player, row)
            blind = float(row["blind"] or now)
            errors = error(blind, measured), error(now, measured)
            tables.setdefault(row["table"], []).append(errors)
            lines.append([row["table"], row["run"], f"{int(row['gpus']):,}", f"{measured:.3g}",
                          f"{blind:.3g}", f"{errors[0]:+.1f} %", f"{now:.3g}",
                          f"{errors[1]:+.1f} %", *shares])
            print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    text = summary(tables) + "\n\n" + table(lines)
    print(text)
    if arguments.document and not arguments.row:
        write_section(arguments.document, "fidelity published", text)


if __name__ == "__main__":
    main()
