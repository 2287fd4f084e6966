#!/usr/bin/env python3
"""Bytes that a real run sends in a step, by ordered pair of hosts, beside those of the ledger.

    wire.py RESULT.json FEW.json MANY.json OUT.json

RESULT is of 'ghostrank run', FEW and MANY are of 'ghostrank diff --iterations STEPS' of it with captures of two runs
that differ in their number of steps. What a run sends besides (rendezvous, parameters, DDP's first two steps) is in
both, so the difference of the two is whole steps. The ledger has no headers of gloo's; they are counted by its
messages. "apart" is what the worst pair has in a step beside ledger and headers, "worst" its share of them.
"""

import json
import sys

# Bytes beside a message, as in collectives/gloo/gloo.h: with it, and from its receiver before it.
FORWARD, BACK = 48 + 48, 48


def load(file):
    with open(file, encoding="utf-8") as text:
        return json.load(text)


def messages_of(result):
    """Messages of a step, by pair of nodes."""
    sums = {}
    for pair in result["traffic"]["pairs"]:
        nodes = tuple(pair[end].split(".")[0] for end in ("src", "dst"))
        sums[nodes] = sums.get(nodes, 0) + pair["messages"]
    return sums


def pairs_of(result, few, many):
    steps, messages = many["iterations"] - few["iterations"], messages_of(result)
    before = {(pair["src"], pair["dst"]): pair["captured_bytes"] for pair in few["pairs"]}
    for pair in many["pairs"]:
        src, dst = pair["src"], pair["dst"]
        ledger = pair["ledger_bytes"] / many["iterations"]
        captured = (pair["captured_bytes"] - before.get((src, dst), 0)) / steps
        headers = FORWARD * messages.get((src, dst), 0) + BACK * messages.get((dst, src), 0)
        yield {"src": src, "dst": dst, "ledger": ledger, "headers": headers, "captured": captured,
               "unexplained": captured - ledger - headers,
               "besides_steps": pair["captured_bytes"] - captured * many["iterations"]}


def main():
    result, few, many = map(load, sys.argv[1:4])
    pairs = list(pairs_of(result, few, many))
    worst = max(pairs, key=lambda pair: abs(pair["unexplained"]))
    apart, expected = worst["unexplained"], worst["ledger"] + worst["headers"]
    share = apart / expected if expected else None
    equal = abs(apart) < 1e-6  # divisions by numbers of steps, of whole bytes
    ledger, headers = (sum(pair[what] for pair in pairs) for what in ("ledger", "headers"))
    besides = max(pair["besides_steps"] for pair in pairs)
    print(f"bytes        {len(pairs)} pairs {'equal' if equal else 'DIFFER'}: {worst['src']} to {worst['dst']} by "
          f"{apart:+,.2f} bytes a step of {expected:,.0f}\n"
          f"             all pairs: ledger {ledger:,.0f} a step, gloo's headers {headers:,.0f}, {headers / ledger:.2%};"
          f" besides steps at most {besides:,.0f} in a pair")
    with open(sys.argv[4], "w", encoding="utf-8") as out:
        json.dump({"steps": [few["iterations"], many["iterations"]], "equal": equal, "worst": share, "apart": apart,
                   "ledger": ledger, "headers": headers, "pairs": pairs}, out)


main()
