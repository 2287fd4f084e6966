#!/usr/bin/env python3
"""Ratios that follow a real network, beside ratios that stay as they are.

    adaptive.py BINARY [DOCUMENT]

Four hosts, each a network namespace behind a link that the kernel's htb shapes, play a job whose
links change their rates as adaptive.csv says, again and again. The job knows nothing of that: its
controller measures its own calls over libfabric. The same job in virtual time has NICs with these
rates. Prints markdown tables, and writes them into the section "fidelity adaptive" of DOCUMENT. As
root, on an idle machine, some five minutes. Exit status 1: a fixed ratio is late no more often than
the controller, and sends at least as much.
"""
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from published import table, write_section

HOSTS, STEPS, WARMUP = 4, 150, 8
COMPUTE, BUDGET = 0.061, 0.020  # seconds of a step, and what its exchanges may add
LATE = 1.05  # times the budget
FIXED = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
GOODPUT = 1448 / 1514  # the kernel counts whole frames, NICs of a job the messages in them
BURST = 32768
RATES = pathlib.Path(__file__).with_suffix(".csv")
JOB = f"""schema: ghostrank/job/1
model: {{kind: layers, name: four, dtype: float32, optimizer_us: 1000, layers: [
  {{parameters: [500000], forward_us: 5000, backward_us: 10000}},
  {{parameters: [500000], forward_us: 5000, backward_us: 10000}},
  {{parameters: [500000], forward_us: 5000, backward_us: 10000}},
  {{parameters: [500000], forward_us: 5000, backward_us: 10000}}]}}
cluster: {{nodes: {HOSTS}, gpus_per_node: 1, nics_per_node: 1, nic: {{rate: 200Mbps, latency_us: 50}}}}
parallel: {{framework: ddp, bucket_cap_mb: 2}}
collectives: {{library: generic, all_gather: ring}}
scale: {{dilation: 1}}
run: {{warmup: {WARMUP}, iterations: {STEPS}, probe_ms: 0}}
"""


def megabits(text):
    """Of the one form that adaptive.csv has."""
    assert text.endswith("Mbps"), text
    return float(text[:-4])


def course():
    """[(seconds, Mbit/s)]: the rates of adaptive.csv, repeated for as long as any run takes."""
    with open(RATES, newline="") as file:
        rows = [(float(row["seconds"]), megabits(row["rate"])) for row in csv.DictReader(file)]
    period = rows[-1][0] + 3
    return [(turn * period + at, rate) for turn in range(40) for at, rate in rows]


class Lab:
    """Namespaces on a bridge, removed at the end."""

    def __init__(self):
        self.name = f"gradapt{os.getpid()}"
        self.spaces = [f"{self.name}-{h}" for h in range(HOSTS)]
        self.bridge = f"gra{os.getpid()}"

    def __enter__(self):
        try:
            self.make()
        except BaseException:  # Python calls no __exit__ then
            self.__exit__()
            raise
        return self

    def make(self):
        self.run("ip", "link", "add", self.bridge, "type", "bridge")
        self.run("ip", "link", "set", self.bridge, "up")
        for host, space in enumerate(self.spaces):
            port = f"{self.bridge}.{host}"
            self.run("ip", "netns", "add", space)
            self.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            self.run("ip", "link", "set", port, "master", self.bridge, "up")
            self.run("ip", "-n", space, "address", "add", f"10.99.7.{host + 1}/24", "dev", "eth0")
            self.run("ip", "-n", space, "link", "set", "eth0", "up")
            self.run("ip", "-n", space, "link", "set", "lo", "up")
            for tc, device in self.ends(host):
                self.run(*tc, "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "1")

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["ip", "link", "del", self.bridge], stderr=subprocess.DEVNULL, check=False)

    @staticmethod
    def run(*command):
        subprocess.run(command, check=True)

    def ends(self, host):
        """Both ends of a host's link."""
        return (("tc", "-n", self.spaces[host]), "eth0"), (("tc",), f"{self.bridge}.{host}")

    def shape(self, rate):
        for host in range(HOSTS):
            for tc, device in self.ends(host):
                self.run(*tc, "class", "replace", "dev", device, "parent", "1:", "classid", "1:1", "htb",
                         "rate", f"{1e6 * rate / GOODPUT:.0f}bit", "burst", f"{BURST}b", "cburst", f"{BURST}b",
                         "quantum", "65536")


def play_real(lab, binary, folder, compression):
    """The JSON result over the lab, whose rates begin their course with the measured iterations."""
    changes = course()
    lab.shape(changes[0][1])
    job, out = folder / "job.yaml", folder / "real.json"
    job.write_text(JOB + f"compression: {compression}\nfabric: {{kind: ofi}}\n")
    stream = folder / "real.json.partial.jsonl"
    stream.unlink(missing_ok=True)
    processes = []
    for host, space in enumerate(lab.spaces):
        variables = {"RANK": host, "WORLD_SIZE": HOSTS, "MASTER_ADDR": "10.99.7.1", "MASTER_PORT": 29577}
        processes.append(subprocess.Popen(
            ["ip", "netns", "exec", space, "env", *(f"{k}={v}" for k, v in variables.items()),
             binary, "run", job, "-q", "--allow-unfaithful", "--json", out],
            stdout=subprocess.DEVNULL))
    alive = lambda: any(process.poll() is None for process in processes)
    while alive() and not (stream.exists() and stream.stat().st_size):
        time.sleep(0.002)
    began = time.monotonic()
    for at, rate in changes[1:]:
        while alive() and time.monotonic() < began + at:
            time.sleep(0.01)
        if not alive():
            break
        lab.shape(rate)
    for process in processes:
        if process.wait() != 0:
            raise SystemExit(f"adaptive.py: a process of ghostrank ended with {process.returncode}")
    return json.loads(out.read_text())


def play_virtual(binary, folder, compression):
    rates, job, out = (folder / name for name in ("rates.csv", "job.yaml", "virtual.json"))
    rates.write_text("seconds,rate\n" + "".join(f"{at:g},{rate:g}Mbps\n" for at, rate in course()))
    job.write_text(JOB + f"compression: {compression}\nfabric: {{kind: virtual}}\n")
    subprocess.run([binary, "run", job, "-q", "-s", f"cluster.nic.rates={rates}", "--json", out],
                   check=True, stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def summary(result, ratio):
    """(share of late steps, mean and least share sent, seconds)."""
    steps = [i["seconds"] for i in result["iterations"]]
    shares = result["compression"].get("ratios", [ratio] * len(steps))
    late = sum(step > COMPUTE + LATE * BUDGET for step in steps)
    return late / len(steps), statistics.mean(shares), min(shares), sum(steps)


def row(name, found):
    late, sent, least, seconds = found
    return [name, f"{100 * late:.0f} %", f"{100 * sent:.2f} %", f"{100 * least:.2f} %", f"{seconds:.1f} s",
            f"{sent * STEPS / seconds:.4f}"]


HEAD = ["ratio", "late steps", "sent", "least sent", "time", "sent/s"]


def main(binary, document=None):
    binary = os.path.abspath(binary)
    real, modelled = [HEAD], [HEAD]
    missed = []
    with tempfile.TemporaryDirectory() as text, Lab() as lab:
        folder = pathlib.Path(text)
        adapts = f"{{method: topk, budget_ms: {1e3 * BUDGET:g}}}"
        follows = summary(play_real(lab, binary, folder, adapts), None)
        real.append(row("follows", follows))
        modelled.append(row("follows", summary(play_virtual(binary, folder, adapts), None)))
        for ratio in FIXED:
            stays = f"{{method: topk, ratio: {ratio:g}}}"
            found = summary(play_real(lab, binary, folder, stays), ratio)
            if found[0] <= follows[0] and found[1] >= follows[1]:
                missed.append(f"MISSED ratio {ratio:g} is late no more often and sends as much")
            real.append(row(f"{ratio:g}", found))
            modelled.append(row(f"{ratio:g}", summary(play_virtual(binary, folder, stays), ratio)))
    written = "\n\n".join(["Over namespaces whose links the kernel shapes:", table(real),
                           "The same in virtual time, with NICs of these rates:", table(modelled)])
    print("\n".join([written, *missed]))
    if document:
        write_section(document, "fidelity adaptive", written)
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
