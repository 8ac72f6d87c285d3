"""What the first screen of each kind of page answers: the culprit, the price, the queue."""

from __future__ import annotations

import html
import json
import re
import shutil

import pytest

from ptaskmodel.cli import main
from ptaskmodel.remarks import EFFECTS, KILLED
from ptaskmodel.results.loading import load_results
from ptaskmodel.results.pages.report import answer_in, write_report
from ptaskmodel.results.sentences import warnings_of
from ptaskmodel.results.tables.costs import read_costs
from ptaskmodel.style.text import duration, number

STAR = """<?xml version="1.0"?>
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="1GBps"
  lat="1us" topology="FAT_TREE" topo_parameters="2;4,2;1,1;1,1"/></platform>
"""
ENFORCED = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations
"""
CONF = "NodeName=n[1-4] CPUs=8\nPartitionName=p Nodes=ALL Default=YES\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(STAR)
    return tmp_path


def made(*command):
    assert main([*command, "-o", "out", "-q"]) == 0
    return load_results("out")


def shown(page):
    """The answer of a page, as read."""
    text = page.read_text(encoding="utf-8")
    return [html.unescape(line) for line in re.findall(r'<p class="answer">(.*?)</p>', text)]


def test_a_replay_names_the_link_of_its_path_and_what_it_would_save_at_most(place):
    # Ranks 0 and 1 of one leaf send to ranks 2 and 3 of the other at once: they share the uplink.
    size = 1e9
    sends, receives = [f"send {k} 0 {size}" for k in (4, 5)], [f"recv {k} 0 {size}" for k in (0, 1)]
    for rank, lines in enumerate([*sends, "compute 1e8", "compute 2e8", *receives]):
        (place / f"r{rank}").write_text(f"{rank} init\n{rank} {lines}\n{rank} finalize\n")
    (place / "traces.txt").write_text("".join(f"r{rank}\n" for rank in range(6)))
    command = ["replay", "p.xml", "traces.txt"]
    results = made(*command, "--critical-path", "--attribution", "--timeline")
    links = results.summary["critical_path"]["links"]
    # Both wait for the other on all links of their way, but only those between switches are full.
    worst = max(links, key=lambda link: link["contention_s"])
    first, second = answer_in(results).splitlines()
    assert re.search(r"% of the critical path is contention, most on link (spine|leaf) 0 → ", first)
    saved, whole = duration(worst["contention_s"]), duration(results.end_s)
    assert f"Were it never shared, the run would end at most {saved} of {whole} sooner." in second
    assert "Of 2 pairs of ranks that send over it, rank 0 to 4 sends most, " in second
    assert f"Rank 3 computes longest, {number(results.summary['imbalance'])} times the mean." in (
        second
    )
    shutil.rmtree("out")
    bare = answer_in(made(*command))
    assert bare.endswith("What determines the end is not recorded: replay with --critical-path.")


def test_a_batch_names_the_user_who_cost_others_most(place):
    jobs = "".join(f"{k} {k} 0 100 4 -1 -1 4 900 -1 1 {k} 1 1 1 1 -1 -1\n" for k in range(1, 5))
    (place / "w.swf").write_text(f"; MaxProcs: 8\n{jobs}")
    command = ["batch", "p.xml", "w.swf", "--profiles", "ptask", "--allocation", "random"]
    results = made(*command, "--attribution", "--neighbours")
    hosts = {task.task_id: len(task.hosts) for task in results.tasks}
    caused = {}
    for cost in read_costs(results):
        if cost.task_id != cost.slowed_by:
            hours = cost.seconds * hosts[cost.task_id] / 3600
            caused[cost.slowed_by] = caused.get(cost.slowed_by, 0.0) + hours
    worst = max(caused, key=lambda name: caused[name])  # each job is of the user of its number
    write_report(results, place / "page.html")
    assert (
        f"Of {number(sum(caused.values()))} host hours that users cost each other, user {worst} "
        f"cost most, {number(caused[worst])}."
    ) in shown(place / "page.html")[1]


def test_refused_jobs_wait_for_nothing_and_a_real_slurm_has_a_page(place):
    (place / "slurm.conf").write_text(f"{ENFORCED}{CONF}")
    lines = "".join(f"j{k},{k},4,60,50,ann\n" for k in range(9))
    (place / "jobs.csv").write_text(f"id,submit,nodes,limit,run,user\n{lines}")
    write_report(made("slurm", "slurm.conf", "jobs.csv"), place / "page.html")
    assert shown(place / "page.html") == ["0 of 9 jobs end; 9 refused."]
    shutil.rmtree("out")
    (place / "slurm.conf").write_text(CONF)
    made("slurm", "slurm.conf", "jobs.csv")
    # What slurm-live writes: no reasons, but how it was recorded.
    (place / "out" / "reasons.csv").unlink()
    (place / "out" / "meta.json").write_text("{}")
    summary = json.loads((place / "out" / "summary.json").read_text())
    text = json.dumps(summary | {"command": "slurm-live"})
    (place / "out" / "summary.json").write_text(text)
    write_report("out", place / "page.html")
    page = (place / "page.html").read_text()
    assert "What a real Slurm did with a workload on simulated nodes" in page
    assert "Why jobs waited" not in page


def test_what_an_effect_does_to_numbers_is_said_once_and_without_brackets(place):
    jobs = "".join(f"{k} {k} 0 100 4 -1 -1 4 90 -1 1 1 1 1 1 1 -1 -1\n" for k in range(1, 4))
    (place / "w.swf").write_text(f"; MaxProcs: 8\n{jobs}")
    results = made("batch", "p.xml", "w.swf")
    found = warnings_of(results)
    assert len([one for one in results.summary["remarks"] if one["effect"] == KILLED]) == 2
    said = EFFECTS[KILLED]
    assert " ".join(found).count(f". {said[0].upper()}{said[1:]}.") == 1
    assert not any(") (" in text for text in found)
