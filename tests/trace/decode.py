#!/usr/bin/env python3
"""Counts the operations of a trace by the formats' own rules, without any code of ghostrank.

    decode.py FORMAT FILE...      {"ops": {"allreduce": 3, ...}, "bytes": {"allreduce": 1024, ...}, "device_ns": 0}

Operations by kind and the bytes that the file gives them, of all files together.
"""
import csv
import glob
import gzip
import json
import os
import sqlite3
import struct
import sys
from collections import Counter

ops, size = Counter(), Counter()
device_ns = 0  # of computations, where a format has their times


def count(kind, nbytes=None):
    ops[kind] += 1
    if nbytes is not None:
        size[kind] += nbytes


def contents(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<q", data, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<i", data, at)[0], at + 4
        else:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, value


def chakra(paths):
    kinds = ["allreduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all",
             "reduce_scatter", "reduce_scatter", "barrier"]
    if os.path.isdir(paths[0]):
        paths = glob.glob(paths[0] + "/*.et")
    for path in paths:
        if path.endswith(".json"):
            continue
        data, at, first = contents(path), 0, True
        while at < len(data):
            length, at = varint(data, at)
            message, at = data[at:at + length], at + length
            if first:
                first = False
                continue
            node = {"type": 0, "attr": {}}
            for field, value in fields(message):
                if field == 3:
                    node["type"] = value
                if field == 10:
                    attribute = list(fields(value))
                    name = [v for f, v in attribute if f == 1][0].decode()
                    node["attr"][name] = [v for f, v in attribute if f > 2][0]
            attr = node["attr"]
            if node["type"] in (2, 3, 4):
                count("compute")
            elif node["type"] > 4 and not attr.get("is_cpu_op"):
                name = {5: "send", 6: "recv"}.get(node["type"]) or kinds[attr["comm_type"]]
                count(name, attr.get("comm_size", 0))


def simai(paths):
    names = {"ALLREDUCE": "allreduce", "ALLGATHER": "all_gather", "REDUCESCATTER": "reduce_scatter",
             "ALLTOALL": "all_to_all", "BROADCAST": "broadcast"}
    lines = open(paths[0]).read().splitlines()
    micro = lines[0].split()[0] == "MICRO"
    for line in lines[2:]:
        row = line.split()
        if not row:
            continue
        for index in (2, 5, 8):
            if micro and index < 8:
                continue
            if int(row[index]) and not micro:
                count("compute")
            kind = row[index + 1].split("_")[0]
            if kind != "NONE" and int(row[index + 2]):
                count(names[kind], int(row[index + 2]))
                if int(row[11]):
                    count("compute")


def aicb(paths):
    names = {"all_reduce": "allreduce", "isend": "send", "irecv": "recv"}
    rows = [line for line in open(paths[0]) if not line.startswith("[")]
    for row in csv.DictReader(rows):
        kind = row["comm_type"].split(".")[1]
        if kind == "computation":
            if row["_elapsed_time"] != "None":
                count("compute")
        elif kind != "epoch_end":
            count(names.get(kind, kind), int(row["msg_size"]))


NAMES = {"all_reduce": "allreduce", "_allgather_base": "all_gather", "allgather": "all_gather",
         "_reduce_scatter_base": "reduce_scatter"}


def nbytes(value):
    """Of the tensors in a value of an execution trace."""
    if isinstance(value, list) and len(value) == 6 and isinstance(value[5], str):
        return value[3] * value[4]
    return sum(map(nbytes, value)) if isinstance(value, list) else 0


def execution_trace(paths):
    for path in paths:
        for node in json.loads(contents(path))["nodes"]:
            if node["name"] != "record_param_comms":
                continue
            values = node["inputs"]["values"]
            name = next(value for value in values if isinstance(value, str))
            if name not in ("init", "wait"):
                tensors = values[0] if values.index(name) >= 4 else []
                count(NAMES.get(name, name), nbytes(tensors))


KINETO_CALLS = {"all_gather_into_tensor": "all_gather", "_allgather_base": "all_gather", "reduce_scatter_tensor":
                "reduce_scatter", "_reduce_scatter_base": "reduce_scatter", "all_to_allv": "all_to_all",
                "allgather_into_tensor_coalesced": "all_gather", "reduce_scatter_tensor_coalesced": "reduce_scatter",
                "allreduce_coalesced": "allreduce"}
KINETO_BYTES = {"Float": 4, "BFloat16": 2, "Half": 2, "Long": 8, "Int": 4, "Byte": 1, "Bool": 1, "Double": 8}


def batches(events):
    """By correlation: the messages that the host recorded before the range in which it launched their kernel."""
    of_thread = {}
    for event in events:
        name = event.get("name", "")
        if name in ("record_param_comms", "nccl:coalesced") or event.get("cat") in ("cuda_runtime", "cuda_driver"):
            of_thread.setdefault(event["tid"], []).append(event)
    out = {}
    for sequence in of_thread.values():
        messages, end, batch = [], 0, []
        for event in sorted(sequence, key=lambda event: event["ts"]):
            args = event.get("args", {})
            if event["name"] == "record_param_comms":
                if args.get("Collective name") in ("send", "recv"):
                    messages.append(args)
            elif event["name"] == "nccl:coalesced":
                batch, messages, end = messages, [], event["ts"] + event["dur"]
            elif event["ts"] < end:
                out[args.get("correlation")] = batch
    return out


def kineto(paths):
    """Also `device_ns`: what kernels, copies and fills took that are no calls of NCCL, together."""
    # With execution traces given, a call is the node to which the host's event of its kernel leads.
    global device_ns
    nodes, traces = {}, []
    for path in paths:
        trace = json.loads(contents(path))
        if "nodes" in trace:
            for node in trace["nodes"]:
                ids = [a["value"] for a in node["attrs"] if a["name"] == "rf_id"]
                if node["name"] == "record_param_comms" and ids:
                    nodes[ids[0]] = node["inputs"]["values"]
        else:
            traces.append(trace)
    for trace in traces:
        record_of = {}
        for event in trace["traceEvents"]:
            args = event.get("args", {})
            if event.get("name", "").startswith("record_param_comms") and "External id" in args:
                record_of.setdefault(args["External id"], args.get("Record function id"))
        batch_of = batches(trace["traceEvents"])
        for event in trace["traceEvents"]:
            if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
                continue
            args = event["args"]
            if not event["name"].startswith("nccl"):
                count("compute")
                device_ns += round(1e3 * event["dur"])
            elif nodes:
                values = nodes[record_of[args["External id"]]]
                name = next(value for value in values if isinstance(value, str))
                if name == "all_to_allv" and values[values.index(name) + 1]:  # with splits
                    name = "all_to_all_v"
                count(KINETO_CALLS.get(name, NAMES.get(name, name)), nbytes(values[0]))
            elif "Collective name" not in args:
                for message in batch_of[args["correlation"]]:
                    count(message["Collective name"], message["In msg nelems"] * KINETO_BYTES[message["dtype"]])
            else:
                name = args["Collective name"]
                elements = args["Out msg nelems" if name in ("recv", "scatter", "all_to_allv") else "In msg nelems"]
                if name == "all_to_allv" and args["In split size"] != "[]":
                    name = "all_to_all_v"
                count(KINETO_CALLS.get(name, name), elements * KINETO_BYTES[args["dtype"]])


def nsys(paths):
    # A call's kernel is one that its thread launched within it; groups are not decoded.
    called = """
        SELECT n.value, hex(substr(e.binaryData, 41, 8)), k.rowid FROM NVTX_EVENTS e
        JOIN StringIds n ON n.id = e.textId AND n.value LIKE 'nccl%'
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.globalTid = e.globalTid
             AND r.start BETWEEN e.start AND e.end
        JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId
             AND k.globalPid >> 24 = r.globalTid >> 24"""
    names = {"ncclAllReduce": "allreduce", "ncclAllGather": "all_gather",
             "ncclReduceScatter": "reduce_scatter", "ncclBroadcast": "broadcast"}
    for path in paths:
        with sqlite3.connect("file:" + path + "?mode=ro", uri=True) as db:
            calls = db.execute(called).fetchall()
            for name, size, _ in calls:
                count(names[name], int.from_bytes(bytes.fromhex(size), "little"))
            kernels, = db.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
            for _ in range(kernels - len(calls)):
                count("compute")


globals()[sys.argv[1].replace("pytorch-et", "execution_trace")](sys.argv[2:])
print(json.dumps({"ops": ops, "bytes": size, "device_ns": device_ns}))
