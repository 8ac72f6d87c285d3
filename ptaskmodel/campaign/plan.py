"""The plan of a campaign, read from a campaign file: runs, factors, repetitions, metrics, inputs.

An input is a directory, or a file together with the files that it names. The plan puts digests into
the ids of runs; the Dask cluster uses marks and content to send inputs to workers.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel import __version__
from ptaskmodel.campaign.factors import (
    METHODS,
    MOST_POINTS,
    Condition,
    Interval,
    Sampling,
    Value,
    points,
    read_factor,
)
from ptaskmodel.campaign.run_types import Kind, kind_of
from ptaskmodel.errors import CampaignError, shown
from ptaskmodel.files import AnyPath, check_regular, digest, read_text
from ptaskmodel.named_files import named_by
from ptaskmodel.remarks import Account, reader

KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "run": str,
    "files": list,
    "repetitions": int,
    "first_seed": int,
    "metrics": list,
    "lower_is_better": list,
    "higher_is_better": list,
    "compare_with": dict,
    "conditions": list,
    "constraints": list,
    "timeout_s": (int, float),
    "memory_MB": (int, float),
    "parameters": dict,
    "factors": dict,
    "sample": dict,
}
MOST_BYTES = 2**22
MOST_DEPTH = 100
_TOO_DEEP = f"tables or lists are nested more than {MOST_DEPTH} deep; flatten them"
SEED = "seed"
# Factors that are conditions, if a plan does not say which are.
CONDITIONS = ("load", "workload", SEED)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its parameters, files by their paths; where it stands among the factors.

    id: of its content, so that the same run of another campaign or machine has the same.
    """

    id: str
    parameters: Mapping[str, Any]
    point: Mapping[str, Value]
    repetition: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign file says.

    kind: of its runs. fixed: parameters of all. factors: levels, or an interval drawn from.
    seeded: each repetition has a seed. baseline: levels that the others are compared with.
    conditions: factors that nobody chooses, such as the load; comparisons are within each. better:
    +1 or -1 for metrics of which more, or less, is better. timeout_s, memory_MB: limits of a run.
    folder: what paths are relative to. text: the file.
    """

    name: str
    kind: Kind
    fixed: Mapping[str, Any]
    factors: Mapping[str, tuple[Value, ...] | Interval]
    constraints: tuple[Condition, ...]
    sampling: Sampling | None
    repetitions: int
    seeded: bool
    first_seed: int
    metrics: tuple[str, ...]
    better: Mapping[str, int]
    baseline: Mapping[str, Value]
    conditions: tuple[str, ...]
    timeout_s: float | None
    memory_MB: float | None
    folder: Path
    text: str

    def runs(self) -> list[Run]:
        """Every run, in the order of the factors. Raises CampaignError for a file that is not."""
        digests: dict[str, str] = {}
        found: list[Run] = []
        ids: set[str] = set()
        for point in points(self.factors, self.sampling, self.repetitions):
            given = {**self.fixed, **point}
            if not all(condition.holds(given) for condition in self.constraints):
                continue
            for repetition in range(self.repetitions):
                if self.seeded:
                    given = {**given, SEED: self.first_seed + repetition}
                run = self._run(given, point, repetition, digests)
                if run.id not in ids:
                    ids.add(run.id)
                    found.append(run)
        if not found:
            raise CampaignError(f"{self.name}: no run satisfies the constraints; relax them")
        return found

    def _run(
        self, given: Mapping[str, Any], point: Mapping[str, Value], k: int, digests: dict[str, str]
    ) -> Run:
        parameters = dict(given)
        named: dict[str, Any] = dict(given)
        for name, value in given.items():
            file = self.kind.file_in(name, value)
            if file is not None:
                path = str(self.folder / file)
                if path not in digests:
                    digests[path] = digest_of(Path(path), name)
                parameters[name] = self.kind.with_file(name, value, path)
                named[name] = self.kind.with_file(name, value, digests[path])
        said = {
            "run": self.kind.version or self.kind.name,
            "parameters": named,
            "version": __version__,
        }
        text = json.dumps(said, sort_keys=True)
        return Run(hashlib.sha256(text.encode()).hexdigest()[:24], parameters, point, k)


@reader(CampaignError)
def read_plan(path: AnyPath, account: Account) -> Plan:
    """Return the plan in the file `path`; paths in it are relative to its folder.

    account: of the file. Raises CampaignError: the file, and of each problem the key, what is wrong
    and the remedy.
    """
    path = Path(path)
    text = read_text(path, most=MOST_BYTES, error=CampaignError)
    return plan_of(text, path.resolve().parent, path.stem, account)


def plan_of(text: str, folder: Path, name: str, account: Account | None = None) -> Plan:
    """Return the plan in a text (TOML). Raises CampaignError.

    folder: paths in it are relative to it. name: of the plan, unless the text gives one. account:
    of its file; None: of one with the name of the plan.
    """
    account = account or Account(name, CampaignError)
    with account.problems():
        given = _tables(text)
    account.check()
    for key, value in given.items():
        with account.problems():
            _check_key(key, value)
    account.check()
    factors = {}
    with account.problems():
        fixed = _parameters(given.get("parameters", {}))
    for key, value in _flat(given.get("factors", {})).items():
        with account.problems():
            factors[key] = read_factor(key, value, folder)
    account.check()
    with account.problems():
        plan = _plan(given, fixed, factors, folder, account)
    account.check()
    return replace(plan, name=given.get("name", name), text=text)


def _plan(
    given: Mapping[str, Any],
    fixed: dict[str, Any],
    factors: dict[str, tuple[Value, ...] | Interval],
    folder: Path,
    account: Account,
) -> Plan:
    """The plan of what the tables of a text say, without its name and the text."""
    if not factors and "parameters" not in given:
        raise CampaignError("nothing to run; give [parameters] and [factors]")
    for key in factors:
        if key in fixed:
            raise CampaignError(f"'{key}' is a parameter and a factor; give it in one place")
    if "run" not in given:
        raise CampaignError('run: is missing; name what to run, for instance run = "batch"')
    kind = kind_of(given["run"], _texts(given, "files"), folder)
    if given.get("files") and kind.known is not None:
        raise CampaignError(f"files: {kind.name} finds its files itself; remove this key")
    fixed, factors = kind.with_new_names(fixed), kind.with_new_names(factors)
    names = {*fixed, *factors}
    kind.check_names(names)
    _check_values_of(kind, fixed, factors, account)
    repetitions = _whole(given, "repetitions", 1, 1)
    if repetitions > 1 and SEED in names:
        raise CampaignError("repetitions set 'seed' themselves; remove it from the parameters")
    has_seed = kind.known is None or SEED in kind.known()
    if repetitions > 1 and not has_seed:
        raise CampaignError(
            f"repetitions: {kind.name} has no seed, so repetitions would be equal; remove this key"
        )
    better = dict.fromkeys(_texts(given, "lower_is_better"), -1)
    better |= dict.fromkeys(_texts(given, "higher_is_better"), 1)
    baseline = _baseline(kind.with_new_names(_flat(given.get("compare_with", {}))), factors)
    return Plan(
        name="",
        kind=kind,
        fixed=fixed,
        factors=factors,
        constraints=tuple(Condition(one, names | {SEED}) for one in _texts(given, "constraints")),
        sampling=_sampling(given.get("sample")),
        repetitions=repetitions,
        seeded="repetitions" in given and has_seed and SEED not in names,
        first_seed=_whole(given, "first_seed", 0, 0),
        metrics=tuple(_texts(given, "metrics")),
        better=better,
        baseline=baseline,
        conditions=_conditions(given, factors, baseline),
        timeout_s=_positive(given, "timeout_s"),
        memory_MB=_positive(given, "memory_MB"),
        folder=folder,
        text="",
    )


def _tables(text: str) -> dict[str, Any]:
    """What a TOML text says. Raises CampaignError."""
    try:
        given = tomllib.loads(text)
        _check_values(given)
    except RecursionError:
        raise CampaignError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError as fault:
        raise CampaignError(f"is not TOML: {fault}") from None
    except ValueError:
        raise CampaignError("a whole number has more than 64 bits; write fewer digits") from None
    return given


def _check_values(value: Any, depth: int = 0) -> None:
    """Raise ValueError for a whole number of more than 64 bits, CampaignError for deep nesting."""
    if depth > MOST_DEPTH:
        raise CampaignError(_TOO_DEEP)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _check_values(one, depth + 1)


def _check_key(key: str, value: object) -> None:
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, 1)
        hint = f"; did you mean '{near[0]}'?" if near else f": use one of {', '.join(KEYS)}"
        raise CampaignError(f"'{key}' is unknown{hint}")
    kind = KEYS[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        words = {str: "a string", int: "a whole number", list: "a list", dict: "a table"}
        word = words[kind] if isinstance(kind, type) else "a number"
        raise CampaignError(f"{key}: {shown(value)} is not {word}; give one")


def _check_values_of(
    kind: Kind,
    fixed: Mapping[str, Any],
    factors: Mapping[str, tuple[Value, ...] | Interval],
    account: Account,
) -> None:
    """A value that is not what a parameter asks for is a problem of the account."""
    for name, value in fixed.items():
        with account.problems():
            kind.check_value(name, value, "parameters")
    for name, levels in factors.items():
        values = (levels.at(0.0), levels.at(0.5)) if isinstance(levels, Interval) else levels
        for value in values:
            with account.problems():
                kind.check_value(name, value, "factors")


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """``[factors.policy_options] window = [1, 2]`` as ``policy_options.window``."""
    flat: dict[str, Any] = {}
    for key, value in given.items():
        inner = isinstance(value, dict) and any(isinstance(v, list | dict) for v in value.values())
        if inner:
            flat |= {f"{key}.{name}": one for name, one in value.items()}
        else:
            flat[key] = value
    return flat


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that all runs have; those of a table as ``TABLE.NAME``."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        parts = (
            {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
        )
        for name, one in parts.items():
            if not isinstance(one, bool | int | float | str):
                raise CampaignError(
                    f"parameters.{name}: {shown(one)} is not a number, string or boolean; "
                    "several values belong in [factors]"
                )
            found[name] = one
    return found


def _texts(given: Mapping[str, Any], key: str) -> list[str]:
    values = given.get(key, [])
    for value in values:
        if not isinstance(value, str):
            raise CampaignError(f"{key}: {shown(value)} is not a string; give one")
    return list(values)


def _whole(given: Mapping[str, Any], key: str, default: int, least: int) -> int:
    value: int = given.get(key, default)
    if value < least:
        raise CampaignError(f"{key}: {value} is below {least}; give more")
    return value


def _positive(given: Mapping[str, Any], key: str) -> float | None:
    value = given.get(key)
    if value is not None and not 0 < value < float("inf"):
        raise CampaignError(f"{key}: {value} is not positive and finite; correct it")
    return value


def _sampling(given: Mapping[str, Any] | None) -> Sampling | None:
    if given is None:
        return None
    unknown = set(given) - {"count", "method", "seed"}
    if unknown:
        raise CampaignError(f"sample: '{min(unknown)}' is unknown; use count, method, seed")
    method = given.get("method", "latin-hypercube")
    if method not in METHODS:
        raise CampaignError(
            f"sample.method: {shown(method)} is unknown; use one of {', '.join(METHODS)}"
        )
    for key in ("count", "seed"):
        value = given.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise CampaignError(
                f"sample.{key}: {shown(value)} is not a whole number >= 0; give one"
            )
    if not 1 <= given.get("count", 0) <= MOST_POINTS:
        raise CampaignError(
            f"sample.count: is missing; give the number of points to draw, 1 to {MOST_POINTS:,}"
        )
    return Sampling(given["count"], method, given.get("seed", 0))


def _conditions(
    given: Mapping[str, Any],
    factors: Mapping[str, tuple[Value, ...] | Interval],
    baseline: Mapping[str, Value],
) -> tuple[str, ...]:
    """The conditions that a plan names, or the usual ones of its factors."""
    names = _texts(given, "conditions")
    for name in names:
        if name not in factors:
            raise CampaignError(
                f"conditions: '{name}' is not a factor: use some of {', '.join(factors)}"
            )
        if name in baseline:
            raise CampaignError(
                f"conditions: '{name}' is in compare_with, too; a factor is a condition or a choice"
            )
    if "conditions" in given:
        return tuple(names)
    return tuple(name for name in CONDITIONS if name in factors and name not in baseline)


def _baseline(
    given: Mapping[str, Any], factors: Mapping[str, tuple[Value, ...] | Interval]
) -> dict[str, Value]:
    """Levels of factors."""
    for name, value in given.items():
        levels = factors.get(name)
        if levels is None:
            raise CampaignError(
                f"compare_with: '{name}' is not a factor; use one of {', '.join(factors)}"
            )
        if isinstance(levels, Interval):
            raise CampaignError(
                f"compare_with: '{name}' is sampled and has no levels; choose another factor"
            )
        if value not in levels:
            known = ", ".join(map(str, levels))
            raise CampaignError(
                f"compare_with.{name}: {shown(value)} is not a level; use one of {known}"
            )
    return dict(given)


# Name beside the input, size and date of change of each file.
Mark = tuple[tuple[str, int, int], ...]
# What is sent of an input, at most.
MOST_SENT_BYTES = 2**30


class Input(NamedTuple):
    """A file that runs read: where it is for whoever started the campaign, and what it is."""

    path: str
    digest: str
    mark: Mark


def input_at(path: Path, name: str) -> Input:
    """The input at a path. Raises CampaignError."""
    return Input(str(path), digest_of(path, name), mark_of(path))


def digest_of(path: Path, name: str) -> str:
    """SHA-256 of a file; of several, of the list of their names and digests. Raises CampaignError.

    name: of the parameter.
    """
    if not path.exists():
        raise CampaignError(f"parameter '{name}': {path}: no such file")
    if not path.is_dir():
        check_regular(path, error=CampaignError)
    files = _files(path)
    if list(files.values()) == [path]:
        return digest(path)
    start = path if path.is_dir() else path.parent
    parts = [f"{os.path.relpath(one, start)} {digest(one)}" for one in files.values()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def mark_of(path: Path) -> Mark:
    """What tells at once whether a path leads to the same elsewhere. Raises OSError."""
    return tuple(_mark(beside, one) for beside, one in _files(path).items())


def leads_to(path: Path, mark: Mark) -> bool:
    """Whether what is at a path has that mark."""
    try:
        if path.is_dir():
            return mark_of(path) == mark
        return all(_mark(one[0], path.parent / one[0]) == one for one in mark)
    except OSError:
        return False


def content_of(path: Path) -> dict[str, bytes]:
    """What to keep elsewhere, by name. Raises CampaignError if that is too much, or too far off."""
    files = _files(path)
    size = sum(one.stat().st_size for one in files.values())
    if size > MOST_SENT_BYTES:
        raise CampaignError(
            f"{path}: {size:,} bytes are too many to send; "
            "put it where workers can read it by the same path"
        )
    for beside, one in files.items():
        if beside.startswith(os.pardir):
            raise CampaignError(
                f"{path}: names {one}, which is in another directory and cannot be sent; "
                "put both where workers can read them by the same paths"
            )
    return {beside: one.read_bytes() for beside, one in files.items()}


def _files(path: Path) -> dict[str, Path]:
    """All files of an input, by their names from where it is on."""
    if path.is_dir():
        found = sorted(one for one in path.rglob("*") if one.is_file())
    else:
        found = named_by(path)
    return {os.path.relpath(one, path.parent): one for one in found}


def _mark(beside: str, path: Path) -> tuple[str, int, int]:
    state = path.stat()
    return beside, state.st_size, state.st_mtime_ns
