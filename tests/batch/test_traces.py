"""Jobs that are MPI applications, replayed from traces beside parallel tasks and delays."""

from __future__ import annotations

import json

import pytest

from ptaskmodel.batch import BatchOptions, run_batch
from ptaskmodel.errors import SimulationError, WorkloadError
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.workload.ptask_rule import trace_of_work
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.works import (
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
)

SEND = 1000016 / 125e6 + 100e-6


def platform(hosts=4):
    build = Platform.build("p")
    build.cluster("c", hosts, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    return build.finish()


@pytest.fixture
def workload(tmp_path):
    """A workload of jobs (profile, hosts, walltime); the profile "mpi" is a trace of two ranks."""

    def make(*jobs, **profiles):
        (tmp_path / "r0.txt").write_text("0 compute 1e9\n0 send 1 0 1e6\n")
        (tmp_path / "r1.txt").write_text("1 recv 0 0 1e6\n1 compute 5e8\n")
        (tmp_path / "traces.txt").write_text("r0.txt\nr1.txt\n")
        mpi = {"type": "TraceReplayProfile", "trace_type": "SMPI", "filename": "traces.txt"}
        given = {"mpi": mpi, "delay": {"type": "delay", "delay": 2.0}} | profiles
        rows = [
            {"id": str(k), "subtime": 0, "res": hosts, "profile": profile}
            | ({} if walltime is None else {"walltime": walltime})
            for k, (profile, hosts, walltime) in enumerate(jobs)
        ]
        path = tmp_path / "w.json"
        path.write_text(json.dumps({"nb_res": 4, "jobs": rows, "profiles": given}))
        return read_workload(path)

    return make


def ends(workload, **options):
    result = run_batch(platform(), workload, BatchOptions(policy="fcfs", **options))
    return {run.job.id: (run.state, run.end_s) for run in result.schedule.final}, result


def test_traces_run_beside_delays_and_parallel_tasks(workload):
    flow = {"type": "parallel", "cpu": [0, 0], "com": [0, 1e9, 0, 0]}
    jobs = ("mpi", 2, 10.0), ("delay", 1, 10.0), ("mpi", 2, 1.2), ("flow", 2, 60.0)
    found, result = ends(workload(*jobs, flow=flow))
    assert found["0"] == ("COMPLETED_SUCCESSFULLY", pytest.approx(1.5 + SEND))
    assert found["1"] == ("COMPLETED_SUCCESSFULLY", 2.0)
    assert result.alone_s[0] == pytest.approx(1.5 + SEND)
    # Job 2 waits for job 0, and is killed.
    assert found["2"] == ("COMPLETED_WALLTIME_REACHED", pytest.approx(1.5 + SEND + 1.2))


def test_one_host_takes_all_ranks(tmp_path):
    (tmp_path / "t.txt").write_text("0 compute 1e9\n1 compute 1e9\n")
    profile = {"type": "smpi", "trace": "t.txt", "mpi_size": 2}
    jobs = [{"id": "a", "subtime": 0, "res": 1, "walltime": 9, "profile": "p"}]
    (tmp_path / "w.json").write_text(
        json.dumps({"nb_res": 1, "jobs": jobs, "profiles": {"p": profile}})
    )
    found, _ = ends(read_workload(tmp_path / "w.json"))
    assert found["a"][1] == pytest.approx(2.0)


def test_profiles_may_replace_each_other(workload):
    given = workload(("mpi", 2, None), ("delay", 1, None))
    found, _ = ends(given, profiles="delay")
    assert found["0"][1] == pytest.approx(1.5 + SEND)
    found, result = ends(given, profiles="ptask")  # 1 s, beside which the message takes none
    assert found["0"][1] == pytest.approx(1.0 + 100e-6)
    assert "traces became parallel tasks: the bundle of each" in result.workload.notes
    ptask = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6}
    given = workload(("ptask", 2, None), ("delay", 1, None), ptask=ptask)
    found, _ = ends(given, profiles="smpi")
    assert found["0"][1] == pytest.approx(1.0 + SEND)
    assert found["1"][1] == 2.0


def test_stages_of_sequences_replace_each_other_too(workload):
    twice = {"type": "composed", "seq": ["mpi", "delay"], "repeat": 2}
    given = workload(("twice", 1, None), twice=twice)  # both ranks on one core: 1.5 s of computing
    for profiles in ("as-given", "smpi"):
        found, _ = ends(given, profiles=profiles)
        assert found["0"][1] == pytest.approx(2 * (1.5 + 2.0), rel=1e-2)
    found, result = ends(given, profiles="ptask")
    assert found["0"][1] == pytest.approx(2 * (1.5 + 2.0), rel=1e-2)
    assert result.alone_s[0] == found["0"][1]


def test_amounts_for_a_whole_job_become_traces(workload):
    total = {"type": "parallel_homogeneous_total", "cpu": 2e9, "com": 2e6}
    found, _ = ends(workload(("total", 2, None), total=total), profiles="smpi")
    assert found["0"][1] == pytest.approx(1.0 + SEND)


def test_what_cannot_be_is_said(workload):
    with pytest.raises(SimulationError, match="what the ranks of traces draw is not metered"):
        ends(workload(("mpi", 2, 9.0)), energy=True)
    with pytest.raises(WorkloadError, match=r"/profiles/mpi/mpi_size: 0 is not a number of ranks"):
        workload(("mpi", 1, 1), mpi={"type": "smpi", "trace": "traces.txt", "mpi_size": 0})
    with pytest.raises(WorkloadError, match=r"cannot read the trace .*nowhere"):
        workload(("mpi", 1, 1), mpi={"type": "smpi", "trace": "nowhere"})


def test_works_as_traces():
    flows = ParallelWork.of(2, [1.0, 0.0], flows=[(0, 1, 5.0), (1, 1, 3.0)])
    trace = trace_of_work(SequenceWork((DelayWork(2.0), flows), 2), 2, "both")
    assert trace.counts() == {"sleep": 4, "compute": 2, "isend": 2, "irecv": 2, "waitall": 4}
    assert trace.values.tolist()[:6] == [2.0, 1.0, 1.0, 0.0, 5.0, 6.0]
    trace = trace_of_work(HomogeneousWork(1.0, 2.0), 3, "all")
    assert trace.counts() == {"compute": 3, "alltoall": 3}
    with pytest.raises(WorkloadError, match="more than 10,000,000; repeat it less"):
        trace_of_work(SequenceWork((DelayWork(2.0),), 10**8), 2, "long")


@pytest.mark.jit
def test_workloads_of_batsim_last_as_they_say(shared_data):
    """Two of Batsim's own workloads name what their trace is to last on its cluster of 512."""
    machine = load_platform(shared_data / "platforms" / "batsim_cluster512.xml")
    for name, lasts in (("smpi_compute_only", 10.0), ("smpi_mixed_comp_comm", 14.000052)):
        given = read_workload(shared_data / "workloads" / f"test_{name}.json")
        result = run_batch(machine, given, BatchOptions(policy="fcfs"))
        times = [run.end_s - run.start_s for run in result.schedule.final]
        assert times == pytest.approx([lasts, lasts, 1.0], rel=1e-7)
        assert [run.state for run in result.schedule.final][-1] == "COMPLETED_WALLTIME_REACHED"
