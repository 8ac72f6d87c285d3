"""Workloads made of others: what stays, what changes, and by how much."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.batch import BatchSimulation, Easy, walltime_or_inf
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.sampling import WEEK_S, resampled, sampled, shuffled
from ptaskmodel.workload.scaling import loaded, offered_load, shrunk
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, SequenceWork


@pytest.fixture(scope="module")
def whole():
    return lublin(400, 64, seed=1, walltime_factor=2.0)


def workload_of(*rows, **fields):
    """Jobs (submit, hosts, run time, walltime, user)."""
    jobs = [
        Job(str(k), date, hosts, f"d{time}", DelayWork(time), wall, user=user)
        for k, (date, hosts, time, wall, user) in enumerate(rows)
    ]
    return Workload(tuple(jobs), {job.profile: job.work for job in jobs}, 8, **fields)


def ids(workload):
    return [job.id for job in workload.jobs]


def requests(workload):
    return Counter((j.num_hosts, j.work.duration_s, j.walltime_s) for j in workload.jobs)


@pytest.mark.parametrize("spacing", ["even", "kept"])
def test_shuffling_permutes_what_is_asked_for_and_keeps_the_span(whole, spacing):
    made = shuffled(whole, 3, spacing)
    assert requests(made) == requests(whole)
    before, after = ([j.submit_time_s for j in w.jobs] for w in (whole, made))
    assert (before[0], before[-1]) == (after[0], after[-1])
    if spacing == "kept":
        assert before == after
    else:
        assert np.ptp(np.diff(after)) < 1e-6
    assert ids(made) == ids(shuffled(whole, 3, spacing))
    assert ids(made) != ids(shuffled(whole, 4, spacing))


def test_systematic_samples_with_all_offsets_are_a_partition(whole):
    parts = [sampled(whole, 8, offset=k) for k in range(8)]
    assert sorted(name for part in parts for name in ids(part)) == sorted(ids(whole))
    # Samples of an ordered list interleave: their sums differ by no more than its range.
    sums = [sum(j.num_hosts for j in part.jobs) for part in parts]
    assert np.ptp(sums) <= max(j.num_hosts for j in whole.jobs) - 1


def test_a_systematic_sample_follows_its_definition():
    made = workload_of(
        (0, 1, 5, 9, None),
        (1, 1, 5, 8, None),
        (2, 2, 1, 9, None),
        (3, 1, 4, 9, None),
        (4, 2, 1, 1, None),
    )
    # By hosts, run time, walltime: 3 (1, 4, 9), 1 (1, 5, 8), 0 (1, 5, 9), 4 (2, 1, 1), 2 (2, 1, 9).
    assert [j.id for j in sampled(made, 2).jobs] == ["0", "2", "3"]
    assert [j.id for j in sampled(made, 2, offset=1).jobs] == ["1", "4"]
    assert [j.id for j in sampled(made, 2.5, offset=2).jobs] == ["0", "2"]


def test_a_sample_by_work_asks_for_its_part_of_the_host_seconds(whole):
    def asked(workload):
        return sum(j.num_hosts * j.work.duration_s for j in workload.jobs)

    for ratio in (2, 5, 7.5, 20):
        part = sampled(whole, ratio, method="work")
        largest = max(j.num_hosts * j.work.duration_s for j in whole.jobs)
        assert abs(asked(part) - asked(whole) / ratio) <= largest
        assert abs(len(part.jobs) - len(whole.jobs) / ratio) <= 1


def test_a_sample_keeps_the_offered_load_unless_dates_are_kept(whole):
    load = offered_load(whole)
    assert offered_load(sampled(whole, 4, method="work")) == pytest.approx(load, rel=0.2)
    kept = offered_load(sampled(whole, 4, method="work", keep_dates=True))
    assert kept == pytest.approx(load / 4, rel=0.2)


@settings(max_examples=25, deadline=None)
@given(st.integers(-4, 4), st.integers(0, 10**6))
def test_shrinking_by_a_power_of_two_shrinks_the_schedule_to_the_bit(power, seed):
    whole = lublin(60, 16, seed=seed, walltime_factor=1.5)
    factor = 2.0**power
    before, after = (
        BatchSimulation(w.jobs, 16, Easy(walltime_or_inf), estimate=walltime_or_inf).run().attempts
        for w in (whole, shrunk(whole, factor))
    )
    assert [(a.start_s * factor, a.end_s * factor, a.hosts) for a in before] == [
        (a.start_s, a.end_s, a.hosts) for a in after
    ]


def test_shrinking_reaches_into_every_kind_of_work():
    work = SequenceWork((HomogeneousWork(10.0, 4.0), DelayWork(6.0)), 3)
    job = Job("a", 8, 2, "s", work, 40, preceding_job="z", think_time_s=2)
    (made,) = shrunk(Workload((job,), {"s": work}), 0.5).jobs
    first, second = made.work.one_round()
    assert (first.flops, first.bytes, second.delay_s) == (5, 2, 3)
    assert (made.submit_time_s, made.walltime_s, made.think_time_s) == (4, 20, 1)


@pytest.mark.parametrize("by", ["arrivals", "run-times"])
def test_the_load_is_what_was_asked_for(whole, by):
    made = loaded(whole, 0.9 / offered_load(whole), by)
    assert offered_load(made) == pytest.approx(0.9, rel=1e-12)
    assert [j.num_hosts for j in made.jobs] == [j.num_hosts for j in whole.jobs]


def test_users_are_drawn_whole_at_their_hours():
    day = 86400.0
    rows = []
    for week in range(30):  # one stays, ten come for a week each
        rows.append((week * WEEK_S + 2 * day + 3600, 1, 10, None, "stays"))
        if week % 3 == 0:
            rows += [
                (week * WEEK_S + 4 * day, 2, 20 + week, None, f"guest{week}"),
                (week * WEEK_S + 5 * day, 3, 20 + week, None, f"guest{week}"),
            ]
    made = resampled(workload_of(*rows), 60, seed=2)
    stays = [j.submit_time_s for j in made.jobs if j.user == "stays"]
    assert stays == [week * WEEK_S + 2 * day + 3600 for week in range(60)]
    guests = [j for j in made.jobs if j.user != "stays"]
    assert {j.submit_time_s % WEEK_S / day for j in guests} == {4, 5}
    assert len(guests) == 2 * 20
    for one, other in zip(guests[::2], guests[1::2], strict=True):
        assert (one.user, one.work.duration_s) == (other.user, other.work.duration_s)
        assert other.submit_time_s - one.submit_time_s == day
    twice = resampled(workload_of(*rows), 60, seed=2, factor=2)
    assert len(twice.jobs) == 2 * len(made.jobs)
    again = resampled(workload_of(*rows), 60, seed=2)
    assert [(j.submit_time_s, j.user) for j in made.jobs] == [
        (j.submit_time_s, j.user) for j in again.jobs
    ]
    assert [j.id for j in made.jobs] == [str(k + 1) for k in range(len(made.jobs))]


def test_weeks_are_drawn_whole():
    rows = [
        (week * WEEK_S + k * 1000, 1 + week, 10, None, None) for week in range(4) for k in range(3)
    ]
    made = resampled(workload_of(*rows), 10, seed=5, by="weeks")
    assert len(made.jobs) == 30
    for week in range(10):
        jobs = made.jobs[3 * week : 3 * week + 3]
        assert len({j.num_hosts for j in jobs}) == 1
        assert [j.submit_time_s - week * WEEK_S for j in jobs] == [0, 1000, 2000]


def test_links_between_jobs_survive_where_both_ends_do():
    first = Job("a", 0, 1, "d", DelayWork(1), 5, user="u")
    other = Job("b", 9, 1, "d", DelayWork(1), 5, user="u", preceding_job="a", think_time_s=3)
    both = Workload((first, other), {"d": DelayWork(1)}, 4)
    assert [j.preceding_job for j in shrunk(both, 0.5).jobs] == [None, "a"]
    assert [j.preceding_job for j in sampled(both, 2, offset=1).jobs] == [None]
    assert [j.preceding_job for j in shuffled(both, 0).jobs] == [None, None]
    again = resampled(both, 3, 0)
    linked = [j for j in again.jobs if j.preceding_job]
    of_id = {j.id: j for j in again.jobs}
    assert linked
    assert all(j.submit_time_s - of_id[j.preceding_job].submit_time_s == 9 for j in linked)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w: shuffled(w, 0, "odd"), "spacing 'odd'"),
        (lambda w: sampled(w, 0.5), "a ratio of 0.5"),
        (lambda w: sampled(w, 3), "a ratio of 3"),
        (lambda w: sampled(w, 2, offset=2), "the offset is 2"),
        (lambda w: sampled(w, 2, method="odd"), "method 'odd'"),
        (lambda w: sampled(w, 2, window_s=-1), "the window is -1 s"),
        (lambda w: shrunk(w, 0), "the factor is 0"),
        (lambda w: loaded(w, float("inf")), "the factor is inf"),
        (lambda w: loaded(w, 2, "odd"), "load by 'odd'"),
        (lambda w: offered_load(w), "all jobs are submitted at the same time"),
        (lambda w: resampled(w, 0, 0), "0 weeks"),
        (lambda w: resampled(w, 2, 0, by="odd"), "by 'odd'"),
        (lambda w: resampled(w, 2, 0, by="weeks", factor=2), "the factor is 2"),
        (lambda w: resampled(w, 2, 0), "not every job has a user"),
        (lambda w: resampled(w.with_jobs(()), 2, 0), "no jobs to draw from"),
        (
            lambda w: resampled(w, 10_000, 0, by="weeks", factor=1.0) and shrunk(w, -1),
            "factor is -1",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    made = workload_of((0, 1, 5, 9, None), (0, 1, 5, 9, None))
    with pytest.raises(WorkloadError, match=message):
        make(made)


def test_jobs_of_unknown_run_time_cannot_be_sampled():
    work = HomogeneousWork(1.0, 0.0)
    made = Workload((Job("a", 0, 1, "p", work),), {"p": work}, 4)
    with pytest.raises(WorkloadError, match="depends on the platform; sample a log"):
        sampled(made, 1)
