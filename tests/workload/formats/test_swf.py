"""SWF logs: all fields and headers, cleaning said aloud, windows, and the way back."""

from __future__ import annotations

import functools
import gzip
import random

import numpy as np
import pytest

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats import Cleaning, swf
from ptaskmodel.workload.formats import log_lines as swf_lines
from ptaskmodel.workload.formats.swf import (
    FIELDS,
    clean,
    read_swf,
    swf_from_workload,
    workload_from_swf,
    write_swf,
)
from ptaskmodel.workload.jobs import Job, Workload, job_arrays, names_of, sizes_of, users_of
from ptaskmodel.workload.reading import format_of, read_workload, write_workload
from ptaskmodel.workload.scaling import cut_swf, cut_workload, swf_windows, workload_windows
from ptaskmodel.workload.works import DelayWork

LOG = """\
; Version: 2.2
; Computer: a small machine
; MaxProcs: 8
;
; Note: made for a test
1 0 5 100 4 -1 -1 4 120 -1 1 3 1 2 0 0 -1 -1
2 10 0 0 2 -1 -1 2 60 -1 1 3 1 2 0 0 -1 -1
3 20 0 50 -1 -1 -1 3 -1 -1 1 3 1 2 0 0 -1 -1

4 30 0 -1 2 -1 -1 2 60 -1 5 3 1 2 0 0 -1 -1
5 40 0 50 2 -1 -1 2 60 -1 3 3 1 2 0 0 -1 -1
6 50 0 50 -1 -1 -1 -1 60 -1 1 3 1 2 0 0 -1 -1
7 60 0 50.5 9 -1 -1 9 60 -1 0 3 1 2 0 0 -1 -1
8 70 0 -1 9 -1 -1 9 60 -1 0 3 1 2 0 0 -1 -1
"""


@pytest.fixture
def log_file(tmp_path):
    path = tmp_path / "small.swf.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    return path


def test_all_fields_and_headers_are_read_and_written_back(log_file, tmp_path):
    log = read_swf(log_file)
    assert log.rows.shape == (8, len(FIELDS))
    assert log.num_processors == 8
    assert ("Computer", "a small machine") in log.header
    assert log.column("run_time_s")[6] == 50.5
    write_swf(log, tmp_path / "again.swf")
    again = read_swf(tmp_path / "again.swf")
    assert np.array_equal(again.rows, log.rows)
    assert again.header == log.header


def test_cleaning_says_what_it_does(log_file):
    cleaned, notes = clean(read_swf(log_file), max_processors=8)
    assert cleaned.column("job_number").tolist() == [1, 2, 3]
    assert notes == (
        "left out 1 part of checkpointed jobs (status 2, 3 or 4)",
        "left out 1 job cancelled before a run",
        "left out 1 job of unknown run time",
        "left out 1 job of unknown size",
        "left out 1 job of more than 8 processors",
        "set the run time of 1 job from 0 s to 1 s",
    )
    dropped, notes = clean(read_swf(log_file), zero_run_time_s=None)
    assert 2 not in dropped.column("job_number")
    assert "left out 1 job that ran for 0 s" in notes


def test_a_log_becomes_a_workload_of_delays(log_file):
    workload = workload_from_swf(read_swf(log_file), processors_per_host=2)
    found = [
        (j.id, j.submit_time_s, j.num_hosts, j.work.duration_s, j.walltime_s) for j in workload.jobs
    ]
    assert found == [
        ("1", 0, 2, 100, 120),
        ("2", 10, 1, 1, 60),
        ("3", 20, 2, 50, None),
        ("7", 60, 5, 50.5, 60),
    ]
    assert workload.num_hosts == 4
    assert all(
        j.walltime_s is None for j in workload_from_swf(read_swf(log_file), walltimes=False).jobs
    )


def test_a_workload_becomes_a_log_and_comes_back(log_file, tmp_path):
    workload = workload_from_swf(read_swf(log_file))
    write_swf(swf_from_workload(workload), tmp_path / "out.swf")
    again = workload_from_swf(read_swf(tmp_path / "out.swf"))
    assert again.frame().equals(workload.frame())
    assert again.num_hosts == workload.num_hosts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2 3", ":2: 3 fields instead of 18"),
        (
            "1 0 5 100 4 -1 -1 4 x -1 1 3 1 2 0 0 -1 -1",
            ":2: field 9 (requested_time_s) is 'x'; give a number",
        ),
        ("1 0 5 inf 4 -1 -1 4 1 -1 1 3 1 2 0 0 -1 -1", ":2: a value is not finite"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "bad.swf"
    path.write_text(f"; Version: 2\n{line}\n")
    with pytest.raises(WorkloadError) as caught:
        read_swf(path)
    assert message in str(caught.value)


def test_jobs_numbered_alike_are_refused(tmp_path):
    path = tmp_path / "twice.swf"
    path.write_text("1 0 0 9 4 -1 -1 4 9 -1 1 3 1 2 0 0 -1 -1\n" * 2)
    with pytest.raises(WorkloadError, match="job 1 occurs twice"):
        read_workload(path)


def test_the_format_is_told_by_name_then_by_content(tmp_path, log_file):
    odd = tmp_path / "log.txt"
    odd.write_text(LOG)
    assert format_of(odd) == "swf"
    assert format_of(log_file) == "swf"
    odd.write_text('\n {"jobs": [], "profiles": {}}')
    assert format_of(odd) == "batsim"
    assert len(read_workload(log_file, Cleaning(max_hosts=8)).jobs) == 3


def test_busy_windows_are_found_and_cut(tmp_path):
    path = tmp_path / "days.swf"
    lines = ["; MaxProcs: 2"]
    for day in range(10):
        busy = 3 <= day < 6
        row = [day + 1, day * 86400, 0, 80000 if busy else 8000, 2, *[-1] * 13]
        lines.append(" ".join(map(str, row)))
    path.write_text("\n".join(lines))
    log = read_swf(path)
    found = swf_windows(log, length_s=2 * 86400, min_utilisation=0.9)
    assert [w.start_s / 86400 for w in found] == [3, 4]
    assert found[0].utilisation == pytest.approx(80000 / 86400)
    cut = cut_swf(log, found[0])
    assert cut.column("submit_time_s").tolist() == [0, 86400]
    workload = workload_from_swf(log)
    assert workload_windows(workload, length_s=2 * 86400, min_utilisation=0.9) == found
    piece = cut_workload(workload, found[0])
    assert [j.submit_time_s for j in piece.jobs] == [0, 86400]
    assert len(piece.profiles) == 1


def test_real_logs_read(shared_data):
    log = workload_from_swf(read_swf(shared_data / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"))
    assert len(log.jobs) == 18239
    assert log.num_hosts == 128
    assert log.notes == ("set the run time of 173 jobs from 0 s to 1 s",)


def test_who_asks_for_a_job_goes_through_both_formats(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(
        "1000007 0 0 5 2 -1 -1 2 9 -1 1 12 3 4 0 1 -1 -1\n"
        "1000008 9 0 5 2 -1 -1 2 9 -1 1 12 -1 -1 -1 -1 1000007 60\n"
    )
    write_workload(read_workload(path), tmp_path / "jobs.json")
    write_workload(read_workload(tmp_path / "jobs.json"), tmp_path / "again.swf")
    for made in map(read_workload, (path, tmp_path / "jobs.json", tmp_path / "again.swf")):
        first, second = made.jobs
        assert (first.id, first.user, first.group, first.executable) == ("1000007", "12", "3", "4")
        assert (first.queue, first.partition, first.preceding_job) == ("0", "1", None)
        assert (second.user, second.group, second.queue) == ("12", None, None)
        assert (second.preceding_job, second.think_time_s) == ("1000007", 60)


def test_names_of_users_are_numbered_in_a_log(tmp_path):
    jobs = [
        Job("a", 0, 1, "d", DelayWork(1), user="ada"),
        Job("b", 0, 1, "d", DelayWork(1), user="ben", preceding_job="a"),
        Job("c", 0, 1, "d", DelayWork(1), user="ada", preceding_job="nowhere"),
    ]
    log = swf_from_workload(Workload(tuple(jobs), {"d": DelayWork(1)}))
    assert log.column("user").tolist() == [1, 2, 1]
    assert log.column("preceding_job").tolist() == [-1, 1, -1]
    assert ("Note", "users renumbered") in log.header


def test_what_follows_the_18th_field_is_left_unread_with_a_note(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text("1 0 0 5 2 -1 -1 2 9 -1 1 12 3 4 0 1 -1 -1 77 x\n")
    made = read_workload(path)
    assert len(made.jobs) == 1
    assert made.notes == ("ignored what follows the 18th field on 1 lines",)


LINE = "1 0 0 9 4 -1 -1 4 9 -1 1 3 1 2 0 0 -1 -1"


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        f"{LINE}\n\n  {LINE}\r\n{LINE}\r{LINE}",
        LINE.replace("9", "9.5e0"),
        LINE.replace("9", "0.1234567890123456789"),
        LINE.replace("9", "-0"),
        LINE.replace("9", "+9"),
        LINE.replace("9", "9007199254740993"),
        f";Version: 2\n; a\n\n{LINE}\n",
    ],
)
def test_regular_lines_are_read_at_once_as_the_strict_reader_does(text, tmp_path, monkeypatch):
    path = tmp_path / "log.swf"
    path.write_bytes(text.encode())
    parsed = functools.partial(swf_lines.parsed, large=0)
    monkeypatch.setattr(swf_lines, "parsed", parsed)
    quick = read_swf(path)
    monkeypatch.setattr(swf_lines, "parsed", lambda *_: None)
    strict = read_swf(path)
    assert quick.rows.tobytes() == strict.rows.tobytes()
    assert quick.header == strict.header


@pytest.mark.parametrize(
    "text",
    [
        LINE.rsplit(" ", 1)[0],
        f"{LINE} 7",
        f"{LINE.rsplit(' ', 1)[0]}\n{LINE} 7",
        LINE.replace("9", "1-2"),
        LINE.replace("9", "1.2.3"),
        LINE.replace("9", "--1"),
        LINE.replace("9", "1e999"),
        LINE.replace("9", "9007199254740995"),
        LINE.replace("9", "99999999999999999999999"),
        LINE.replace("9", "1_0"),
        LINE.replace("9", "nan"),
        LINE.replace("9", "e"),
        "",
    ],
)
def test_whatever_is_unusual_is_for_the_strict_reader(text):
    assert swf_lines.parsed(text.encode(), 18, 2.0**53, large=0) is None or text == ""


def test_random_bytes_are_read_at_once_only_as_the_strict_reader_would(tmp_path):
    draw = random.Random(5)
    for _ in range(2000):
        text = list(f"{LINE}\n{LINE}\n")
        for _ in range(draw.randint(1, 3)):
            text[draw.randrange(len(text))] = draw.choice("0123456789+-.eE \t\r\n")
        body = "".join(text)
        found = swf_lines.parsed(body.encode(), 18, 2.0**53, large=0)
        if found is not None:
            rows = [list(map(float, line.split())) for line in body.splitlines() if line.strip()]
            assert found.tolist() == rows, body


def test_the_columns_of_a_log_are_those_of_its_jobs(log_file):
    jobs = read_workload(log_file).jobs
    for ours, theirs in zip(job_arrays(jobs), job_arrays(list(jobs)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for column, one_by_one in zip(
        (*names_of(jobs), users_of(jobs)),
        (*names_of(list(jobs)), users_of(list(jobs))),
        strict=True,
    ):
        assert list(column) == one_by_one
    assert sizes_of(jobs).tolist() == [job.num_hosts for job in jobs]


def test_any_numbers_are_written_as_python_writes_them(tmp_path):
    draw = random.Random(5)
    values = [0.0, -0.0, -1.0, 7.0, 0.1, -2.5, 1e22, 1e-7, 123456789.25, 2.0**53, -(2.0**53) + 1]
    rows = np.array([[draw.choice(values) for _ in range(18)] for _ in range(50)])
    rows[:, 0], rows[:, 1] = np.arange(50), np.arange(50) * 10.0**10
    swf.write_swf(swf.SwfLog((("Note", "é"),), rows), tmp_path / "l.swf")
    numbers = [[str(int(v)) if v == int(v) else repr(v) for v in row] for row in rows.tolist()]
    expected = "".join(line + "\n" for line in ["; Note: é", *map(" ".join, numbers)])
    assert (tmp_path / "l.swf").read_text(encoding="utf-8") == expected


def test_a_run_time_beyond_all_is_named(log_file):
    log = swf.read_swf(log_file)
    log.rows[-1, swf.COLUMN["run_time_s"]] = 1e200
    log.rows[-1, swf.COLUMN["status"]] = 1
    name = f"{log.rows[-1, 0]:g}"
    with pytest.raises(WorkloadError, match=f"job {name}: run time: 1e.200 is larger than 1e.100"):
        swf.workload_from_swf(log)
