"""Runs of Slurm read back, drawn and compared: who waits less, and which settings differ."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas
import pytest
from browsing import console, opened, well_made

from ptaskmodel.cli import main
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results, load_results
from ptaskmodel.results.pages.report import write_report
from ptaskmodel.results.pictures.catalogue import draw_results
from ptaskmodel.results.pictures.charts import Dot, DotPanel, dots
from ptaskmodel.results.slurm_comparison import GroupChange, SlurmComparison, compare_slurm
from ptaskmodel.results.tables.slurm_reading import (
    Curve,
    SlurmJob,
    length_class,
    queue_depth,
    size_class,
    thinned,
    used,
    waiting,
)
from ptaskmodel.results.tables.slurm_summary import limit_notes
from ptaskmodel.runs.slurm import slurm_into
from ptaskmodel.slurm.accounts.facts import Limits, Qos, plain_accounts
from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.style.text import duration

CONF = """SelectType=select/linear
SchedulerType=sched/{scheduler}
NodeName=n[1-4] CPUs=8
PartitionName=p Nodes=ALL Default=YES
"""
# With backfilling c passes b; without it it waits for its turn.
JOBS = """id,submit,nodes,cores,limit,run,user
a,0,3,,600,400,anna
b,2,4,,300,120,bert
c,3,1,,300,290,anna
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("slurm")
    (place / "jobs.csv").write_text(JOBS)
    for scheduler in ("backfill", "builtin"):
        conf = place / f"{scheduler}.conf"
        conf.write_text(CONF.format(scheduler=scheduler))
        arguments = [str(conf), str(place / "jobs.csv"), "-o", str(place / scheduler)]
        assert main(["slurm", *arguments]) == 0
    return place


def job(name="x", cpus=1, submit=0.0, start=None, end=None):
    times = (submit, start, end, None)
    return SlurmJob(name, "u", "", "p", *times, "", cpus, "COMPLETED", "main", 0.0, None, "")


def test_the_library_gives_the_table_that_is_written(tmp_path, runs):
    conf = read_conf(runs / "backfill.conf")
    made = slurm_into(tmp_path / "out", conf, read_submissions(runs / "jobs.csv", conf))
    frame = made.frame()
    written = pandas.read_csv(tmp_path / "out" / "jobs.csv", keep_default_na=False)
    assert list(frame.columns) == list(written.columns)
    assert frame["job_id"].tolist() == ["a", "b", "c"]
    assert frame["starting_time"].dtype.kind in "if"
    assert frame["starting_time"].tolist() == written["starting_time"].tolist()
    assert frame["time_alone"].isna().all()


def test_results_are_read_like_those_of_any_batch(runs):
    results = load_results(runs / "backfill")
    assert results.what == "job"
    by_id = {task.task_id: task for task in results.tasks}
    assert by_id["a"].hosts == ("n1", "n2", "n3")
    assert by_id["a"].duration_s == 400
    assert [job.cpus for job in results.jobs] == [24, 32, 8]


@pytest.mark.parametrize("kind", ["gantt", "load", "waits", "reasons", "backfill"])
def test_every_picture_is_drawn(runs, tmp_path, kind):
    draw_results(runs / "backfill", kind, tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 5000


def test_a_picture_with_nothing_in_it_is_refused(runs, tmp_path):
    with pytest.raises(PTaskModelError, match="no cycle"):
        draw_results(runs / "builtin", "backfill", tmp_path / "x.svg")


def test_who_gains_and_who_loses(runs):
    found = compare_slurm(runs / "builtin", runs / "backfill")
    before, after = ({j.job_id: j.wait_s for j in jobs} for jobs in (found.jobs_a, found.jobs_b))
    assert found.counts() == {
        "wait less": 1, "wait longer": 0, "wait the same": 2, "did not start in one or both": 0
    }  # fmt: skip
    users = {group.name: group for group in found.groups("user")}
    assert users["anna"].before_s[0] == (before["a"] + before["c"]) / 2
    assert users["anna"].moved_s == after["c"] - before["c"] + after["a"] - before["a"]
    assert (users["anna"].gain, users["anna"].same, users["anna"].lose) == (1, 1, 0)
    # One of two is too few to tell that the class waits less.
    assert users["anna"].verdict == "mixed"
    assert users["bert"].verdict == "the same"
    assert users["bert"].jobs == 1
    assert [(g.name, g.gain) for g in found.groups("size")] == [("5-16 CPUs", 1), ("17-64 CPUs", 0)]
    assert found.settings() == [("scheduler_type", "sched/builtin", "sched/backfill")]
    means = [duration(sum(waits.values()) / 3) for waits in (before, after)]
    verdict = f"Mean wait falls from {means[0]} to {means[1]}; of 2 users 1 waits less on "
    verdict += "average, 0 longer."
    assert found.answer().splitlines()[0] == verdict
    assert found.answer().endswith("1 job gains, 0 lose, 2 wait about as long.")
    again = compare_slurm(runs / "builtin", runs / "builtin").answer()
    assert again.startswith(f"Mean wait stays {means[0]}; of 2 users 0 wait less on average, 0 ")
    assert found.most_changed(5)[0][0].job_id == "c"


@pytest.mark.parametrize(("letters", "is_whole"), [(None, False), (64, True)])
def test_names_beside_a_picture_are_cut_at_so_many_letters(letters, is_whole):
    name = "10 min to 1 h: 172 gain, 1343 same, 142 lose"
    panel = DotPanel("wait", "time", [[Dot(1.0, 1.0, 2.0)]])
    figure = dots([name], [panel], letters=letters)
    (label,) = figure.axes[0].get_yticklabels()
    assert (label.get_text() == name) == is_whole


def test_compare_prints_and_writes_it(runs, tmp_path, capsys):
    table, picture = tmp_path / "t.csv", tmp_path / "p.png"
    arguments = [str(runs / "builtin"), str(runs / "backfill"), "-o", str(table)]
    page = tmp_path / "p.html"
    assert main(["compare", *arguments, "--picture", str(picture), "--page", str(page)]) == 0
    said = capsys.readouterr().out
    heads = [page.read_text().index(f'"{name}') for name in ("waits are", "median a")]
    assert heads == sorted(heads)
    assert "scheduler_type" in said
    assert "3 jobs in both: 1 wait less, 2 wait the same" in said
    assert "jobs  gain  same  lose  waits are  median a" in said
    assert "idle while jobs waited (CPU h)" in said
    with table.open(newline="") as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    waits = float(rows["c"]["waiting_time_b"]) - float(rows["c"]["waiting_time_a"])
    assert float(rows["c"]["change"]) == waits < -400
    assert picture.exists()


def test_the_page_says_whose_jobs_waited_longest_and_why_others_never_ran(runs, tmp_path, browser):
    (tmp_path / "jobs.csv").write_text(JOBS + "d,4,5,,300,120,dora\n")
    out, page = tmp_path / "out", tmp_path / "page.html"
    assert (
        main(["slurm", str(runs / "backfill.conf"), str(tmp_path / "jobs.csv"), "-o", str(out)])
        == 0
    )
    assert main(["report", str(out), "-o", str(page)]) == 0
    opened(browser, page)
    lines = browser.find_elements("css selector", "#tasks tr")
    head, *found = [[cell.text for cell in line.find_elements("xpath", "*")] for line in lines]
    # No job has a profile or an account; nor is the platform shared.
    assert [name.partition(" (")[0] for name in head[:-1]] == [
        *("job", "state", "wait", "CPUs", "user", "partition", "reason", "start"),
        "time",
    ]
    assert [(row[0], row[3], row[4], row[5]) for row in found] == [
        ("b", "32", "bert", "p"), ("c", "8", "anna", "p"), ("a", "24", "anna", "p"),
        ("d", "", "dora", "p"),
    ]  # fmt: skip
    assert [row[6] for row in found] == ["", "", "", "PartitionNodeLimit"]
    waits = [float(row[2]) for row in found[:3]]
    assert waits == sorted(waits, reverse=True)
    assert console(browser) == []


def test_three_configurations_stand_side_by_side(runs, tmp_path, capsys):
    places = [str(runs / name) for name in ("builtin", "backfill", "builtin")]
    assert main(["compare", *places, "--picture", str(tmp_path / "p.png")]) == 0
    assert "mean waiting (min)" in capsys.readouterr().out


def test_classes_stand_first_that_the_changed_key_deals_with():
    empty = np.array([])
    for key, first in (("partition p.tier", "partition"), ("weight.fairshare", "user"),
                       ("weight.job_size", "size"), ("scheduler_type", "partition")):  # fmt: skip
        runs = [Results(Path(run), "job", {"settings": {key: run}}, [], [], {}) for run in "ab"]
        found = SlurmComparison(*runs, [], [], empty, empty, [], [])
        assert found.order()[0] == first


def test_a_class_waits_better_only_if_waits_and_counts_agree():
    def verdict(before, after, gain, lose):
        return GroupChange("user", "u", 40, before, after, gain, lose, 0.0).verdict

    assert verdict((600.0, 900.0), (60.0, 900.0), 17, 7) == "better"
    assert verdict((600.0, 900.0), (60.0, 900.0), 14, 10) == "mixed"
    assert verdict((600.0, 900.0), (60.0, 900.0), 7, 17) == "mixed"
    assert verdict((0.0, 900.0), (1.0, 9000.0), 7, 17) == "worse"
    assert verdict((0.0, 900.0), (1.0, 900.0), 0, 0) == "the same"


def test_two_runs_of_slurm_have_one_page_by_either_command(runs, tmp_path, capsys):
    places = [str(runs / name) for name in ("builtin", "backfill")]
    assert main(["compare", *places, "--page", str(tmp_path / "a.html")]) == 0
    assert main(["report", places[1], "--against", places[0], "-o", str(tmp_path / "b.html")]) == 0
    capsys.readouterr()
    pages = [(tmp_path / f"{name}.html").read_text() for name in "ab"]
    one, other = (re.sub('base64,[^"]*', "", page) for page in pages)
    assert one == other


def test_the_page_of_a_change_says_what_it_does_and_when_cpus_stand_idle(runs, tmp_path, browser):
    page = tmp_path / "page.html"
    write_report(runs / "builtin", page, against=runs / "backfill")
    text = well_made(browser, page)
    assert "0 jobs gain, 1 loses, 2 wait about as long." in text
    assert "CPU h. 0 jobs gain" in text
    rows = browser.execute_script(
        "return [...document.querySelectorAll('td .drawn')].map((one) => one.ariaLabel)"
    )
    assert "0 gain, 1 same, 1 lose" in rows


def test_a_page_names_the_spell_in_which_most_cpus_stand_idle(runs, tmp_path):
    # While b, which needs all four nodes, waits for a, only what a uses of one node works.
    jobs = JOBS.replace("a,0,3", "a,0,1").replace("c,3,1,,300,290,anna\n", "")
    (tmp_path / "jobs.csv").write_text(jobs)
    conf, out = runs / "backfill.conf", tmp_path / "out"
    assert main(["slurm", str(conf), str(tmp_path / "jobs.csv"), "-o", str(out)]) == 0
    write_report(out, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "only 8 of 32 CPUs work, although jobs wait; job b waits for all 32." in page


def test_waits_stand_by_size_and_run_time(runs, tmp_path):
    write_report(runs / "backfill", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "By size and run time: what half wait at most" in page
    assert "5-16 CPUs, 1 to 10 min: half of 1 job wait at most" in page


def test_other_results_are_not_compared_with_it(runs, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "summary.json").write_text(json.dumps({"format": "ptaskmodel results 1"}))
    columns = "job_id,profile,starting_time,finish_time,execution_time,final_state"
    (other / "jobs.csv").write_text(f"{columns},allocated_resources\n")
    with pytest.raises(PTaskModelError, match="not the results of ptaskmodel slurm"):
        compare_slurm(runs / "backfill", other)
    with pytest.raises(PTaskModelError, match="--against"):
        write_report(other, tmp_path / "r.html", against=runs / "backfill")


def test_the_report_shows_the_run_and_what_changed(runs, tmp_path):
    write_report(runs / "backfill", tmp_path / "r.html", against=runs / "builtin")
    page = (tmp_path / "r.html").read_text()
    titles = "What changed", "Who gains, who loses", "Why jobs waited", "What backfill earned"
    for title in titles:
        assert f"<h2>{title}</h2>" in page
    assert "Backfill starts 1 of 3 jobs" in page
    assert "<img" not in page
    assert "scheduler_type" in page


LOG = """JobID|User|Partition|Submit|Start|Elapsed|Timelimit|NNodes|State
1|anna|p|2024-03-04T08:00:00|2024-03-04T08:00:00|00:10:00|00:20:00|4|COMPLETED
2|bert|p|2024-03-04T08:01:00|2024-03-04T08:31:00|00:10:00|00:20:00|4|COMPLETED
3|bert|p|2024-03-04T08:40:00|Unknown|00:00:00|00:20:00|4|CANCELLED
"""


def test_waits_are_held_against_those_of_the_log(runs, tmp_path, browser, capsys):
    (tmp_path / "log.txt").write_text(LOG)
    place = tmp_path / "run"
    command = ["slurm", str(runs / "backfill.conf"), str(tmp_path / "log.txt"), "-o", str(place)]
    assert main(command) == 0
    jobs = load_results(place).jobs
    first, second = (job.wait_s for job in jobs[:2])
    assert [job.logged_wait_s for job in jobs] == [0.0, 1800.0, None]
    found = json.loads((place / "summary.json").read_text())["against_log"]
    assert found["jobs"] == 2
    assert found["logged_waiting_s"]["mean"] == 900.0
    assert found["difference_s"]["max"] == max(first, 1800.0 - second)
    said = r"in the log 15 min; half of 2 waits differ by at most \d+ min, 5 % by over \d+ min\."
    lines = capsys.readouterr().out.splitlines()
    assert re.search(said, " ".join(lines))
    write_report(place, tmp_path / "r.html")
    text = well_made(browser, tmp_path / "r.html")
    assert "Against the log" in text
    assert re.search(said, text)


def test_names_in_a_report_are_no_html(runs, tmp_path):
    place = tmp_path / "evil"
    jobs = JOBS.replace("anna", "<b>x</b>")
    (tmp_path / "jobs.csv").write_text(jobs)
    conf = runs / "backfill.conf"
    assert main(["slurm", str(conf), str(tmp_path / "jobs.csv"), "-o", str(place)]) == 0
    write_report(place, tmp_path / "r.html", against=runs / "builtin")
    assert "<b>x</b>" not in (tmp_path / "r.html").read_text()


def test_classes_of_sizes_and_lengths():
    sizes = [size_class(job(cpus=n))[1] for n in (1, 2, 4, 5, 16, 17, 64, 65, 1024)]
    assert sizes == ["1 CPU", "2-4 CPUs", "2-4 CPUs", "5-16 CPUs", "5-16 CPUs", "17-64 CPUs",
                     "17-64 CPUs", "65-256 CPUs", "257-1024 CPUs"]  # fmt: skip
    lengths = [length_class(job(start=0.0, end=s))[1] for s in (60, 61, 3600, 86400, 86401)]
    assert lengths == ["up to 1 min", "1 to 10 min", "10 min to 1 h", "6 to 24 h", "above 1 d"]


def test_curves_are_sums_over_spans():
    jobs = [job("a", 4, 0.0, 10.0, 30.0), job("b", 2, 5.0, 10.0, 20.0), job("c", 8, 8.0)]
    curve = waiting(jobs, 40.0)
    assert dict(zip(curve.dates_s.tolist(), curve.values.tolist(), strict=True)) == {
        0.0: 1.0, 5.0: 2.0, 8.0: 3.0, 10.0: 1.0, 40.0: 0.0
    }  # fmt: skip
    assert used(jobs, 40.0).values.max() == 6.0
    depth = queue_depth(jobs, 40.0, 41)
    assert depth.values[[0, 6, 9, 10, 20]].tolist() == [0.0, 7.0, 14.0, 2.0, 12.0]


def test_thinned_curves_keep_their_area():
    draw = np.random.default_rng(1)
    dates = np.cumsum(draw.random(5000))
    values = draw.random(5000)
    few = thinned(Curve(dates, values), 100)
    area = (values[:-1] * np.diff(dates)).sum()
    assert (few.values[:-1] * np.diff(few.dates_s)).sum() == pytest.approx(area)


def test_limits_that_are_not_simulated_are_noted():
    plain = plain_accounts()
    qos = {name: Qos(name, limits=Limits(max_jobs_accrue=1)) for name in "abcd"}
    known = replace(plain, qos=MappingProxyType({**plain.qos, **qos}))
    conf = Conf((), (), database=True, enforce=frozenset({"LIMITS"}))
    assert limit_notes(conf, known) == [
        *(f"QOS {name}: max_jobs_accrue are not simulated" for name in "abc"),
        "... and limits of 1 more",
    ]
    assert limit_notes(replace(conf, enforce=frozenset()), known) == []
