"""Resolve the profiles of a Batsim workload: their works, sequences of profiles, return codes.

Jobs that have only the usual fields are checked a column at a time, which is fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.remarks import Account
from ptaskmodel.workload.amounts import LARGEST, SMALLEST, FieldError, FloatArray
from ptaskmodel.workload.formats.batsim_profiles import READERS, Fields, Reader
from ptaskmodel.workload.formats.json import token
from ptaskmodel.workload.jobs import NOTHING, PRECEDING, JobArrays, JobTable, listed
from ptaskmodel.workload.reading import warn_if_long
from ptaskmodel.workload.tasks import in_order
from ptaskmodel.workload.works import SequenceWork, Work

SEQUENCES = ("SequentialCompositionProfile", "sequential_composition", "composed", "sequence")


class Profiles:
    """The profiles of a workload by name: their fields, works and return codes.

    A sequence stops at its first part with a return code that is not 0, and has that code.

    directory: where the files that profiles name are. more: readers of further types.
    """

    def __init__(self, directory: Path, more: Mapping[str, Reader] | None = None) -> None:
        self.fields: dict[str, Fields] = {}
        self.works: dict[str, Work] = {}
        self.codes: dict[str, int] = {}
        self._directory = directory
        self._readers = {**READERS, **(more or {})}

    def add(self, name: str, fields: Any, spot: str) -> None:
        """Read the profile `name` from its JSON `fields`, after those that it consists of.

        spot: its JSON pointer, for the WorkloadError.
        """
        stages = self.stage_names(fields, spot, self.works)
        code = fields.get("ret", 0)
        if type(code) is not int:
            raise WorkloadError(f"{spot}/ret: {shown(code)} is not a whole number")
        try:
            if stages:
                work, failed = self._sequence(stages, _repeat(fields))
                code = code or failed
                warn_if_long(work, spot)
            else:
                work = self._readers[fields["type"]](fields, spot, self._directory)
        except FieldError as error:
            raise WorkloadError(f"{spot}: {error}") from None
        self.fields[name], self.works[name], self.codes[name] = fields, work, code

    def _sequence(self, stages: list[str], repeat: int) -> tuple[Work, int]:
        fails = next((k for k, name in enumerate(stages) if self.codes[name]), None)
        if fails is None:
            return SequenceWork(tuple(self.works[name] for name in stages), repeat), 0
        done = tuple(self.works[name] for name in stages[: fails + 1])
        return SequenceWork(done), self.codes[stages[fails]]

    def stage_names(self, fields: Any, spot: str, known: Mapping[str, Any]) -> list[str]:
        """Return the profiles, all `known`, that a sequence names; none for other profiles.

        fields: of the profile. spot: its JSON pointer, for the WorkloadError.
        """
        if not isinstance(fields, Mapping) or not isinstance(fields.get("type"), str):
            raise WorkloadError(
                f"{spot}: is not an object with a 'type'; write a profile as an object with a "
                "'type'"
            )
        kind = fields["type"]
        if kind not in SEQUENCES:
            if kind not in self._readers:
                raise WorkloadError(
                    f"{spot}: profile type {shown(kind)} is unknown; use one of "
                    f"{', '.join(sorted({*self._readers, *SEQUENCES}))}"
                )
            return []
        repeat = _repeat(fields)
        if type(repeat) is not int or repeat < 1:
            raise WorkloadError(
                f"{spot}/repeat: {shown(repeat)} is not a whole number of 1 or more"
            )
        names = fields.get("seq")
        if not isinstance(names, list) or not names:
            raise WorkloadError(f"{spot}/seq: the sequence is empty; name at least one profile")
        for k, name in enumerate(names):
            if not isinstance(name, str) or name not in known:
                raise WorkloadError(
                    f"{spot}/seq/{k}: there is no profile {shown(name)}; define it under /profiles"
                )
        return names


def read_profiles(
    profiles: Fields,
    account: Account,
    directory: Path,
    more: Mapping[str, Reader] | None = None,
) -> Profiles:
    """The profiles of a file, in its order, without those that cannot be read.

    account: of the file; is told what is wrong with each of these, which is a problem of the file
    if there are `more` readers, as a scheduler may name any. For the rest see `Profiles`.
    """
    refuses = more is not None
    guard = account.problems if refuses else account.row
    where = account.file
    found = Profiles(directory, more)
    stages: dict[str, list[str]] = {}
    for name, fields in profiles.items():
        with guard(None):
            spot = f"{where}: /profiles/{token(name)}"
            stages[name] = found.stage_names(fields, spot, profiles)
    order, circles = in_order(stages)
    places = {name: k for k, name in enumerate(profiles)}
    for circle in circles:
        # Each is a stage of the next; the first of the file is told first.
        circle.reverse()
        first = min(range(len(circle)), key=lambda k: places[circle[k]])
        names = [token(name) for name in [*circle[first:], *circle[:first]]]
        shown_names = [*names[:4], *(["..."] if len(names) > 4 else []), names[0]]
        with guard(None):
            raise WorkloadError(
                f"/profiles/{names[0]}/seq: the sequence contains itself "
                f"({' -> '.join(shown_names)}): break the cycle"
            )
    for name in order:
        if name in stages and all(stage in found.works for stage in stages[name]):
            with guard(None):
                found.add(name, profiles[name], f"{where}: /profiles/{token(name)}")
    found.works = {name: found.works[name] for name in profiles if name in found.works}
    return found


def _repeat(fields: Fields) -> Any:
    return fields.get("repeat", fields.get("nb", 1))


# Where a job comes from, as logs say it: fields of ours, each a name or a number.
ORIGINS = ("user", "group", "queue", "partition", "executable", PRECEDING)
# Jobs that have one of these are read one by one.
_RARE = frozenset(("ret", "competitors", "cores", "memory", "resources", "licences"))
_KNOWN = frozenset(("id", "subtime", "res", "profile", "walltime", "think_time", *ORIGINS))
_WHOLE = 2**53


class _Unusual(Exception):
    """Something is wrong with the jobs, or not seen to here."""


def read_columns(entries: Sequence[Any], profiles: Profiles) -> JobTable | None:
    """The jobs of a file in the order in which Batsim submits them.

    None if anything is wrong or unusual: then each is to be read by itself.
    """
    try:
        return _read(entries, profiles)
    except (_Unusual, KeyError, OverflowError):
        return None


def _read(entries: Sequence[Any], profiles: Profiles) -> JobTable:
    _only(entries, dict)
    given = set[str]().union(*entries)
    if not entries or given & _RARE:
        raise _Unusual
    ids = _texts([entry["id"] for entry in entries])
    if len(set(ids)) < len(ids):
        raise _Unusual
    submit_s = _numbers([entry["subtime"] for entry in entries])
    has_think_times = "think_time" in given
    think_s = _numbers([entry.get("think_time", 0.0) for entry in entries if has_think_times])
    number = {name: k for k, name in enumerate(profiles.works)}
    names = _texts([entry["profile"] for entry in entries])
    which = np.array([number[name] for name in names])
    hosts = _sizes([entry["res"] for entry in entries], profiles, which)
    walltime_s = _walltimes([entry.get("walltime") for entry in entries])
    origins: dict[str, Sequence[Any]] = {
        key: (_preceding if key == PRECEDING else _origins)(
            [entry.get(key, NOTHING) for entry in entries]
        )
        for key in ORIGINS
        if key in given
    }
    order = _order(submit_s, ids)
    durations = [work.duration_s for work in profiles.works.values()]
    codes = np.array([profiles.codes[name] != 0 for name in profiles.works])
    arrays = JobArrays(
        submit_s[order],
        hosts[order],
        np.array(durations, dtype=np.float64)[which][order],
        walltime_s[order],
        codes[which][order],
        True,
    )
    places = order.tolist()
    extras = [] if given <= _KNOWN else [_extra(entries[k]) for k in places]
    ids, names = ([texts[k] for k in places] for texts in (ids, names))
    for key, texts in origins.items():
        origins[key] = [texts[k] for k in places]

    def make() -> dict[str, Sequence[Any]]:
        columns: dict[str, Sequence[Any]] = {
            "id": ids,
            "submit_time_s": arrays.submit_s.tolist(),
            "num_hosts": arrays.num_hosts.tolist(),
            "profile": names,
            "work": [profiles.works[name] for name in names],
            "walltime_s": [None if w != w else w for w in arrays.walltime_s.tolist()],
            "return_code": [profiles.codes[name] for name in names],
            **origins,
        }
        if has_think_times:
            columns["think_time_s"] = think_s[order].tolist()
        if extras:
            columns["extra"] = extras
        return columns

    users = origins.get("user", [None] * len(ids))
    linked = sum(each is not None for each in origins.get(PRECEDING, ()))
    return JobTable(arrays, ids, names, users, make, linked)


def _extra(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an entry says that nobody reads."""
    if _KNOWN.issuperset(entry):
        return NOTHING
    return {key: value for key, value in entry.items() if key not in _KNOWN}


def _only(values: Sequence[Any], *kinds: type) -> None:
    if not set(map(type, values)).issubset(kinds):
        raise _Unusual


def _texts(values: list[Any]) -> list[str]:
    """Ids or names of profiles, as text."""
    _only(values, str, int)
    texts = list(map(str, values))
    if "" in texts:
        raise _Unusual
    return texts


def _origins(values: list[Any]) -> list[str | None]:
    """Names that a job may lack (NOTHING), as text."""
    _only(values, str, int, type(NOTHING))
    if "" in values:
        raise _Unusual
    return [None if value is NOTHING else str(value) for value in values]


def _preceding(values: list[Any]) -> Sequence[str | tuple[str, ...] | None]:
    """Ids of preceding jobs: of none, one, or a list of them."""
    lists = [k for k, value in enumerate(values) if type(value) is list]
    names: list[Any] = [*_origins([NOTHING if type(v) is list else v for v in values])]
    for k in lists:
        names[k] = listed(_texts(values[k]))
    return names


def _numbers(values: list[Any]) -> FloatArray:
    """Numbers that are 0 or in the range of amounts."""
    _only(values, int, float)
    numbers = np.array(values, dtype=np.float64)
    if not ((numbers == 0) | ((numbers >= SMALLEST) & (numbers <= LARGEST))).all():
        raise _Unusual
    return numbers


def _walltimes(values: list[Any]) -> FloatArray:
    """Walltimes in s; nan: none."""
    _only(values, int, float, type(None))
    walltimes = np.array(values, dtype=np.float64)
    walltimes[walltimes == -1] = math.nan
    if not (np.isnan(walltimes) | ((walltimes >= SMALLEST) & (walltimes <= LARGEST))).all():
        raise _Unusual
    return walltimes


def _sizes(values: list[Any], profiles: Profiles, which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of hosts, those that the profiles are made for."""
    _only(values, int)
    hosts = np.array(values, dtype=np.int64)
    made_for = [-1 if work.ranks is None else work.ranks for work in profiles.works.values()]
    needed = np.array(made_for, dtype=np.int64)[which]
    if not ((hosts > 0) & (hosts < _WHOLE) & ((needed == -1) | (needed == hosts))).all():
        raise _Unusual
    return hosts


def _order(submit_s: FloatArray, ids: Sequence[str]) -> NDArray[np.int64]:
    """By date; those of one date by id, compared as text."""
    order = np.argsort(submit_s, kind="stable")
    if not (np.diff(submit_s[order]) == 0).any():
        return order
    by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__))
    return by_id[np.argsort(submit_s[by_id], kind="stable")]
