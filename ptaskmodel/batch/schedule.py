"""What came of a batch: its attempts, and what became of each job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptaskmodel.batch.attempt import Attempt
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.batch.pstates import Switch

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.batch.figures import Figures
    from ptaskmodel.batch.plain_schedule import PlainSchedule


@dataclass(frozen=True, slots=True)
class HostChange:
    """From ``date_s`` on these hosts are "down" or "up", "off" or "on", or in this pstate.

    Or "maintenance" begins there, or is over ("maintenance over"); or they are "drained": nothing
    starts there and nothing runs there any more; or "drained no more".
    """

    date_s: float
    hosts: HostSet
    state: str | int


@dataclass(frozen=True, slots=True)
class LinkChange:
    """From ``date_s`` on a link, or a host that runs no jobs, is "down" or "up"."""

    date_s: float
    name: str
    state: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule:
    """What has happened up to ``now_s``.

    final: for each job submitted so far, in order of submission, its last attempt; one that has
    none (rejected, still waiting) has a placeholder without dates. attempts: all, in order of their
    starts. events: at how many dates the policy was asked. host_changes, link_changes: in order of
    date. switches: changes of pstates, in the order in which they were asked for. plain: the same
    as final and attempts in arrays, where they can say it all (of the compiled loop: attempts are
    made when asked for).
    """

    final: Sequence[Attempt]
    attempts: Sequence[Attempt]
    num_hosts: int
    events: int
    now_s: float
    host_changes: tuple[HostChange, ...] = ()
    link_changes: tuple[LinkChange, ...] = ()
    switches: tuple[Switch, ...] = ()
    plain: PlainSchedule | None = None
    # What `figures_of` has found of it, once it was asked.
    known: list[Figures] = field(default_factory=list, init=False, repr=False)

    def __repr__(self) -> str:
        jobs, ended = len(self.final), sum(1 for _ in self.ended())
        return f"<Schedule at {self.now_s:g} s: {jobs} jobs, {ended} of them ended>"

    def frame(self) -> pandas.DataFrame:
        """One row a job, in order of submission: its last attempt.

        Columns ``job_id``, ``profile``, ``submit_s``, ``num_hosts``, ``walltime_s``, ``start_s``,
        ``end_s`` (nan where there is none), ``state``, and ``hosts`` as in "0-3 7".
        """
        import pandas

        names = ("job_id", "profile", "submit_s", "num_hosts", "walltime_s", "start_s", "end_s")
        rows = [
            (
                *(a.job.id, a.job.profile, a.job.submit_time_s, a.job.num_hosts, a.job.walltime_s),
                *(a.start_s, a.end_s, a.state, str(a.hosts)),
            )
            for a in self.final
        ]
        numbers = dict.fromkeys(("walltime_s", "start_s", "end_s"), "float64")
        return pandas.DataFrame(rows, columns=[*names, "state", "hosts"]).astype(numbers)

    def ended(self) -> Iterator[Attempt]:
        """The last attempts of the jobs that ran and ended, in order of submission."""
        return (attempt for attempt in self.final if has_ended(attempt))


def has_ended(attempt: Attempt) -> bool:
    """Whether an attempt ran and is over."""
    return attempt.start_s is not None and attempt.end_s is not None
