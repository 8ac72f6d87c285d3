"""Usual mistakes of users: each is told in one line with the remedy, and the exit code is 2."""

from __future__ import annotations

import os
import sys

import pytest
from small_files import FILES

from ptaskmodel.cli import main, show

MISTAKES = {
    "simulate p.xml host.json": "unknown host 'nod-0'; do you mean 'node-0'",
    "simulate p.xml unit.json": "/tasks/0/cpu: is '1Gf'; give a number",
    "simulate p.xml huge.json": "1e+300 is larger than",
    "simulate p.xml negative.json": "is negative; give 0 or more",
    "simulate p.xml comma.json": "remove the comma before it",
    "simulate p.xml flow.json": "no route from 'node-0' to 'node-1'",
    "simulate gflops.xml t.json": "known units: Gf",
    "simulate msec.xml t.json": "known units: ms",
    "simulate slash.xml t.json": "known units: Gbps",
    "simulate cut.xml t.json": "not well-formed XML",
    "simulate t.json p.xml": "p.xml:1:1: is XML, not JSON",
    "simulate p.xml w.json": "run it by `ptaskmodel batch`",
    "simulate p.xml slurm.conf": "is not JSON",
    "simulate d t.json": "is a directory; give a file",
    "simulate p.xml d": "is a directory; give a file",
    "simulate empty t.json": "is empty; give a platform",
    "simulate p.xml empty": "is empty; give a JSON document",
    "simulate none.xml t.json": "no such file",
    "simulate p.xml t16.json": "is not UTF-8 but UTF-16; save it as UTF-8",
    "simulate p.xml t.json -o p.xml": "is a file; give a directory",
    "simulate p.xml t.json --until 10s": "'10s' is not a number; give one without a unit",
    "simulate p.xml t.json --solver BMF": "did you mean 'bmf'?",
    "simulate p.xml t.json --calibration m.csv": "cannot be read as a calibration",
    "simulate p.xml t.json --group a=b": "give --calibration FILE",
    "batch t.json w.json": "is JSON, the format of tasks and workloads; give the platform",
    "batch p.xml t.json": "run it by `ptaskmodel simulate`",
    "batch p.xml p.xml": "is XML, the format of platforms; give the platform first",
    "batch p.xml jobs.csv": "like no known format",
    "batch p.xml empty": "is empty; give a workload",
    "batch p.xml w.json": "(--leave-out-larger)",
    "batch p.xml w.json --policy my.py": "name its class too: my.py:CLASS",
    "batch six.xml w.json --policy policies.py:Lifo": "has no class 'Lifo': it has Soon, Late",
    "batch six.xml w.json --policy policies.py:Soon": "; did you mean 'submit_time_s'?",
    "batch six.xml w.json --policy-option alpha=1": "has no option 'alpha': it has none",
    "batch p.xml w.json --seed 1e3": "'1e3' is not a whole number; give one",
    "batch -p p.xml -w w.json": "give PLATFORM WORKLOAD -o DIR, or take Batsim's options",
    "batch --no-sched p.xml w.json": "use ptaskmodel batch --policy fcfs",
    "batch --routing ecmp p.xml w.json": "as tasks, with `simulate --routing`",
    "slurm slurm.conf j.csv --routing ecmp": "jobs take the routes of the platform",
    "batch p.xml bare.txt": "so this is no SWF job",
    "batch p.xml sacct.txt": "`ptaskmodel slurm` also reads tables of sacct",
    "slurm slurm.conf bare.txt": "leave out -n (--noheader)",
    "batch p.xml w.json --calibration m.csv": "cannot be read as a calibration",
    "slurm jobs.csv slurm.conf": "slurm.conf comes first, then the jobs",
    "slurm conf16 jobs.csv": "UTF-16; save it as UTF-8",
    "slurm slurm.conf jobs16.csv": "UTF-16; save it as UTF-8",
    "slurm slurm.conf p.xml": "is XML, the format of platforms",
    "slurm empty jobs.csv": "ends without a NodeName line",
    "replay r.txt p.xml": "r.txt:1: is not XML, so no SimGrid platform",
    "replay p.xml t.json": "is JSON, as tasks and workloads are; give a trace",
    "replay p.xml r16.txt": "UTF-16; save it as UTF-8",
    "replay p.xml rbom.txt": "begins with a byte order mark",
    "replay p.xml r.txt --hosts nope": "unknown host 'nope'",
    "trace pack r.txt -o r.zip": "end the name so",
    "calibrate m16.csv": "UTF-16; save it as UTF-8",
    "calibrate empty": "it is empty",
    "report p.xml": "is a file; give a directory, the --output of a run",
    "report d": "give the --output directory of a run",
    "tasks validate p.xml": "is XML",
    "workload info p.xml": "is XML",
    "campaign run p.xml": "is not TOML",
    "campaign table d --kind mean": "did you mean 'means'?",
    "init d": "not empty; give another name",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (made / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (made / "d").mkdir()
    (made / "d" / "mine").touch()
    return made


@pytest.mark.jit
@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_told_in_one_line(place, monkeypatch, capsys, command):
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of policies.py
    before = sorted(path.name for path in place.rglob("*"))
    assert main([*command.split(), "-q"]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert len(said) == 1, said
    assert MISTAKES[command] in said[0]
    assert sorted(path.name for path in place.rglob("*")) == before


@pytest.mark.jit
@pytest.mark.parametrize(
    "change", [lambda text: text.replace("\n", "\r\n"), lambda text: f"\ufeff{text}"]
)
@pytest.mark.parametrize("name", ["p.xml", "m.csv", "jobs.csv", "slurm.conf"])
def test_files_of_windows_are_read(tmp_path, monkeypatch, capsys, name, change):
    monkeypatch.chdir(tmp_path)
    for each in ("p.xml", "m.csv", "jobs.csv", "slurm.conf"):
        text = change(FILES[each]) if each == name else FILES[each]
        (tmp_path / each).write_bytes(text.encode())
    commands = {"p.xml": "platform info p.xml", "m.csv": "calibrate m.csv"}
    assert main(commands.get(name, "slurm slurm.conf jobs.csv").split()) == 0
    capsys.readouterr()


@pytest.mark.skipif(os.getuid() == 0, reason="root may do everything")
def test_what_may_not_be_read_or_written_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(FILES["p.xml"])
    (tmp_path / "p.xml").chmod(0)
    assert main(["platform", "info", "p.xml"]) == 2
    assert "p.xml: cannot be read: Permission denied" in capsys.readouterr().err
    tmp_path.chmod(0o500)
    assert main(["workload", "generate", "lublin", "-o", "w.json", "--jobs", "2"]) == 2
    assert "cannot be written: Permission denied" in capsys.readouterr().err
    tmp_path.chmod(0o700)


def test_a_page_of_several_runs_is_one_of_compare(capsys):
    assert main(["report", "a", "b", "c", "-o", "p.html"]) == 2
    told = "report: a page is about one run; for several use `ptaskmodel compare A B --page FILE`"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("a", "b", "c"), "a b c"),
        (("n8", "n9", "n10", "n11"), "n8 ... n11 (4)"),
        (("a5", "a1", "a2", "a3", "a4", "a6"), "a5 a1 and 4 more"),
        (("r0-6", "r0-7", "r1-0", "r1-1"), "r0-6 r0-7 and 2 more"),
        (("n08", "n09", "n10", "n11"), "n08 ... n11 (4)"),
        (("a", "b", "c", "d"), "a b and 2 more"),
    ],
)
def test_only_hosts_numbered_in_order_look_like_a_range(names, text):
    assert show._hosts(names) == text
