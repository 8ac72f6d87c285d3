"""Compare published tables of a study with our own runs, with a verdict on each line.

The tables of a study's campaign make a `Finding` of each published figure or relation by `near`,
`between`, `ordered` or `stated`, which can fail, and write all of them with `write_findings`. Each
is given the cause of a difference, which is shown if there is one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.files import whole_file

AGREES, DIFFERS = "agrees", "differs"


class Finding(NamedTuple):
    """One published figure or relation beside one's own.

    what: it is about. published, here: figures as shown. rule: by which the verdict is found.
    verdict: `AGREES` or `DIFFERS`, with how many of several inequalities hold. cause: of the
    difference; shown where there is one.
    """

    what: str
    published: str
    here: str
    rule: str
    verdict: str
    cause: str = ""


def near(
    what: str, published: float, here: float, within: float, *, cause: str, unit: str = ""
) -> Finding:
    """One's own figure agrees if it is near the published one.

    what: it is about. here: one's own figure. within: the largest relative difference. cause: of
    the difference, if there is one. unit: of both.
    """
    holds = abs(here - published) <= within * abs(published)
    rule = f"within {100 * within:g} %"
    theirs, ours = (f"{_short(value)}{_space(unit)}" for value in (published, here))
    return _finding(what, theirs, ours, rule, holds, cause)


def between(
    what: str, low: float, high: float, here: float, *, cause: str, unit: str = ""
) -> Finding:
    """One's own figure agrees if it lies in the published range.

    what: it is about. low, high: of the range, either of which may be infinite. here: one's own
    figure. cause: of the difference, if there is one. unit: of all.
    """
    if low == float("-inf"):
        published, rule = f"{_short(high)}{_space(unit)} at most", "not above"
    elif high == float("inf"):
        published, rule = f"{_short(low)}{_space(unit)} at least", "not below"
    else:
        published, rule = f"{_short(low)} to {_short(high)}{_space(unit)}", "in the range"
    return _finding(
        what, published, f"{_short(here)}{_space(unit)}", rule, low <= here <= high, cause
    )


def ordered(
    what: str,
    published: Mapping[str, float | None],
    here: Mapping[str, float],
    *,
    cause: str,
    unit: str = "",
) -> Finding:
    """One's own figures agree if each is less than the next in the published order.

    what: it is about. published: figures by name, the smallest first; None: only the order is
    published. here: one's own by the same names. cause: of the difference, if there is one.
    unit: of all.
    """
    steps = [here[one] < here[other] for one, other in pairwise(published)]
    shown = (
        " < ".join(
            name if (value := figures[name]) is None else f"{name} {_short(value)}"
            for name in published
        )
        for figures in (published, {name: here[name] for name in published})
    )
    theirs, ours = (f"{text}{_space(unit)}" for text in shown)
    ours = ours.replace(" < ", ", ")
    found = _finding(what, theirs, ours, "in increasing order", all(steps), cause)
    if all(steps) or len(steps) == 1:
        return found
    return found._replace(verdict=f"{found.verdict}: {sum(steps)} of {len(steps)}")


def stated(what: str, here: str, holds: bool, *, cause: str, rule: str = "as stated") -> Finding:
    """A relation that is published in words, which one's own runs keep or not.

    what: the relation. here: one's own figures as shown. holds: whether they keep it. cause: of
    the difference, if there is one. rule: by which that was found.
    """
    return _finding(what, "holds", here, rule, holds, cause)


def write_findings(output: Path, findings: Iterable[Finding]) -> str:
    """Write ``published.csv`` and ``published.md``; the text of the latter, a table in Markdown.

    output: the directory. findings: in the order of the lines.
    """
    lines = list(findings)
    with whole_file(output / "published.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Finding._fields)
        writer.writerows(lines)
    text = "".join(
        f"| {' | '.join(cells)} |\n"
        for cells in (
            ("", "published", "here", "rule", "verdict", "why they differ"),
            ("---",) * len(Finding._fields),
            *lines,
        )
    )
    with whole_file(output / "published.md") as file:
        file.write(text)
    return text


def _finding(what: str, published: str, here: str, rule: str, holds: bool, cause: str) -> Finding:
    verdict = AGREES if holds else DIFFERS
    return Finding(what, published, here, rule, verdict, "" if holds else cause)


def _short(value: float) -> str:
    """Four digits; thousands as whole numbers with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""
