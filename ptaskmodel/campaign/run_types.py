"""Kinds of runs that a campaign names: built-in ones (simulate, batch, ...) or a user's function.

A kind lists its parameters, which of them are files, and what executes it. Platforms and workloads
stay in the memory of a worker process for its next run.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ptaskmodel.batch.allocations import FILE_MARK
from ptaskmodel.errors import CampaignError, SlurmError, shown
from ptaskmodel.files import digest
from ptaskmodel.plugins import load, sources

Parameters = Mapping[str, Any]
Numbers = dict[str, float | int]

# What is said of a run that is not a result of it.
NOT_METRICS = ("format", "versions", "inputs", "remarks", "files", "series")
# What a run may give beside numbers: kept with it, for pictures.
SERIES = "series"
# How many platforms, workloads ... a worker keeps.
KEPT = 8
# Keys of a slurm.conf that runs change.
CHANGES = "set"
# Parameters of `batch` that change the workload, in the order in which they do.
TRANSFORMS = ("jobs", "shuffle", "sample", "shrink", "load", "load_factor")
# A policy of the user's, and partitions in a file.
WITHIN = {"policy": re.compile(r"^(.+\.py):"), "allocation": re.compile(f"^{FILE_MARK}(.+)")}
BATCH_FILES = ("platform", "workload", "failures", "maintenance", "calibration")
_MAPPINGS = ("policy_options", "storages", "failure_law", "checkpoint", "licences")
_MODEL = {"platform", "solver", "network_model"}
_SIMULATE = frozenset(_MODEL | {"tasks", "calibration", "group", "count", "until", "energy"})
_SLURM = frozenset(
    ("platform", "conf", "workload", "accounts", "processors_per_node", "seed", "jobs")
)
_REPLAY = frozenset(_MODEL | {"traces", "ranks", "hosts", "per_host"})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run.

    run: gives what `numbers_of` takes, and under `SERIES` anything that JSON holds. files:
    parameters that name files; within: those whose texts hold the name of one, if its pattern
    finds it (its group); needed: those that must be given; known: all, or None if any
    may be; made: those given as ``NAME.KEY``. metrics: what tables show if nothing is said.
    version: what identifies the code, beside the
    version of the package.
    """

    name: str
    run: Callable[[Parameters], Mapping[str, Any]]
    files: tuple[str, ...]
    needed: tuple[str, ...] = ()
    known: Callable[[], frozenset[str]] | None = None
    made: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    version: str = ""
    check: Callable[[Iterable[str]], None] | None = None
    within: Mapping[str, re.Pattern[str]] = field(default_factory=dict)

    def file_in(self, name: str, value: object) -> str | None:
        """The name of a file that the value of a parameter is or holds; None: it has none."""
        if name in self.files:
            return str(value)
        found = self.within[name].search(str(value)) if name in self.within else None
        return None if found is None else found[1]

    def with_file(self, name: str, value: object, file: str) -> str:
        """The value of a parameter with another name of its file."""
        found = self.within[name].search(str(value)) if name in self.within else None
        if found is None:
            return file
        return found.string[: found.start(1)] + file + found.string[found.end(1) :]

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
        if self.check is not None:
            self.check(given)
        for name in self.needed:
            if name not in given:
                raise CampaignError(
                    f"{self.name} needs '{name}'; give it in [parameters] or [factors]"
                )


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
    from ptaskmodel.mpi import read_trace

    return read_trace(path, ranks)


def _transformed(workload: Any, given: dict[str, Any], seed: int, hosts: int) -> Any:
    """The workload as the parameters of `TRANSFORMS` ask for, which are taken out."""
    from ptaskmodel.workload.transforms.sampling import sampled, shuffled
    from ptaskmodel.workload.transforms.scaling import loaded, offered_load, shrunk

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


def run_batch_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel batch`, its summary."""
    from ptaskmodel.batch.plan import BatchOptions
    from ptaskmodel.calibration import apply_to_jobs, parse_labels
    from ptaskmodel.runs.batch import BatchWriting, batch_into, without_larger

    given = dict(parameters)
    platform = _platform(given.pop("platform"))
    workload = _workload(given.pop("workload"), given.pop("processors_per_host", 1))
    writing = BatchWriting(given.pop("tau", 60.0))
    larger = given.pop("leave_out_larger", False)
    if larger:
        workload = without_larger(workload, platform)
    workload = _transformed(workload, given, given.get("seed", 0), len(platform.hosts))
    group = parse_labels(given.pop("group", ""))
    if "calibration" in given:
        workload = apply_to_jobs(given.pop("calibration"), workload, group)
    run = batch_into(None, platform, workload, BatchOptions(**_nested(given)), writing)
    return run.summary


def run_simulation_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel simulate`, its summary."""
    from ptaskmodel.calibration import apply, parse_labels
    from ptaskmodel.runs.simulate import SimulationOptions, simulate_into

    given = dict(parameters)
    platform, tasks = _platform(given.pop("platform")), _tasks(given.pop("tasks"))
    group = parse_labels(given.pop("group", ""))
    if "calibration" in given:
        platform, tasks = apply(given.pop("calibration"), platform, tasks, group)
    return simulate_into(None, platform, tasks, SimulationOptions(**given)).summary


def run_replay_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel replay`, its summary."""
    from ptaskmodel.mpi import hosts_named, hosts_of_ranks
    from ptaskmodel.runs.replay import replay_into

    given = dict(parameters)
    platform = _platform(given.pop("platform"))
    trace = _trace(given.pop("traces"), given.pop("ranks", None))
    names = given.pop("hosts", None)
    named = None if names is None else hosts_named(names)
    where = hosts_of_ranks(platform, trace.ranks, hosts=named, per_host=given.pop("per_host", 1))
    model, solver = given.get("network_model"), given.get("solver")
    run = replay_into(None, platform, trace, where, model=model, solver=solver)
    return run.summary


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


def _of_batch() -> frozenset[str]:
    from ptaskmodel.batch.plan import BatchOptions

    options = {field.name for field in dataclasses.fields(BatchOptions)}
    more = ("platform", "workload", "calibration", "group", "tau", "processors_per_host")
    return frozenset(
        options - {*_MAPPINGS, "neighbours"} | {*more, "leave_out_larger", *TRANSFORMS}
    )


def run_slurm_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel slurm`, its summary."""
    from ptaskmodel.runs.slurm import slurm_into
    from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
    from ptaskmodel.slurm.conf.phases import drawn

    given = _nested(parameters)
    changes = tuple(given.get(CHANGES, {}).items())
    per_node = given.get("processors_per_node")
    conf, submissions = _submissions(given["conf"], changes, given["workload"], per_node)
    if "jobs" in given:
        submissions = replace(submissions, jobs=submissions.jobs[: given["jobs"]])
    run = slurm_into(
        None,
        conf,
        submissions,
        accounts=read_accounts(given["accounts"]) if "accounts" in given else None,
        phases=drawn(given.get("seed", 0), submissions.t0 or 0),
        platform=_platform(given["platform"]) if "platform" in given else None,
    )
    return run.summary


@functools.lru_cache(maxsize=KEPT)
def _submissions(
    conf_path: str, changes: tuple[tuple[str, Any], ...], path: str, per_node: int | None
) -> Any:
    from ptaskmodel.slurm.conf.reading import read_conf
    from ptaskmodel.slurm.requests.submissions import read_submissions

    conf = read_conf(conf_path, dict(changes))
    return conf, read_submissions(path, conf, processors_per_node=per_node)


def _check_changes(names: Iterable[str]) -> None:
    """Raises CampaignError for a key that no slurm.conf has."""
    from ptaskmodel.slurm.conf.reading import check_names

    try:
        check_names(name.removeprefix(f"{CHANGES}.") for name in names if "." in name)
    except SlurmError as error:
        raise CampaignError(f"{CHANGES}: {error}") from None


KINDS = {
    "batch": Kind(
        "batch",
        run_batch_of,
        BATCH_FILES,
        ("platform", "workload"),
        _of_batch,
        _MAPPINGS,
        ("makespan_s", "waiting_s.mean", "bounded_slowdown.mean", "utilisation"),
        within=WITHIN,
    ),
    "simulate": Kind(
        "simulate",
        run_simulation_of,
        ("platform", "tasks", "calibration"),
        ("platform", "tasks"),
        lambda: _SIMULATE,
        metrics=("makespan",),
    ),
    "replay": Kind(
        "replay",
        run_replay_of,
        ("platform", "traces"),
        ("platform", "traces"),
        lambda: _REPLAY,
        metrics=("makespan",),
    ),
    "slurm": Kind(
        "slurm",
        run_slurm_of,
        ("conf", "workload", "platform", "accounts"),
        ("conf", "workload"),
        lambda: _SLURM,
        (CHANGES,),
        ("makespan_s", "waiting_s.mean", "bounded_slowdown.mean", "utilisation"),
        check=_check_changes,
    ),
}


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
    try:
        files_of_it = sources(source)
    except (SyntaxError, ValueError) as fault:
        raise CampaignError(f"run: {source} is no Python file: {fault}") from None
    version = hashlib.sha256("".join(map(digest, files_of_it)).encode()).hexdigest()
    made = _function(str(source.resolve()), function, version)
    return Kind(name, made, tuple(files), version=version)


@functools.lru_cache(maxsize=KEPT)
def _function(path: str, name: str, version: str) -> Callable[[Parameters], Any]:
    """A function of a file of the user's."""
    mark = hashlib.sha256(f"{path}{version}".encode()).hexdigest()[:16]
    function = getattr(load(Path(path), f"_campaign_{mark}"), name, None)
    if not callable(function):
        raise CampaignError(f"run: {path} has no function '{name}'")

    def run(parameters: Parameters) -> Any:
        return function(dict(parameters))

    return run
