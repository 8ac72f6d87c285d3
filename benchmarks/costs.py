"""What a run costs: seconds on a processor and memory, of a process of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


@dataclass
class Cost:
    """Seconds on a processor, and memory, of the runs of one simulator on one scenario.

    run_s: of the simulation alone; whole_s: of the process; steps: of ours, as `ours.py` says them.
    """

    run_s: list[float] = field(default_factory=list)
    setup_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    steps: list[dict[str, float]] = field(default_factory=list)
    rss_MB: list[float] = field(default_factory=list)
    events: int = 0
    jobs: int = 0
    dates: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return min(self.run_s)

    @property
    def whole(self) -> float:
        return min(self.whole_s)

    def step(self, *names: str) -> float:
        """The least that these steps took together, s."""
        return min(sum(steps[name] for name in names) for steps in self.steps)


def run_process(
    command: Sequence[str], extra: dict[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a program on one thread: what it said, and its seconds on a processor, user and system.

    Modules are compiled once, as those of an installed package are. Stops the benchmark, with the
    program's last words, where it fails.
    """
    ours = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", "OMP_NUM_THREADS": "1"}
    environment = os.environ | ours | (extra or {})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        list(command), env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:300]}: {done.stderr.strip()[-2000:]}")
    return done, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def largest_difference(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Largest relative difference of two sets of dates of the same tasks."""
    if a.keys() != b.keys():
        raise SystemExit("the two simulators did not finish the same tasks")
    return max(abs(a[k] - b[k]) / max(abs(a[k]), abs(b[k]), 1e-300) for k in a)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table; the first ``words`` columns are words, the others numbers."""
    lines = [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * words + "--:|" * (len(head) - words),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines)
