"""The names of packages: loaded on first use, and old ones; elements of a sequence on first use.

A package has one table of modules and the names that they provide. `face` makes ``__all__``,
``__getattr__`` and ``__dir__`` (PEP 562) from it. Type checkers and editors read the same from the
package's ``__init__.pyi``, which ``python tests/stubs.py`` writes.

Old names of the public face work until version 0.3, with a DeprecationWarning.
"""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar, overload

Table = Mapping[str, Sequence[str]]

T = TypeVar("T")


def face(
    package: str, table: Table, *others: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """(``__all__``, ``__getattr__``, ``__dir__``) of a package whose names are in a table.

    table: names by module. others: names that the package defines itself.
    """
    homes = {name: module for module, names in table.items() for name in names}
    names = sorted([*homes, *others])

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return names, get, lambda: list(names)


class OnDemand(Sequence[T]):
    """A sequence of known length; ``make`` makes all of it, once."""

    __slots__ = ("_length", "_made", "_make")

    def __init__(self, length: int, make: Callable[[], Sequence[T]]) -> None:
        self._length = length
        self._make: Callable[[], Sequence[T]] | None = make
        self._made: Sequence[T] = ()

    def _all(self) -> Sequence[T]:
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._all()[index]


class Chained(Sequence[T]):
    """Sequences one after the other: lists are copied, others kept as they are."""

    __slots__ = ("_ends", "_parts")

    def __init__(self) -> None:
        self._parts: list[Sequence[T]] = [[]]
        self._ends = [0]

    def copy(self) -> Chained[T]:
        """An independent copy."""
        twin = Chained[T]()
        twin._parts = [part.copy() if type(part) is list else part for part in self._parts]
        twin._ends = self._ends.copy()
        return twin

    def extend(self, more: Sequence[T]) -> None:
        """Let `more` follow."""
        last = self._parts[-1]
        if type(last) is list and type(more) is list:
            last += more
            self._ends[-1] += len(more)
        elif more:
            self._parts.append(more.copy() if type(more) is list else more)
            self._ends.append(self._ends[-1] + len(more))

    def cut(self, length: int) -> None:
        """Keep the first `length` items; the others are whole parts, or end a list."""
        while self._ends[-1] - len(self._parts[-1]) >= length and len(self._parts) > 1:
            del self._parts[-1], self._ends[-1]
        last = self._parts[-1]
        if self._ends[-1] > length:
            assert type(last) is list
            del last[length - self._ends[-1] :]
            self._ends[-1] = length

    def place(self, index: int) -> tuple[Sequence[T], int]:
        """The part that the item `index` is in, and its place there."""
        k = bisect_right(self._ends, index)
        if not 0 <= index < self._ends[-1]:
            raise IndexError(index)
        return self._parts[k], index - (self._ends[k] - len(self._parts[k]))

    def take(self, indices: Sequence[int]) -> list[T]:
        """The items `indices`; a part with such a method makes those that it has together."""
        if not indices:
            return []
        (part, first), least = self.place(min(indices)), min(indices)
        take = getattr(part, "take", None)
        if max(indices) - least >= len(part) - first:
            return [self[k] for k in indices]
        places = [k - least + first for k in indices]
        return [part[k] for k in places] if take is None else take(places)

    def rest(self, index: int) -> Sequence[T]:
        """All from the item `index` on, without a copy if that is a whole part."""
        part, place = self.place(index)
        whole = place == 0 and index + len(part) == len(self)
        return part if whole else self[index:]

    def __len__(self) -> int:
        return self._ends[-1]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        part, place = self.place(index)
        return part[place]


UNTIL = "0.3"


class Renamed(NamedTuple):
    """An attribute or a keyword argument of the public face that was renamed.

    where: a class, for its attributes; a function or class followed by (), for keyword arguments.
    since: the day of the change.
    """

    where: str
    old: str
    new: str
    since: str


RENAMED = (
    Renamed("TaskRecord", "start_time", "start_s", "2026-11-26"),
    Renamed("TaskRecord", "finish_time", "end_s", "2026-11-26"),
    Renamed("TaskRecord", "execution_time", "execution_s", "2026-11-26"),
    Renamed("TaskRef", "start_time", "start_s", "2026-11-26"),
    Renamed("TaskRef", "finish_time", "end_s", "2026-11-26"),
    Renamed("Simulation.run()", "until", "until_s", "2026-11-26"),
    Renamed("Simulation.run_until_change()", "until", "until_s", "2026-11-26"),
    Renamed("Simulation.advance_to()", "date", "until_s", "2026-11-26"),
    Renamed("BatchSimulation.advance_to()", "date", "until_s", "2026-11-26"),
    Renamed("SimulationOptions", "until", "until_s", "2026-11-26"),
    Renamed("SimulationOptions()", "until", "until_s", "2026-11-26"),
    Renamed("Delay()", "seconds", "duration_s", "2026-11-26"),
    Renamed("Simulation", "makespan", "makespan_s", "2026-11-26"),
    Renamed("Simulation", "next_event_time", "next_event_s", "2026-11-26"),
    Renamed("BatchSimulation", "next_event_time", "next_event_s", "2026-11-26"),
    Renamed("BatchWriting", "tau", "tau_s", "2026-11-26"),
    Renamed("BatchWriting()", "tau", "tau_s", "2026-11-26"),
    Renamed("BatchWriting", "trace_limit", "trace_limit_GB", "2026-11-26"),
    Renamed("BatchWriting()", "trace_limit", "trace_limit_GB", "2026-11-26"),
    Renamed("SimulationOptions", "trace_limit", "trace_limit_GB", "2026-11-26"),
    Renamed("SimulationOptions()", "trace_limit", "trace_limit_GB", "2026-11-26"),
    Renamed("SimulationOptions", "checkpoint_every", "checkpoint_every_s", "2026-11-26"),
    Renamed("SimulationOptions()", "checkpoint_every", "checkpoint_every_s", "2026-11-26"),
    Renamed("Checkpointing", "write", "write_s", "2026-11-26"),
    Renamed("Checkpointing()", "write", "write_s", "2026-11-26"),
    Renamed("Checkpointing", "read", "read_s", "2026-11-26"),
    Renamed("Checkpointing()", "read", "read_s", "2026-11-26"),
    Renamed("Checkpointing", "mtbf", "mtbf_s", "2026-11-26"),
    Renamed("Checkpointing()", "mtbf", "mtbf_s", "2026-11-26"),
    Renamed("ShownTask", "finish_s", "end_s", "2026-11-26"),
    Renamed("ShownTask()", "finish_s", "end_s", "2026-11-26"),
)

Thing = TypeVar("Thing", bound=Callable[..., Any])


def with_old_names(thing: Thing) -> Thing:
    """Return ``thing``, a class or a function, usable by its old names of `RENAMED` too."""
    name = thing.__qualname__
    keywords = _of(f"{name}()")
    if not isinstance(thing, type):
        return _accepting(thing, keywords, name)
    for old, new in _of(name).items():
        setattr(thing, old, _attribute(name, old, new))
    if keywords:
        thing.__init__ = _accepting(thing.__init__, keywords, name)  # type: ignore[misc]
    return thing


def _of(where: str) -> dict[str, str]:
    """New names by old ones."""
    return {each.old: each.new for each in RENAMED if each.where == where}


def _warn(where: str, old: str, new: str) -> None:
    """Warn the caller of who calls this."""
    text = f"{where}: {old} is called {new} now; the old name works until version {UNTIL}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def _attribute(where: str, old: str, new: str) -> property:
    def get(self: Any) -> Any:
        _warn(where, old, new)
        return getattr(self, new)

    return property(get, doc=f"Old name of `{new}`, until version {UNTIL}.")


def _accepting(function: Any, names: Mapping[str, str], where: str) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for old in given.keys() & names.keys():
            new = names[old]
            if new in given:
                raise TypeError(f"{where}: {old} is the old name of {new}; give {new} alone")
            _warn(f"{where}()", old, new)
            given[new] = given.pop(old)
        return function(*args, **given)

    return call
