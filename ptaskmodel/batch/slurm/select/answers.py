"""What the select plugin says of jobs, kept until jobs take or give back nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from ptaskmodel.batch.hostset import Mask
from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.needs import Need
from ptaskmodel.batch.slurm.record import Allocation, Ends
from ptaskmodel.batch.slurm.select.consumable import Refuses
from ptaskmodel.batch.slurm.select.plugin import Select, expected_end
from ptaskmodel.batch.slurm.select.rooms import asks_gpus

# So many answers are kept at most.
MOST = 20_000
Answer = TypeVar("Answer")
# Jobs of a kind (see `Need`), on some nodes, weighed by the GPUs noted of each.
Question = tuple[Hashable, Mask, bytes | None]


class Answers:
    """Asks a select plugin where jobs fit; the same again only after `forget`.

    Cycles and passes ask the same of the same nodes over and over, until something changes.
    """

    def __init__(self, select: Select, conf: Conf) -> None:
        self._select, self._conf = select, conf
        # How often it was to forget.
        self.version = 0
        self._places: dict[Question, Allocation | None] = {}
        self._starts: dict[Question, Allocation | None] = {}
        self._ends: dict[Question, tuple[float, Allocation] | None] = {}

    def forget(self) -> None:
        """Who runs, or until when, has changed."""
        self.version += 1
        self._places.clear()
        self._starts.clear()
        self._ends.clear()

    def _question(self, need: Need, within: Mask, refuses: Refuses | None) -> Question | None:
        """What is asked; None: by one who refuses nodes for a time, or whose GPUs are noted."""
        favours = self._select.favours
        if refuses is not None or (favours is not None and asks_gpus(need)):
            return None
        return need.kind, within, None if favours is None else bytes(favours)

    def place(self, need: Need, within: Mask, refuses: Refuses | None) -> Allocation | None:
        """Where a job fits now; refuses: nodes that it does not take."""
        return _known(
            self._places,
            self._question(need, within, refuses),
            lambda: self._select.place(need, within, refuses=refuses),
        )

    def start(self, need: Need, within: Mask, refuses: Refuses | None) -> Allocation | None:
        """Where a job can start now."""
        return _known(
            self._starts,
            self._question(need, within, refuses),
            lambda: self._select.start(need, within, refuses=refuses),
        )

    def end(
        self, need: Need, within: Mask, ends: Ends, refuses: Refuses | None
    ) -> tuple[float, Allocation] | None:
        """The end of the job after which another fits, and where, if the others end as planned."""
        return _known(
            self._ends,
            self._question(need, within, refuses),
            lambda: expected_end(self._select, self._conf, need, within, ends, refuses),
        )


def _known(kept: dict[Question, Answer], key: Question | None, ask: Callable[[], Answer]) -> Answer:
    """What is kept, or the answer to a question; None: one that is asked each time."""
    if key is None:
        return ask()
    if key not in kept:
        if len(kept) >= MOST:
            kept.clear()
        kept[key] = ask()
    return kept[key]
