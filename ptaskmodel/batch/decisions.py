"""What a policy may answer: decisions about jobs, hosts, and when to be asked again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ptaskmodel.batch.attempt import KILLED
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import Work

ON, OFF = "on", "off"


class Start(NamedTuple):
    """Start a waiting job: on ``hosts`` if given, else where the allocation says in ``within``.

    hosts: a `HostSet`, host numbers or a mask. cores, with hosts: how many cores of each host,
    hosts ascending (for a job that asks for cores; without it, as many of each as it asks for).
    work, with hosts: what runs there instead of the work of the job, on any number of hosts then.
    """

    job: Job
    hosts: HostSet | int | Iterable[int] | None = None
    within: HostSet | int | None = None
    cores: Sequence[int] | None = None
    work: Work | None = None


class Reject(NamedTuple):
    """Never run a waiting job."""

    job: Job
    reason: str = ""


class Kill(NamedTuple):
    """End a running or suspended job now, for good, in ``state``; the policy is asked again."""

    job: Job
    reason: str = ""
    state: str = KILLED


class Requeue(NamedTuple):
    """Stop a running or suspended job; it waits again, at its place, to begin anew.

    checkpoint: let a running job write a checkpoint first, which takes a while (see `checkpoints`);
    it keeps its hosts meanwhile.
    """

    job: Job
    reason: str = ""
    checkpoint: bool = False


class Suspend(NamedTuple):
    """Freeze a running job: others may use its hosts, but it keeps its memory there.

    Its walltime does not run meanwhile. Named resources and licences stay its own too.
    """

    job: Job


class Resume(NamedTuple):
    """Let a suspended job go on, on the hosts that it had; they must be free."""

    job: Job


class Wake(NamedTuple):
    """Ask the policy again at this date, s, whatever happens until then."""

    date_s: float


class SetPower(NamedTuple):
    """Turn hosts "on" or "off", or give them a performance state (its number).

    A host on which a job runs cannot be turned off.
    """

    hosts: HostSet | int | Iterable[int]
    state: str | int


class Drain(NamedTuple):
    """Start nothing on these hosts any more; who runs there goes on. ``over``: start again."""

    hosts: HostSet | int | Iterable[int]
    over: bool = False


Decision = Job | Start | Reject | Kill | Requeue | Suspend | Resume | Wake | SetPower | Drain
