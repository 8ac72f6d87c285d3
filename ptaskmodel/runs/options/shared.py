"""Options and checks that kinds of runs share: what is recorded and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.options import FLAG, POSITIVE, RESULTS, Option
from ptaskmodel.results import TRACE_FORMATS

TRACES = Option(
    "traces", TRACE_FORMATS, (), None,
    "Also write the use of each resource over time (needs --output). Repeatable.",
    RESULTS, flag="--trace", many=True, writes=True,
)  # fmt: skip
TRACE_LIMIT = Option(
    "trace_limit_GB", POSITIVE, None, None, "Stop when the traces are larger than about this.",
    RESULTS, flag="--trace-limit", metavar="GB", writes=True,
)  # fmt: skip


def attribution_row(what: str) -> Option:
    """Return the option ``--attribution``, of `what` ("task" or "job")."""
    return Option(
        "attribution", FLAG, False, None,
        f"Also write what limited each {what}, its slowdown, and the utilisation (needs --output).",
        RESULTS, writes=True,
    )  # fmt: skip


def check_group(given: Mapping[str, Any]) -> None:
    """Raise PTaskModelError if a group but no calibration is `given`."""
    if given["calibration"] is None and given["group"] is not None:
        raise PTaskModelError("--group selects a group of a calibration; give --calibration FILE")


def check_nothing_to_write(**wanted: object) -> None:
    """Without a directory nothing is wanted in it. Raises PTaskModelError otherwise."""
    for name in (name for name, value in wanted.items() if value):
        option = {"traces": "trace", "timelines": "timeline-as"}.get(name, name)
        raise PTaskModelError(f"--{option} writes files; give --output DIR")


def fresh(reader: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``reader(*arguments)``.

    Commands read inputs anew; campaigns reuse what they have read.
    """
    return reader(*arguments)
