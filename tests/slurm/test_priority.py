"""Priorities are those of the real Slurm, to the last digit: worked examples and sprio's output."""

import math
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slurm.recorded_runs import folder, meta, rows
from slurm.small_clusters import FOUR, conf_of, job, run

from ptaskmodel.slurm.accounts.facts import Accounts, Association, Qos, plain_accounts
from ptaskmodel.slurm.accounts.fair_share import Member, Members, ShareTree
from ptaskmodel.slurm.accounts.priority_kernel import COLUMNS, VALUE
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Conf, Partition, PriorityParameters
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.controller.priority import Basic, Multifactor, Sizes
from ptaskmodel.slurm.controller.rows import BLOCK, Rows
from ptaskmodel.slurm.jobs.job_table import read_jobs
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import ArrayTask, JobRequest
from ptaskmodel.workload.works import DelayWork

DAY = 86_400


MAIN = (Partition("main"),)


def record(request, number=1, submit_s=0, partitions=MAIN, account=None):
    found = JobRecord(request, number, submit_s, partitions)
    found.set_account(account)
    return found


def request(name="a", **fields):
    return JobRequest(name, 0.0, DelayWork(1.0), **fields)


def accounts(*associations, **qos):
    plain = plain_accounts()
    found = {**plain.qos, **{name: Qos(name, value) for name, value in qos.items()}}
    return Accounts(MappingProxyType(found), (*plain.associations, *associations))


EXAMPLE = accounts(
    Association("X"),
    Association("Y"),
    Association("X", "x1", usage_s=600),
    Association("X", "x2"),
    Association("Y", "y1", usage_s=300),
    Association("Y", "y2", usage_s=100),
    q=20,
    top=100,
)
WEIGHTS = PriorityParameters(
    weight_age=1000,
    weight_fairshare=10000,
    weight_job_size=1000,
    weight_partition=1000,
    weight_qos=2000,
    decay_half_life_s=0,
)
PARTITIONS = (Partition("p", job_factor=5), Partition("best", job_factor=10))


def example(flags=(), nodes=100, **weights):
    """The priorities of the worked example, on nodes of ten CPUs, its user's job, a day later."""
    of = replace(WEIGHTS, flags=frozenset(flags), **weights)
    conf = Conf((), PARTITIONS, priority_type="priority/multifactor", priority=of, database=True)
    tree = ShareTree(EXAMPLE)
    member = Member(tree.find("Y", "y1"), "q")
    found = Multifactor(conf, EXAMPLE, tree, Sizes(nodes, 10 * nodes, {}, {}), 1)
    job = record(
        request(min_nodes=10, tasks=100, nice=50, limit_min=60),
        partitions=PARTITIONS[:1],
        account=member,
    )
    found.at_submit(job, 1)
    found.accrue(job, 1)
    return found, job


@pytest.mark.parametrize(("flags", "value"), [((), 7092), (("SMALL_RELATIVE_TO_TIME",), 6994)])
def test_the_worked_example_with_fair_tree(flags, value):
    found, job = example(flags)
    found.refresh(1 + DAY, {})
    assert job.priorities[0] == value


def test_the_worked_example_on_ten_nodes():
    found, job = example(nodes=10)
    found.refresh(1 + 11_500, {})
    assert job.priorities[0] == 7869
    # seen on the real one after about the same time
    found, job = example(("NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME"), nodes=10)
    found.refresh(1 + 11_500, {})
    assert job.priorities[0] == 3218


def test_ranks_of_fair_tree():
    tree = ShareTree(EXAMPLE)
    factors = tree.fair_tree()
    by_user = {one.user: factors[k] for k, one in enumerate(tree.associations) if one.user}
    assert by_user == {"root": 1.0, "y2": 0.8, "y1": 0.6, "x2": 0.4, "x1": 0.2}


def test_classic_shares():
    tree = ShareTree(EXAMPLE)
    known = tree.effective_accounts(False)
    found = {
        one.user: 2 ** -float(tree.effective(k, known, False) / tree.normal_share(k))
        for k, one in enumerate(tree.associations)
        if one.user not in (None, "root")
    }
    expected = {"y2": 0.3536, "x2": 0.2872, "y1": 0.2333, "x1": 0.0825}
    assert {user: round(value, 4) for user, value in found.items()} == expected


def test_equal_accounts_are_ranked_one_by_one_the_last_created_first():
    of = [
        one
        for name in "zkc"
        for one in (
            Association(name),
            Association(name, f"{name}0"),
            Association(name, f"{name}1", usage_s=100),
        )
    ]
    tree = ShareTree(accounts(*of))
    factors = tree.fair_tree() * 7
    ranks = {one.user: round(factors[k]) for k, one in enumerate(tree.associations) if one.user}
    assert ranks == {"root": 7, "c0": 6, "c1": 5, "k0": 5, "k1": 3, "z0": 3, "z1": 1}


def test_users_with_their_parents_share():
    of = (
        Association("A", shares=None),
        Association("A", "a", usage_s=10),
        Association("B"),
        Association("B", "b", shares=None, usage_s=30),
    )
    tree = ShareTree(accounts(*of))
    known = tree.effective_accounts(False)
    b = tree.find("B", "b")
    assert tree.normal_share(b) == tree.normal_share(tree.find("B", None))
    assert tree.effective(b, known, False) == known[tree.find("B", None)] == 0.75
    # a competes with the accounts, since its own passes on what it gets
    a = tree.find("A", "a")
    assert tree.normal_share(a) == pytest.approx(1 / 3)
    assert tree.effective(a, known, False) == 0.25


def test_oblivious_shares_bring_back_the_balance():
    tree = ShareTree(EXAMPLE)
    known = tree.effective_accounts(True)
    x1, account = tree.find("X", "x1"), tree.find("X", None)
    used, share = 0.6, tree.normal_share(x1)
    parent = float(known[account]) / tree.normal_share(account)
    level = (used / share) / (0.6 / tree.normal_share(account))
    assert float(tree.effective(x1, known, True)) == pytest.approx(parent * level * share)


@pytest.mark.parametrize(("enforced", "counts"), [("LIMITS", 1), ("ASSOCIATIONS", 0)])
def test_usage_decays_and_grows_with_running_jobs(enforced, counts):
    of = replace(WEIGHTS, decay_half_life_s=3600)
    conf = Conf((), PARTITIONS, priority=of, database=True, enforce=frozenset({enforced}))
    tree = ShareTree(EXAMPLE)
    found = Multifactor(conf, EXAMPLE, tree, Sizes(10, 100, {}, {}), 0)
    x1 = tree.find("X", "x1")
    job = record(request(), account=Member(x1, "q"), partitions=PARTITIONS)
    found.at_submit(job, 0)
    found.started(job, 30, {"cpu": 8})
    found.refresh(60, {})
    factor = 1 - 0.693 / 3600
    after = 600 * factor**60 + 8 * 30 * factor**30
    assert float(tree.usage[x1]) == pytest.approx(after)
    found.ended(job, 70)
    # What a job used since the last refresh counts at its end, but only where limits are enforced.
    assert float(tree.usage[x1]) == pytest.approx(after + counts * 8 * 10 * factor**10)
    assert float(tree.usage[0]) > float(tree.usage[x1])


def test_basic_is_first_come_first_served_but_for_nice():
    basic = Basic()
    jobs = [record(request(nice=nice)) for nice in (0, 100, 0, -5)]
    for one in jobs:
        basic.at_submit(one, 0)
    assert [one.priorities[0] - 0xFFFF0000 for one in jobs] == [-1, -102, -3, 1]


def test_views_of_rows_follow_them_however_many_come():
    rows = Rows()
    values = [0.0] * COLUMNS
    first = rows.take(values)
    seen = rows.view(first, VALUE)
    others = [rows.take(values) for _ in range(BLOCK)]
    rows.set(first, VALUE, 7)
    assert seen[0] == rows.get(first, VALUE) == 7
    assert len(rows.blocks) == 2
    rows.give_back(others[0])
    assert len(rows.column(VALUE)) == BLOCK
    assert rows.take(values) == others[0]


def test_priorities_set_by_hand_and_held_jobs_stay():
    found, _ = example()
    fixed = record(request(priority=7), 2, partitions=PARTITIONS)
    held = record(request(hold=True), 3, partitions=PARTITIONS)
    for one in (fixed, held):
        found.at_submit(one, 5)
    found.refresh(DAY, {})
    assert list(fixed.priorities) == [7, 7]
    assert list(held.priorities) == [0, 0]
    assert found.table()["number"].tolist() == [1]


def test_a_job_in_two_partitions_has_two_priorities():
    found, _ = example()
    job = record(request(), 2, partitions=PARTITIONS)
    found.at_submit(job, 1)
    assert job.priorities[1] - job.priorities[0] == 500
    found.refresh(DAY, {})
    assert job.priorities[1] - job.priorities[0] == 500


def replayed(path, run, refreshed_s):
    """What sprio showed in a recorded run, and what we say at the same dates."""
    conf = read_conf(path / "slurm.conf")
    of = path / "sacctmgr.txt"
    known = read_accounts(of) if of.exists() else plain_accounts()
    tree = ShareTree(known)
    members = Members(conf, known, tree)
    t0 = meta(path / f"{run}.meta.json")["t0"]
    nodes = len(conf.nodes[0].names)
    found = Multifactor(
        conf, known, tree, Sizes(nodes, nodes * conf.nodes[0].cpus, {}, {}), t0 - 60
    )
    ran = {row["id"]: row for row in rows(path / f"{run}.csv")}
    events = [(float(row["time"]), 5, row) for row in rows(path / f"{run}.prio.csv")]
    last = max(date for date, _, _ in events)
    jobs = {}
    for number, one in enumerate(read_jobs(path / "jobs.csv").jobs):
        row = ran[one.id]
        member = members.of(one, conf.default_partition)
        job = record(one, number, t0 + int(row["submit"]), conf.partitions, member)
        jobs[one.id] = job
        dates = (float(row["submit"]) + 0.5, float(row["start_ms"]), float(row["end_ms"]))
        events += [(date, kind, job) for kind, date in enumerate(dates)]
    if found.period_s:
        count = int((last - refreshed_s) / found.period_s) + 1
        events += [(refreshed_s + k * found.period_s, 4, None) for k in range(count)]
    logged = rows(path / f"{run}.events.csv")
    events += [(float(row["time"]), 3, None) for row in logged if not row["id"]]
    # Slurm takes the date of submission when it is asked, that of eligibility when it has answered.
    eligible = {row["id"]: float(row["time"]) for row in logged if row["what"] == "submit"}
    waiting = {}
    for date, kind, what in sorted(events, key=lambda event: event[:2]):
        now = t0 + math.floor(date)
        if kind == 0:
            found.at_submit(what, now)
            waiting[what.number] = what
        elif kind == 1:
            del waiting[what.number]
            found.started(what, now, {"cpu": 16 * what.request.least_nodes})
        elif kind == 2:
            found.ended(what, now)
        elif kind == 3:
            for job in waiting.values():
                found.accrue(job, t0 + math.floor(eligible[job.request.id]))
                found.tested(job, 16 * job.request.least_nodes)
        elif kind == 4:
            found.refresh(now, {})
        else:
            yield (date, what["id"], int(jobs[what["id"]].priorities[0])), int(what["priority"])


@pytest.mark.parametrize(
    ("name", "run", "refreshed_s"),
    [
        ("multifactor", "run1", 0.0),
        # the date of a refresh follows from when the controller's loop began
        ("fairshare", "run1", -30.7),
        ("fairshare", "run2", -34.0),
    ],
)
def test_priorities_as_sprio_printed_them(name, run, refreshed_s):
    count = 0
    for (date, which, ours), real in replayed(folder(name), run, refreshed_s):
        assert ours == real, (date, which)
        count += 1
    assert count > 1000


def ranked(tree, place, tied, state):
    """The ranks of users below a place, by the words of the definition."""

    def level(k):
        one = tree.associations[k]
        siblings = [s for s in range(1, len(tree.above)) if tree.above[s] == tree.above[k]]
        shares = sum(tree.associations[s].shares for s in siblings)
        share = one.shares / shares if shares else 0
        above = tree.usage[tree.above[k]]
        used = tree.usage[k] / above if above else 0
        return 0 if share == 0 else math.inf if used == 0 else share / used

    children = [k for k in range(1, len(tree.above)) if tree.above[k] == place][::-1]
    children.sort(key=lambda k: (-level(k), tree.associations[k].user is None))
    before = None
    for number, k in enumerate(children):
        equal = tied if number == 0 else level(k) == before
        before = level(k)
        if tree.associations[k].user is None:
            ranked(tree, k, equal, state)
        else:
            state["rank"] = state["rank"] if equal else state["left"]
            state["left"] -= 1
            state[k] = state["rank"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)), max_size=14),
    st.lists(st.tuples(st.integers(0, 14), st.integers(1, 3)), max_size=6),
)
def test_ranks_are_those_of_the_definition(drawn, used_later):
    names, found = ["root"], []
    for number, (parent, shares, usage) in enumerate(drawn):
        above = names[parent % len(names)]
        if usage == 0:
            names.append(f"a{number}")
            found.append(Association(f"a{number}", parent=above, shares=shares))
        else:
            user = Association(above, f"u{number}", shares=shares, usage_s=2.0 ** (usage - 1) - 1)
            found.append(user)
    tree = ShareTree(accounts(*found))
    users = [k for k, one in enumerate(tree.associations) if one.user is not None]
    for which, amount in [(0, 0), *used_later]:
        tree.decay(0.5)
        tree.add(users[which % len(users)], amount)
        state = {"left": tree.users, "rank": tree.users}
        ranked(tree, 0, False, state)
        factors = tree.fair_tree() * tree.users
        assert [round(factors[k]) for k in users] == [state[k] for k in users]


def test_classic_shares_count_who_stands_before_in_the_list():
    conf = Conf(
        (), PARTITIONS, priority=replace(WEIGHTS, flags=frozenset({"NO_FAIR_TREE"})), database=True
    )
    tree = ShareTree(EXAMPLE)
    x1 = Member(tree.find("X", "x1"), "q")
    seen = []
    for heads in ({}, {"a": 9}):
        found = Multifactor(conf, EXAMPLE, tree, Sizes(10, 100, {}, {}), 0)
        tree.reset()
        runs = record(request("b"), number=5, account=x1, partitions=PARTITIONS)
        waits = record(
            request("a_1", array=ArrayTask("a", 1)), number=2, account=x1, partitions=PARTITIONS
        )
        found.at_submit(waits, 0)
        found.at_submit(runs, 0)
        found.started(runs, 0, {"cpu": 8})
        found.refresh(60, heads)
        seen.append(int(waits.priorities[0]))
    # A task of an array has started: what is left of it stands behind the one that runs.
    assert seen[1] < seen[0]


@pytest.mark.parametrize(("flags", "changed"), [((), True), (("INCR_ONLY",), False)])
def test_priorities_that_may_not_sink_are_no_change(flags, changed):
    found, _ = example(flags)
    assert found.refresh(1, {}) == changed
    assert found.refresh(DAY, {})  # its age has grown


def test_what_waits_of_an_array_is_as_large_as_the_task_tested_last(tmp_path):
    multifactor = "PriorityType=priority/multifactor\nPriorityWeightJobSize=1000\n"
    sockets = "SelectType=select/cons_tres\nSelectTypeParameters=CR_Socket\n"
    conf = conf_of(tmp_path, sockets + multifactor + FOUR)
    tasks = [job(f"a_{k}", 1, 60, 10, tasks=1, array=ArrayTask("a", k, 1)) for k in range(3)]
    _, jobs = run(conf, [job("first", 0, 30, 10, nodes=4), *tasks])
    assert {jobs[one.id].tested_cpus for one in tasks} == {4}
    assert [jobs[one.id].start_s for one in tasks] == sorted(jobs[one.id].start_s for one in tasks)
