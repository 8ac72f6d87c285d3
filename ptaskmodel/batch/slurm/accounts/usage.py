"""What running jobs use, added to shares as time passes, and forgotten again."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.slurm.accounts.fair_share import UNKNOWN, ShareTree, decay_factor
from ptaskmodel.batch.slurm.conf.facts import DAY_S, PriorityParameters
from ptaskmodel.batch.slurm.rows import Rows

FAR_s = 2**60
_QUARTERS = (4, 7, 10)


class Fading:
    """How usage is forgotten: by halves as time passes, all of it at the ends of periods.

    last_s: the last refresh, Unix seconds.
    """

    def __init__(self, parameters: PriorityParameters, began_s: int) -> None:
        self.last_s = began_s
        self.remains = decay_factor(parameters.decay_half_life_s)
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
        self._running = Rows(
            {"place": np.int64, "account": np.int64, "start": np.int64, "rate": np.float64}
        )
        # Of each row whose it is, since when, and how much a second.
        self._begun: dict[int, tuple[int, int, float]] = {}
        self._factors = np.zeros(len(tree.associations))
        self._effective = tree.effective_accounts(self.oblivious)
        # Whether that is what the usage of the last refresh makes of the tree.
        self._ranked = False

    def started(self, place: int, association: int, now: int, rate: float) -> int:
        """A job that uses so much a second from now on. Returns what to name at its end.

        place: its place in the list of all jobs.
        """
        row = self._running.take(
            {"place": place, "account": association, "start": now, "rate": rate}
        )
        self._begun[row] = association, now, rate
        return row

    def ended(self, row: int, now: int) -> None:
        """The job of a row has ended: its rest counts at once, if it does."""
        if self.fair_tree:
            self._of_tree()
        association, start, rate = self._begun.pop(row)
        self._running.give_back(row)
        if not self._rests:
            return
        lasted = now - max(start, self._fading.last_s)
        self.tree.add(association, self._fading.amount(lasted) * rate)

    def factor(self, association: int) -> float:
        """The fair-share factor of an association, 0 to 1."""
        if self.fair_tree:
            return float(self._of_tree()[association])
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
        places, associations, amounts = self._amounts(now)
        if self.fair_tree:
            self.tree.add_all(associations, amounts)
            self._ranked = False
        else:
            done = 0
            for place, association in waiting:
                upto = int(np.searchsorted(places, place))
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
        return self._factors

    def _amounts(self, now: int) -> tuple[NDArray, NDArray, NDArray[np.float64]]:
        """Places, associations and usage since the last refresh of running jobs, by place."""
        rows = self._running.records()
        rows = rows[np.argsort(rows["place"], kind="stable")]
        lasted = (now - np.maximum(rows["start"], self._fading.last_s)).tolist()
        known = {seconds: self._fading.amount(seconds) for seconds in set(lasted)}
        decayed = np.array([known[seconds] for seconds in lasted], dtype=np.float64)
        return rows["place"], rows["account"], decayed * rows["rate"]


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
