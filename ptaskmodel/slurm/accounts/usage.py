"""Usage of running jobs: as time passes it is added to shares and limits in minutes, and decays.

GrpTRESMins and GrpWall limit the minutes that jobs of QOSs and associations have used. As for fair
share, this usage is updated at each refresh of priorities and when a job ends. It decays, except
that of a QOS with the flag NoDecay. Without priority/multifactor no usage is kept.
"""

from __future__ import annotations

import math
import sys
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.slurm.accounts.facts import (
    WALL,
    Accounts,
    Amounts,
    Holder,
    association_holder,
    qos_holder,
)
from ptaskmodel.slurm.accounts.fair_share import UNKNOWN, ShareTree, decay_factor
from ptaskmodel.slurm.conf.facts import DAY_S, MULTIFACTOR, Conf, PriorityParameters

# Of uses of fewer seconds what they come to is kept.
MOST_KNOWN = 4096
FAR_s = 2**60
_QUARTERS = (4, 7, 10)
NO_DECAY = "NODECAY"


class Fading:
    """How usage is forgotten: by halves as time passes, all of it at the ends of periods.

    last_s: the last refresh, Unix seconds.
    """

    def __init__(self, parameters: PriorityParameters, began_s: int) -> None:
        self.last_s = began_s
        self.remains = decay_factor(parameters.decay_half_life_s)
        # What uses of 0, 1, 2 ... seconds come to.
        self._known = np.empty(0)
        self._period = parameters.usage_reset_period
        self.reset_s = began_s if self._period == "NOW" else next_reset(self._period, began_s)

    def resets(self, now: int) -> bool:
        """Whether all usage is forgotten at this refresh; then the next period begins."""
        if now < self.reset_s:
            return False
        self.reset_s = FAR_s if self._period == "NOW" else next_reset(self._period, now)
        return True

    def rest(self, now: int) -> float:
        """What remains at this refresh of what was there at the last."""
        if now <= self.last_s:
            return 1.0
        return max(math.pow(self.remains, now - self.last_s), sys.float_info.min)

    def amount(self, seconds: int) -> float:
        """What a use of 1 over so many seconds comes to."""
        lasted = max(0, seconds)
        return lasted * math.pow(self.remains, lasted)

    def amounts(self, seconds: NDArray[np.int64], longest: int) -> NDArray[np.float64]:
        """The same of many uses, of 0 to so many seconds at the `longest`."""
        if longest >= MOST_KNOWN:
            return np.array([self.amount(each) for each in seconds.tolist()], dtype=np.float64)
        if longest >= len(self._known):
            self._known = np.array([self.amount(each) for each in range(2 * longest + 1)])
        return self._known[seconds]


class Usage:
    """The usage of all associations, brought up to date at each refresh.

    factors: the fair-share factor of each association, as of the last refresh. oblivious, tree:
    which algorithm. rests: whether what jobs have used since the last refresh counts at their end,
    as it does where limits are enforced; otherwise it is never counted. Dates are whole Unix
    seconds.
    """

    def __init__(
        self, tree: ShareTree, parameters: PriorityParameters, began_s: int, rests: bool = True
    ) -> None:
        self.tree = tree
        self._rests = rests
        self.oblivious = "DEPTH_OBLIVIOUS" in parameters.flags
        self.fair_tree = not self.oblivious and "NO_FAIR_TREE" not in parameters.flags
        self._fading = Fading(parameters, began_s)
        self._dampening = parameters.fair_share_dampening_factor
        # Of each job that runs, by its place in the list of all jobs: that, whose it is, since
        # when, and how much it uses a second.
        self._places, self._owners = array("q"), array("q")
        self._starts, self._rates = array("q"), array("d")
        self._factors = np.zeros(len(tree.associations))
        self._effective = tree.effective_accounts(self.oblivious)
        # Whether that is what the usage of the last refresh makes of the tree, and the same once
        # it is asked for one by one.
        self._ranked = False
        self._listed: list[float] = []

    def started(self, place: int, association: int, now: int, rate: float) -> None:
        """The job at a `place` in the list of all jobs uses so much a second from now on."""
        k = bisect_left(self._places, place)
        self._places.insert(k, place)
        self._owners.insert(k, association)
        self._starts.insert(k, now)
        self._rates.insert(k, rate)

    def ended(self, place: int, now: int) -> None:
        """The job at a `place` has ended: its rest counts at once, if it does."""
        k = bisect_left(self._places, place)
        if self._rests:
            if self.fair_tree:
                self._of_tree()
            lasted = now - max(self._starts[k], self._fading.last_s)
            self.tree.add(self._owners[k], self._fading.amount(lasted) * self._rates[k])
        del self._places[k], self._owners[k], self._starts[k], self._rates[k]

    def factor(self, association: int) -> float:
        """The fair-share factor of an association, 0 to 1."""
        if self.fair_tree:
            if not self._ranked or not self._listed:
                self._listed = self._of_tree().tolist()
            return self._listed[association]
        giver = self.tree.giver(association)
        if self._effective[giver] == UNKNOWN:
            self._effective[giver] = self.tree.effective(giver, self._effective, self.oblivious)
        share = self.tree.normal_share(giver)
        if share <= 0:
            return 0.0
        return math.pow(2.0, -float(self._effective[giver] / share / self._dampening))

    def refresh(self, now: int, waiting: Sequence[tuple[int, int]]) -> None:
        """Decay all usage to now and add that of running jobs: `factors` are as of now.

        waiting: of each association with jobs that wait, the place of the first of them in the
        list of all jobs, and the association, by place. The classic algorithm counts, for these,
        the usage of running jobs before them only.
        """
        if self._fading.resets(now):
            self.tree.reset()
        if not self.fair_tree:
            self._effective = self.tree.effective_accounts(self.oblivious)
        if now > self._fading.last_s:
            self.tree.decay(self._fading.rest(now))
        associations = np.array(self._owners, dtype=np.int64)
        amounts = self._amounts(now)
        if self.fair_tree:
            self.tree.add_all(associations, amounts)
            self._ranked = False
        else:
            done = 0
            for place, association in waiting:
                upto = bisect_left(self._places, place)
                self.tree.add_all(associations[done:upto], amounts[done:upto])
                done = upto
                self._factors[association] = self.factor(association)
            self.tree.add_all(associations[done:], amounts[done:])
        self._fading.last_s = now

    @property
    def factors(self) -> NDArray[np.float64]:
        """The factors of all associations, as of the last refresh."""
        return self._of_tree() if self.fair_tree else self._factors

    def _of_tree(self) -> NDArray[np.float64]:
        """The same, which only who asks for them has computed."""
        if not self._ranked:
            self._factors, self._ranked = self.tree.fair_tree(), True
            self._listed = []
        return self._factors

    def _amounts(self, now: int) -> NDArray[np.float64]:
        """The usage since the last refresh of running jobs, by place."""
        last_s = self._fading.last_s
        since = np.maximum(np.array(self._starts, dtype=np.int64), last_s)
        lasted = np.maximum(now - since, 0)
        return self._fading.amounts(lasted, max(now - last_s, 0)) * np.array(self._rates)


def next_reset(period: str, last_s: int) -> int:
    """When usage is forgotten next (UTC), Unix seconds."""
    last = datetime.fromtimestamp(last_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "DAILY":
        return int(last.timestamp()) + DAY_S
    if period == "WEEKLY":
        return int((last + timedelta(days=7 - last.isoweekday() % 7)).timestamp())
    months = {
        "MONTHLY": last.month + 1,
        "QUARTERLY": next((month for month in _QUARTERS if month > last.month), 13),
        "YEARLY": 13,
    }
    if period not in months:
        return FAR_s
    month = months[period]
    return int(
        last.replace(year=last.year + (month > 12), month=(month - 1) % 12 + 1, day=1).timestamp()
    )


def _zeros() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass(slots=True)
class _Spent:
    """Of one holder. seconds: by TRES, as of the last refresh and of the jobs that ended since.

    steady: what the jobs that ran at the last refresh use a second, in all; fresh: since when, and
    what, each that has started since.
    """

    fades: bool
    seconds: defaultdict[str, float] = field(default_factory=_zeros)
    steady: defaultdict[str, float] = field(default_factory=_zeros)
    fresh: dict[int, tuple[int, Amounts]] = field(default_factory=dict)


class Spending:
    """The usage of those who have a limit to it. kept: whether any is."""

    def __init__(self, conf: Conf, accounts: Accounts, tree: ShareTree, began_s: int) -> None:
        self._fading = Fading(conf.priority, began_s)
        self._of: dict[Holder, _Spent] = {}
        self._running: dict[int, tuple[list[_Spent], Amounts]] = {}
        for qos in accounts.qos.values():
            if qos.limits.grp_tres_mins or qos.limits.grp_wall_min is not None:
                self._of[qos_holder(qos.name)] = _Spent(NO_DECAY not in qos.flags)
        for index, one in enumerate(tree.associations):
            if one.limits.grp_tres_mins or one.limits.grp_wall_min is not None:
                self._of[association_holder(index)] = _Spent(True)
        self.kept = bool(self._of) and conf.database and conf.priority_type == MULTIFACTOR

    @property
    def last_s(self) -> int:
        """The last refresh, Unix seconds."""
        return self._fading.last_s

    def started(
        self, number: int, holders: Iterable[Holder], tres: Amounts, factor: float, now: int
    ) -> None:
        """A job runs from now on. factor: the UsageFactor of its QOS."""
        found = [self._of[holder] for holder in holders if holder in self._of]
        if not self.kept or not found:
            return
        rates = {name: count * factor for name, count in tres.items()} | {WALL: factor}
        self._running[number] = found, rates
        for spent in found:
            spent.fresh[number] = now, rates

    def ended(self, number: int, now: int) -> None:
        """A job runs no longer: its rest counts at once."""
        found, rates = self._running.pop(number, ((), {}))
        for spent in found:
            start, _ = spent.fresh.pop(number, (None, rates))
            if start is None:
                for name, rate in rates.items():
                    spent.steady[name] -= rate
            lasted = now - (self.last_s if start is None else start)
            self._add(spent, rates, lasted)

    def refresh(self, now: int) -> None:
        """Decay all usage to now and add that of running jobs."""
        resets, rest = self._fading.resets(now), self._fading.rest(now)
        for spent in self._of.values():
            if resets:
                spent.seconds.clear()
            elif spent.fades:
                for name in spent.seconds:
                    spent.seconds[name] *= rest
            self._add(spent, spent.steady, now - self.last_s)
            for start, rates in spent.fresh.values():
                self._add(spent, rates, now - start)
                for name, rate in rates.items():
                    spent.steady[name] += rate
            spent.fresh.clear()
        self._fading.last_s = now

    def minutes(self, holder: Holder, name: str) -> int:
        """How much of a TRES (WALL: time) a holder has used, whole minutes."""
        return int(self._of[holder].seconds[name] / 60)

    def below_s(self, holder: Holder, name: str, most_min: float) -> float:
        """When a holder has used at most so much, if nobody runs, Unix s; inf: never; 0: now."""
        spent, fading = self._of[holder], self._fading
        if spent.seconds[name] < 60 * (most_min + 1):
            return 0.0
        if most_min < 0:
            return math.inf
        reset_s = math.inf if fading.reset_s == FAR_s else fading.reset_s
        if not spent.fades or fading.remains >= 1:
            return reset_s
        over = math.log(spent.seconds[name] / (60 * (most_min + 1)))
        return min(reset_s, self.last_s - over / math.log(fading.remains))

    def _add(self, spent: _Spent, rates: Mapping[str, float], seconds: int) -> None:
        amount = self._fading.amount(seconds) if spent.fades else max(0, seconds)
        for name, rate in rates.items():
            spent.seconds[name] += amount * rate
