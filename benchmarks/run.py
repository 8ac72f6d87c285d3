"""Runs the benchmarks and writes their sections of benchmarks/README.md.

    python benchmarks/run.py [--repetitions 3] [--only SECTION ...] [--logs DIR] [--before DIR]

Without ``--only``, all sections that can be made here; each says what it needs. A section stays as
it was until it is made anew; its last line says when and on what machine.
"""

from __future__ import annotations

import argparse
import os
import platform as machine
import re
import tempfile
import time
from pathlib import Path

import against_simgrid
import batches
import growth
import replays
from costs import ROOT

README = ROOT / "benchmarks" / "README.md"
SECTIONS = {
    "simgrid": against_simgrid,
    "growth": growth,
    "batches": batches,
    "replays": replays,
}


def replaced(text: str, heading: str, body: str) -> str:
    """The page with the section of this heading made anew, or added at its end."""
    made = f"## {heading}\n\n{body}\n"
    found = re.search(rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        return f"{text.rstrip()}\n\n{made}"
    rest = text[found.end() :]
    return text[: found.start()] + made + ("\n" + rest if rest else "")


def cpu_name() -> str:
    """The processor's name, and how many there are."""
    name = machine.processor() or machine.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name} ({os.cpu_count()} processors)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--logs", type=Path, help="folder with the logs of the section on batches")
    parser.add_argument("--accasim", help="an interpreter with AccaSim, for that section")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version to run beside")
    options = parser.parse_args()
    given = {
        "simgrid": (options.before,),
        "growth": (options.before,),
        "batches": (options.logs, options.accasim),
        "replays": (),
    }
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for name in options.only:
            module = SECTIONS[name]
            if module is batches and options.logs is None:
                print("batches: left as they are without --logs", flush=True)
                continue
            body = module.section(options.repetitions, place, *given[name])
            said = (
                f"*{time.strftime('%Y-%m-%d')}, {cpu_name()}, {options.repetitions} repetitions.*"
            )
            text = replaced(README.read_text(), module.HEADING, f"{body}\n\n{said}")
            half_done = README.with_suffix(".part")
            half_done.write_text(text)
            half_done.replace(README)


if __name__ == "__main__":
    main()
