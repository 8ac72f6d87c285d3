"""Closed loops: clients that ask, wait until they are served, think, and ask again.

`closed_loop` makes the requests of one client as tasks, each after the one before and a pause; a
tasks file has them as ``loops``.

Source: closed systems as of Schroeder, Wierman and Harchol-Balter, "Open versus closed: a
cautionary tale", NSDI 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import DelayWork, Work

# Between the name of a loop and the number of a request; what the pause after one adds.
NUMBER, PAUSE = "#", " think"
MOST_REQUESTS = 1_000_000


def closed_loop(
    id: str,
    hosts: Sequence[str],
    work: Work,
    count: int,
    think_s: Iterable[float] = (0.0,),
    at_once: int = 1,
    **options: Any,
) -> list[Task]:
    """The requests of a client, in the order of their numbers, and its pauses.

    id: of the client; its requests are called ``id#1``, ``id#2``, ..., and have it as their
    profile. hosts, work: of each request. count: requests in all. think_s: the pauses after
    requests, s; they begin anew where they end. at_once: how many requests wait to be served at a
    time; each of them is followed by a pause and the next one that is free. options: as of `Task`;
    ``start_s`` is the date of the first requests, and all requests are of one connection, called
    ``id``, unless ``connection`` says otherwise (None: each of its own).

    Raises WorkloadError if a number is out of range.
    """
    if not 1 <= count <= MOST_REQUESTS:
        raise WorkloadError(f"loop {id!r}: count is {count!r}; give 1 to {MOST_REQUESTS:,}")
    if not 1 <= at_once <= count:
        raise WorkloadError(f"loop {id!r}: at_once is {at_once!r}; give 1 to its count, {count}")
    options.setdefault("connection", id)
    pauses = cycle(tuple(islice(think_s, count)) or (0.0,))
    tasks: list[Task] = []
    for number in range(1, count + 1):
        before = number - at_once
        after: tuple[str, ...] = ()
        if before >= 1:
            after, seconds = (f"{id}{NUMBER}{before}",), next(pauses)
            if seconds > 0.0:
                pause = after[0] + PAUSE
                tasks.append(
                    Task((), DelayWork(seconds), id=pause, after=after, profile=id + PAUSE)
                )
                after = (pause,)
        name = f"{id}{NUMBER}{number}"
        tasks.append(Task(tuple(hosts), work, id=name, after=after, profile=id, **options))
    return tasks


def exponential(mean_s: float, seed: str) -> Iterator[float]:
    """Pauses drawn from an exponential distribution with the mean ``mean_s``; a ``seed`` each."""
    draw = _draws(seed)
    while True:
        yield -mean_s * math.log1p(-draw())


def uniform(low_s: float, high_s: float, seed: str) -> Iterator[float]:
    """Pauses drawn evenly between ``low_s`` and ``high_s``; a ``seed`` each."""
    draw = _draws(seed)
    while True:
        yield low_s + (high_s - low_s) * draw()


def _draws(seed: str) -> Callable[[], float]:
    """Numbers from 0 to 1, the same ones for a seed on every machine."""
    import random

    return random.Random(seed).random
