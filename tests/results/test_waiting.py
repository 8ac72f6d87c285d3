"""Who waited, on the page of a batch."""

import pytest

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results
from ptaskmodel.results.waiting import COLUMNS, MOST_USERS, waiting_sections


def results_with(place, *lines):
    """Results of a batch with these lines of classes.csv."""
    text = "\n".join([",".join((*COLUMNS, "unfair_jobs")), *lines]) + "\n"
    (place / "classes.csv").write_text(text)
    return Results(place, "job", {}, [])


SIZES = ("size,1,3,30,0.5,1.5,10,1.25,", "size,3-4,1200,96000,7200,90000,20,361.5,")
LENGTHS = ("length,up to 1 min,1203,96030,7182,90000,19.98,360.6,",)


def test_each_kind_of_class_has_a_table(tmp_path):
    more = ("size and length,1,3,30,0,0,10,1,", "user,ann,3,30,0.5,1.5,10,1.25,")
    (section,) = waiting_sections(results_with(tmp_path, *SIZES, *LENGTHS, *more))
    sizes, lengths, users = section.tables
    assert sizes.header[0] == "hosts asked for"
    assert sizes.rows[0] == ("1", "3", "500 ms", "1.5 s", "10 s", "1.25")
    assert sizes.rows[1][:3] == ("3-4", "1,200", "7200 s")
    assert [len(table.rows) for table in (lengths, users)] == [1, 1]


def test_users_who_are_not_known_are_left_out(tmp_path):
    lines = (*SIZES, "user,unknown,1203,96030,7182,90000,19.98,360.6,")
    (section,) = waiting_sections(results_with(tmp_path, *lines))
    assert [table.header[0] for table in section.tables] == ["hosts asked for"]


def test_of_many_users_those_who_used_most_are_shown(tmp_path):
    lines = [f"user,u{k},1,{k},0,0,1,1," for k in range(50)]
    (section,) = waiting_sections(results_with(tmp_path, *lines))
    (users,) = section.tables
    assert [row[0] for row in users.rows[:2]] == ["u49", "u48"]
    assert len(users.rows) == MOST_USERS
    assert "20 of 50 users" in section.note


def test_no_table_is_no_section(tmp_path):
    assert waiting_sections(Results(tmp_path, "job", {}, [])) == []


@pytest.mark.parametrize("line", ["size,1,3,30,x,1,1,1,", "size,1,3", "size,1,3,30,inf,1,1,1,"])
def test_a_damaged_table_is_told_in_one_line(tmp_path, line):
    with pytest.raises(PTaskModelError, match=r"classes\.csv: cannot be read") as caught:
        waiting_sections(results_with(tmp_path, line))
    assert "\n" not in str(caught.value)
