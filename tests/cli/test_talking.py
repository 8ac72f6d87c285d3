"""What is said while a command runs: -v, -q, --log-level; progress, once a second on a terminal."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys

import pytest

from ptaskmodel.cli import main
from ptaskmodel.cli.progress import Progress
from ptaskmodel.units import format_date

ONE_LINK = (
    '<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1Gf"/>'
    '<host id="b" speed="5"/><link id="l" bandwidth="1GBps" latency="0s"/>'
    '<route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>'
)


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(ONE_LINK)
    (tmp_path / "t.json").write_text('{"tasks": [{"id": "t", "hosts": ["a"], "cpu": 1e9}]}')
    return tmp_path


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], ["warning: p.xml"]),
        (["-q"], []),
        (["--log-level", "error"], []),
        (["-v"], ["read t.json: 1 tasks", "read p.xml: 2 hosts, 1 links", "warning: p.xml"]),
        (["-v", "-q"], []),
        (["--log-level", "info"], ["read t.json", "read p.xml", "warning: p.xml"]),
    ],
)
def test_how_much_is_said(case, capsys, options, said):
    assert main(["simulate", "p.xml", "t.json", *options]) == 0
    captured = capsys.readouterr()
    # Where kernels are not there yet, that is said too.
    lines = [line for line in captured.err.splitlines() if "compiling" not in line]
    assert len(lines) == len(said)
    for line, part in zip(lines, said, strict=True):
        assert line.startswith(f"ptaskmodel: {part}")
    assert "makespan" in captured.out


@pytest.mark.filterwarnings("default")
def test_the_level_is_as_before_after_a_command(case, capsys):
    logger = logging.getLogger("ptaskmodel")
    before = logger.level, list(logger.handlers)
    assert main(["platform", "info", "p.xml", "-v"]) == 0
    assert (logger.level, list(logger.handlers)) == before
    capsys.readouterr()


def test_progress_is_told_once_a_second_with_the_time_to_go():
    told, dates = [], iter([0.0, 0.5, 1.1, 1.2, 4.0])
    progress = Progress(200, "jobs", every_s=1.0, say=told.append, clock=lambda: next(dates))
    progress(10.0, 1, 0)
    progress(3600.0, 50, 7)
    progress(3700.0, 51, 7)
    progress(200000.0, 100, 12345)
    assert told == [
        "01:00:00: 50 of 200 jobs, 7 wait, 2 s to go, 45/s",
        "2 d 07:33:20: 100 of 200 jobs, 12,345 wait, 11 s to go, 25/s",
    ]


@pytest.mark.parametrize(
    ("seconds_of", "expected"),
    [
        (lambda n: 0.1 * n, lambda n, total: 0.1 * (total - n)),
        # A queue that deepens: each job costs more than the one before.
        (
            lambda n: 0.01 * n + 2e-4 * n**2,
            lambda n, total: 0.01 * (total - n) + 2e-4 * (total**2 - n**2),
        ),
        # A slow beginning is not held against the rest.
        (lambda n: 40.0 + 0.01 * n, lambda n, total: 0.01 * (total - n)),
    ],
)
@pytest.mark.parametrize("step", [1, 7])
def test_time_to_go_follows_what_jobs_cost_of_late(seconds_of, expected, step):
    total, told, clock = 4000, [], [0.0]
    progress = Progress(total, "jobs", every_s=0.0, say=told.append, clock=lambda: clock[0])
    for n in range(step, total, step):
        clock[0] = seconds_of(n)
        progress(float(n), n, 7)
        left_s = progress._left_s(n, clock[0])
        if n > 100:
            assert left_s == pytest.approx(expected(n, total), rel=0.01, abs=0.5), n
    assert len(progress._reached) <= 1001


def test_the_last_is_told_where_others_were():
    told, dates = [], iter([0.0, 1.1, 1.2, 9.0, 9.1])
    progress = Progress(200, "jobs", every_s=1.0, say=told.append, clock=lambda: next(dates))
    progress(3600.0, 50, 7)
    progress(3700.0, 200, 0)
    assert told[1:] == ["01:01:40: 200 of 200 jobs; the results are written"]
    silent = Progress(200, "jobs", every_s=1.0, say=told.append, clock=lambda: next(dates))
    silent(3700.0, 200, 0)
    assert len(told) == 2


def test_time_to_go_is_not_guessed_at_the_beginning():
    progress = Progress(100_000, "tasks", every_s=1.0, say=print)
    assert progress.text(0.25, 0, None, 1.0) == "0.25 s: 0 of 100,000 tasks"
    assert progress.text(1.0, 9, None, 3.0) == "1 s: 9 of 100,000 tasks, 3/s"


def test_steps_have_no_date_and_slow_ones_no_rate():
    progress = Progress(0, "fits", every_s=1.0, say=print)
    progress.of(55)
    assert progress.text(None, 11, None, 22.0) == "11 of 55 fits, 88 s to go"


def test_a_line_of_a_large_run_fits_a_terminal():
    progress = Progress(999_999, "jobs", every_s=1.0, say=print)
    assert len(progress.text(1e8, 800_000, 100_000, 5000.0)) <= 79


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"), (12.5, "12.5 s"), (59.9999, "59.9999 s"), (60.0, "00:01:00"),
        (94925.0, "1 d 02:22:05"), (1e13, "1e+13 s"), (-5.0, "-5 s"),
    ],
)  # fmt: skip
def test_dates_for_people(seconds, text):
    assert format_date(seconds) == text


PROGRESS = """
import logging, sys
from ptaskmodel.cli import progress
from ptaskmodel.cli.progress import told_progress
progress.TERMINAL_S = 0.0
progress.ELSEWHERE_S = float(sys.argv[1]) if sys.argv[1:] else 30.0
if sys.argv[2:]:
    logging.getLogger("ptaskmodel").setLevel(sys.argv[2])
with told_progress(4, "jobs", queues=True) as tell:
    print("asked" if tell else "not asked")
    if tell:
        tell(100.0, 2, 1)
"""


def test_a_terminal_is_told_and_its_line_wiped(tmp_path):
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", PROGRESS], stderr=follower, stdout=subprocess.PIPE, text=True,
        check=True,
    )  # fmt: skip
    said = os.read(leader, 4096).decode()
    os.close(follower)
    os.close(leader)
    assert done.stdout == "asked\n"
    assert "00:01:40: 2 of 4 jobs, 1 wait" in said
    assert said.endswith("\r\033[K")


@pytest.mark.parametrize(
    ("arguments", "asked", "said"),
    [
        ([], "asked", ""),
        (["0"], "asked", "ptaskmodel: 00:01:40: 2 of 4 jobs, 1 wait, "),
        (["0", "ERROR"], "not asked", ""),
    ],
)
def test_a_pipe_is_told_a_line_every_30_s_but_with_q(arguments, asked, said):
    done = subprocess.run(
        [sys.executable, "-c", PROGRESS, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{asked}\n"
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        ("simulat a b", "simulate"), ("workload inf", "info"), ("campaign stats", "status"),
        ("workload generate lublim", "lublin"),
    ],
)  # fmt: skip
def test_the_nearest_command_is_offered(capsys, arguments, near):
    assert main(arguments.split()) == 2
    assert f"did you mean '{near}'?" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_the_level_may_be_said_before_the_command(case, capsys):
    assert main(["-q", "platform", "info", "p.xml"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["-v", "platform", "info", "p.xml"]) == 0
    assert "ptaskmodel: read p.xml" in capsys.readouterr().err


def test_every_command_can_be_told_to_say_more_or_less(capsys):
    for arguments in (["simulate"], ["workload", "generate", "lublin"], ["campaign", "run"]):
        assert main([*arguments, "--help"]) == 0
        said = capsys.readouterr().out
        assert all(option in said for option in ("-v, --verbose", "-q, --quiet", "--log-level"))
