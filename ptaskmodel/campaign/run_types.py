"""Kinds of runs that a campaign names: built-in ones (simulate, batch, ...) or a user's function.

A kind lists its parameters, which of them are files, and what executes it. Platforms and workloads
stay in the memory of a worker process for its next run.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptaskmodel import interrupts
from ptaskmodel.batch.allocations import FILE_MARK
from ptaskmodel.errors import CampaignError, SlurmError, shown
from ptaskmodel.files import digest
from ptaskmodel.lazy import UNTIL
from ptaskmodel.named_files import load, sources
from ptaskmodel.options import FILE, PAIRS, Option
from ptaskmodel.remarks import warn
from ptaskmodel.runs.options import REPLAY, SIMULATE
from ptaskmodel.runs.scheduling_options import BATCH, CHANGES, FIRST_JOBS, SLURM, TRANSFORMS

Parameters = Mapping[str, Any]
Numbers = dict[str, float | int]

# What is said of a run that is not a result of it.
NOT_METRICS = ("format", "versions", "inputs", "parameters", "remarks", "files", "series")
# What a run may give beside numbers: kept with it, for pictures.
SERIES = "series"
# How many platforms, workloads ... a worker keeps.
KEPT = 16
# A policy of the user's, and partitions in a file.
WITHIN = {"policy": re.compile(r"^(.+\.py):"), "allocation": re.compile(f"^{FILE_MARK}(.+)")}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run.

    run: gives what `numbers_of` takes, and under `SERIES` anything that JSON holds. files:
    parameters that name files; within: those whose texts hold the name of one, if its pattern
    finds it (its group); needed: those that must be given; known: all, or None if any
    may be; made: those given as ``NAME.KEY``. metrics: what tables show if nothing is said.
    version: what identifies the code, beside the version of the package. options: what is known of
    the values of parameters. old: new names of parameters by old ones, which work until `UNTIL`.
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
    options: Mapping[str, Option] = field(default_factory=dict)
    old: Mapping[str, str] = field(default_factory=dict)

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

    def check_value(self, name: str, value: object, where: str) -> None:
        """Raises CampaignError if the parameter of that name cannot have a value.

        where: its table in the campaign file.
        """
        problem = self.options[name].asks_for(value) if name in self.options else ""
        if problem:
            raise CampaignError(f"{where}.{name}: {shown(value)} is not {problem}")

    def with_new_names(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is given, parameters or factors, by present names; old ones are told.

        Raises CampaignError if both are given.
        """
        found = dict(given)
        for old in self.old.keys() & given.keys():
            new = self.old[old]
            if new in given:
                raise CampaignError(f"'{old}' is the old name of '{new}'; give only '{new}'")
            warn(f"parameter '{old}' is called '{new}' now; the old name works until {UNTIL}")
            found = {(new if name == old else name): value for name, value in found.items()}
        return found


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
        raise CampaignError(
            f"the run returned {shown(found)}; return a mapping from names to numbers"
        )
    gather("", found)
    if not numbers:
        raise CampaignError(
            "the run returned no finite number; return a mapping from names to numbers"
        )
    return numbers


@functools.lru_cache(maxsize=KEPT)
def _kept(reader: Callable[..., Any], *arguments: Any) -> Any:
    """What a reader reads with these arguments, kept for the next run."""
    return reader(*arguments)


def run_batch_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel batch`, its summary."""
    from ptaskmodel.runs.batch import batch_inputs, batch_into

    found = batch_inputs(_nested(parameters), _kept)._replace(inputs=())
    return batch_into(None, **found._asdict()).summary


def run_simulation_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel simulate`, its summary."""
    from ptaskmodel.runs.simulate import simulate_into, simulation_inputs

    found = simulation_inputs(parameters, _kept)._replace(inputs=())
    return simulate_into(None, **found._asdict()).summary


def run_replay_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel replay`, its summary."""
    from ptaskmodel.runs.replay import replay_inputs, replay_into

    found = replay_inputs(_nested(parameters), _kept)._replace(inputs=())
    return replay_into(None, **found._asdict()).summary


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


def run_slurm_of(parameters: Parameters) -> Mapping[str, Any]:
    """`ptaskmodel slurm`, its summary."""
    from ptaskmodel.runs.slurm import slurm_inputs, slurm_into

    found = slurm_inputs(_nested(parameters), _kept)._replace(inputs=())
    summary = slurm_into(None, **found._asdict()).summary
    interrupts.check()
    return summary


def _check_changes(names: Iterable[str]) -> None:
    """Raises CampaignError for a key that no slurm.conf has."""
    from ptaskmodel.slurm.conf.lines import check_names

    try:
        mark = f"{CHANGES}."
        check_names(name.removeprefix(mark) for name in names if name.startswith(mark))
    except SlurmError as error:
        raise CampaignError(f"{CHANGES}: {error}") from None


def _made_of(
    name: str,
    options: Iterable[Option],
    run: Callable[[Parameters], Mapping[str, Any]],
    needed: tuple[str, ...],
    more: Iterable[Option] = (),
    made: Iterable[str] = (),
    **facts: Any,
) -> Kind:
    """A kind of run with the options of a table, but for those that only write; needed: files.

    more: other parameters, made: those given as ``NAME.KEY``.
    """
    ours = {option.name: option for option in (*options, *more) if not option.writes}
    pairs = {option.name for option in ours.values() if option.type == PAIRS}
    known = frozenset({*needed, *ours} - pairs)
    files = (*needed, *(option.name for option in ours.values() if option.type == FILE))
    return Kind(name, run, files, needed, lambda: known, (*pairs, *made), options=ours, **facts)


KINDS = {
    "batch": _made_of(
        "batch",
        BATCH,
        run_batch_of,
        ("platform", "workload"),
        TRANSFORMS,
        metrics=("makespan_s", "waiting_s.mean", "bounded_slowdown.mean", "utilisation"),
        within=WITHIN,
        old={"tau": "tau_s"},
    ),
    "simulate": _made_of(
        "simulate",
        SIMULATE,
        run_simulation_of,
        ("platform", "tasks"),
        metrics=("makespan",),
        old={"until": "until_s"},
    ),
    "replay": _made_of(
        "replay", REPLAY, run_replay_of, ("platform", "traces"), metrics=("makespan",)
    ),
    "slurm": _made_of(
        "slurm",
        SLURM,
        run_slurm_of,
        ("conf", "workload"),
        (FIRST_JOBS,),
        (CHANGES,),
        metrics=("makespan_s", "waiting_s.mean", "bounded_slowdown.mean", "utilisation"),
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
            f"run: {shown(name)} is unknown; use one of {', '.join(KINDS)} or FILE.py:FUNCTION"
        )
    source = folder / path
    if not source.is_file():
        raise CampaignError(f"run: {source}: no such file")
    try:
        files_of_it = sources(source)
    except (SyntaxError, ValueError) as fault:
        raise CampaignError(f"run: {source} is not a Python file: {fault}") from None
    version = hashlib.sha256("".join(map(digest, files_of_it)).encode()).hexdigest()
    made = _function(str(source.resolve()), function, version)
    return Kind(name, made, tuple(files), version=version)


@functools.lru_cache(maxsize=KEPT)
def _function(path: str, name: str, version: str) -> Callable[[Parameters], Any]:
    """A function of a file of the user's."""
    mark = hashlib.sha256(f"{path}{version}".encode()).hexdigest()[:16]
    function = getattr(load(Path(path), f"_campaign_{mark}"), name, None)
    if not callable(function):
        raise CampaignError(f"run: {path} has no function '{name}'; define it")

    def run(parameters: Parameters) -> Any:
        return function(dict(parameters))

    return run
