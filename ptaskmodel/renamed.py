"""Old names of the public face: until version 0.3 they work, with a DeprecationWarning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

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
