"""What the tables of published rows share: playing a job in virtual time, tables, documents."""
import json
import pathlib
import subprocess


class Player:
    """Plays jobs with BINARY in FOLDER, each text once."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = pathlib.Path(folder)
        self.results = {}

    def result(self, job):
        """The JSON result of a job's text."""
        if job not in self.results:
            file, out = self.folder / "job.yaml", self.folder / "result.json"
            file.write_text(job)
            subprocess.run([self.binary, "run", file, "-q", "--json", out], check=True)
            self.results[job] = json.loads(out.read_text())
        return self.results[job]

    def step(self, job):
        """Seconds of a step: the median."""
        return self.result(job)["step_time"]["median"]


def efficiency(step, seconds):
    """The share of a device's peak with which step(share) takes so long. What does not depend on
    it, like the optimizer, is why it is looked for in a few turns."""
    found = 0.5
    for _ in range(4):
        found *= step(found) / seconds
    return found


def table(rows):
    """Markdown; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|"] + lines[1:])


def off(ours, published):
    """'+3 %'"""
    return f"{100 * (ours / published - 1):+.0f} %"


def write_section(document, name, text):
    """Puts TEXT between the marks `NAME: begin` and `NAME: end` of DOCUMENT."""
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    path = pathlib.Path(document)
    old = path.read_text()
    path.write_text(old[:old.index(begin)] + begin + "\n" + text + "\n" + old[old.index(end):])
