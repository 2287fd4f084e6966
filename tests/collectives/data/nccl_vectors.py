#!/usr/bin/env python3
"""Writes nccl_vectors.json and nccl_planned.json, or compares them with what it would write.

    python3 nccl_vectors.py            writes both files
    python3 nccl_vectors.py --check    exit status 1 if a file differs

nccl_vectors.json is worked out as a whole, questions and answers.

nccl_planned.json holds questions drawn at random and the answers of NCCL's own functions, 2.28.9 and
2.30.7, which were compiled for a host and are not part of this tree. The draw was not kept, so its
questions are read from the file itself:

    splits, pat     questions read; answers worked out from the rules
    double_trees    worked out as a whole
    choices         questions read; answers worked out (nccl_choices.py)
"""

import argparse
import json
import pathlib
import sys

import nccl_choices
import nccl_rules as rules

FOLDER = pathlib.Path(__file__).resolve().parent
VECTORS, PLANNED = FOLDER / "nccl_vectors.json", FOLDER / "nccl_planned.json"
LARGE = 8 << 20  # elements of all ranks


def compact(value):
    return json.dumps(value, separators=(",", ":"))


# ---- nccl_vectors.json -----------------------------------------------------------------------


def double_trees_of_even_nodes():
    return {str(nodes): [{"rank": rank,
                          "t0": rules.binary_tree(nodes, rank),
                          "t1": rules.second_tree(nodes, rank)} for rank in range(nodes)]
            for nodes in range(2, 17, 2)}


def ring_questions():
    """Every second one of the grid; of large calls, the grid has one type and number of channels."""
    grid = [(func, protocol, ranks, count, element_bytes, channels)
            for func in ("allreduce", "allgather", "reducescatter", "broadcast")
            for protocol in ("Simple", "LL", "LL128")
            for ranks in (2, 4, 8, 16)
            for count in (1, 1000, 65536, 1 << 20, (1 << 24) + 3)
            for element_bytes in (2, 4)
            for channels in (1, 2, 16)
            if count * ranks < LARGE or (element_bytes, channels) == (4, 16)]
    return grid[::2]


def rings():
    names = {"allgather": "all_gather", "reducescatter": "reduce_scatter"}
    index = 1
    for func, protocol, ranks, count, element_bytes, channels in ring_questions():
        task = rules.Task(names.get(func, func), ranks, count, element_bytes, protocol, channels)
        yield {"func": func, "proto": protocol, "nranks": ranks, "ring_index": index,
               "count": count, "elt": element_bytes, "nMaxChannels": channels,
               "commChannels": channels,
               "sends": rules.ring_sends(task, index, channels, "2.30")}


def p2p_schedules():
    for nodes, per_node, rank in ((2, 8, 0), (2, 8, 15), (3, 8, 1), (4, 8, 0), (4, 8, 31),
                                  (4, 4, 1), (4, 1, 0), (4, 1, 3), (8, 1, 1), (5, 1, 0),
                                  (5, 1, 4)):
        group = min(8, per_node)
        send, recv, bases = rules.p2p_schedule(nodes, per_node, rank, group, 16)
        yield {"nodes": nodes, "ppn": per_node, "rank": rank, "group": group,
               "send": send, "recv": recv, "base16": bases}


def p2p_messages():
    grid = [(size, least, most)
            for size in (0, 1, 1000, 65536, 100000, 131072, 200000, 1 << 20, (4 << 20) + 17)
            for least, most in ((1, 1), (1, 2), (2, 4))]
    for size, least, most in grid[::2]:
        yield {"bytes": size, "nodes": 4, "nChMin": least, "nChMax": most,
               "parts": rules.p2p_parts(size, least, most)}


def pat():
    for op in ("AG", "RS"):
        for ranks in (2, 3, 4, 5, 8, 16):
            for size, chunk in ((1024, 65536), (524288, 524288)):
                yield {"op": op, "nranks": ranks, "size": size, "chunk": chunk, "rank": 0,
                       "sends": rules.pat_sends(op, ranks, 0, size, chunk)}


def hgx_rings():
    """Channel c starts at GPU c; even channels descend, odd ones ascend."""
    for channel in range(8):
        step = 1 if channel % 2 else -1
        yield {"channel": channel, "node_parity": 0,
               "gpu_order": [(channel + step * k) % 8 for k in range(8)]}


def graph(channels, inside, between, nvlink=True, same_channels=False):
    return {"inside": inside, "between": between, "latency": 0, "channels": channels,
            "same_channels": same_channels, "nvlink": nvlink, "ll128": True}


NODES = (  # graphs that NCCL's search finds, worked out and seen in logs: tree, ring, NVLS
    {"node": "hgx-h100-400g", "gpus": 8, "channels": 16, "hopper": True, "tree": "plain",
     "graphs": [graph(8, 48, 48), graph(8, 48, 48), graph(8, 40, 48)]},
    {"node": "hgx-h100-400g", "gpus": 2, "channels": 8, "hopper": True, "tree": "plain",
     "graphs": [graph(4, 48, 24), graph(4, 24, 24), graph(2, 48, 48)]},
    {"node": "hgx-h100-400g", "gpus": 1, "channels": 4, "hopper": True, "tree": "plain",
     "graphs": [graph(2, 48, 24, False), graph(2, 24, 24, False, True), graph(0, 0, 0)]},
    {"node": "dgx-a100", "gpus": 8, "channels": 16, "hopper": False, "tree": "balanced",
     "graphs": [graph(8, 30, 24), graph(8, 24, 24), graph(0, 0, 0)]})


def choices():
    """Every fifth of the grid, and the calls of a log of 64 nodes (NVIDIA/nccl issue 1752)."""
    grid = [(node, nodes, func, 1024 << shift)
            for node in NODES for nodes in (2, 3, 4, 8, 16, 64)
            for func in ("allreduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
            for shift in range(0, 22, 2)]
    log = [(NODES[0], 64, "allreduce", size << 20) for size in (16, 32)]
    for node, nodes, func, size in grid[::5] + log:
        ranks = nodes * node["gpus"]
        blocks = func in ("all_gather", "reduce_scatter")
        count = max(1, size // 4 // (ranks if blocks else 1))
        choice = nccl_choices.choose({**node, "ranks": ranks, "nodes": nodes, "func": func,
                                      "elt": 4, "count": count, "nvls": node["gpus"] > 1,
                                      "NCCL_ALGO": "", "NCCL_PROTO": ""})
        yield {"node": node["node"], "gpus": node["gpus"], "nodes": nodes, "func": func,
               "count": count, "choice": f"{choice['algorithm']}/{choice['protocol']}"}


def vectors():
    return compact({"dtree": double_trees_of_even_nodes(),
                    "ring_v2_30": list(rings()),
                    "p2p_schedule": list(p2p_schedules()),
                    "p2p_messages_v2_30": list(p2p_messages()),
                    "pat": list(pat()),
                    "hgx_ring_crossnic2": list(hgx_rings()),
                    "choices": list(choices())})


# ---- nccl_planned.json -----------------------------------------------------------------------


def planned_parts(question):
    """Of every task its channels, and elements and chunk of the first, middle and last of them."""
    ranks, nodes, heads = question["ranks"], question["nodes"], question["heads"]
    tasks = [rules.Task(t["func"], ranks, t["count"], t["elt"], t["protocol"], t["max_channels"])
             for t in question["tasks"]]
    splits = rules.split_over_channels(tasks, question["channels"], question["version"])
    for task, asked, (first, parts) in zip(tasks, question["tasks"], splits):
        elements = [parts[0], parts[1] if len(parts) > 2 else 0, parts[-1] if len(parts) > 1 else 0]
        chunks = [rules.chunk_bytes(asked["algorithm"], task, n, nodes, heads)
                  if n else 0 for n in elements]
        yield {"first": first, "channels": len(parts), "elements": elements, "chunks": chunks}


def planned_pat(question):
    return rules.pat_sends(*(question[key] for key in ("op", "nranks", "rank", "size", "chunk")))


def double_trees_of_odd_nodes():
    root = lambda tree: [-1 if x is None else x for x in tree]
    return [{"nodes": nodes, "rank": rank,
             "t0": root(rules.binary_tree(nodes, rank)),
             "t1": root(rules.second_tree(nodes, rank))}
            for nodes in (3, 5, 7, 9, 11, 13, 15, 17, 31, 33) for rank in range(nodes)]


def planned(old):
    sections = {"splits": [{**q, "parts": list(planned_parts(q))} for q in old["splits"]],
                "choices": [{**q, "choice": nccl_choices.choose(q)} for q in old["choices"]],
                "pat": [{**q, "sends": planned_pat(q)} for q in old["pat"]],
                "double_trees": double_trees_of_odd_nodes()}
    texts = (f'"{name}": [\n' + ",\n".join(map(compact, rows)) + "\n]"
             for name, rows in sections.items())
    return "{\n" + ",\n".join(texts) + "\n}\n"


def first_difference(old, new):
    at = next((k for k, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    begin = max(0, at - 120)
    return f"at character {at}:\n  file  ...{old[begin:at + 60]}\n  rules ...{new[begin:at + 60]}"


def main():
    parser = argparse.ArgumentParser(description="Known answers for the tests of NCCL's schedules.")
    parser.add_argument("--check", action="store_true", help="compare the files, write nothing")
    check = parser.parse_args().check
    differ = False
    try:
        texts = {VECTORS: vectors(), PLANNED: planned(json.loads(PLANNED.read_text()))}
        for path, text in texts.items():
            if not check:
                path.write_text(text)
            elif path.read_text() != text:
                differ = True
                print(f"{path.name} differs from the rules, {first_difference(path.read_text(), text)}",
                      file=sys.stderr)
    except (OSError, ValueError, KeyError) as error:
        print(f"nccl_vectors.py: {error}; restore the file from the repository", file=sys.stderr)
        return 2
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
