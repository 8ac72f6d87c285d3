"""Advance reservations as scontrol is told of them."""

import pytest
from slurm.small_clusters import FOUR, LINEAR, conf_of, job, nodes_of, run

from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.conf.reservations import read_reservations

GOOD = "create reservation ReservationName=m Nodes=n[3-4] Users=root StartTime=now+300 Duration=5"


def read(tmp_path, text, t0=0):
    path = tmp_path / "reservations.txt"
    path.write_text(text)
    return read_reservations(path, conf_of(tmp_path, LINEAR + FOUR), t0)


def test_nobody_starts_where_he_would_meet_a_reservation(tmp_path):
    reserved = read(tmp_path, f"# maintenance\nscontrol {GOOD} Flags=MAINT,IGNORE_JOBS\n")
    jobs = [
        job("short", 0.5, 60, 4, nodes=4),
        job("long", 62.5, 60, 10, nodes=3, user="ann"),
        job("mine", 63.5, 60, 5, nodes=1, user="root", reservation="m"),
    ]
    found, done = run(
        conf_of(tmp_path, LINEAR + FOUR), jobs, reserved=reserved, phases=Phases(boot_s=-45.0)
    )
    assert done["short"].start_s == 1
    assert done["long"].start_s >= 600
    assert 300 <= done["mine"].start_s <= 375
    assert nodes_of(found, done["mine"]) == [3]


def test_all_that_is_wrong_of_a_reservation_is_told(tmp_path):
    bad = "create reservation Nodes=n9 Duration=soon Users=-bob Colour=red Wine Flags=DAILY,PURGE"
    with pytest.raises(SlurmError) as caught:
        read(tmp_path, f"{GOOD}\n{bad}\n{GOOD} Accounts=-x\n")
    head, *problems = caught.value.message.split("\n")
    assert head.endswith("reservations.txt: 9 problems:")
    assert [problem.split(":")[0] for problem in problems] == 7 * ["  line 2"] + ["  line 3"]
    for said in ("'Colour=red'", "'Wine'", "flag DAILY", "flag PURGE", "'soon'", "n9", "kept out"):
        assert said in caught.value.message


def test_options_may_be_cut_as_scontrol_takes_them(tmp_path):
    lines = ("create res=x st=now+60 dur=5 nodes=n1 user=ann", "create reservationname=y start=now",
             "create reservation starttime=now e=now+60 nodes=ALL acc=bio fl=MAINT")  # fmt: skip
    found = read(tmp_path, f"{lines[0]}\nscontrol {lines[1]} dur=9 nodes=n2 users=bob\n{lines[2]}")
    assert found.named("x", 0).users == {"ann"}
    assert found.named("y", 0).end_s == 540
    assert found.named("resv_3", 0).flags == {"MAINT"}


def test_dates_are_of_date_0_or_of_the_calendar(tmp_path):
    text = (
        "create reservation Nodes=ALL StartTime=2024-01-01T00:00:00 EndTime=2024-01-01T01:00:00\n"
        "create reservation Nodes=n1 StartTime=now+2hours Duration=1:00:00\n"
    )
    assert read(tmp_path, text, 1_704_067_200).over_s == 1_704_067_200 + 3 * 3600


@pytest.mark.parametrize(
    "line",
    [
        "delete reservation m",
        "create reservation Nodes=n1 StartTime=now",
        "create reservation StartTime=now Duration=5",
        "create reservation Nodes=n9 StartTime=now Duration=5",
        "create reservation Nodes=n1 StartTime=soon Duration=5",
        "create reservation Nodes=n1 StartTime=now+5years Duration=5",
        "create reservation Nodes=n1 StartTime=now+60 EndTime=now+30",
        "create reservation Nodes=n1 Duration=5 Flags=DAILY",
        "create reservation Nodes=n1 Duration=5 Colour=red",
        "create reservation Nodes=n[1 Duration=5",
        GOOD,
    ],
)
def test_bad_lines_are_told_with_their_number(tmp_path, line):
    with pytest.raises(SlurmError, match=r"reservations.txt:2: \S") as told:
        read(tmp_path, f"{GOOD}\n{line}\n")
    assert "\n" not in str(told.value)
