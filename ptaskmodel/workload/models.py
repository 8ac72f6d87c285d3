"""Generate workloads: by the model of Lublin and Feitelson, or given jobs with Weibull arrivals.

Source: Lublin and Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", JPDC 63(11), 2003, with the constants of its authors' program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.workload.amounts import FieldError, check_number
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.works import DelayWork, Work

BUCKETS = 48
BUCKET_S = 86400 / BUCKETS
DAY_START = 11
MAX_LOG_RUN_TIME = 12.0
MAX_LOG_ARRIVAL = 13.0


@dataclass(frozen=True, slots=True)
class LublinModel:
    """Parameters of the model; the defaults are those for jobs of all types.

    Sizes: 1 with ``serial``; else 2**u with u from two joined uniforms (low to medium with
    probability ``u_probability``, medium to high else), u rounded with ``power2`` (a share of all
    jobs). Logarithms of run times: a gamma (a1, b1) with probability pa * size + pb, else a gamma
    (a2, b2). Logarithms of times between arrivals: a gamma (arrival_a, arrival_b), at the pace of
    the hour; the numbers of arrivals by half hour follow a gamma (cycle_a, cycle_b).
    """

    serial: float = 0.244
    power2: float = 0.576
    u_low: float = 0.8
    u_medium: float = 4.5
    u_high: float = 7.0
    u_probability: float = 0.86
    a1: float = 4.2
    b1: float = 0.94
    a2: float = 312.0
    b2: float = 0.03
    pa: float = -0.0054
    pb: float = 0.78
    arrival_a: float = 10.2303 * 1.0225
    arrival_b: float = 0.4871
    cycle_a: float = 8.1737
    cycle_b: float = 3.9631

    def for_machine(self, hosts: int) -> LublinModel:
        """The model for a machine of so many hosts: u_high is log2 of it, u_medium 2.5 below."""
        high = math.log2(hosts)
        return replace(self, u_high=high, u_medium=max(self.u_low, high - 2.5))


BATCH = LublinModel(
    serial=0.2927,
    power2=0.6686,
    u_low=1.2,
    u_medium=5.0,
    u_high=7.0,
    u_probability=0.875,
    a1=6.57,
    b1=0.823,
    a2=639.1,
    b2=0.0156,
    pa=-0.003,
    pb=0.6986,
    arrival_a=6.0415 * 1.0519,
    arrival_b=0.8531,
    cycle_a=6.1271,
    cycle_b=5.2740,
)
INTERACTIVE = LublinModel(
    serial=0.1541,
    power2=0.625,
    u_low=1.0,
    u_medium=3.0,
    u_high=5.5,
    u_probability=0.705,
    a1=3.8351,
    b1=0.6605,
    a2=7.073,
    b2=0.6856,
    pa=-0.0118,
    pb=0.9156,
    arrival_a=6.5510 * 0.9797,
    arrival_b=0.6621,
    cycle_a=8.9186,
    cycle_b=3.6680,
)
LUBLIN_TYPES = {"all": LublinModel(), "batch": BATCH, "interactive": INTERACTIVE}


def lublin(
    jobs: int,
    hosts: int,
    seed: int,
    *,
    model: LublinModel | None = None,
    pace: float = 1.0,
    walltime_factor: float | None = None,
) -> Workload:
    """Return a workload of the Lublin-Feitelson model for a machine of ``hosts`` hosts.

    jobs: their number. seed: of the draws. model: its parameters; None: the published ones.
    ``pace``: divides the times between arrivals; more raises the load and changes nothing else.
    Walltimes are ``walltime_factor`` times the run time; None: none.
    """
    if jobs < 1 or hosts < 1:
        raise WorkloadError("a workload needs at least 1 job and 1 host; raise the number")
    if not 0 < pace < math.inf:
        raise WorkloadError(f"the pace is {pace:g}; give a positive number")
    chosen = (model or LublinModel()).for_machine(hosts)
    random = np.random.default_rng(seed)
    sizes = np.minimum(_sizes(chosen, jobs, random), hosts)
    run_times = _run_times(chosen, sizes, random)
    dates = _arrivals(chosen, jobs, random) / pace
    return _delays(
        dates, sizes, run_times, walltime_factor, hosts, "lublin", f"Lublin-Feitelson, seed {seed}"
    )


def _sizes(model: LublinModel, jobs: int, random: np.random.Generator) -> np.ndarray:
    kind, stage, place = random.random((3, jobs))
    low = stage <= model.u_probability
    begin = np.where(low, model.u_low, model.u_medium)
    end = np.where(low, model.u_medium, model.u_high)
    exponent = begin + place * (end - begin)
    rounded = np.where(kind <= model.serial + model.power2, np.floor(exponent + 0.5), exponent)
    return np.where(kind <= model.serial, 1, np.floor(2.0**rounded + 0.5)).astype(int)


def _run_times(model: LublinModel, sizes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    probability = np.clip(model.pa * sizes + model.pb, 0, 1)
    logs = np.full(len(sizes), np.inf)
    while (again := np.flatnonzero(logs > MAX_LOG_RUN_TIME)).size:
        first = random.random(again.size) <= probability[again]
        logs[again] = np.where(
            first,
            random.gamma(model.a1, model.b1, again.size),
            random.gamma(model.a2, model.b2, again.size),
        )
    return np.maximum(np.floor(np.exp(logs)), 1.0)


def _arrivals(model: LublinModel, jobs: int, random: np.random.Generator) -> np.ndarray:
    """Dates of arrival: exp(gamma) seconds of rush-hour time each, spent at the day's pace.

    The rush-hour seconds are points; bucket k of the day takes weight[k] points to cross. So the
    date of a job is the date at which the points spent since the beginning reach its total.
    """
    from scipy.stats import gamma

    hours = np.arange(DAY_START, BUCKETS + DAY_START)
    share = gamma.cdf(hours + 0.5, model.cycle_a, scale=model.cycle_b) - gamma.cdf(
        hours - 0.5, model.cycle_a, scale=model.cycle_b
    )
    weight = np.empty(BUCKETS)
    weight[(hours - 1) % BUCKETS] = share / share.mean()
    logs = np.full(jobs, np.inf)
    while (again := np.flatnonzero(logs > MAX_LOG_ARRIVAL)).size:
        logs[again] = random.gamma(model.arrival_a, model.arrival_b, again.size)
    points = np.cumsum(np.exp(logs)) / BUCKET_S
    ends = np.concatenate(([0.0], np.cumsum(weight)))
    days, rest = np.divmod(points, ends[-1])
    bucket = np.minimum(np.searchsorted(ends, rest, side="right") - 1, BUCKETS - 1)
    inside = (rest - ends[bucket]) / weight[bucket]
    return np.floor(days * 86400 + (bucket + inside) * BUCKET_S)


def _delays(
    dates: np.ndarray,
    sizes: np.ndarray,
    run_times: np.ndarray,
    walltime_factor: float | None,
    hosts: int,
    name: str,
    origin: str,
) -> Workload:
    works: dict[float, DelayWork] = {}
    jobs = []
    rows = zip(dates.tolist(), sizes.tolist(), run_times.tolist(), strict=True)
    for k, (date, size, run_time) in enumerate(rows):
        work = works.setdefault(run_time, DelayWork(run_time))
        walltime = None if walltime_factor is None else walltime_factor * run_time
        jobs.append(Job(str(k + 1), date, size, f"delay_{run_time:.12g}", work, walltime))
    profiles = {f"delay_{run_time:.12g}": work for run_time, work in works.items()}
    return Workload(tuple(jobs), profiles, hosts, name=name, origin=origin)


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job for `weibull`: its profile, how many hosts it asks for, how often it comes."""

    profile: str
    work: Work
    num_hosts: int
    walltime_s: float | None = None
    weight: float = 1.0


def kinds_of(workload: Workload) -> list[JobKind]:
    """The kinds of jobs that a workload shows: each of its jobs is one.

    Its field ``weight`` (1 by default) says how often the kind comes. Raises WorkloadError.
    """
    kinds = []
    for job in workload.jobs:
        try:
            weight = check_number("weight", job.extra.get("weight", 1.0))
        except FieldError as error:
            raise WorkloadError(f"{workload.origin}: job {shown(job.id)}: {error}") from None
        kinds.append(JobKind(job.profile, job.work, job.num_hosts, job.walltime_s, weight))
    return kinds


def weibull(
    jobs: int,
    kinds: Sequence[JobKind],
    seed: int,
    *,
    shape: float,
    scale_s: float,
    hosts: int | None = None,
) -> Workload:
    """Return so many `jobs`, drawn from ``kinds`` by weight, with Weibull(shape, scale_s) gaps, s.

    seed: of the draws. hosts: of the machine; None: not known. The mean gap between arrivals is
    scale_s * gamma(1 + 1 / shape). The first job is submitted at 0 s.
    """
    if jobs < 1 or not kinds:
        raise WorkloadError("a workload needs at least 1 job and 1 kind of job; add one")
    if not (shape > 0 and scale_s > 0 and math.isfinite(scale_s)):
        raise WorkloadError(
            f"arrivals of Weibull({shape:g}, {scale_s:g}); give positive, finite numbers"
        )
    weights = np.array([kind.weight for kind in kinds])
    if not (weights >= 0).all() or weights.sum() <= 0:
        raise WorkloadError(
            "the weights of the kinds of jobs are not all 0 or more, with one above 0; correct them"
        )
    random = np.random.default_rng(seed)
    chosen = random.choice(len(kinds), size=jobs, p=weights / weights.sum())
    gaps = scale_s * random.weibull(shape, jobs)
    dates = np.cumsum(gaps) - gaps[0]
    made = []
    for k, (date, index) in enumerate(zip(dates.tolist(), chosen.tolist(), strict=True)):
        kind = kinds[index]
        made.append(Job(str(k + 1), date, kind.num_hosts, kind.profile, kind.work, kind.walltime_s))
    size = hosts or max(kind.num_hosts for kind in kinds)
    origin = f"Weibull arrivals, shape {shape:g}, scale {scale_s:g} s, seed {seed}"
    profiles = {kind.profile: kind.work for kind in kinds}
    return Workload(tuple(made), profiles, size, name="weibull", origin=origin)
