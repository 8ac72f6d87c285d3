"""`sacct --json` as the versions of Slurm print it.

The shapes are those of Slurm's public descriptions of its REST data (openapi dbv0.0.37 to 0.0.41):
numbers are plain until 22.05, with marks for "not set" and "no limit", and objects {set, infinite,
number} from 23.02 on; states and exit codes are lists from 23.11 on.
"""

import json

import pytest

from ptaskmodel.remarks import for_summary, shortened
from ptaskmodel.slurm.jobs.sacct import read_sacct

VERSIONS = ("21.08", "22.05", "23.02", "23.11", "24.05")
T0 = 1_700_000_000
NO_VALUE, INFINITE, OF_CPU = 2**32 - 2, 2**32 - 1, 2**63


def number(version, value, unset=NO_VALUE):
    """A number as a version prints it; None: not set; inf: no limit."""
    if version < "23":
        return unset if value is None else INFINITE if value == "inf" else value
    plain = 0 if value in (None, "inf") else value
    return {"set": value is not None, "infinite": value == "inf", "number": plain}


def listed(version, word):
    return [word] if version >= "23.11" else word


def job(version, job_id, *, state="COMPLETED", limit=60, elapsed=600, task_id=None, tasks=""):
    array = job_id if task_id is not None or tasks else 0
    old = version < "23"
    required = {"CPUs": 8, "memory": OF_CPU + 2000}
    if not old:
        required = {
            "CPUs": 8,
            "memory_per_cpu": number(version, 2000),
            "memory_per_node": number(version, None),
        }
    start = T0 + 10 if elapsed else 0
    end = T0 + 10 + elapsed if elapsed else T0 + 300
    resources = {"cpu": 8, "node": 2, "billing": 8}
    return {
        "account": "physics",
        "comment": {"administrator": None, "job": "", "system": ""},
        "allocation_nodes": 2,
        "array": {
            "job_id": array or (None if version == "21.08" else 0),
            "limits": {"max": {"running": {"tasks": 0}}},
            "task_id": number(version, task_id, None if old else NO_VALUE),
            "task": tasks or (None if old else ""),
        },
        "association": {"account": "physics", "cluster": "c", "partition": None, "user": "ann"},
        "constraints": "",
        "exit_code": {
            "status": listed(version, "SUCCESS"),
            "return_code": 0 if version < "23.11" else number(version, 0),
        },
        "het": {"job_id": 0, "job_offset": number(version, None, None)},
        "job_id": job_id + (100 if task_id is not None else 0),
        "name": "a|b\nc",
        "partition": "p",
        "qos": "normal",
        "required": required,
        "state": {"current": listed(version, state), "reason": "None"},
        "steps": [],
        "time": {
            "elapsed": elapsed,
            "eligible": T0,
            "submission": T0,
            "start": start,
            "end": end,
            "limit": number(version, limit),
        },
        "tres": {
            which: [{"type": kind, "name": None, "id": 1, "count": n} for kind, n in given.items()]
            for which, given in (("allocated", resources), ("requested", resources))
        },
        "user": "ann" if version != "21.08" else None,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_all_versions_say_the_same(tmp_path, version):
    jobs = [
        job(version, 5),
        job(version, 3, task_id=0),
        job(version, 4, tasks="7-8%1", state="CANCELLED", elapsed=0),
        job(version, 6, limit="inf"),
        job(version, 7, limit=None),
        job(version, 8, state="RUNNING"),
        job(version, 9) | {"time": {"submission": "soon"}},
    ]
    path = tmp_path / "sacct.json"
    path.write_text(json.dumps({"meta": {"Slurm": {"release": version}}, "jobs": jobs}))
    found = read_sacct(path)
    by_id = {one.id: one for one in found.jobs}
    assert set(by_id) == {"5", "3_0", "4_7", "4_8", "6", "7"}
    one = by_id["5"]
    assert (one.min_nodes, one.tasks, one.limit_min, one.run_s) == (2, 8, 60, 600)
    assert (one.memory_per_cpu_MiB, one.memory_per_node_MiB) == (2000, None)
    assert (one.user, one.account, one.qos, one.partitions) == ("ann", "physics", "normal", ("p",))
    assert (by_id["6"].limit_min, by_id["7"].limit_min) == (None, None)
    assert by_id["4_7"].array.at_most == 1
    assert not one.fails
    assert [remark.kind for remark in found.remarks] == ["left out", "left out"]


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("time", {"limit": "many"}, "time/limit is 'many'; give a number"),
        ("time", 7, "time is 7; give an object"),
        ("account", {"name": "x"}, "account is an object; give a text"),
        ("required", {"CPUs": [4]}, "required/CPUs is a list; give a number"),
        ("tres", {"requested": "cpu=4"}, "tres/requested is 'cpu=4'; give a list"),
        ("state", {"current": [{}]}, "state/current is an object; give a text"),
    ],
)
def test_a_value_of_a_wrong_type_costs_its_job_and_is_told(tmp_path, field, value, complaint):
    path = tmp_path / "sacct.json"
    bad = [job("24.05", number) | {field: value} for number in (8, 9)]
    good = [job("24.05", number) for number in (5, 6)]
    path.write_text(json.dumps({"jobs": [*good, *bad]}))
    found = read_sacct(path)
    assert [one.id for one in found.jobs] == ["5", "6"]
    (shown,) = shortened(for_summary(found.remarks))
    assert shown["text"].startswith(f"left out: /jobs/2: {complaint}")
    assert shown["text"].endswith("(and 1 more such)")


def test_what_stands_beside_the_jobs_is_told(tmp_path):
    path = tmp_path / "sacct.json"
    jobs = [job("24.05", 5), job("24.05", 6, state="COMPLETED") | {"colour": "red"}]
    jobs[1]["state"]["current"] = ["COMPLETED", "REQUEUED"]
    head = {
        "meta": {"plugins": {}},
        "errors": [{"description": "no connection", "error_number": 9}],
        "warnings": ["slow"],
        "colour": "red",
    }
    path.write_text(json.dumps({**head, "jobs": jobs}))
    assert [one.text for one in read_sacct(path).remarks] == [
        "sacct printed under errors: 'no connection'",
        "sacct printed under warnings: 'slow'",
        "fields that are not used: 'colour'",
        "1 job with words behind its state, which are not used",
    ]
