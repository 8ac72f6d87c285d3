"""Adaptive tuning: change parameters of a policy by metrics of the run.

Source: W. Tang, D. Ren, Z. Lan, N. Desai, "Toward balanced and sustainable job scheduling for
production supercomputers", Parallel Computing 39(12), 2013.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from ptaskmodel.batch.loop.decisions import Decision
from ptaskmodel.batch.loop.view import View
from ptaskmodel.errors import SimulationError

HOUR_S = 3600.0
PERIODS_S = (HOUR_S, 10 * HOUR_S, 24 * HOUR_S)
MAX_CHECKS = 1_000_000


class Measures(NamedTuple):
    """What a check measures, just before the events of its date.

    queue_depth_s: the time that the jobs in the queue have waited so far, summed, s. utilisation:
    hosts in use over all hosts, at that date and over the last 1, 10 and 24 hours (before the run
    began none was in use).
    """

    date_s: float
    queue_depth_s: float
    utilisation: float
    utilisation_1h: float
    utilisation_10h: float
    utilisation_24h: float


class Check(NamedTuple):
    """What a check measured, and the values of the parameters after it, in order of the rules."""

    measures: Measures
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """How a parameter follows the run: at each check it goes a step up or down, within limits.

    parameter: its name. up: of the measures, whether it is to rise (True), to fall (False) or to
    stay (None). least, most: its limits. step: what each check adds or takes away. initial: its
    value before the first check. Raises SimulationError for limits or a step that make no sense.
    """

    parameter: str
    up: Callable[[Measures], bool | None]
    least: float
    most: float
    step: float
    initial: float

    def __post_init__(self) -> None:
        if not -inf < self.least <= self.initial <= self.most < inf:
            raise SimulationError(
                f"tuning: {self.parameter} begins with {self.initial:g}, which must be between "
                f"{self.least:g} and {self.most:g}"
            )
        if not 0 < self.step < inf:
            raise SimulationError(
                f"tuning: {self.parameter} goes in steps of {self.step:g}; give more than 0"
            )

    def after(self, value: float, measures: Measures) -> float:
        """Return the parameter after a check that found these `measures`; value: before it."""
        up = self.up(measures)
        if up is None:
            return value
        return min(self.most, value + self.step) if up else max(self.least, value - self.step)


def by_queue_depth(
    parameter: str, threshold_s: float, least: float, most: float, step: float, initial: float
) -> Rule:
    """Return the rule by which a parameter rises while the queue depth is below a threshold.

    From the threshold on it falls. parameter: its name. threshold_s: total waiting time of the
    queue, s. least, most, step, initial: as of `Rule`.
    """
    if not 0 < threshold_s < inf:
        raise SimulationError(
            f"tuning: {parameter} needs a threshold_s, a queue depth in s; give one, such as "
            "queue_depth_s.sampled_mean in the summary.json of a run without tuning"
        )
    return Rule(
        parameter, lambda found: found.queue_depth_s < threshold_s, least, most, step, initial
    )


def by_utilisation(parameter: str, least: float, most: float, step: float, initial: float) -> Rule:
    """Return the rule by which a parameter falls while utilisation rises, and else rises.

    Utilisation rises if that of the last 10 h is above that of the last 24 h. parameter: its name.
    least, most, step, initial: as of `Rule`.
    """
    return Rule(
        parameter,
        lambda found: found.utilisation_10h <= found.utilisation_24h,
        least,
        most,
        step,
        initial,
    )


@dataclass
class Tuning:
    """Parameters that follow the run by rules; a plain object that any policy can have.

    In a policy, ``return self.tuning.during(view, self.my_decisions)`` is the whole of `decide`:
    ``my_decisions(view)`` yields decisions and finds in ``values`` the parameters by name. The
    checks are at the first submission + offset_s + k * interval_s, k = 1, 2, ...; each sees the
    queue and the use of the machine just before the events of its date. A check decides nothing by
    itself: its values count from the next decision on. ``log`` keeps all checks, and they are
    written with the results (tuning.csv) of a policy that has its tuning in ``tuning``.

    since_start: utilisations are over what has passed of their period since the first submission,
    not as if the machine had been idle before. Raises SimulationError for an interval that is not
    positive and for too many checks.
    """

    rules: Sequence[Rule]
    interval_s: float = 1800.0
    offset_s: float = 0.0
    since_start: bool = False
    log: list[Check] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    frozen: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.interval_s < inf:
            raise SimulationError(
                f"tuning: the interval of checks is {self.interval_s:g} s; give more than 0"
            )
        if not -self.interval_s < self.offset_s < inf:
            raise SimulationError(
                f"tuning: the offset of checks is {self.offset_s:g} s; give more than minus one "
                "interval"
            )
        self.values = {rule.parameter: rule.initial for rule in self.rules}
        self._begin: float | None = None
        self._checks = 0
        self._used = _Used()

    def __deepcopy__(self, memo: Any) -> Tuning:
        """A tuning that goes on by itself, without the log."""
        other = copy.copy(self)
        other.log, other.values = [], dict(self.values)
        other._used = self._used.copy()
        return other

    def freeze(self) -> None:
        """From now on the values stay what they are."""
        self.frozen = True

    def during(
        self, view: View, decide: Callable[[View], Iterable[Decision]]
    ) -> Iterator[Decision]:
        """Yield the decisions at this time, with the checks before them.

        view: of the policy. decide: returns the decisions of the tuned policy. Checks learn of
        these.
        """
        self._catch_up(view)
        yield from decide(view)
        self._used.note(view.now, view.num_available - view.free)

    def _catch_up(self, view: View) -> None:
        """All checks up to now."""
        if self._begin is None:
            if view.submitted:
                self._begin = min(job.submit_time_s for job in view.submitted)
            return
        if self.frozen:
            return
        first = self._begin + self.offset_s
        date = first + (self._checks + 1) * self.interval_s
        if date > view.now:
            return
        if (view.now - first) / self.interval_s > MAX_CHECKS:
            raise SimulationError(
                f"tuning: more than {MAX_CHECKS} checks by {view.now:g} s; give a longer check "
                f"interval than {self.interval_s:g} s"
            )
        waited = self._before(view)
        while date <= view.now:
            self._checks += 1
            measures = self._measured(date, waited, view.num_hosts)
            for rule in self.rules:
                value = self.values[rule.parameter]
                self.values[rule.parameter] = rule.after(value, measures)
            self.log.append(Check(measures, tuple(self.values.values())))
            date = first + (self._checks + 1) * self.interval_s
        self._used.forget_before(date - PERIODS_S[-1] - self.interval_s)

    def _before(self, view: View) -> list[float]:
        """Return when the jobs that waited before the events of this date were submitted."""
        new = set(view.submitted)
        return [job.submit_time_s for job in view.queue if job not in new]

    def _measured(self, date: float, waited: Sequence[float], num_hosts: int) -> Measures:
        assert self._begin is not None
        over = []
        for period in PERIODS_S:
            length = min(period, date - self._begin) if self.since_start else period
            over.append(self._used.over(date - length, date) / (length * num_hosts))
        depth = sum(date - submitted for submitted in waited)
        return Measures(date, depth, self._used.now / num_hosts, *over)


class _Used:
    """How many hosts are in use over time: a step function and its integral."""

    def __init__(self) -> None:
        self.now = 0
        self._dates: list[float] = []
        self._counts: list[int] = []
        self._sums: list[float] = []  # host seconds up to each date

    def copy(self) -> _Used:
        other = _Used()
        other.now = self.now
        other._dates, other._counts = self._dates.copy(), self._counts.copy()
        other._sums = self._sums.copy()
        return other

    def note(self, date: float, count: int) -> None:
        """So many are in use from this date on."""
        if count == self.now and self._dates:
            return
        if self._dates and self._dates[-1] == date:
            self._counts[-1] = count
        else:
            self._sums.append(self._until(date))
            self._dates.append(date)
            self._counts.append(count)
        self.now = count

    def over(self, begin: float, end: float) -> float:
        """Host seconds from ``begin`` to ``end``."""
        return self._until(end) - self._until(begin)

    def forget_before(self, date: float) -> None:
        """Forget what was before a date, which will not be needed."""
        first = bisect_right(self._dates, date) - 1
        if first > 1000:
            del self._dates[:first], self._counts[:first], self._sums[:first]

    def _until(self, date: float) -> float:
        """Host seconds from the first date noted up to this one."""
        k = bisect_right(self._dates, date) - 1
        if k < 0:
            return 0.0
        return self._sums[k] + self._counts[k] * (date - self._dates[k])
