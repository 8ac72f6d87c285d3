"""Runs scenarios with an installed SimGrid: builds ``simgrid/ptasks.cpp`` on the spot, once.

A scenario is a plain dictionary (see :mod:`scenarios`). SimGrid is looked for as a C++ library
(``libsimgrid`` and its headers); :func:`available` says whether it is there.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import itertools
import json
import math
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "simgrid"
L07_OPTIONS = ("--cfg=host/model:ptask_L07",)
# SimGrid's default, lazy updates, sometimes leaves a flow its old rate when others arrive.
FULL_UPDATES = ("--cfg=network/optim:Full", "--cfg=cpu/optim:Full")
QUIET = ("--log=root.thres:critical",)
Times = dict[str, tuple[float | None, float | None, str]]
# {"host" or "link": {name: J}}
Joules = dict[str, dict[str, float]]
# Events closer together are one to SimGrid.
SHORTEST_S = 1e-8


class SimGridFailure(Exception):
    """SimGrid aborted, crashed or hung; the message says which and shows its last words."""


@functools.cache
def available() -> bool:
    """Whether a C++ compiler and SimGrid's headers and library are installed."""
    compiler = shutil.which("g++")
    if compiler is None:
        return False
    probe = ["g++", "-x", "c++", "-std=c++17", "-E", "-", "-o", os.devnull]
    done = subprocess.run(probe, input=b"#include <simgrid/s4u.hpp>\n", capture_output=True)
    return done.returncode == 0


@functools.cache
def build(source: str = "ptasks.cpp") -> Path:
    """The program made from a source of ``tests/simgrid``, compiled unless already there."""
    text = (SOURCES / source).read_bytes()
    place = Path(tempfile.gettempdir()) / f"ptaskmodel-simgrid-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    program = place / f"{Path(source).stem}-{hashlib.sha256(text).hexdigest()[:16]}"
    if not program.exists():
        half_done = place / f"{program.name}.{os.getpid()}"
        command = ["g++", "-std=c++17", "-O2", str(SOURCES / source), "-o", str(half_done)]
        subprocess.run([*command, "-lsimgrid"], check=True, capture_output=True)
        half_done.replace(program)
    return program


def scenario_lines(scenario: dict) -> list[str]:
    """The scenario in the language of ``ptasks.cpp``."""
    quote = _quote
    lines = [f"observer {quote(scenario['observer'])}"] if scenario.get("observer") else []
    lines.append("actors")
    for task in scenario["tasks"]:
        lines.append(_task_line(task))
    for task in scenario["tasks"]:
        if task.get("after"):
            lines.append(f"after {task['id']} {len(task['after'])} {' '.join(task['after'])}")
    for date, what, target, *value in scenario.get("events", ()):
        lines.append(f"event {date!r} {what} {quote(target)} {value[0] if value else ''}")
    for task in scenario["tasks"]:
        if "walltime" in task:
            lines.append(f"event {task['start'] + task['walltime']!r} cancel {task['id']}")
    return lines


def _quote(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _task_line(task: dict) -> str:
    hosts = " ".join(_quote(h) for h in task["hosts"])
    head = f"{task['id']} {task['start']!r}"
    if "seconds" in task:
        return f"sleep {head} {hosts} {task['seconds']!r}"
    flops = task.get("flops") or [0.0] * len(task["hosts"])
    flows = task.get("flows", [])
    if task.get("plain") == "comm":
        rate = f" rate={task['rate']!r}" if "rate" in task else ""
        return f"comm {head} {hosts} {int(flows[0][2])}{rate}"
    if task.get("plain") == "exec":
        extra = "".join(f" {k}={task[k]!r}" for k in ("priority", "bound", "threads") if k in task)
        return f"exec {head} {hosts} {flops[0]!r}{extra}"
    amounts = " ".join(repr(float(f)) for f in flops)
    sent = " ".join(f"{i} {j} {float(b)!r}" for i, j, b in flows)
    return f"ptask {head} {len(flops)} {hosts} {amounts} {len(flows)} {sent}"


def write_platform(scenario: dict, place: Path) -> Path:
    """The path of the scenario's platform, written into ``place`` if the scenario holds it."""
    if "platform_path" in scenario:
        return Path(scenario["platform_path"])
    for name, text in scenario.get("files", {}).items():
        (place / name).write_text(text)
    path = place / "platform.xml"
    path.write_text(scenario["platform_xml"])
    return path


def launch(
    platform: Path, lines: list[str], options: tuple[str, ...], timeout_s: float
) -> subprocess.CompletedProcess:
    """Run ``ptasks`` on a scenario; raises :class:`SimGridFailure` unless it ends well."""
    with tempfile.TemporaryDirectory() as place:
        text = Path(place) / "scenario.txt"
        text.write_text("\n".join(lines) + "\n")
        command = [str(build()), str(platform), str(text), *options, *QUIET]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise SimGridFailure(f"hang: nothing after {timeout_s} s") from None
    if done.returncode != 0:
        words = (done.stderr + done.stdout).strip()[-2000:]
        kind = "bmf abort" if "Unable to find a BMF" in words else f"exit {done.returncode}"
        raise SimGridFailure(f"{kind}: {words}")
    return done


def run(
    scenario: dict,
    *,
    solver: str = "fairbottleneck",
    options: tuple[str, ...] = (),
    timeout_s: float = 20.0,
) -> Times:
    """{task id: (start, finish, state)} by SimGrid; None for a date that never came.

    ``solver``: fairbottleneck or bmf for parallel tasks (L07); LV08, CM02 ... name the network
    model of plain communications and executions instead.
    """
    if solver in ("fairbottleneck", "bmf"):
        model = (*L07_OPTIONS, f"--cfg=host/solver:{solver}")
    else:
        model = (f"--cfg=network/model:{solver}", *FULL_UPDATES)
    with tempfile.TemporaryDirectory() as place:
        platform = write_platform(scenario, Path(place))
        lines = scenario_lines(scenario)
        done = launch(platform, lines, (*model, *options), timeout_s)
    times: Times = {}
    killed = {t["id"] for t in scenario["tasks"] if "walltime" in t}
    for line in done.stdout.splitlines():
        kind, *rest = line.split()
        if kind == "task":
            task_id, start, finish, state = rest
            if state == "cancelled" and task_id in killed:
                state = "walltime"
            times[task_id] = (_date(start), _date(finish), state)
    return times


def joules(scenario: dict, dates: list[float], *, timeout_s: float = 20.0) -> Joules:
    """The integral of what SimGrid's hosts and links draw up to the last of these dates.

    dates: all at which something changes. Asked only at some dates, its plugins charge a whole
    interval with what is in use at its end; so it is asked twice inside each.
    """
    plugins = ("--cfg=plugin:host_energy", "--cfg=plugin:link_energy")
    options = (*L07_OPTIONS, "--cfg=host/solver:fairbottleneck", *plugins)
    spans = [(a, b) for a, b in itertools.pairwise([0.0, *dates]) if b - a > SHORTEST_S]
    asked = [a + part * (b - a) for a, b in spans for part in (0.25, 0.75)]
    with tempfile.TemporaryDirectory() as place:
        platform = write_platform(scenario, Path(place))
        numbers = " ".join(map(repr, asked))
        lines = [*scenario_lines(scenario), f"joules {len(asked)} {numbers}"]
        done = launch(platform, lines, options, timeout_s)
    said: dict[tuple[str, str], list[float]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("joules "):
            _, kind, name, value = shlex.split(line)
            said.setdefault((kind, name), []).append(float(value))
    found: Joules = {"host": {}, "link": {}}
    for (kind, name), values in said.items():
        parts = zip(spans, values[::2], values[1::2], asked[::2], asked[1::2], strict=True)
        watts = [((b - a), (later - first) / (y - x)) for (a, b), first, later, x, y in parts]
        found[kind][name] = math.fsum(lasts * drawn for lasts, drawn in watts)
    return found


def _date(word: str) -> float | None:
    return None if word == "-" else float(word)


def host_names(platform: Path) -> list[str]:
    """The names of all hosts of a platform."""
    done = launch(platform, ["hosts"], L07_OPTIONS, 60.0)
    return [shlex.split(line)[1] for line in done.stdout.splitlines() if line.startswith("name")]


def describe(platform: Path, hosts: list[str], *, options: tuple[str, ...] = L07_OPTIONS) -> dict:
    """Facts about these hosts and the routes between them, as :mod:`naive` takes them."""
    names = " ".join(_quote(h) for h in hosts)
    done = launch(platform, [f"describe {len(hosts)} {names}"], options, 60.0)
    facts: dict = {"hosts": {}, "links": {}, "routes": {}}
    for line in done.stdout.splitlines():
        kind, *rest = shlex.split(line)
        if kind == "host":
            speeds = [float(s) for s in rest[4:]]
            facts["hosts"][rest[0]] = {
                "cores": int(rest[1]),
                "pstate": int(rest[2]),
                "speeds": speeds,
            }
        elif kind == "link":
            facts["links"][rest[0]] = {
                "bandwidth": float(rest[1]),
                "latency": float(rest[2]),
                "fatpipe": rest[3] == "1",
            }
        elif kind == "route":
            facts["routes"][rest[0], rest[1]] = (rest[3:], float(rest[2]))
    return facts


def keep(place: Path, seeds: Iterable[int], record: Callable[[int], dict]) -> None:
    """Write what SimGrid makes of random scenarios into a reference file, whole.

    record: what is kept of a seed. Those on which SimGrid hangs or crashes are left out.
    """
    kept = []
    for seed in seeds:
        try:
            kept.append(record(seed))
        except SimGridFailure as failure:
            print(f"left out {seed}: {str(failure)[:80]}")
    text = json.dumps(kept, separators=(",", ":")).encode()
    half_done = place.with_suffix(".part")
    half_done.write_bytes(gzip.compress(text, 9, mtime=0))
    half_done.replace(place)
    print(f"{len(kept)} scenarios, {place.stat().st_size} bytes")
