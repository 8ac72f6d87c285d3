"""Generated workloads follow their models; parallel-task profiles follow their rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats.swf import read_swf, workload_from_swf
from ptaskmodel.workload.models import BATCH, JobKind, lublin, weibull
from ptaskmodel.workload.ptask_rule import PATTERNS, ptask_profiles
from ptaskmodel.workload.works import DelayWork, HomogeneousWork


def columns(workload):
    dates = np.array([j.submit_time_s for j in workload.jobs])
    sizes = np.array([j.num_hosts for j in workload.jobs])
    return dates, sizes, np.array([j.work.duration_s for j in workload.jobs])


def test_lublin_has_the_proportions_of_the_model():
    dates, sizes, times = columns(lublin(20000, 128, seed=3))
    assert (np.diff(dates) >= 0).all()
    parallel = sizes > 1
    assert 1 - parallel.mean() == pytest.approx(0.244, abs=0.01)
    powers = np.log2(sizes[parallel]) % 1 == 0
    assert powers.mean() > 0.576 / 0.756
    assert sizes.max() <= 128
    logs = np.log(times)
    assert logs.max() <= 12
    assert logs.mean() == pytest.approx(0.7 * 4.2 * 0.94 + 0.3 * 312 * 0.03, rel=0.12)
    hours = (dates / 3600) % 24
    assert ((hours > 9) & (hours < 18)).mean() > 3 * ((hours > 0) & (hours < 6)).mean()


def test_lublin_looks_like_the_log_of_its_authors_program(shared_data):
    """The published log of 10,000 jobs on 256 processors against ours: quantiles agree."""
    theirs = columns(workload_from_swf(read_swf(shared_data / "swf" / "lublin_256.swf.gz")))
    ours = columns(lublin(10000, 256, seed=1))
    for one, other in ((theirs[1], ours[1]), (theirs[2], ours[2])):
        for q in (0.1, 0.25, 0.5, 0.75, 0.9):
            assert np.quantile(other, q) == pytest.approx(np.quantile(one, q), rel=0.25)
    for q in (0.25, 0.5, 0.75):
        gap = np.quantile(np.diff(theirs[0]), q)
        assert np.quantile(np.diff(ours[0]), q) == pytest.approx(gap, rel=0.25)


def test_a_seed_gives_one_workload_and_pace_only_moves_dates():
    one, same, fast = lublin(50, 64, 5), lublin(50, 64, 5), lublin(50, 64, 5, pace=2.0)
    assert one.frame().equals(same.frame())
    assert not one.frame().equals(lublin(50, 64, 6).frame())
    assert columns(fast)[0] == pytest.approx(columns(one)[0] / 2)
    assert [j.walltime_s for j in lublin(5, 8, 1, model=BATCH, walltime_factor=2).jobs] == [
        2 * j.work.duration_s for j in lublin(5, 8, 1, model=BATCH).jobs
    ]


def test_weibull_arrivals_have_the_mean_of_the_distribution():
    kinds = [
        JobKind("a", DelayWork(1.0), 2, weight=3.0),
        JobKind("b", DelayWork(2.0), 4, walltime_s=9.0),
    ]
    workload = weibull(20000, kinds, 1, shape=1.7, scale_s=30.0)
    dates, sizes, _ = columns(workload)
    assert dates[0] == 0
    assert np.diff(dates).mean() == pytest.approx(30 * math.gamma(1 + 1 / 1.7), rel=0.02)
    assert (sizes == 2).mean() == pytest.approx(0.75, abs=0.02)
    assert workload.num_hosts == 4
    assert {j.walltime_s for j in workload.jobs} == {None, 9.0}


@pytest.mark.parametrize("arguments", [{"shape": 0, "scale_s": 1}, {"shape": 1, "scale_s": -1}])
def test_impossible_parameters_are_refused(arguments):
    with pytest.raises(WorkloadError, match="give positive, finite numbers"):
        weibull(5, [JobKind("a", DelayWork(1.0), 2)], 1, **arguments)
    with pytest.raises(WorkloadError, match="1 job and 1 host"):
        lublin(0, 8, 1)


@given(
    hosts=st.integers(1, 40),
    delay=st.floats(1, 1e5),
    ratio=st.one_of(st.just(0.0), st.floats(1e-6, 1)),
    pattern=st.sampled_from(list(PATTERNS)),
)
def test_the_busiest_card_carries_what_the_rule_says(hosts, delay, ratio, pattern):
    kinds = [JobKind("d", DelayWork(delay), hosts)]
    source = weibull(1, kinds, 1, shape=1, scale_s=1)
    made = ptask_profiles(source, speed_flops=2e9, bandwidth_Bps=1e8, ratio=ratio, pattern=pattern)
    work = made.jobs[0].work
    if isinstance(work, HomogeneousWork):
        flops, carried = [work.flops], work.bytes * (hosts - 1)
    else:
        flops = work.flops.tolist()
        sent = np.bincount(work.flow_from, work.flow_bytes, minlength=hosts)
        received = np.bincount(work.flow_to, work.flow_bytes, minlength=hosts)
        carried = max(sent.max(), received.max())
    assert flops == pytest.approx([delay * 2e9] * len(flops))
    assert carried == pytest.approx(0 if hosts == 1 else ratio * delay * 1e8)


def test_the_rule_says_nothing_where_there_are_no_delays():
    delays = weibull(1, [JobKind("d", DelayWork(10.0), 2)], 1, shape=1, scale_s=1)
    made = ptask_profiles(delays, speed_flops=2e9, bandwidth_Bps=1e8)
    assert "delays became parallel tasks" in made.notes[-1]
    assert ptask_profiles(made, speed_flops=2e9, bandwidth_Bps=1e8) is made


def test_the_rule_refuses_what_it_cannot_do():
    source = lublin(3, 8, 1)
    with pytest.raises(WorkloadError, match="pattern 'star' is unknown"):
        ptask_profiles(source, speed_flops=1, bandwidth_Bps=1, pattern="star")
    with pytest.raises(WorkloadError, match="give 0 to 1"):
        ptask_profiles(source, speed_flops=1, bandwidth_Bps=1, ratio=1.5)
    with pytest.raises(WorkloadError, match="speed is 0"):
        ptask_profiles(source, speed_flops=0, bandwidth_Bps=1)
