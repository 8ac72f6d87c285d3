"""Batsim workloads of every generation are read alike, written back, and refused in one line."""

from __future__ import annotations

import gzip
import json
import re
from datetime import timedelta

import numpy as np
import pytest

from ptaskmodel.errors import WorkloadError
from ptaskmodel.platform.facts import HostFacts
from ptaskmodel.workload.batch_works import SpreadWork, StagingWork, StorageWork, UsageTraceWork
from ptaskmodel.workload.formats.batsim import read_batsim, write_batsim
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.reading import workload_from_frame
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, ParallelWork, SequenceWork

OLDEST = {
    "wait": {"type": "delay", "delay": 20.2},
    "pair": {"type": "msg_par", "cpu": [5, 6], "com": [1, 2, 3, 0]},
    "each": {"type": "msg_par_hg", "cpu": 10, "com": 1},
    "all": {"type": "msg_par_hg_tot", "cpu": 10, "com": 6},
    "io": {"type": "msg_par_hg_pfs_tiers", "size": 7, "direction": "to_storage", "host": "lcst"},
    "move": {"type": "data_staging", "nb_bytes": 9, "from": "a", "to": "b"},
    "twice": {"type": "composed", "nb": 2, "seq": ["pair", "each"]},
}
MIDDLE = {
    "wait": {"type": "delay", "delay": 20.2},
    "pair": {"type": "parallel", "cpu": [5, 6], "com": [1, 2, 3, 0]},
    "each": {"type": "parallel_homogeneous", "cpu": 10, "com": 1},
    "all": {"type": "parallel_homogeneous_total", "cpu": 10, "com": 6},
    "io": {"type": "parallel_homogeneous_pfs", "bytes_to_write": 7, "storage": "lcst"},
    "move": {"type": "data_staging", "nb_bytes": 9, "from": "a", "to": "b"},
    "twice": {"type": "composed", "repeat": 2, "seq": ["pair", "each"]},
}
NEWEST = {
    "wait": {"type": "DelayProfile", "delay": 20.2},
    "pair": {"type": "ParallelTaskProfile", "cpu": [5, 6], "com": [1, 2, 3, 0]},
    "each": {"type": "ParallelTaskHomogeneousProfile", "cpu": 10, "com": 1},
    "all": {
        "type": "ParallelTaskHomogeneousProfile",
        "cpu": 10,
        "com": 6,
        "generation_strategy": "DefinedAmountsSpreadUniformly",
    },
    "io": {
        "type": "ParallelTaskOnStorageHomogeneousProfile",
        "bytes_to_read": 0,
        "bytes_to_write": 7,
        "storage": "lcst",
    },
    "move": {
        "type": "ParallelTaskDataStagingBetweenStoragesProfile",
        "nb_bytes": 9,
        "from": "a",
        "to": "b",
    },
    "twice": {"type": "SequentialCompositionProfile", "repeat": 2, "seq": ["pair", "each"]},
}
GENERATIONS = {2: OLDEST, 3: MIDDLE, 5: NEWEST}


def workload_file(tmp_path, profiles, jobs=None, **more):
    names = jobs if jobs is not None else [{"id": 1, "subtime": 0, "res": 2, "profile": "wait"}]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": names, "profiles": profiles} | more))
    return path


@pytest.mark.parametrize("version", GENERATIONS)
def test_profiles_of_every_generation_are_read_alike(tmp_path, version):
    works = read_batsim(workload_file(tmp_path, GENERATIONS[version])).profiles
    assert works["wait"] == DelayWork(20.2)
    pair = works["pair"]
    assert isinstance(pair, ParallelWork)
    assert pair.flops.tolist() == [5, 6]
    assert list(zip(pair.flow_from, pair.flow_to, pair.flow_bytes, strict=True)) == [
        (0, 0, 1),
        (0, 1, 2),
        (1, 0, 3),
    ]
    assert works["each"] == HomogeneousWork(10, 1)
    assert works["all"] == SpreadWork(10, 6, by_pair=version == 5)
    assert works["io"] == StorageWork(0, 7, "lcst")
    assert works["move"] == StagingWork(9, "a", "b")
    assert works["twice"] == SequenceWork((works["pair"], works["each"]), 2)


@pytest.mark.parametrize("version", GENERATIONS)
def test_what_is_written_reads_back(tmp_path, version):
    jobs = [
        {"id": "late", "subtime": 5, "res": 2, "profile": "pair", "walltime": 9, "user": "u"},
        {"id": 7, "subtime": 0.5, "res": 3, "profile": "each", "walltime": -1},
    ]
    first = read_batsim(workload_file(tmp_path, GENERATIONS[version], jobs, comment="kept"))
    write_batsim(first, tmp_path / "again.json.gz", version)
    again = read_batsim(tmp_path / "again.json.gz")
    assert [j.id for j in again.jobs] == ["7", "late"]
    for one, other in zip(first.jobs, again.jobs, strict=True):
        assert (one.submit_time_s, one.num_hosts, one.walltime_s, one.profile) == (
            other.submit_time_s,
            other.num_hosts,
            other.walltime_s,
            other.profile,
        )
        assert dict(one.extra) == dict(other.extra)
    assert again.extra["comment"] == "kept"
    for name in ("wait", "each", "all", "io", "move"):
        assert again.profiles[name] == first.profiles[name]
    assert np.array_equal(again.profiles["pair"].flow_bytes, first.profiles["pair"].flow_bytes)
    assert again.profiles["twice"].repeat == 2


def test_all_problems_of_a_job_are_told(tmp_path):
    job = {"id": "", "subtime": "x", "res": -1, "profile": "no", "ret": 1.5, "walltime": "y"}
    profiles = {name: {"type": "composed", "seq": [name]} for name in "pq"}
    told = []
    for defined in ({}, profiles):
        (tmp_path / "w.json").write_text(json.dumps({"jobs": [job], "profiles": defined}))
        with pytest.raises(WorkloadError) as caught:
            read_batsim(tmp_path / "w.json")
        told.append(caught.value.message)
    assert "6 problems" in told[0]
    assert all(f"  /jobs/0/{field}: " in told[0] for field in job)
    assert "8 problems" in told[1]
    assert all(f"  /profiles/{name}/seq: the sequence contains itself" in told[1] for name in "pq")


def test_versions_spread_bytes_differently(tmp_path):
    assert SpreadWork(12, 12, by_pair=False).plain(4) == HomogeneousWork(3, 3)
    assert SpreadWork(12, 12, by_pair=True).plain(4) == HomogeneousWork(3, 1)
    assert SpreadWork(12, 12, by_pair=True).plain(1) == HomogeneousWork(12, 0)
    loaded = read_batsim(workload_file(tmp_path, MIDDLE))
    with pytest.raises(WorkloadError, match="spread bytes differently"):
        write_batsim(loaded, tmp_path / "out.json", 5)
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(("version", "volume"), [(5, 60.0), (5, 0.0), (4, 0.0), (2, 0.0)])
@pytest.mark.parametrize("inside", [False, True])
def test_totals_of_a_homogeneous_work_are_read_back(tmp_path, version, volume, inside):
    total = HomogeneousWork(12.0, volume, total=True)
    work = SequenceWork((total,)) if inside else total
    job = Job("1", 0.0, 4, "p", work)
    write_batsim(Workload((job,), {"p": work}, 4), tmp_path / "w.json", version)
    read = read_batsim(tmp_path / "w.json").jobs[0].work
    facts = HostFacts({}, {})
    for hosts in (("a",), ("a", "b", "c", "d")):
        [[(on, bound)]] = read.bound(hosts, facts)
        [part] = bound.one_round()
        assert on == hosts
        demand = part.demand(len(hosts))
        assert np.sum(np.broadcast_to(demand.flops, len(hosts))) == 12.0
        pairs = len(hosts) * (len(hosts) - 1)
        assert demand.pair_bytes * pairs + demand.flow_bytes.sum() == (volume if pairs else 0.0)


def test_totals_of_bytes_are_not_written_as_another_sum(tmp_path):
    work = HomogeneousWork(12.0, 60.0, total=True)
    loaded = Workload((Job("1", 0.0, 4, "p", work),), {"p": work}, 4)
    with pytest.raises(WorkloadError, match="spread bytes differently"):
        write_batsim(loaded, tmp_path / "out.json", 4)


def test_a_usage_trace_becomes_phases_on_cores(tmp_path):
    (tmp_path / "list.txt").write_text("r0.txt\nr1.txt\n")
    (tmp_path / "r0.txt").write_text("0 m_usage 0.5 100\n0 m_usage 0 50\n")
    (tmp_path / "r1.txt").write_text("1 m_usage 1.0 100\n")
    profile = {
        "type": "TraceReplayProfile",
        "trace_type": "FractionalComputation",
        "filename": "list.txt",
    }
    jobs = [{"id": 1, "subtime": 0, "res": 2, "profile": "use"}]
    work = read_batsim(workload_file(tmp_path, {"use": profile}, jobs)).jobs[0].work
    assert isinstance(work, UsageTraceWork)
    facts = HostFacts({"x": 4, "y": 1}, {})
    ((hosts_x, one), (hosts_y, other)) = work.bound(("x", "y"), facts)[0]
    assert hosts_x == ("x",) * 4
    assert [stage.flops.tolist() for stage in one.stages] == [[100, 100, 0, 0], [50, 0, 0, 0]]
    assert hosts_y == ("y",)
    assert [stage.flops.tolist() for stage in other.stages] == [[100]]
    repeated = SequenceWork((work, DelayWork(1.0)), 2).bound(("x", "y"), facts)
    assert [len(step) for step in repeated] == [2, 1, 2, 1]


def test_storage_and_staging_are_bound_to_hosts():
    facts = HostFacts({"a": 1, "b": 1, "s": 1, "t": 1}, {"pfs": "s", "burst": "t"})
    sequence = SequenceWork((StorageWork(8, 6, "pfs", total=True), HomogeneousWork(5, 3)))
    (((hosts, work),),) = sequence.bound(("a", "b"), facts)
    assert hosts == ("a", "b", "s")
    flows = [
        list(zip(s.flow_from.tolist(), s.flow_to.tolist(), s.flow_bytes.tolist(), strict=True))
        for s in work.stages
    ]
    assert flows == [[(0, 2, 3), (1, 2, 3), (2, 0, 4), (2, 1, 4)], [(0, 1, 3), (1, 0, 3)]]
    assert work.stages[1].flops.tolist() == [5, 5, 0]
    (((hosts, work),),) = StagingWork(9, "pfs", "burst").bound((), facts)
    assert hosts == ("s", "t")
    assert work.flow_bytes.tolist() == [9]
    with pytest.raises(
        WorkloadError, match="no storage 'tape', whose storages are burst, pfs; give"
    ):
        StorageWork(1, 1, "tape").bound(("a",), facts)
    with pytest.raises(WorkloadError, match="no storage 'tape'; give one host the property role="):
        StorageWork(1, 1, "tape").bound(("a",), HostFacts({"a": 1}, {}))


def test_a_storage_of_another_name_is_the_only_one_with_a_warning():
    facts = HostFacts({"a": 1, "disk1": 1}, {"disk1": "disk1", "pfs": "disk1"})
    with pytest.warns(UserWarning, match="no storage 'nfs'; its only storage, disk1, is used"):
        (((hosts, _),),) = StorageWork(1, 1, "nfs").bound(("a",), facts)
    assert hosts == ("a", "disk1")


def test_nested_sequences_of_delays_have_a_duration():
    inner = SequenceWork((DelayWork(10.0), DelayWork(3.0)), 7)
    assert SequenceWork((inner, DelayWork(1.0)), 2).duration_s == 184
    assert SequenceWork((inner, HomogeneousWork(1, 1))).duration_s is None


GOOD_JOB = {"id": 1, "subtime": 0, "res": 2, "profile": "p"}
DELAY = {"p": {"type": "delay", "delay": 1}}
BAD = {
    "not json": ("{", "is not JSON"),
    "key twice": (
        '{"jobs": [], "profiles": {"p": {"type": "delay", "delay": 1, "delay": 2}}}',
        "/profiles/p: 'delay' is given twice; keep one",
    ),
    "profile twice": (
        '{"jobs": [], "profiles": {"p": {"type": "delay"}, "p": {"type": "delay"}}}',
        "/profiles: 'p' is given twice",
    ),
    "half a character": ('{"jobs": [], "profiles": {}, "x": "\\ud83d"}', "surrogate pair"),
    "not an object": ("[]", "is a JSON object"),
    "no jobs": ({"profiles": DELAY}, "/jobs: is missing or not a list"),
    "no profiles": ({"jobs": [GOOD_JOB]}, "/profiles: is missing or not an object"),
    "nb_res": ({"jobs": [], "profiles": {}, "nb_res": 0}, "/nb_res: 0"),
    "unknown profile": ({"jobs": [GOOD_JOB | {"profile": "q"}]}, "/jobs/0/profile"),
    "negative date": ({"jobs": [GOOD_JOB | {"subtime": -1}]}, "submitted at -1 s"),
    "date not a number": ({"jobs": [GOOD_JOB | {"subtime": "0"}]}, "/jobs/0/subtime: '0'"),
    "no id": ({"jobs": [{k: v for k, v in GOOD_JOB.items() if k != "id"}]}, "'id' is missing"),
    "no hosts": ({"jobs": [GOOD_JOB | {"res": 0}]}, "requests 0 hosts"),
    "half a host": ({"jobs": [GOOD_JOB | {"res": 1.5}]}, "/jobs/0/res: 1.5"),
    "walltime 0": ({"jobs": [GOOD_JOB | {"walltime": 0}]}, "walltime of 0 s"),
    "job not an object": ({"jobs": [3]}, "/jobs/0: is not an object; write a job as an object"),
    "no type": ({"profiles": {"p": {"delay": 1}}}, "/profiles/p: is not an object with"),
    "unknown type": ({"profiles": {"p": {"type": "magic"}}}, "type 'magic' is unknown"),
    "no delay": ({"profiles": {"p": {"type": "delay"}}}, "'delay' is missing"),
    "negative delay": ({"profiles": {"p": {"type": "delay", "delay": -1}}}, "/p/delay: -1"),
    "too much": (
        {"profiles": {"p": {"type": "parallel_homogeneous", "cpu": 1e200}}},
        "/p/cpu: 1e+200",
    ),
    "cyclic": (
        {
            "profiles": {
                "p": {"type": "composed", "seq": ["q"]},
                "q": {"type": "composed", "seq": ["p"]},
            }
        },
        "p -> q -> p",
    ),
    "empty sequence": ({"profiles": {"p": {"type": "composed", "seq": []}}}, "/p/seq"),
    "lost stage": ({"profiles": {"p": {"type": "composed", "seq": ["z"]}}}, "/seq/0: there is no"),
    "repeat": ({"profiles": {"p": {"type": "composed", "repeat": 0, "seq": ["p"]}}}, "/repeat: 0"),
    "matrix": (
        {"profiles": {"p": {"type": "parallel", "cpu": [1, 1], "com": [0, 1]}}},
        "/p/com: 2 values for 2 hosts; give 2 x 2 = 4",
    ),
    "negative bytes": (
        {"profiles": {"p": {"type": "parallel", "cpu": [1, 1], "com": [0, -1, 0, 0]}}},
        "/p/com/1: -1",
    ),
    "size": (
        {"profiles": {"p": {"type": "parallel", "cpu": [1, 1, 1]}}},
        "requests 2 hosts, but its profile 'p' is made for 3",
    ),
    "smpi": ({"profiles": {"p": {"type": "smpi", "trace": "t"}}}, "cannot read the trace"),
    "no trace": ({"profiles": {"p": {"type": "usage_trace", "trace": "t"}}}, "cannot read the"),
    "message": ({"profiles": {"p": {"type": "send", "msg": {}}}}, "`ptaskmodel serve`"),
    "strategy": (
        {"profiles": {"p": {"type": "ptask_homogeneous", "generation_strategy": "best"}}},
        "'best' is unknown",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_workload_is_refused_in_one_line(tmp_path, case):
    document, message = BAD[case]
    path = tmp_path / "w.json"
    if isinstance(document, dict):
        if case not in ("no jobs", "no profiles"):
            document = {"jobs": [GOOD_JOB], "profiles": DELAY} | document
        document = json.dumps(document)
    path.write_text(document)
    with pytest.raises(WorkloadError) as caught:
        read_batsim(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_gzip_garbage_is_refused(tmp_path):
    path = tmp_path / "w.json.gz"
    path.write_bytes(gzip.compress(b'{"jobs": []}' * 50)[:30])
    with pytest.raises(WorkloadError, match="not a whole gzip file"):
        read_batsim(path)
    with pytest.raises(WorkloadError, match="no such file"):
        read_batsim(tmp_path / "absent.json")


def test_the_workloads_of_batsim_are_read(shared_data):
    for path in sorted((shared_data / "workloads").glob("*.json")):
        assert read_batsim(path).jobs


def test_a_table_of_jobs_is_a_workload():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "job_id": ["b", "a"],
            "submit_time_s": [3.0, 1.0],
            "num_hosts": [2, 1],
            "walltime_s": [float("nan"), 9.0],
            "delay_s": [4.0, 5.0],
        }
    )
    workload = workload_from_frame(frame)
    assert [(j.id, j.walltime_s, j.work.duration_s) for j in workload.jobs] == [
        ("a", 9.0, 5.0),
        ("b", None, 4.0),
    ]
    again = workload_from_frame(workload.frame())
    assert again.frame().equals(workload.frame())
    with pytest.raises(WorkloadError, match="row 1: job 'b' is there twice"):
        workload_from_frame(frame.assign(job_id="b"))
    with pytest.raises(WorkloadError, match="no delay_s"):
        workload_from_frame(frame.drop(columns="delay_s"))
    alike = frame.assign(profile="p")
    with pytest.raises(
        WorkloadError, match=r"row 1: profile 'p' lasts 4 s in an earlier row, here 5 " r"s"
    ):
        workload_from_frame(alike)
    close = workload_from_frame(frame.assign(delay_s=[1234567.0, 1234568.0]))
    assert close.profiles.keys() == {"delay_1234567", "delay_1234568"}
    assert workload_from_frame(frame.convert_dtypes()).frame().equals(workload.frame())


def test_what_a_table_says_besides_is_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time_s": [1.0, 3.0],
            "num_hosts": [1, 2],
            "walltime_s": [9.0, 9.0],
            "profile": ["delay_5", "delay_4"],
            "delay_s": [5.0, 4.0],
            "user": ["ann", None],
            "queue": ["short", "long"],
            "cores": [2, 4],
            "memory_B": [1e9, 2e9],
        }
    )
    workload = workload_from_frame(frame)
    assert workload.jobs[0].user == "ann"
    assert workload.jobs[1].user is None
    assert workload.frame().equals(frame)
    numbered = workload_from_frame(frame.assign(user=[3.0, float("nan")]))
    assert [job.user for job in numbered.jobs] == ["3", None]


WRONG_CELLS = {
    "a date": (
        "submit_time_s",
        "2024-01-01",
        "is '2024-01-01'; give a number of seconds",
    ),
    "no date": ("submit_time_s", None, "submit_time_s None, num_hosts 2; give a date in s"),
    "half a host": ("num_hosts", 1.5, "num_hosts 1.5; give a date in s and a whole number"),
    "no hosts": ("num_hosts", float("nan"), "num_hosts nan; give a date in s and a whole number"),
    "a span": ("delay_s", timedelta(seconds=4), "delay_s is '0:00:04'; give a number of seconds"),
    "part of a core": ("cores", 1.5, "cores is 1.5; give a whole number"),
    "a unit": ("walltime_s", "1h", "walltime_s is '1h'; give a number of seconds"),
}


@pytest.mark.parametrize("name", WRONG_CELLS)
def test_a_cell_of_a_table_that_is_no_number_is_told_with_its_row(name):
    pandas = pytest.importorskip("pandas")
    column, value, said = WRONG_CELLS[name]
    row = {"job_id": "a", "submit_time_s": 1.0, "num_hosts": 2, "delay_s": 3.0}
    frame = pandas.DataFrame([row | {column: value}], dtype=object)
    with pytest.raises(WorkloadError, match=rf"^frame: row 0: .*{re.escape(said)}"):
        workload_from_frame(frame)


def test_jobs_may_ask_for_cores_memory_resources_and_licences(tmp_path):
    asked = {"cores": 2, "memory": 4096, "resources": {"gpu": 1}, "licences": {"solver": 3}}
    jobs = [{"id": 1, "subtime": 0, "res": 2, "profile": "p"} | asked]
    profiles = {"p": {"type": "parallel", "cpu": [1, 2, 3, 4], "com": [0] * 16}}
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    for workload in (read_batsim(path), None):
        if workload is None:
            write_batsim(read_batsim(path), path)
            workload = read_batsim(path)
        (job,) = workload.jobs
        assert (job.num_hosts, job.cores, job.memory_B) == (2, 2, 4096.0)
        assert (dict(job.resources), dict(job.licences)) == ({"gpu": 1}, {"solver": 3})
        assert not job.extra
    for key, value, message in (
        ("cores", 0, "0/cores: 0 of 'cores' is not a whole number of 1 or more"),
        ("memory", "4k", "memory: '4k' of 'memory'"),
        ("resources", ["gpu"], "write one such as"),
        ("licences", {"solver": -1}, "licences: -1 of 'solver'"),
        ("cores", 3, "requests 6 cores, but its profile 'p' is made for 4"),
    ):
        bad = [jobs[0] | {"id": 2, key: value}]
        path.write_text(json.dumps({"nb_res": 4, "jobs": bad, "profiles": profiles}))
        with pytest.raises(WorkloadError, match=re.escape(message)):
            read_batsim(path)


def test_a_sequence_stops_at_its_first_failing_part(tmp_path):
    profiles = {
        "good": {"type": "delay", "delay": 1},
        "bad": {"type": "delay", "delay": 2, "ret": 3},
        "all": {"type": "composed", "repeat": 2, "seq": ["good", "bad", "good"]},
        "outer": {"type": "composed", "seq": ["all", "good"]},
    }
    jobs = [{"id": "0", "subtime": 0, "res": 1, "profile": "outer"}]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
    (job,) = read_batsim(path).jobs
    assert (job.work.duration_s, job.return_code) == (3.0, 3)


def test_fields_of_profiles_that_nothing_reads_are_told(tmp_path):
    path = tmp_path / "w.json"
    kind = {"type": "parallel_homogeneous", "cpus": 1e9, "com": 1}
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "p"}
    path.write_text(json.dumps({"nb_res": 1, "jobs": [job], "profiles": {"p": kind}}))
    (told,) = read_batsim(path).remarks
    assert told.text == "the field 'cpus' of profiles is not used; did you mean cpu?"
