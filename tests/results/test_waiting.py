"""Who waited, on the page of a batch."""

import pytest

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.pages.report import class_tables
from ptaskmodel.results.pictures.drawing import sentence_of
from ptaskmodel.results.pictures.waiting import CLASS_COLUMNS, MOST_USERS, waiting_figure


def results_with(place, *lines):
    """Results of a batch with these lines of classes.csv."""
    text = "\n".join([",".join((*CLASS_COLUMNS, "unfair_jobs")), *lines]) + "\n"
    (place / "classes.csv").write_text(text)
    return Results(place, "job", {}, [])


SIZES = ("size,1,3,30,0.5,1.5,10,1.25,", "size,3-4,1200,96000,7200,90000,20,361.5,")
LENGTHS = ("length,up to 1 min,1203,96030,7182,90000,19.98,360.6,",)


def test_each_kind_of_class_has_a_table(tmp_path):
    more = ("size and length,1,3,30,0,0,10,1,", "user,ann,3,30,0.5,1.5,10,1.25,")
    (section,) = class_tables(results_with(tmp_path, *SIZES, *LENGTHS, *more))
    sizes, lengths, users = section.tables
    assert sizes.header[0] == "hosts asked for"
    assert sizes.kinds[3:6] == ("time",) * 3
    assert sizes.rows[0] == ("1", 3, 0, 0.5, 1.5, 10.0, 1.25)
    assert sizes.rows[1][:4] == ("3-4", 1200, 0, 7200.0)
    assert [len(table.rows) for table in (lengths, users)] == [1, 1]


def test_users_who_are_not_known_are_left_out(tmp_path):
    lines = (*SIZES, "user,unknown,1203,96030,7182,90000,19.98,360.6,")
    (section,) = class_tables(results_with(tmp_path, *lines))
    assert [table.header[0] for table in section.tables] == ["hosts asked for"]


def test_of_many_users_those_who_used_most_are_shown(tmp_path):
    lines = [f"user,u{k},1,{k},0,0,1,1," for k in range(50)]
    (section,) = class_tables(results_with(tmp_path, *lines))
    (users,) = section.tables
    assert [row[0] for row in users.rows[:2]] == ["u49", "u48"]
    assert len(users.rows) == MOST_USERS
    assert "20 of 50 users" in section.note


def test_no_table_is_no_section(tmp_path):
    assert class_tables(Results(tmp_path, "job", {}, [])) == []


@pytest.mark.parametrize("line", ["size,1,3,30,x,1,1,1,", "size,1,3", "size,1,3,30,inf,1,1,1,"])
def test_a_damaged_table_is_told_in_one_line(tmp_path, line):
    with pytest.raises(PTaskModelError, match=r"classes\.csv: cannot be read") as caught:
        class_tables(results_with(tmp_path, line))
    assert "\n" not in str(caught.value)


def job(name, hosts, lasted, waited, state="COMPLETED_SUCCESSFULLY"):
    names = tuple(f"n{k}" for k in range(hosts))
    start, end = (None, None) if waited is None else (waited, waited + lasted)
    return ShownTask(name, None, start, end, state, names, None, waited)


def test_the_picture_of_who_waited(tmp_path):
    pytest.importorskip("matplotlib")
    jobs = [
        job("a", 1, 100, 0.0), job("b", 16, 20, 3600.0), job("d", 4, 1, None),
        job("c", 1000, 90000, 1e6, "COMPLETED_WALLTIME_REACHED"),
    ]  # fmt: skip
    figure = waiting_figure(Results(tmp_path, "job", {}, jobs))
    left, middle, right, by_length = figure.axes[:4]
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "1  (1)", "9-16  (1)", "513-1024  (1)"
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
