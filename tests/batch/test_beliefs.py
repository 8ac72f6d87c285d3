"""What is said beforehand of walltimes and load, and afterwards of estimates, under contention."""

from __future__ import annotations

import pytest

from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.run import run_batch
from ptaskmodel.remarks import ESTIMATES_OUTLIVED, KILLED, OVERLOAD
from ptaskmodel.runs.batch import batch_into
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, SequenceWork

pytestmark = pytest.mark.jit


PAIR = HomogeneousWork(0.0, 60.0)  # 120 B over the backbone: alone 10 s


def jobs_of(work, count=2, walltime=None, every=0.0):
    jobs = (Job(str(k), every * k, 2, "p", work, walltime) for k in range(count))
    return Workload(tuple(jobs), {"p": work}, name="test")


def texts_of(platform, workload, effect, **options):
    result = run_batch(platform, workload, BatchOptions(policy="filler", **options))
    return [remark.text for remark in result.remarks if remark.effect == effect]


def test_jobs_that_need_more_than_their_walltime_alone_are_told(cluster):
    killed = "2 jobs run past their walltime, and are killed then"
    assert texts_of(cluster, jobs_of(PAIR, walltime=9.0), KILLED)[0].startswith(killed)
    assert texts_of(cluster, jobs_of(PAIR, walltime=10.5), KILLED) == []
    # With a checkpoint of 1 s every 4 s they need 12 s.
    law = {"interval": 4.0, "write": 1.0}
    for work in (PAIR, DelayWork(10.0)):
        found = texts_of(cluster, jobs_of(work, walltime=11.5), KILLED, checkpoint=law)
        assert found[0].startswith(killed)
        assert texts_of(cluster, jobs_of(work, walltime=25.0), KILLED, checkpoint=law) == []


def test_what_only_a_simulation_says_is_not_told_before(cluster):
    sequence = SequenceWork((PAIR, PAIR))
    assert texts_of(cluster, jobs_of(sequence, walltime=15.0), KILLED) == []


@pytest.mark.parametrize(
    ("work", "options", "load"),
    [
        (HomogeneousWork(800.0, 0.0), {}, "1"),  # 8 s on 2 of 4 hosts, one every 4 s
        (HomogeneousWork(1000.0, 0.0), {}, "1.25"),
        (DelayWork(8.0), {"checkpoint": {"interval": 4.0, "write": 2.0}}, "1.25"),
    ],
)
def test_overload_is_told_of_parallel_tasks_and_with_checkpoints(cluster, work, options, load):
    workload = jobs_of(work, 1001, every=4.0)
    with pytest.warns(UserWarning, match="queue grows") as told:
        texts = texts_of(cluster, workload, OVERLOAD, **options)
    assert len(told) == len(texts) == 1
    assert texts[0].startswith(f"the offered load is {load}: ")


def test_estimates_that_contention_makes_jobs_outlive_are_told(cluster):
    exact = BatchOptions(policy="easy", estimates="exact")
    run = batch_into(None, cluster, jobs_of(PAIR), exact)
    assert run.summary["outlived_estimates"] == 2
    said = {each["text"]: each["effect"] for each in run.summary["remarks"]}
    assert said["2 of 2 jobs outlived their estimates under contention"] == ESTIMATES_OUTLIVED
    for loop in ("open", "compiled"):
        run = batch_into(None, cluster, jobs_of(PAIR), BatchOptions(policy="easy", loop=loop))
        assert run.summary["outlived_estimates"] == 0
        assert run.summary["loop"] == loop
    assert any("estimates: 2 times the time alone" in note for note in run.result.notes)


def test_delays_and_walltimes_are_believed_as_before(cluster):
    for work, walltime, belief in (
        (DelayWork(10.0), None, "estimates: exact"),
        (PAIR, 50.0, "estimates: the walltimes"),
    ):
        result = run_batch(cluster, jobs_of(work, walltime=walltime), BatchOptions())
        assert belief in result.notes
