#!/usr/bin/env python3
"""Whether training still learns when gradients are compressed, with and without error feedback.

    learning.py BINARY JOB [DOCUMENT]

Plays JOB (a logistic regression that the ranks of a verified run train with what they receive) for
every method and every memory that it can have. The goal is the loss that plain gradients reach in
STEPS steps; each is given half as many more. Prints a markdown table of the steps that they need,
and writes it into the section "fidelity learning" of DOCUMENT. Exit status 1 where a method with
error feedback needs more, or where a verified element was wrong.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

STEPS, MORE = 200, 1.5
METHODS = ("fp16 bf16 topk randomk threshold dgc adaq redsync gaussian_ksgd sidco-e sidco-p sidco-gp qsgd "
           "terngrad signsgd signum efsignsgd onebit natural 8bit sketch powersgd inceptionn").split()
MEMORIES = "none residual efsignsgd powersgd dgc".split()
# dgc gives a gradient less than its full weight where it masks momentum: shown, and not bound.
FEEDBACK = "residual efsignsgd powersgd".split()


def losses(binary, job, result, method, memory):
    """The loss after every step; None: the method cannot have the memory."""
    result.unlink(missing_ok=True)
    command = [binary, "run", job, "-q", "--allow-unfaithful", "--json", result,
               "-s", f"run.iterations={int(STEPS * MORE)}", "-s", f"compression.method={method}"]
    if memory != "none":
        command += ["-s", f"compression.memory={memory}"]
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if run.returncode == 2 and "compression.memory" in run.stderr:
        return None
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stderr}")
    got = json.loads(result.read_text())
    if got["verify"]["wrong_elements"]:
        sys.exit(f"{method} with {memory}: {got['verify']['wrong_elements']} wrong elements")
    return got["training"]["loss"]


def needed(loss, goal):
    """Steps until the loss is as low as the goal; None: it never is."""
    return next((i + 1 for i, one in enumerate(loss) if one <= goal), None)


def cell(loss, goal):
    if loss is None:
        return ""
    steps = needed(loss, goal)
    return str(steps) if steps else f"no: {loss[-1]:.3f}"


def main(binary, job, document=None):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        plain = losses(binary, job, result, "none", "none")
        goal = plain[STEPS - 1]
        rows, missed = [], []
        for method in METHODS:
            by_memory = {m: losses(binary, job, result, method, m) for m in MEMORIES}
            rows.append([method] + [cell(by_memory[m], goal) for m in MEMORIES])
            for memory in FEEDBACK:
                if by_memory[memory] is not None and not needed(by_memory[memory], goal):
                    missed.append(f"{method} with {memory}")
    head = ["method"] + ["without" if m == "none" else f"`{m}`" for m in MEMORIES]
    lines = [f"Plain gradients: loss {plain[0]:.3f} after one step, {goal:.3f} after {STEPS}. Steps to "
             f"that, of at most {int(STEPS * MORE)}, or the loss after those:", "",
             "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", "With error feedback all reach it." if not missed else
              "With error feedback all reach it but " + ", ".join(missed) + "."]
    text = "\n".join(lines)
    print(text)
    if document:
        begin, end = (f"<!-- fidelity learning: {word} -->" for word in ("begin", "end"))
        path = pathlib.Path(document)
        old = path.read_text()
        path.write_text(old[:old.index(begin)] + begin + "\n" + text + "\n" + old[old.index(end):])
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
