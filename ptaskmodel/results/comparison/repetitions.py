"""Names of runs beside each other, runs that differ only by their seed, and cumulative curves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.results.loading import Results

Array = NDArray[np.float64]
# What says how a run was made, where its options are not recorded.
CHOICES = ("policy", "allocation", "solver", "network_model", "count")
SEED = "seed"
# Names up to this length, in characters, are kept as they are.
SHORT = 16
# Points of a curve at most.
MOST_POINTS = 200
WORDS = re.compile(r"[^\W_]+|[\W_]+")


class Curve(NamedTuple):
    """The cumulative curve of a run, or of several that differ only by their seed.

    parts: of the values, 0 to 1, ascending, shape (n,). middle: what that part is at most, the
    median over runs; low, high: the least and the most of a run. half, most: the median and the
    95th percentile as metrics have them, the median over runs. runs: how many there are.
    """

    name: str
    runs: int
    parts: Array
    middle: Array
    low: Array
    high: Array
    half: float
    most: float


def short_names(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them begin or end with, if some name is long.

    names: of runs, each once.
    """
    words = [WORDS.findall(name) for name in names]
    if len(names) < 2 or max(map(len, names)) <= SHORT:
        return list(names)
    least = min(map(len, words)) - 1
    begin = min(_alike(words), least)
    end = min(_alike([one[::-1] for one in words]), least - begin)
    return ["".join(one[begin : len(one) - end]).strip(" _-=,.") or name
            for name, one in zip(names, words, strict=True)]  # fmt: skip


def _alike(words: Sequence[Sequence[str]]) -> int:
    """How many words all begin with."""
    rows = zip(*words, strict=False)
    return len(list(takewhile(lambda row: len(set(row)) == 1, rows)))


def chosen(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of options and settings by name.

    summary: of a run. What a run found out for itself, such as its network model, is known, too.
    """
    effective = {name: summary[name] for name in CHOICES if isinstance(summary.get(name), str)}
    return {**(summary.get("parameters") or {}), **effective, **(summary.get("settings") or {})}


def inputs_of(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (path, digest) of each file that a run read, as its `summary` says."""
    listed = summary.get("inputs") or []
    return [(str(one.get("path", "")), str(one.get("sha256", ""))) for one in listed]


def repetitions(runs: Mapping[str, Results]) -> dict[str, list[Results]]:
    """Return `runs` by name, those that differ only by their seed together.

    Of a run that does not say how it was made nothing is known to be a repetition.
    """
    found: dict[Any, list[str]] = {}
    for name, results in runs.items():
        key: Any = name
        if "parameters" in results.summary:
            made = {**chosen(results.summary), SEED: None}
            key = str(sorted(made.items())), str(inputs_of(results.summary))
        found.setdefault(key, []).append(name)
    return {_of_all(names): [runs[name] for name in names] for names in found.values()}


def _of_all(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    words = [WORDS.findall(name) for name in names]
    shared = "".join(words[0][: _alike(words)]).strip(" _-=,.")
    return f"{shared or names[0]} ({len(names)} seeds)"


def curves(groups: Mapping[str, Iterable[Iterable[float]]]) -> list[Curve]:
    """Return the cumulative curve of each group; one without values is left out.

    groups: by name, the values of each of its runs.
    """
    found = []
    for name, of_runs in groups.items():
        columns = [np.sort(np.fromiter(values, dtype=np.float64)) for values in of_runs]
        columns = [column for column in columns if len(column)]
        if not columns:
            continue
        count = min(max(map(len, columns)), MOST_POINTS)
        parts = np.arange(1, count + 1) / count
        levels = np.array(
            [one[np.ceil(parts * len(one) - 1e-9).astype(int) - 1] for one in columns]
        )
        low, high = levels.min(axis=0), levels.max(axis=0)
        half, most = np.median([np.percentile(one, (50, 95)) for one in columns], axis=0).tolist()
        middle = np.median(levels, axis=0)
        found.append(Curve(name, len(columns), parts, middle, low, high, half, most))
    return found
