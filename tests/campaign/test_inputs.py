"""What a run reads belongs to what it is: the files that its files name, too."""

from __future__ import annotations

import builtins
import gzip
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ptaskmodel.campaign.plan import content_of, digest_of, input_at, leads_to, plan_of
from ptaskmodel.errors import CampaignError, PTaskModelError
from ptaskmodel.mpi import read_trace
from ptaskmodel.named_files import named_by, sources
from ptaskmodel.platform import load_platform
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.formats.tasks_json import load_tasks
from ptaskmodel.workload.reading import read_workload

GZIP = b"\x1f\x8b"
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="1Gf" speed_file="speeds/a&amp;b.txt"/>
    <host id="b" speed="1Gf" state_file='states.txt'/>
    <link id="l" bandwidth="1GBps" latency="1us" bandwidth_file="bandwidth.txt"/>
    <route src="a" dst="b"><link_ctn id="l"/></route>
  </zone>
  <trace id="t" periodicity="1" file="named.txt"/>
  <trace_connect trace="t" element="l" kind="LATENCY"/>
</platform>
"""
TRACES = ("0 init\n0 compute 1e9\n0 finalize\n", "1 init\n1 compute 1e9\n1 finalize\n")
JOBS = {
    "nb_res": 2,
    "jobs": [
        {"id": name, "subtime": 0, "res": 2, "profile": name} for name in ("mpi", "used")
    ],
    "profiles": {
        "mpi": {"type": "smpi", "trace_file": "ranks/list.txt"},
        "used": {"type": "usage_trace", "trace_file": "uses/list.txt"},
    },
}  # fmt: skip
TASKS = {
    "tasks": [
        {"id": "x", "hosts": ["a", "b"],
         "cpu": {"npz": "amounts.npz", "key": "flops"}, "com": [[0, 1], [1, 0]]}
    ]
}  # fmt: skip
CONF = """# see spare.conf
SelectType=select/linear
TopologyPlugin=topology/tree
Include parts/nodes.conf
PartitionName=all Nodes=ALL Default=YES
"""


def put(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)


def platform(place):
    put(place / "speeds", **{"a&b": "0 1\n"})
    put(place, states="0 1\n", bandwidth="0 1e9\n", named="0 1e-6\n")
    (place / "p.xml").write_text(PLATFORM)
    return place / "p.xml", load_platform


def traces(place):
    put(place, first=TRACES[0], second=TRACES[1], list="first.txt\nsecond.txt\n")
    return place / "list.txt", read_trace


def jobs(place):
    put(place / "ranks", first=TRACES[0], second=TRACES[1], list="first.txt second.txt\n")
    put(place / "uses", a="0 m_usage 1 1e9\n", list="a.txt\na.txt\n")
    (place / "jobs.json").write_text(json.dumps(JOBS))
    return place / "jobs.json", lambda path: read_workload(path, Cleaning(1))


def tasks(place):
    np.savez(place / "amounts.npz", flops=[1e9, 1e9])
    (place / "tasks.json.gz").write_bytes(gzip.compress(json.dumps(TASKS).encode()))
    return place / "tasks.json.gz", load_tasks


def conf(place):
    (place / "parts").mkdir()
    (place / "parts" / "nodes.conf").write_text('NodeName=n[1-2] CPUs=1\nInclude "last.conf"\n')
    (place / "last.conf").write_text("NodeName=n3 CPUs=1\n")
    (place / "spare.conf").write_text("")
    (place / "topology.conf").write_text("SwitchName=s Nodes=n[1-3]\n")
    (place / "slurm.conf").write_text(CONF)
    return place / "slurm.conf", read_conf


def code(place):
    (place / "package").mkdir()
    (place / "package" / "__init__.py").write_text("from . import inner\n")
    (place / "package" / "inner.py").write_text("x = 1\n")
    (place / "mine.py").write_text("import os\nfrom package.inner import x\n")
    return place / "mine.py", sources


KINDS = [platform, traces, jobs, tasks, conf, code]


def opened_below(folder, read, path, monkeypatch):
    """The files of a folder that reading opens."""
    opened, really = [], io.open

    def watched(name, *arguments, **named):
        opened.append(str(name))
        return really(name, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(io, "open", watched)
        patched.setattr(builtins, "open", watched)
        read(path)
    return {name for name in opened if name.startswith(str(folder))}


@pytest.mark.parametrize("make", KINDS, ids=lambda one: one.__name__)
def test_all_that_is_read_is_known_and_each_tells_in_what_a_run_is(tmp_path, make, monkeypatch):
    path, read = make(tmp_path)
    found = named_by(path)
    assert {str(one) for one in found} == opened_below(tmp_path, read, path, monkeypatch)
    seen = {digest_of(path, "x")}
    assert leads_to(path, input_at(path, "x").mark)
    for one in found:
        mark = input_at(path, "x").mark
        content = one.read_bytes()
        one.write_bytes(
            gzip.compress(gzip.decompress(content) + b" ")
            if one.suffix == ".gz"
            else content + b" "
        )
        assert not leads_to(path, mark)
        seen.add(digest_of(path, "x"))
    assert len(seen) == len(found) + 1
    elsewhere = tmp_path / "elsewhere"
    for name, content in content_of(path).items():
        (elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere / name).write_bytes(content)
    assert digest_of(elsewhere / path.name, "x") == digest_of(path, "x")


def test_a_changed_file_that_a_slurm_conf_includes_makes_other_runs(tmp_path):
    conf(tmp_path)
    (tmp_path / "jobs.swf").write_text("1 0 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n")
    text = (
        'run = "slurm"\n[parameters]\nconf = "slurm.conf"\nworkload = "jobs.swf"\n'
        "[factors.set]\nbf_interval = [30, 60]\n"
    )
    before = {run.id for run in plan_of(text, tmp_path, "plan").runs()}
    assert before == {run.id for run in plan_of(text, tmp_path, "plan").runs()}
    (tmp_path / "last.conf").write_text("NodeName=n3 CPUs=1 Weight=2\n")
    assert not before & {run.id for run in plan_of(text, tmp_path, "plan").runs()}


def test_what_is_far_off_is_told_in_but_not_sent(tmp_path):
    put(tmp_path, first=TRACES[0])
    put(tmp_path / "below", list="../first.txt\n")
    path = tmp_path / "below" / "list.txt"
    assert named_by(path) == [path, tmp_path / "below" / ".." / "first.txt"]
    with pytest.raises(
        CampaignError, match=r"first.txt, which is in another directory and cannot " r"be"
    ):
        content_of(path)


def test_a_log_names_nothing_and_lists_may_name_each_other(tmp_path):
    put(tmp_path, a="b.txt\n", b="a.txt\n", log="; a.txt\n1 0 a.txt\n", no="\0 a.txt")
    assert named_by(tmp_path / "a.txt") == [tmp_path / "a.txt", tmp_path / "b.txt"]
    for name in ("log.txt", "no.txt"):
        assert named_by(tmp_path / name) == [tmp_path / name]


@given(st.binary(max_size=200) | st.sampled_from([b"<", b"{", b"x "]).flatmap(
    lambda start: st.binary(max_size=200).map(lambda rest: start + rest)))  # fmt: skip
def test_anything_may_be_in_a_file(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "anything"
    assume(not content.startswith(GZIP))
    path.write_bytes(content)
    assert named_by(path)[0] == path


def test_a_compressed_file_that_is_cut_off_is_named(tmp_path):
    path = tmp_path / "log.swf.gz"
    path.write_bytes(GZIP)
    with pytest.raises(PTaskModelError, match=r"log.swf.gz: this is not a whole gzip file"):
        named_by(path)


def test_what_can_be_read_only_once_is_no_input_of_many_runs(tmp_path):
    pipe = tmp_path / "jobs.json"
    os.mkfifo(pipe)
    with pytest.raises(CampaignError, match="is not a regular file; give one"):
        digest_of(pipe, "workload")


def test_a_file_that_cannot_be_read_is_named():
    with pytest.raises(PTaskModelError, match=r"^/proc/self/mem: cannot be read"):
        named_by(Path("/proc/self/mem"))


def test_python_that_is_nested_without_end_is_no_python(tmp_path):
    deep = tmp_path / "policy.py"
    deep.write_text(f"x = {'-' * 200_000}1")
    with pytest.raises(PTaskModelError, match="is not a Python file: nested too deep"):
        named_by(deep)
