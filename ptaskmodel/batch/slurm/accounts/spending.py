"""What the jobs of QOSs and associations have used: the minutes that GrpTRESMins and GrpWall limit.

As for fair share, usage is brought up to date at each refresh of priorities and when a job ends,
and decays; that of a QOS with the flag NoDecay does not. Without priority/multifactor none is kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ptaskmodel.batch.slurm.accounts.facts import Accounts
from ptaskmodel.batch.slurm.accounts.fair_share import ShareTree
from ptaskmodel.batch.slurm.accounts.limit_tests import WALL, Holder, association_holder, qos_holder
from ptaskmodel.batch.slurm.accounts.tres import Tres
from ptaskmodel.batch.slurm.accounts.usage import Fading, FAR_s
from ptaskmodel.batch.slurm.conf.facts import MULTIFACTOR, Conf

NO_DECAY = "NODECAY"


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
    fresh: dict[int, tuple[int, Tres]] = field(default_factory=dict)


class Spending:
    """The usage of those who have a limit to it. kept: whether any is."""

    def __init__(self, conf: Conf, accounts: Accounts, tree: ShareTree, began_s: int) -> None:
        self._fading = Fading(conf.priority, began_s)
        self._of: dict[Holder, _Spent] = {}
        self._running: dict[int, tuple[list[_Spent], Tres]] = {}
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
        self, number: int, holders: Iterable[Holder], tres: Tres, factor: float, now: int
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
