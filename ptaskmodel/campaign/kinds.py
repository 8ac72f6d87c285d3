"""What a run of a campaign is: simulate, batch or replay, or a function of the user's.

A kind knows its parameters (which of them are files) and gives the numbers of a run. What a worker
reads from files it keeps, so that the next run finds platform and workload in memory.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptaskmodel import kernel_sets
from ptaskmodel.errors import CampaignError, shown
from ptaskmodel.files import digest

Parameters = Mapping[str, Any]
Numbers = dict[str, float | int]

# How many platforms, workloads ... a worker keeps.
KEPT = 8
# What is said of a run that is not a result of it.
NOT_METRICS = ("format", "versions", "inputs", "notes", "files")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run.

    files: parameters that name files; kernels: the sets of them (see `kernel_sets`) that a run of
    such parameters needs; needed: those that must be given; known: all, or None if any
    may be; made: those given as ``NAME.KEY``. metrics: what tables show if nothing is said.
    version: what identifies the code, beside the
    version of the package.
    """

    name: str
    run: Callable[[Parameters], Numbers]
    files: tuple[str, ...]
    kernels: Callable[[Parameters], tuple[str, ...]]
    needed: tuple[str, ...] = ()
    known: Callable[[], frozenset[str]] | None = None
    made: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    version: str = ""

    def check_names(self, names: Iterable[str]) -> None:
        """Raises CampaignError for a parameter that this kind does not know, or lacks."""
        given = list(names)
        if self.known is not None:
            known = self.known()
            for name in given:
                head, dot, _ = name.partition(".")
                if name not in known and not (dot and head in self.made):
                    near = difflib.get_close_matches(name, known, 1)
                    listed = f": use one of {', '.join(sorted(known))}"
                    hint = f"; did you mean '{near[0]}'?" if near else listed
                    raise CampaignError(f"{self.name} has no parameter '{name}'{hint}")
        for name in self.needed:
            if name not in given:
                raise CampaignError(
                    f"{self.name} needs '{name}'; give it in [parameters] or [factors]"
                )


def kind_of(name: str, files: Iterable[str], folder: Path) -> Kind:
    """The kind called so: a built-in one or ``FILE.py:FUNCTION``, relative to a folder.

    files: of a function, which of its parameters are files. Raises CampaignError.
    """
    if name in KINDS:
        return KINDS[name]
    path, mark, function = name.rpartition(":")
    if not mark or not path.endswith(".py") or not function.isidentifier():
        raise CampaignError(
            f"run: {shown(name)} is unknown: use one of {', '.join(KINDS)} or FILE.py:FUNCTION"
        )
    source = folder / path
    if not source.is_file():
        raise CampaignError(f"run: {source}: no such file")
    version = digest(source)
    made = _function(str(source.resolve()), function, version)
    return Kind(name, made, tuple(files), lambda _: (), version=version)


@functools.lru_cache(maxsize=KEPT)
def _function(path: str, name: str, version: str) -> Callable[[Parameters], Numbers]:
    """A function of a file of the user's."""
    module_name = f"_campaign_{hashlib.sha256(f'{path}{version}'.encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise CampaignError(f"run: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise CampaignError(f"run: {path} has no function '{name}'")

    def run(parameters: Parameters) -> Numbers:
        return numbers_of(function(dict(parameters)))

    return run


def numbers_of(found: object) -> Numbers:
    """The finite numbers in what a run gave, ``NAME.KEY`` for those inside others.

    Raises CampaignError if it is no mapping of names, or holds no number.
    """
    numbers: Numbers = {}

    def gather(prefix: str, value: object) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if prefix or key not in NOT_METRICS:
                    gather(f"{prefix}.{key}" if prefix else str(key), inner)
        elif isinstance(value, bool):
            numbers[prefix] = int(value)
        elif isinstance(value, int | float) and math.isfinite(value):
            numbers[prefix] = value
        elif hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
            gather(prefix, value.item())

    if not isinstance(found, Mapping):
        raise CampaignError(f"a run gave {shown(found)}; give a mapping from names to numbers")
    gather("", found)
    if not numbers:
        raise CampaignError("a run gave no finite number; give a mapping from names to numbers")
    return numbers


# The built-in kinds


@functools.lru_cache(maxsize=KEPT)
def _platform(path: str) -> Any:
    from ptaskmodel.platform import load_platform

    return load_platform(path)


@functools.lru_cache(maxsize=KEPT)
def _workload(path: str, processors_per_host: int) -> Any:
    from ptaskmodel.workload.formats.table import Cleaning
    from ptaskmodel.workload.reading import read_workload

    return read_workload(path, Cleaning(processors_per_host))


@functools.lru_cache(maxsize=KEPT)
def _tasks(path: str) -> Any:
    from ptaskmodel.workload.formats.tasks_json import load_tasks

    return load_tasks(path)


@functools.lru_cache(maxsize=KEPT)
def _trace(path: str, ranks: int | None) -> Any:
    from ptaskmodel.replay import read_trace

    return read_trace(path, ranks)


# Parameters of `batch` that change the workload, in the order in which they do.
TRANSFORMS = ("jobs", "shuffle", "sample", "shrink", "load", "load_factor")
BATCH_FILES = ("platform", "workload", "failures", "maintenance")


def _transformed(workload: Any, given: dict[str, Any], seed: int, hosts: int) -> Any:
    """The workload as the parameters of `TRANSFORMS` ask for, which are taken out."""
    from ptaskmodel.workload.transforms.sampling import sampled
    from ptaskmodel.workload.transforms.scaling import loaded, offered_load, shrunk
    from ptaskmodel.workload.transforms.shuffling import shuffled

    steps: dict[str, Callable[[Any, Any], Any]] = {
        "jobs": lambda made, count: made.with_jobs(made.jobs[:count], f"the first {count} jobs"),
        "shuffle": lambda made, asked: shuffled(made, seed, "kept") if asked else made,
        "sample": lambda made, ratio: sampled(made, ratio),
        "shrink": lambda made, factor: shrunk(made, factor),
        "load": lambda made, load: loaded(made, load / offered_load(made, hosts)),
        "load_factor": lambda made, factor: loaded(made, factor),
    }
    for name in TRANSFORMS:
        if name in given:
            workload = steps[name](workload, given.pop(name))
    return workload


def run_batch_of(parameters: Parameters) -> Numbers:
    """`ptaskmodel batch`, its summary."""
    from ptaskmodel.batch.plan import BatchOptions
    from ptaskmodel.results.batches import BatchWriting, batch_into, without_larger

    given = dict(parameters)
    platform = _platform(given.pop("platform"))
    workload = _workload(given.pop("workload"), given.pop("processors_per_host", 1))
    writing = BatchWriting(given.pop("tau", 60.0))
    larger = given.pop("leave_out_larger", False)
    if larger:
        workload = without_larger(workload, platform)
    workload = _transformed(workload, given, given.get("seed", 0), len(platform.hosts))
    run = batch_into(None, platform, workload, BatchOptions(**_nested(given)), writing)
    return numbers_of(run.summary)


def run_simulation_of(parameters: Parameters) -> Numbers:
    """`ptaskmodel simulate`, its summary."""
    from ptaskmodel.calibration import apply, parse_labels
    from ptaskmodel.results.runs import SimulationOptions, simulate_into

    given = dict(parameters)
    platform, tasks = _platform(given.pop("platform")), _tasks(given.pop("tasks"))
    group = parse_labels(given.pop("group", ""))
    if "calibration" in given:
        platform, tasks = apply(given.pop("calibration"), platform, tasks, group)
    return numbers_of(simulate_into(None, platform, tasks, SimulationOptions(**given)).summary)


def run_replay_of(parameters: Parameters) -> Numbers:
    """`ptaskmodel replay`, its summary."""
    from ptaskmodel.replay import hosts_named, hosts_of_ranks
    from ptaskmodel.results.replays import replay_into

    given = dict(parameters)
    platform = _platform(given.pop("platform"))
    trace = _trace(given.pop("traces"), given.pop("ranks", None))
    names = given.pop("hosts", None)
    named = None if names is None else hosts_named(names)
    where = hosts_of_ranks(platform, trace.ranks, hosts=named, per_host=given.pop("per_host", 1))
    model, solver = given.get("network_model"), given.get("solver")
    run = replay_into(None, platform, trace, where, model=model, solver=solver)
    return numbers_of(run.summary)


def _nested(given: Parameters) -> dict[str, Any]:
    """``NAME.KEY`` as mappings."""
    nested: dict[str, Any] = {}
    for name, value in given.items():
        head, dot, key = name.partition(".")
        if dot:
            nested.setdefault(head, {})[key] = value
        else:
            nested[name] = value
    return nested


_MAPPINGS = ("policy_options", "storages", "failure_law", "checkpoint", "licences")


def _of_batch() -> frozenset[str]:
    from ptaskmodel.batch.plan import BatchOptions

    options = {field.name for field in dataclasses.fields(BatchOptions)}
    more = ("platform", "workload", "tau", "processors_per_host", "leave_out_larger", *TRANSFORMS)
    return frozenset(options - {*_MAPPINGS, "neighbours"} | set(more))


def _kernels_of_batch(parameters: Parameters) -> tuple[str, ...]:
    """Those of simulations, unless the jobs are delays: of a log, as it is."""
    log = str(parameters["workload"]).endswith((".swf", ".swf.gz"))
    delays = {"as-given": log, "delay": log}.get(parameters.get("profiles", "as-given"), False)
    return ("batches",) if delays else kernel_sets.SIMULATION


_MODEL = {"platform", "solver", "network_model"}
_SIMULATE = frozenset(_MODEL | {"tasks", "calibration", "group", "count", "until", "energy"})
_REPLAY = frozenset(_MODEL | {"traces", "ranks", "hosts", "per_host"})
KINDS = {
    "batch": Kind(
        "batch",
        run_batch_of,
        BATCH_FILES,
        _kernels_of_batch,
        ("platform", "workload"),
        _of_batch,
        _MAPPINGS,
        ("makespan_s", "waiting_s.mean", "bounded_slowdown.mean", "utilisation"),
    ),
    "simulate": Kind(
        "simulate",
        run_simulation_of,
        ("platform", "tasks", "calibration"),
        lambda _: kernel_sets.SIMULATION,
        ("platform", "tasks"),
        lambda: _SIMULATE,
        metrics=("makespan",),
    ),
    "replay": Kind(
        "replay",
        run_replay_of,
        ("platform", "traces"),
        lambda _: kernel_sets.REPLAY,
        ("platform", "traces"),
        lambda: _REPLAY,
        metrics=("makespan",),
    ),
}
