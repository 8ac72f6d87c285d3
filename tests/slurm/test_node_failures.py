"""Nodes that fail: dates and outcomes as a real Slurm 22.05.8 had them, within one ping."""

import csv
import json

import pytest
from slurm.small_clusters import LINEAR, conf_of, job, nodes_of, run

from ptaskmodel.batch.machine.failures import FailureLaw
from ptaskmodel.cli import main
from ptaskmodel.errors import PTaskModelError, SlurmError
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.controller.controller import failures_of_nodes
from ptaskmodel.slurm.event_log import Watch

SIX = "NodeName=n[1-6] CPUs=2\nPartitionName=p Nodes=ALL Default=YES MaxTime=1-0\n"
TIMEOUT_S = 60
PING_S = TIMEOUT_S // 3


def jobs():
    return [
        job("a", 0.5, 600, 20, nodes=2),
        job("b", 10.5, 600, 20, nodes=2),
        job("c", 20.5, 600, 20, nodes=1, requeue=False),
        job("d", 30.5, 600, 20, nodes=1),
        job("e", 600.5, 50, 20, nodes=6),
    ]


def outcome(tmp_path, failures, returns, some=None, **options):
    text = f"{LINEAR}SlurmdTimeout={TIMEOUT_S}\nReturnToService={returns}\n{SIX}"
    conf = conf_of(tmp_path, text)
    phases = Phases(boot_s=-50.0)
    return run(conf, some or jobs(), phases=phases, failures=failures, **options)


FAILURES = {
    "n1": [(100.0, False), (110.0, True)],  # the first node of a: back before anybody noticed
    "n4": [(150.0, False), (165.0, True)],  # the second node of b
    "n5": [(200.0, False), (215.0, True)],  # that of c, which may not begin anew
    "n6": [(300.0, False), (700.0, True)],  # that of d: set DOWN
}


@pytest.mark.parametrize("returns", [0, 1])
def test_every_job_fares_as_with_the_real_slurm(tmp_path, returns):
    found, records = outcome(tmp_path, FAILURES, returns)
    a, b, c, d, e = (records[name] for name in "abcde")
    assert (a.state, a.restarts, a.submit_s) == ("COMPLETED", 1, 110)
    assert a.end_s == a.start_s + 600
    # Nobody tells Slurm that half of b is gone: it stays until its limit.
    assert (b.state, b.end_s, b.restarts) == ("TIMEOUT", 1240, 0)
    assert (c.state, c.end_s, c.restarts) == ("NODE_FAIL", 215, 0)
    assert (d.state, d.restarts, d.submit_s) == ("COMPLETED", 1, 374)
    assert nodes_of(found, d) == [5]
    if returns:
        assert (e.state, e.start_s) == ("COMPLETED", 1240)
        assert not found.loop.failures.stay_down
    else:
        assert e.state == "PENDING"
        assert found.loop.failures.stay_down == ["n6"]


# When nodes died, and when the real Slurm said "not responding, setting DOWN".
SEEN = [(100, 154), (130, 214), (213, 274), (226, 274), (239, 334), (265, 354), (300, 374)]


@pytest.mark.parametrize(("died", "seen"), SEEN)
def test_a_node_is_set_down_when_the_real_one_was_within_a_ping(tmp_path, died, seen):
    watch = Watch()
    one = [job("a", 0.5, 3000, nodes=1)]
    outcome(tmp_path, {"n1": [(float(died), False)]}, 0, one, watch=watch)
    (date,) = (event.date_s for event in watch.events if event.what == "set down")
    assert abs(date - seen) <= PING_S


def test_nothing_starts_on_a_dead_node_and_nobody_waits_for_ever(tmp_path):
    some = [job("a", 200.5, 10, 20, nodes=6), job("b", 201.5, 10, 5, nodes=1)]
    found, records = outcome(tmp_path, {"n1": [(100.0, False)]}, 1, some)
    assert records["a"].state == "PENDING"
    assert records["b"].state == "COMPLETED"
    assert nodes_of(found, records["b"]) == [2]


def test_without_a_timeout_nobody_notices(tmp_path):
    conf = conf_of(tmp_path, f"{LINEAR}SlurmdTimeout=0\n{SIX}")
    _, records = run(conf, [job("a", 0.5, 100, 5, nodes=1)], failures={"n1": [(50.0, False)]})
    assert records["a"].state == "TIMEOUT"


def test_the_same_failures_are_drawn_for_a_node_whatever_the_others(tmp_path):
    law = FailureLaw(mtbf=1000.0, repair=200.0, seed=3)
    two = conf_of(tmp_path, f"{LINEAR}NodeName=n[1-2]\nPartitionName=p Nodes=ALL\n")
    six = conf_of(tmp_path, LINEAR + SIX)
    streams = [failures_of_nodes(conf, law=law)["n2"] for conf in (two, six)]
    assert [next(streams[0]) for _ in range(9)] == [next(streams[1]) for _ in range(9)]


def test_jobs_get_through_nodes_that_keep_failing(tmp_path):
    some = [job(f"j{k}", 7.0 * k, 100 + 13 * k % 400, 30, nodes=1 + k % 3) for k in range(60)]
    outcomes = []
    for _ in range(2):
        conf = conf_of(tmp_path, f"{LINEAR}SlurmdTimeout=30\nReturnToService=1\n{SIX}")
        law = FailureLaw(mtbf=2000.0, repair=300.0, seed=1)
        found, records = run(conf, some, failures=failures_of_nodes(conf, law=law))
        assert found.loop.failures.died > 10
        assert sum(record.restarts for record in records.values()) > 3
        assert {record.state for record in records.values()} <= {"COMPLETED", "TIMEOUT"}
        outcomes.append([(r.id, r.start_s, r.end_s, r.restarts) for r in found.jobs])
    assert outcomes[0] == outcomes[1]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "slurm.conf").write_text(f"{LINEAR}SlurmdTimeout=60\n{SIX}")
    (tmp_path / "jobs.csv").write_text("id,submit,nodes,limit,run\na,0,2,900,600\nb,5,1,600,60\n")
    (tmp_path / "down.csv").write_text("date,resource,event\n100,n1,down\n500,n1,up\n")
    return tmp_path


def test_the_command_tells_of_failures(files, capsys):
    words = ["slurm", str(files / "slurm.conf"), str(files / "jobs.csv")]
    words += ["--failures", str(files / "down.csv"), "-o", str(files / "out")]
    assert main(words) == 0
    assert "1 failures, 1 times set DOWN; jobs began anew 1 times; 1 stay DOWN" in (
        capsys.readouterr().out
    )
    with (files / "out" / "failures.csv").open() as table:
        rows = [
            (float(row["date"]), row["resource"], row["event"]) for row in csv.DictReader(table)
        ]
    assert rows == [(100.0, "n1", "down"), (500.0, "n1", "up")]
    told = json.loads((files / "out" / "summary.json").read_text())["node_failures"]
    assert told == {"died": 1, "set_down": 1, "stay_down": ["n1"], "restarts": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("date,resource,event\n100,n9,down\n", "no node 'n9'"),
        ("date,resource,event\n100,n1,up\n", "is up already"),
        ("date,resource,event\nsoon,n1,down\n", r"down.csv:2: date 'soon'"),
        ("when,resource,event\n", r"down.csv:1: the header"),
    ],
)
def test_failures_that_make_no_sense_are_refused(files, text, says):
    (files / "down.csv").write_text(text)
    with pytest.raises(PTaskModelError, match=says):
        failures_of_nodes(read_conf(files / "slurm.conf"), file=files / "down.csv")


def test_links_do_not_fail_here(files):
    with pytest.raises(SlurmError, match="no link_mtbf"):
        failures_of_nodes(read_conf(files / "slurm.conf"), law=FailureLaw(link_mtbf=5.0))
