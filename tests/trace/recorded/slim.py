"""Makes a Kineto trace as small as its import allows: slim.py IN.json.gz OUT.json.gz

What stays, of the last recorded step: all events of the device, the host's calls that launched them, its records of
communication, and annotations. What goes: other steps, operators, flows, how kernels are laid out, and the trace's
name, which holds a path.
"""

import gzip
import json
import sys

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
LAYOUT = {"queued", "device", "context", "registers per thread", "shared memory", "blocks per SM", "warps per SM",
          "grid", "block", "est. achieved occupancy %", "cbid", "Ev Idx", "Sequence number", "Fwd thread id", "bytes",
          "memory bandwidth (GB/s)", "graph id", "graph node id", "cluster", "priority"}


def main(source, target):
    with gzip.open(source, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    trace.pop("traceName", None)
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    steps = [event for event in events
             if event["cat"] == "user_annotation" and event["name"].startswith("ProfilerStep#")]
    step = max(steps, key=lambda event: event["ts"])
    by_device = {event["args"]["correlation"] for event in events if event["cat"] in DEVICE}

    def of_host(event):
        return (event["cat"] in ("cuda_runtime", "cuda_driver") and event["args"].get("correlation") in by_device
                or event["cat"] == "user_annotation" or event["name"] == "record_param_comms")

    host = [event for event in events if of_host(event) and step["ts"] <= event["ts"] <= step["ts"] + step["dur"]]
    launched = {event["args"]["correlation"] for event in host if event["cat"].startswith("cuda")}
    device = [event for event in events if event["cat"] in DEVICE and event["args"]["correlation"] in launched]
    for event in host + device:
        event["args"] = {name: value for name, value in event.get("args", {}).items() if name not in LAYOUT}
    trace["traceEvents"] = host + device
    text = json.dumps(trace, separators=(",", ":"))
    with open(target, "wb") as file:
        file.write(gzip.compress(text.encode(), 9, mtime=0))


main(*sys.argv[1:])
