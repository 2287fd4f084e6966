#!/usr/bin/env python3
"""Plans that `ghostrank plan --search` chooses beside plans that were published.

    search.py BINARY [DOCUMENT]

For the models, clusters and batches of SC'21's table 1 and of Llama-3 405B: the published plan's
step, that of the first plan of a search which keeps what the published runs did not vary
(recomputation, the optimizer's state), and that of a free search; all estimated, as playing 16,384
ranks takes long. Micro-batches and chunks of SC'21 are those of Megatron-LM's scripts for its table
(examples/sc21). Prints a markdown table, and writes it into the section "fidelity search" of
DOCUMENT.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from published import table, write_section

ALIKE = 0.03
MEMORY = 80 * 2**30  # bytes of every row's GPU
ROOM = 2**50  # bytes into which any plan fits
# Narayanan et al., SC'21, table 1: heads, hidden size, layers, tp, pp, GPUs, batch; micro-batch and
# chunks.
SC21 = {
    "1.7B": (24, 2304, 24, 1, 1, 32, 512, 16, 1), "3.6B": (32, 3072, 30, 2, 1, 64, 512, 16, 1),
    "7.5B": (32, 4096, 36, 4, 1, 128, 512, 16, 1), "18.4B": (48, 6144, 40, 8, 1, 256, 1024, 8, 1),
    "39.1B": (64, 8192, 48, 8, 2, 512, 1536, 4, 1),
    "76.1B": (80, 10240, 60, 8, 4, 1024, 1792, 2, 3),
    "145.6B": (96, 12288, 80, 8, 8, 1536, 2304, 2, 2),
    "310.1B": (128, 16384, 96, 8, 16, 1920, 2160, 1, 2),
    "529.6B": (128, 20480, 105, 8, 35, 2520, 2520, 1, 3),
    "1008B": (160, 25600, 128, 8, 64, 3072, 3072, 1, 1),
}
LLAMA = {"8,192 GPUs": 8192, "16,384 GPUs": 16384}
# The cluster and the framework as in tests/fidelity/measured_steps.cpp.
# Models of one stage were reduced by PyTorch DDP during the last backward pass.
ONE_STAGE, STAGES = "bucket_size: 13107200", "overlap_grad_reduce: false"
SC21_JOB = """model: {{kind: transformer, name: gpt, architecture: gpt2, layers: {layers},
  hidden: {hidden}, heads: {heads}, ffn: {ffn}, sequence: 2048, vocabulary: 51200,
  tied_embeddings: true, position_embeddings: learned, norm: layernorm, bias: true}}
device: a100-sxm-80gb
precision: {{parameters: bf16, gradients: bf16}}
cluster: {{nodes: {nodes}, gpus_per_node: 8, nics_per_node: 8,
  nic: {{rate: 200Gbps, latency_us: 2}}, intra_node: {{rate: 1774Gbps, latency_us: 5.5}}}}
parallel: {{framework: megatron, tp: {tp}, pp: {pp}, global_batch: {batch}, micro_batch: {micro},
  {schedule}recompute: full, attention: unfused, gradient_accumulation_fusion: false,
  async_tensor_model_parallel_allreduce: false, {reduced}}}
collectives: {{library: nccl-2.30}}
fabric: {{kind: virtual}}
"""
LLAMA_JOB = """model: llama3.1-405b
device: h100-sxm
precision: {{parameters: bf16, gradients: fp32}}
cluster: {{nodes: {nodes}, gpus_per_node: 8, nics_per_node: 8,
  nic: {{rate: 400Gbps, latency_us: 2}}, intra_node: {{rate: 2900Gbps, latency_us: 3.4}}}}
parallel: {{framework: megatron, tp: 8, pp: 16, global_batch: 2048, schedule: interleaved,
  interleave: 8, distributed_optimizer: true, sequence_parallel: true,
  account_for_embedding_in_pipeline_split: true, account_for_loss_in_pipeline_split: true}}
collectives: {{library: nccl-2.30}}
fabric: {{kind: virtual}}
"""


def search(binary, folder, job, keep="", memory=None):
    file, out = pathlib.Path(folder) / "job.yaml", pathlib.Path(folder) / "search.json"
    file.write_text(job)
    command = [binary, "plan", file, "--search", "--play", "0", "--best", "1", "--json", out]
    command += ["--keep", keep] if keep else []
    command += ["-s", f"device.memory_bytes={memory}"] if memory else []
    said = subprocess.run(command, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if said.returncode != 0:
        if "no plan fits the device's memory" in said.stderr:
            return None
        sys.exit(said.stderr)
    return json.loads(out.read_text())


def words(plan):
    said = f"tp {plan['tp']}, pp {plan['pp']}, dp {plan['dp']}"
    if plan["interleave"] > 1:
        said += f", {plan['interleave']} chunks"
    said += f", micro-batch {plan['micro_batch']}"
    if plan["recompute"] != "none":
        said += f", recompute {plan['recompute']}"
    return said + (", sharded optimizer" if plan["sharded_optimizer"] else "")


def why(published, plan):
    """What makes the plan faster: less computing, or less waiting."""
    gain = published["step_seconds"] / plan["step_seconds"] - 1
    if gain < -ALIKE and published["memory_bytes"] > MEMORY:
        return "the published plan does not fit 80 GiB by our count"
    if abs(gain) <= ALIKE:
        return "alike"
    computes = published["compute_seconds"] - plan["compute_seconds"]
    waits = published["step_seconds"] - plan["step_seconds"] - computes
    parts = [f"{what} {abs(seconds):.2f} s {'less' if seconds > 0 else 'longer'}"
             for what, seconds in (("computes", computes), ("waits", waits))
             if abs(seconds) >= 0.01 * published["step_seconds"]]
    return ", ".join(parts)


def row_of(binary, folder, name, job):
    free = search(binary, folder, job)
    # Where nothing fits the device, the published plan's estimate is that of a device with room.
    published = (free or search(binary, folder, job, memory=ROOM))["own"]
    row = [name, f"{words(published)}, {published['memory_bytes'] / 2**30:.0f} GiB",
           f"{published['step_seconds']:.2f} s"]
    # By its own report the published plan fits: the search may use as much.
    memory = max(MEMORY, math.ceil(published["memory_bytes"]))
    for found in (search(binary, folder, job, "recompute,optimizer", memory), free):
        if found is None:
            row += ["none fits", "", ""]
            continue
        plan = found["plans"][0]
        gain = published["step_seconds"] / plan["step_seconds"] - 1
        row += [f"{words(plan)}, {plan['memory_bytes'] / 2**30:.0f} GiB",
                f"{plan['step_seconds']:.2f} s ({100 * gain:+.1f} %)", why(published, plan)]
    print(" | ".join(row), file=sys.stderr, flush=True)
    return row


def main(binary, document=None):
    rows = [["model", "published plan", "step", "chosen, with its recomputation and optimizer",
             "step (faster by)", "why", "chosen freely", "step (faster by)", "why"]]
    with tempfile.TemporaryDirectory() as folder:
        for name, row in SC21.items():
            heads, hidden, layers, tp, pp, gpus, batch, micro, chunks = row
            schedule = f"schedule: interleaved, interleave: {chunks}, " if chunks > 1 else ""
            job = SC21_JOB.format(layers=layers, hidden=hidden, heads=heads, ffn=4 * hidden,
                                  nodes=gpus // 8, tp=tp, pp=pp, batch=batch, micro=micro,
                                  schedule=schedule, reduced=ONE_STAGE if pp == 1 else STAGES)
            rows.append(row_of(binary, folder, f"SC'21 {name}, {gpus:,} A100", job))
        for name, gpus in LLAMA.items():
            rows.append(row_of(binary, folder, f"Llama-3 405B, {name}",
                               LLAMA_JOB.format(nodes=gpus // 8)))
    text = table(rows)
    print(text)
    if document:
        write_section(document, "fidelity search", text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
