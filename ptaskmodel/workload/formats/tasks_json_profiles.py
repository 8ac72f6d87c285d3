"""Read the profiles of tasks.json, by Batsim's names old and new, as works for any hosts.

`ArrayFiles` reads the arrays that a tasks file keeps in .npz files beside it, and checks them.
"""

from __future__ import annotations

import contextlib
import math
import struct
import zlib
from collections.abc import Callable, Collection
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.workload.amounts import (
    FieldError,
    FloatArray,
    check_amounts,
    check_number,
    flops_of,
    flows_of_list,
    flows_of_matrix,
)
from ptaskmodel.workload.formats.json import Fields, close_match, token
from ptaskmodel.workload.reading import warn_if_long
from ptaskmodel.workload.tasks import in_order
from ptaskmodel.workload.works import (
    MAX_DEPTH,
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
    Work,
)

MAX_VALUES = 2**26
SMALL = 2**16  # read whatever is needed: what is wrong with it is told better elsewhere

_UNREADABLE = (
    OSError,
    ValueError,
    MemoryError,
    OverflowError,
    EOFError,
    RuntimeError,  # encrypted
    NotImplementedError,  # an unknown compression
    struct.error,
    zlib.error,
)

AMOUNT_FIELDS = ("cpu", "com", "flows")
MAX_RANKS = 1_000_000
EACH = "DefinedAmountsUsedForEachValue"
SPREAD = "DefinedAmountsSpreadUniformly"

_JSON_NAMES = {"flops": "cpu", "bytes": "com", "seconds": "delay", "stages": "seq"}


class ArrayFiles:
    """Reads arrays of numbers of .npz files relative to a directory, each once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._arrays: dict[tuple[str, str], FloatArray] = {}
        self.paths: list[Path] = []

    def read(self, name: str, key: str, most: int = MAX_VALUES) -> FloatArray:
        """The array ``key`` of the file ``name``, as float64 and read-only.

        The header is checked before the data are read: numbers only, at most ``most`` of them.

        Raises WorkloadError with the reason (it begins with the file).
        """
        if (name, key) not in self._arrays:
            path = self._directory / name
            self._arrays[name, key] = _read(path, key, most)
            if path not in self.paths:
                self.paths.append(path)
        _check_size(self._directory / name, key, self._arrays[name, key].shape, most)
        return self._arrays[name, key]


def _read(path: Path, key: str, most: int) -> FloatArray:
    import zipfile

    try:
        if not path.is_file():
            raise WorkloadError(f"{path} is not a file")
        with zipfile.ZipFile(path) as archive:
            if f"{key}.npy" not in archive.namelist():
                keys = ", ".join(sorted(n.removesuffix(".npy") for n in archive.namelist()))
                raise WorkloadError(f"{path} has no array {key!r}; it has: {keys[:200]!a}")
            with archive.open(f"{key}.npy") as member:
                _check_header(path, key, member, most)
            with archive.open(f"{key}.npy") as member:
                array = npy.read_array(member, allow_pickle=False)
    except (*_UNREADABLE, zipfile.BadZipFile):
        raise WorkloadError(f"{path} is not an .npz file that can be read") from None
    array = np.asarray(array, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array


def _check_header(path: Path, key: str, member: IO[bytes], most: int) -> None:
    version = npy.read_magic(member)
    reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = reader(member)
    if dtype.kind not in "fiu":
        raise WorkloadError(f"{path}: array {key!r} holds {dtype} values; save numbers")
    _check_size(path, key, shape, most)


def _check_size(path: Path, key: str, shape: tuple[int, ...], most: int) -> None:
    if min(shape, default=0) < 0 or math.prod(shape) > max(most, SMALL):
        raise WorkloadError(f"{path}: array {key!r} has shape {shape}; at most {most} values")


class Profile:
    """A work for any admissible number of ranks, built once for each.

    ranks: the number of hosts it needs, None if any from ``at_least`` will do.
    """

    __slots__ = ("_build", "_uniform", "_works", "at_least", "needs_hosts", "ranks")

    def __init__(
        self,
        build: Callable[[int], Work],
        *,
        ranks: int | None = None,
        at_least: int = 1,
        needs_hosts: bool = True,
        uniform: bool = False,
    ) -> None:
        self.ranks, self.at_least, self.needs_hosts = ranks, at_least, needs_hosts
        self._build, self._uniform = build, uniform
        self._works: dict[int, Work] = {}

    @property
    def uniform(self) -> bool:
        """True if the work is the same for every number of ranks."""
        return self._uniform

    def work(self, ranks: int) -> Work:
        """The work on so many ranks. Raises WorkloadError if it does not fit them."""
        key = 0 if self._uniform else ranks
        if key not in self._works:
            self._works[key] = self._build(ranks)
        return self._works[key]


class Inline(NamedTuple):
    """The amounts that a task carries itself, as of `ProfileReader.parallel`, on its hosts."""

    pointer: str
    ranks: int
    cpu: FloatArray | None
    com: FloatArray | None
    flows: FloatArray | None
    needs_hosts: bool = True


Guard = Callable[[], contextlib.AbstractContextManager[None]]


class ProfileReader:
    """Reads the profiles of one file.

    guard: a context for each profile, which keeps what is refused of it or lets it be raised.
    """

    def __init__(self, fields: Fields, arrays: ArrayFiles, guard: Guard) -> None:
        self._fields = fields
        self._arrays = arrays
        self._guard = guard

    def read(self, document: Any) -> dict[str, Profile]:
        """The profiles by name, without those refused; every one is checked, used or not."""
        if type(document) is not dict:
            self._fields.fail("/profiles", f"is {shown(document)}; give an object of profiles")
        profiles: dict[str, Profile] = {}
        composed: dict[str, list[str]] = {}
        for name, entry in document.items():
            with self._guard():
                pointer = f"/profiles/{token(name)}"
                self._fields.text(name, pointer, "a name")
                kind = self._kind(entry, pointer)
                if kind is ProfileReader.composed:
                    composed[name] = self._stage_names(entry, pointer, document)
                else:
                    profiles[name] = kind(self, entry, pointer)
        for name in self._in_order(composed):
            with self._guard():
                if all(stage in profiles for stage in composed[name]):
                    stages = [profiles[stage] for stage in composed[name]]
                    pointer = f"/profiles/{token(name)}"
                    profiles[name] = self.composed(document[name], pointer, stages)
        return profiles

    def _kind(self, entry: Any, pointer: str) -> Callable[..., Profile]:
        if type(entry) is not dict:
            self._fields.fail(pointer, f"is {shown(entry)}; give an object with a type")
        if "type" not in entry:
            self._fields.fail(pointer, f"has no type; give one of {', '.join(_KINDS)}")
        name = self._fields.text(entry["type"], f"{pointer}/type", "the name of a type")
        if name not in _KINDS:
            self._fields.fail(f"{pointer}/type", unknown(name, _KINDS))
        return _KINDS[name]

    def inline(self, entry: dict[str, Any], pointer: str, ranks: int) -> Inline:
        """The amounts of a task that carries them itself."""
        cpu, com, flows = self._all_amounts(entry, pointer, ranks)
        return Inline(pointer, ranks, cpu, com, flows)

    def work(self, task: Inline) -> ParallelWork:
        """The work of a task that carries it."""
        try:
            return ParallelWork.of(task.ranks, task.cpu, task.com, task.flows)
        except FieldError as error:
            self._fields.fail_in(task.pointer, error, _JSON_NAMES)

    def parallel(self, entry: dict[str, Any], pointer: str) -> Profile:
        """cpu (numbers, or one for all), and com (n x n) or flows (triples)."""
        what = "a profile of this type"
        self._fields.object_of(entry, pointer, ("type", *AMOUNT_FIELDS), what)
        cpu, com, flows = self._all_amounts(entry, pointer)
        ranks = len(cpu) if cpu is not None and cpu.ndim else None
        if ranks == 0:
            self._fields.fail(f"{pointer}/cpu", "is empty; give one number per host")
        if ranks is None and com is not None:
            ranks = self._side(com, f"{pointer}/com")
        at_least = 1
        try:
            if flows is not None and flows.ndim == 2 and flows.shape[1] == 3 and flows.size:
                check_amounts("flows", flows)
                at_least = int(min(flows[:, :2].max() + 1, MAX_RANKS))
            if com is not None:
                laid = flows_of_matrix(ranks or 0, com)
            else:
                laid = flows_of_list(ranks or at_least, () if flows is None else flows)
            if ranks is not None:
                work = ParallelWork(flops_of(ranks, cpu), *laid)
                return Profile(lambda count: work, ranks=ranks, uniform=True)
        except FieldError as error:
            self._fields.fail_in(pointer, error, _JSON_NAMES)
        return Profile(lambda count: ParallelWork(flops_of(count, cpu), *laid), at_least=at_least)

    def _all_amounts(
        self, entry: dict[str, Any], pointer: str, ranks: int | None = None
    ) -> list[FloatArray | None]:
        """cpu, com and flows; no more of each than ``ranks`` (or those of cpu) can need."""
        if not any(key in entry for key in AMOUNT_FIELDS):
            self._fields.fail(pointer, "has no work; give cpu, com or flows")
        if "com" in entry and "flows" in entry:
            self._fields.fail(
                f"{pointer}/flows", "is given in addition to com; keep one of the two"
            )
        cpu = self._amounts(entry, "cpu", pointer, MAX_VALUES if ranks is None else ranks)
        if ranks is None and cpu is not None and cpu.ndim == 1:
            ranks = len(cpu)
        pairs = MAX_VALUES if ranks is None else ranks**2
        com = self._amounts(entry, "com", pointer, min(pairs, MAX_VALUES))
        return [cpu, com, self._amounts(entry, "flows", pointer, min(3 * pairs, MAX_VALUES))]

    def _side(self, com: FloatArray, pointer: str) -> int:
        """n of a matrix of n x n values, flat or not."""
        side = round(com.size**0.5)
        if side == 0 or com.shape not in ((side * side,), (side, side)):
            size = " x ".join(map(str, com.shape)) or "one"
            self._fields.fail(pointer, f"has {size} values; give n x n")
        return side

    def _amounts(
        self, entry: dict[str, Any], key: str, pointer: str, most: int
    ) -> FloatArray | None:
        """A field of numbers as an array (0-d for one number), its entries unchecked."""
        if key not in entry:
            return None
        value, pointer = entry[key], f"{pointer}/{key}"
        fields = self._fields
        if isinstance(value, list | np.ndarray):
            return fields.numbers(value, pointer)
        if type(value) is dict:
            return self._from_file(value, pointer, most)
        if key != "cpu":
            hint = "n x n bytes, row = sender" if key == "com" else "[from, to, bytes] triples"
            problem = f"is {shown(value)}; give a list ({hint}) or a reference to an .npz file"
            if key == "com" and type(value) in (int, float):
                problem += "; for equal bytes between all ranks, use type parallel_homogeneous"
            fields.fail(pointer, problem)
        try:
            return np.array(check_number(key, fields.number(value, pointer)))
        except FieldError as error:
            fields.fail(pointer, error.problem)

    def _from_file(self, value: dict[str, Any], pointer: str, most: int) -> FloatArray:
        """The array of a reference {"npz": file, "key": name}."""
        fields = self._fields
        fields.object_of(value, pointer, ("npz", "key"), "a reference to an .npz file")
        for key in ("npz", "key"):
            if key not in value:
                fields.fail(pointer, f"has no {key}; give the npz file and the key of the array")
            fields.text(value[key], f"{pointer}/{key}", "a string")
        try:
            return self._arrays.read(value["npz"], value["key"], most)
        except WorkloadError as error:
            fields.fail(pointer, str(error))

    def homogeneous(self, entry: dict[str, Any], pointer: str) -> Profile:
        """cpu on every rank, com from every rank to every other; or both for the whole task."""
        names = ("type", "cpu", "com", "generation_strategy")
        self._fields.object_of(entry, pointer, names, "a profile of this type")
        strategy = entry.get("generation_strategy", EACH)
        if strategy not in (EACH, SPREAD):
            where = f"{pointer}/generation_strategy"
            self._fields.fail(where, f"is {shown(strategy)}; give {EACH} or {SPREAD}")
        work = self._homogeneous_work(entry, pointer, total=strategy == SPREAD)
        return Profile(lambda ranks: work, uniform=True)

    def homogeneous_total(self, entry: dict[str, Any], pointer: str) -> Profile:
        """cpu and com divided by the number of ranks (the rule of Batsim up to version 4)."""
        self._fields.object_of(entry, pointer, ("type", "cpu", "com"), "a profile of this type")
        whole = self._homogeneous_work(entry, pointer, total=False)
        return Profile(lambda ranks: HomogeneousWork(whole.flops / ranks, whole.bytes / ranks))

    def _homogeneous_work(
        self, entry: dict[str, Any], pointer: str, *, total: bool
    ) -> HomogeneousWork:
        if "cpu" not in entry and "com" not in entry:
            self._fields.fail(pointer, "has no work; give cpu or com")
        cpu, com = (
            self._fields.number(entry.get(key, 0), f"{pointer}/{key}") for key in ("cpu", "com")
        )
        try:
            return HomogeneousWork(cpu, com, total)
        except FieldError as error:
            self._fields.fail_in(pointer, error, _JSON_NAMES)

    def delay(self, entry: dict[str, Any], pointer: str) -> Profile:
        """delay seconds."""
        if "type" in entry:
            self._fields.object_of(entry, pointer, ("type", "delay"), "a profile of this type")
        if "delay" not in entry:
            self._fields.fail(pointer, "has no delay; give it in seconds")
        seconds = self._fields.number(entry["delay"], f"{pointer}/delay")
        try:
            work = DelayWork(seconds)
        except FieldError as error:
            self._fields.fail_in(pointer, error, _JSON_NAMES)
        return Profile(lambda ranks: work, needs_hosts=False, uniform=True)

    def composed(self, entry: dict[str, Any], pointer: str, stages: list[Profile]) -> Profile:
        """The profiles of seq one after the other, repeat times over."""
        fields = self._fields
        repeat = fields.whole(entry.get("repeat", 1), f"{pointer}/repeat")
        sizes = sorted({stage.ranks for stage in stages if stage.ranks is not None})
        at_least = max(stage.at_least for stage in stages)
        if len(sizes) > 1 or (sizes and sizes[0] < at_least):
            counts = ", ".join(map(str, [*sizes, at_least][:4] if len(sizes) == 1 else sizes[:4]))
            problem = f"has stages for different numbers of hosts ({counts})"
            fields.fail(f"{pointer}/seq", f"{problem}; give stages that fit each other")

        def build(ranks: int) -> Work:
            try:
                work = SequenceWork(tuple(stage.work(ranks) for stage in stages), repeat)
            except FieldError as error:
                fields.fail_in(pointer, error, _JSON_NAMES)
            warn_if_long(work, fields.place(pointer))
            return work

        profile = Profile(
            build,
            ranks=sizes[0] if sizes else None,
            at_least=at_least,
            needs_hosts=any(stage.needs_hosts for stage in stages),
            uniform=all(stage.uniform for stage in stages),
        )
        if sizes or profile.uniform:
            profile.work(sizes[0] if sizes else 1)
        return profile

    def _stage_names(self, entry: dict[str, Any], pointer: str, known: dict[str, Any]) -> list[str]:
        fields = self._fields
        fields.object_of(entry, pointer, ("type", "seq", "repeat"), "a profile of this type")
        names = entry.get("seq")
        if type(names) is not list or not names:
            fields.fail(f"{pointer}/seq", "is not a list of profile names; give at least one")
        for k, name in enumerate(names):
            fields.text(name, f"{pointer}/seq/{k}", "the name of a profile")
            if name not in known:
                fields.fail(f"{pointer}/seq/{k}", unknown(name, known))
        return names

    def _in_order(self, composed: dict[str, list[str]]) -> list[str]:
        """The composed profiles, each after those that it is made of."""
        order, circles = in_order(composed)
        places = {name: k for k, name in enumerate(composed)}
        for circle in circles:
            k = max(range(len(circle)), key=lambda k: places[circle[k]])
            with self._guard():
                self._fields.fail(
                    f"/profiles/{token(circle[k])}/seq",
                    f"contains {shown(circle[k - 1])}, which contains it; remove one",
                )
        depth: dict[str, int] = {}
        for name in order:
            parts = composed.get(name, ())
            depth[name] = 1 + max((depth.get(part, -1) for part in parts), default=-1)
            if depth[name] > MAX_DEPTH:
                where = f"/profiles/{token(name)}/seq"
                self._fields.fail(where, f"is nested more than {MAX_DEPTH} deep; flatten it")
        return [name for name in order if name in composed]


def unknown(name: str, known: Collection[str]) -> str:
    """What to say of a name that is none of those known."""
    close = close_match(name, known)
    listed = ", ".join(map(shown, islice(known, 8))) + (", ..." if len(known) > 8 else "")
    hint = f"did you mean {shown(close)}?" if close else f"known: {listed or 'none'}"
    return f"is {shown(name)}, which is unknown; {hint}"


_KINDS: dict[str, Callable[..., Profile]] = {
    "parallel": ProfileReader.parallel,
    "ParallelTaskProfile": ProfileReader.parallel,
    "parallel_homogeneous": ProfileReader.homogeneous,
    "ParallelTaskHomogeneousProfile": ProfileReader.homogeneous,
    "parallel_homogeneous_total": ProfileReader.homogeneous_total,
    "delay": ProfileReader.delay,
    "DelayProfile": ProfileReader.delay,
    "composed": ProfileReader.composed,
    "SequentialCompositionProfile": ProfileReader.composed,
}
