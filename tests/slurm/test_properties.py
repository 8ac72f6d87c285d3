"""What holds whatever the configuration and the jobs: nothing used twice, limits, order, ends."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from slurm.random_clusters import ACCOUNTS, Checking, confs, failures, jobs
from slurm.small_clusters import conf_of

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import nodes_of
from ptaskmodel.slurm.conf.phases import Phases, drawn
from ptaskmodel.slurm.run import simulate_slurm

PHASES = Phases(boot_s=-45.0)
OVER = {"COMPLETED", "FAILED", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "CANCELLED"}
QUICK = settings(max_examples=25, deadline=None)


def outcome(text, requests, accounts=None, phases=PHASES, **options):
    with tempfile.TemporaryDirectory() as place:
        conf = conf_of(Path(place), text)
        known = None
        if accounts is not None:
            (Path(place) / "accounts.txt").write_text(accounts)
            known = read_accounts(Path(place) / "accounts.txt")
    watch = Checking(nodes_of(conf), conf, accounts is not None)
    run = simulate_slurm(conf, requests, accounts=known, phases=phases, watch=watch, **options)
    watch.check()
    return run, watch


def told(run):
    return [(j.id, j.state, j.reason, j.start_s, j.end_s, j.allocation, j.by) for j in run.jobs]


def check_ends(run):
    for record in run.jobs:
        if record.state in OVER:
            continue
        assert record.state in ("PENDING", "REFUSED")
        # Who stands behind the depth of all passes is never looked at.
        assert record.reason not in ("", None)
        assert record.reason != "None" or run.conf.scheduler.partition_job_depth


def check_limits(run, conf):
    for record in run.jobs:
        if record.attempt is None or record.state not in OVER:
            continue
        stopped = sum(end - begin for begin, end in record.suspensions)
        lasted = record.end_s - record.start_s - stopped
        late_s = 60 * conf.over_time_limit_min + 31
        assert lasted <= record.limit_s + late_s + 1


def check_dependencies(run):
    by_id = {record.id: record for record in run.jobs}
    for record in run.jobs:
        kind, _, other = (record.request.dependency or "").partition(":")
        if not other or record.attempt is None:
            continue
        first = by_id[other]
        # Nobody waits for a job that Slurm has never known.
        if first.state == "REFUSED" or first.restarts or record.restarts:
            continue
        if kind == "after":
            assert record.start_s >= first.start_s
            continue
        assert record.start_s >= first.end_s
        assert kind != "afterok" or first.state == "COMPLETED"
        assert kind != "afternotok" or first.state != "COMPLETED"


@QUICK
@given(confs(), jobs(), failures, st.integers(0, 3))
def test_nothing_is_used_twice_limits_hold_and_every_job_ends_or_says_why(
    text, requests, down, seed
):
    run, _ = outcome(text, requests, phases=drawn(seed), failures=down)
    check_ends(run)
    check_limits(run, run.conf)
    check_dependencies(run)
    again, _ = outcome(text, requests, phases=drawn(seed), failures=down)
    assert told(run) == told(again)


@QUICK
@given(confs(accounts=True), jobs())
def test_limits_of_users_and_accounts_hold(text, requests):
    run, _ = outcome(text, requests, ACCOUNTS)
    check_ends(run)
    for record in run.jobs:
        if record.attempt is not None:
            assert record.limit_s <= 15 * 60
            assert record.request.user != "bob" or record.allocation.size <= 2


@QUICK
@given(confs(builtin=True), jobs(plain=True))
def test_nobody_overtakes_without_backfill(text, requests):
    run, watch = outcome(text, requests)
    order = {record.id: record.number for record in run.jobs}
    started = [order[job] for _, job in watch.starts]
    assert started == sorted(started)
    check_ends(run)
