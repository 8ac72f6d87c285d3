"""Who waited, on the page of a batch."""

from dataclasses import replace

import pytest

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.pages.metrics import slowdown_sections, waiting_sections
from ptaskmodel.results.pictures.waiting import MOST_NAMED, waited, waiting_figure
from ptaskmodel.style.figures import sentence_of


def job(name, hosts, lasted, waited, state="COMPLETED_SUCCESSFULLY"):
    names = tuple(f"n{k}" for k in range(hosts))
    start, end = (None, None) if waited is None else (waited, waited + lasted)
    return ShownTask(name, None, start, end, state, names, None, waited)


def test_a_page_tells_who_waited_by_class_and_by_size_and_run_time(tmp_path):
    jobs = [
        job("a", 1, 30, 0.0), job("b", 1, 30, 9.0), job("c", 4, 30, 60.0), job("d", 4, 900, 7200.0),
        job("e", 4, 900, 90.0, "COMPLETED_WALLTIME_REACHED"), job("f", 2, 1, None),
    ]  # fmt: skip
    users = dict.fromkeys("ab", "ann") | dict.fromkeys("cde", "bob")
    (section,) = waiting_sections(Results(tmp_path, "job", {}, jobs), users)
    size, length, user = section.charts
    assert [(row["name"], row["jobs"], row["zero"], row["killed"]) for row in size["rows"]] == [
        ("1 host", 2, 0.5, 0.0), ("3-4 hosts", 3, 0.0, 1 / 3),
    ]  # fmt: skip
    assert size["rows"][1]["quantiles"] == [60.0, 90.0, 7200.0, 7200.0, 7200.0]
    assert size["sentence"] == (
        "By size, of 5 jobs: those of 3-4 hosts wait longest, in the median 90 s; those of 3-4 "
        "hosts are killed most often, 33.3 % of them."
    )
    assert [row["name"] for row in length["rows"]] == ["up to 1 min", "10 min to 1 h"]
    assert [row["name"] for row in user["rows"]] == ["bob", "ann"]
    table, _ = section.tables
    assert list(table.columns) == ["size", "up to 1 min", "10 min to 1 h"]
    assert [cell and cell["label"] for cell in table.rows[1][1:]] == [
        "60 s · 1 job", "61 min · 2 jobs"
    ]  # fmt: skip
    assert table.rows[0][2] is None


def test_a_job_that_runs_at_the_end_has_a_class_of_its_own(tmp_path):
    running = ShownTask("b", None, 5.0, None, "RUNNING", ("n0",), None, 5.0)
    jobs = waited(Results(tmp_path, "job", {}, [job("a", 1, 30, 0.0), running]))
    assert [one.name for one in jobs.strips("run time")] == ["up to 1 min", "still running"]


def test_of_many_users_those_with_most_jobs_are_named(tmp_path):
    jobs = [job(f"{k}.{n}", 1, 30, 1.0) for k in range(20) for n in range(k + 1)]
    users = {task.task_id: f"u{task.task_id.split('.')[0]}" for task in jobs}
    named = [one.name for one in waited(Results(tmp_path, "job", {}, jobs), users).strips("user")]
    assert named[:2] == ["u19", "u18"]
    assert named[MOST_NAMED:] == ["8 others"]


def test_where_nobody_waited_is_no_section(tmp_path):
    jobs = [job("a", 1, 30, 0.0), job("b", 1, 30, 0.0)]
    assert waiting_sections(Results(tmp_path, "job", {}, jobs), {}) == []
    assert waiting_sections(Results(tmp_path, "job", {}, []), {}) == []


def test_slowdowns_are_drawn_where_a_task_is_slowed(tmp_path):
    alone = [replace(job(name, 1, 30, 0.0), slowdown=1.0) for name in "ab"]
    slowed = [alone[0], replace(alone[1], slowdown=1.5)]
    assert slowdown_sections(Results(tmp_path, "job", {}, alone)) == []
    (section,) = slowdown_sections(Results(tmp_path, "job", {}, slowed))
    assert section.charts[0]["series"][0]["at"][-1] == [1.5, 1.0]


def test_the_picture_of_who_waited(tmp_path):
    pytest.importorskip("matplotlib")
    jobs = [
        job("a", 1, 100, 0.0), job("b", 16, 20, 3600.0), job("d", 4, 1, None),
        job("c", 1000, 90000, 1e6, "COMPLETED_WALLTIME_REACHED"),
    ]  # fmt: skip
    figure = waiting_figure(Results(tmp_path, "job", {}, jobs))
    left, middle, right, by_length = figure.axes[:4]
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "1 host  (1)", "9-16 hosts  (1)", "513-1024 hosts  (1)"
    ]  # fmt: skip
    assert [text.get_text() for text in left.texts] == ["100 %", "–", "–"]
    assert [text.get_text() for text in right.texts] == ["–", "–", "100 %"]
    assert middle.get_xscale() == "log"
    assert len(by_length.get_yticklabels()) == 3
    said = "Half of 3 jobs wait less than 60 min, 5 % over 10 d 10 h; 33.3 % start at once"
    assert sentence_of(figure).startswith(said)


def test_where_no_job_ran_there_is_no_picture(tmp_path):
    pytest.importorskip("matplotlib")
    for jobs in ([], [job("a", 1, 1, None)]):
        with pytest.raises(PTaskModelError, match="no job ran"):
            waiting_figure(Results(tmp_path, "job", {}, jobs))


def test_what_users_got_and_how_equal_it_is(tmp_path):
    """Two users of a job each: slowdowns of 1 and 3, so Jain's index is 4^2 / (2 * 10)."""
    jobs = [job("1", 1, 100, 0.0), job("2", 1, 100, 200.0)]
    results = Results(tmp_path, "job", {}, jobs)
    (section,) = waiting_sections(results, {"1": "anna", "2": "bert"})
    table = section.tables[-1]
    assert table.rows == [
        ("anna", 1, pytest.approx(1 / 36), 0.5, 0.0, 0.0, 1.0),
        ("bert", 1, pytest.approx(1 / 36), 0.5, 200.0, 200.0, 3.0),
    ]
    assert "(Jain): 0.8, where 1 is equal" in table.caption
