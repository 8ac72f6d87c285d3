"""Each picture says in a sentence what it shows, with numbers; tables fit a terminal of 80."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil

import pytest

from ptaskmodel.cli import main
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import load_results
from ptaskmodel.results.pages.report import command_of
from ptaskmodel.results.pictures.catalogue import draw_results
from ptaskmodel.results.pictures.charts import Cumulative, curves
from ptaskmodel.results.sentences import jobs_answer
from ptaskmodel.runs.slurm_live import LiveComparison, Pair, comparison_figure
from ptaskmodel.style.figures import save, sentence_of
from ptaskmodel.style.text import number

pytestmark = pytest.mark.jit
PLATFORM = (
    '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" '
    'bw="100MBps" lat="50us" topology="FAT_TREE" topo_parameters="2;4,2;1,1;1,1"/></platform>'
)
KINDS = ("gantt", "progress", "links", "hosts", "topology", "slowdowns", "load", "waits")
LONG = "/scratch/" + "a_very_long_name/" * 7


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("said")
    (place / "p.xml").write_text(PLATFORM)
    profiles = {"p": {"type": "parallel_homogeneous", "cpu": 6e10, "com": 1e9}}
    jobs = [
        {"id": f"j{k}", "subtime": 5.0 * k, "res": 2 + k % 5, "profile": "p", "walltime": 150 + k}
        for k in range(12)
    ]
    (place / "w.json").write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    tasks = [
        {"id": name, "start": k, "hosts": [f"n{i}" for i in range(k, k + 4)], "cpu": 5e9,
         "flows": [[0, 3, 4e8]]}
        for k, name in enumerate([LONG, "α-β", '<b>bold</b> & "quoted"', "x"])
    ]  # fmt: skip
    (place / "t.json").write_text(json.dumps({"tasks": tasks}))
    command = ["batch", str(place / "p.xml"), str(place / "w.json"), "--attribution"]
    assert main([*command, "--allocation", "random", "-o", str(place / "run")]) == 0
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_has_a_sentence_with_two_numbers(kind, place):
    pytest.importorskip("matplotlib")
    said = draw_results(place / "run", kind, place / f"{kind}.svg")
    assert said.endswith(".")
    assert len(re.findall(r"\d[\d.\u202f]*", said)) >= 2
    text = (place / f"{kind}.svg").read_text(encoding="utf-8")
    assert "<dc:description>" in text


def test_the_picture_of_draws_begins_with_the_widest_range(place, tmp_path):
    pytest.importorskip("matplotlib")
    lines = ["task_id,draw,execution_time"]
    lines += [f"calm,{k},{100 + 0.1 * k}\nwild,{k},{100 + k}\nlost,{k}," for k in range(101)]
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    (run / "draws.csv").write_text("\n".join(lines) + "\n")
    # The ranges are those of tasks.csv, which residuals widen, and not those of the draws.
    (run / "tasks.csv").write_text(
        "task_id,execution_low,execution_high\ncalm,90,200\nwild,60,240\nlost,,\n"
    )
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | {"draws": {"n": 101}}))
    said = draw_results(run, "ranges", tmp_path / "p.svg")
    assert said == (
        "wild takes 60 s to 4 min in 80 % of cases, half of the draws at most 3 min. "
        "Drawn: 2 ranges, the widest first."
    )
    with pytest.raises(PTaskModelError, match="simulate with --draws"):
        draw_results(place / "run", "ranges", tmp_path / "p.svg")


def test_pictures_of_packets_name_the_longest_queue_and_the_cable_most_flows_cross(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "p.xml").write_text(PLATFORM)
    flows = [{"id": f"t{k}", "hosts": [f"n{k}", "n0"], "flows": [[0, 1, 1e6]]} for k in (1, 4, 5)]
    (tmp_path / "t.json").write_text(json.dumps({"tasks": flows}))
    command = ["simulate", str(tmp_path / "p.xml"), str(tmp_path / "t.json"), "--routes"]
    command += ["--network-model", "ROCE", "--network-level", "packets"]
    run = tmp_path / "run"
    assert main([*command, "-o", str(run)]) == 0
    said = draw_results(run, "routes", tmp_path / "r.svg")
    assert re.fullmatch(r"3 flows over \d+ links; most: .*, 3 flows\.", said)
    said = draw_results(run, "queues", tmp_path / "q.svg")
    with (run / "queues.csv").open() as stream:
        longest = max(float(row["largest_queue_B"]) for row in csv.DictReader(stream))
    assert said.startswith(f"The longest queue is {number(longest, 'bytes')}, of ")
    for name, kind in (("routes.csv", "routes"), ("queues.csv", "queues")):
        (run / name).unlink()
        with pytest.raises(PTaskModelError, match="is missing; simulate with --"):
            draw_results(run, kind, tmp_path / "p.svg")


def test_the_picture_of_a_real_slurm_tells_how_many_start_as_simulated(tmp_path):
    pytest.importorskip("matplotlib")
    on = ("n1", "n1"), ("main", "main"), ("COMPLETED", "COMPLETED")
    pairs = [Pair("a", 0, (1, 3), *on), Pair("b", 0, (9, 99), *on), Pair("c", 0, (None, 5), *on)]
    figure = comparison_figure(LiveComparison(tuple(pairs)))
    assert sentence_of(figure) == (
        "1 of 3 jobs start within 5 s of each other, 3 on the same nodes; at most 90 s apart."
    )
    figure = comparison_figure(LiveComparison(tuple(pairs[2:])))
    assert sentence_of(figure).endswith("none starts in both.")
    save(figure, tmp_path / "none.svg")


@pytest.mark.parametrize(
    "command", ["simulate p.xml t.json", "compare run run", "batch p.xml w.json"]
)
def test_lines_are_no_longer_than_the_terminal(command, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    monkeypatch.setattr("ptaskmodel.style.text.terminal_width", lambda: 80)
    assert main(command.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80


def test_a_batch_begins_with_what_became_of_the_jobs(place, capsys):
    assert main(["batch", str(place / "p.xml"), str(place / "w.json")]) == 0
    assert re.match(r"(All 12 jobs|\d+ of 12 jobs) end", capsys.readouterr().out)


@pytest.mark.parametrize(
    "command",
    [
        "simulate p.xml t.json --attribution --neighbours --solver maxmin --until 9",
        "batch p.xml w.json --attribution --allocation random --seed 3 --no-contention --tau 30",
        "batch p.xml w.json --neighbours --policy fcfs",
        "slurm slurm.conf jobs.txt --seed 2",
    ],
)
def test_the_command_on_a_page_makes_the_run_again(command, place, tmp_path, monkeypatch):
    monkeypatch.chdir(place)
    conf = "NodeName=n[0-3] CPUs=2\nPartitionName=p Nodes=ALL Default=YES\n"
    (place / "slurm.conf").write_text(conf)
    day = "2024-03-04T00"
    (place / "jobs.txt").write_text(
        "JobID|User|Partition|Submit|Start|End|Timelimit|ReqNodes|ReqCPUS|State\n"
        f"1|ann|p|{day}:00:00|{day}:00:00|{day}:05:00|00:10:00|1|2|COMPLETED\n"
    )
    first, again = tmp_path / "first", tmp_path / "again"
    assert main([*command.split(), "-o", str(first)]) == 0
    program, *words, _, name = shlex.split(command_of(load_results(first)))
    assert (program, name) == ("ptaskmodel", "first")
    assert main([*words, "-o", str(again)]) == 0
    tables = {path.name for path in first.iterdir()}
    assert tables == {path.name for path in again.iterdir()}
    for name in (each for each in tables if each.endswith(".csv")):
        assert (first / name).read_bytes() == (again / name).read_bytes(), name
    one, other = (json.loads((at / "summary.json").read_text()) for at in (first, again))
    assert one["parameters"] == other["parameters"]


def test_times_below_a_second_have_an_axis_of_their_own():
    def reach(*times):
        return Cumulative("time", "time", curves({"a": [times]})).reach

    assert reach(0.0035, 0.0217) == pytest.approx((0.00217, 0.0217))
    assert reach(0.0002, 0.0217) == pytest.approx((0.0002, 0.0217))
    assert reach(0.0035, 21.7) == (1.0, 86400.0)


def test_jobs_that_were_started_again_are_told():
    summary = {"jobs": {"lost_runs": 3}, "lost_host_s": 7200.0}
    (_, said) = jobs_answer({"ended": 2}, summary)
    assert said == "Jobs were stopped and started again 3 times: 2 host hours are lost."
