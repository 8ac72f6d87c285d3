"""`sacct --json` as the versions of Slurm print it.

The shapes are those of Slurm's public descriptions of its REST data (openapi dbv0.0.37 to 0.0.41):
numbers are plain until 22.05, with marks for "not set" and "no limit", and objects {set, infinite,
number} from 23.02 on; states and exit codes are lists from 23.11 on.
"""

import json

import pytest

from ptaskmodel.slurm.requests.sacct import read_sacct

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
