"""Resolve the profiles of a Batsim workload: their works, sequences of profiles, return codes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.remarks import Account
from ptaskmodel.workload.amounts import FieldError
from ptaskmodel.workload.checks import warn_if_long
from ptaskmodel.workload.formats.batsim_profiles import READERS, Fields, Reader
from ptaskmodel.workload.formats.json import token
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
    used: Collection[str] | None = None,
) -> Profiles:
    """The profiles of a file, in its order, without those refused.

    account: of the file; it has what is wrong with each profile. used: names; what is wrong with
    others leaves only these out (None: all are used). For the rest see `Profiles`.
    """

    def guard(name: str) -> contextlib.AbstractContextManager[None]:
        return account.problems() if used is None or name in used else account.row(None)

    where = account.file
    found = Profiles(directory, more)
    stages: dict[str, list[str]] = {}
    for name, fields in profiles.items():
        with guard(name):
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
        account.problem(
            f"/profiles/{names[0]}/seq: the sequence contains itself "
            f"({' -> '.join(shown_names)}): break the cycle"
        )
    for name in order:
        if name in stages and all(stage in found.works for stage in stages[name]):
            with guard(name):
                found.add(name, profiles[name], f"{where}: /profiles/{token(name)}")
    found.works = {name: found.works[name] for name in profiles if name in found.works}
    return found


def _repeat(fields: Fields) -> Any:
    return fields.get("repeat", fields.get("nb", 1))
