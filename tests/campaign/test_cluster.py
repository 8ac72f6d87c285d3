"""A campaign on a Dask cluster gives the table that processes give, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ptaskmodel.campaign import Campaign, Cluster, dask_cluster, dask_pool, plan_of, write_table
from ptaskmodel.campaign.store import Store
from ptaskmodel.cli import main
from ptaskmodel.errors import CampaignError

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")

ROOT = Path(__file__).resolve().parents[2]
STUDY = """
import os, signal, time
from pathlib import Path

from beside_study import SEVENTH

def measure(parameters):
    x = parameters["x"]
    with (Path(parameters["marks"]) / f"made-{x}").open("a") as file:
        file.write("x")
    if x == 2:
        print("two is too much", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if x == 3:
        raise ValueError("no three")
    if x == 4:
        (Path(parameters["marks"]) / "sleeper").write_text(str(os.getpid()))
        time.sleep(60)
    if x == 6:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    time.sleep(parameters["sleep_s"])
    return {"y": x * len(Path(parameters["file"]).read_text()) * SEVENTH}
"""


def study(place, levels, sleep_s=0.0):
    (place / "marks").mkdir(exist_ok=True)
    (place / "study.py").write_text(STUDY)
    (place / "beside_study.py").write_text("SEVENTH = 1 / 7\n")
    (place / "in.txt").write_text("input")
    text = (
        'run = "study.py:measure"\nfiles = ["file"]\ntimeout_s = 8\n'
        f'[parameters]\nfile = "in.txt"\nmarks = "{place / "marks"}"\nsleep_s = {sleep_s}\n'
        f"[factors]\nx = {levels}\n"
    )
    (place / "plan.toml").write_text(text)
    return plan_of(text, place, "plan")


def made(place):
    """How often each run was begun."""
    return {path.name[5:]: path.stat().st_size for path in (place / "marks").glob("made-*")}


def table(campaign, path):
    write_table(campaign.frame(every=True).drop(columns="wall_s"), path)
    return path.read_bytes()


def wait_until(holds):
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def dask():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as found:
        yield Cluster(found.scheduler_address)


def test_processes_a_cluster_and_merged_halves_give_the_same_table(tmp_path, dask):
    plan = study(tmp_path, [*range(10, 20), 2, 3])
    whole = Campaign.of(plan, tmp_path / "whole")
    assert whole.make(2) == (10, 2, 0)
    there = Campaign.of(plan, tmp_path / "there")
    assert there.make(on=dask) == (10, 2, 0)
    for k in (1, 2):
        half = Campaign.of(plan, tmp_path / f"half{k}", (k, 2))
        half.make(on=dask if k == 1 else None)
    merged = Campaign.of(plan, tmp_path / "merged")
    merged.store.begin(plan)
    merged.store.take_in([tmp_path / "half1", tmp_path / "half2"])
    tables = {table(one, tmp_path / "t.csv") for one in (whole, there, merged)}
    assert len(tables) == 1
    assert there.failures() == whole.failures()
    assert [error for _, error in there.failures()] == [
        "its process died twice (signal SIGKILL)",
        "ValueError: no three",
    ]
    killed = there.failures()[0][0]
    assert there.store.read(killed.id)["log"] == "two is too much\n"


def test_a_run_that_takes_too_long_is_ended_and_nobody_waits_behind_it(tmp_path, dask):
    campaign = Campaign.of(study(tmp_path, [4, *range(10, 20)]), tmp_path / "runs")
    made_in_turn = []
    campaign.make(on=dask, progress=lambda *said: made_in_turn.append(said[3].point["x"]))
    assert campaign.status() == (10, 1, 0)
    assert campaign.failures()[0][1] == "took longer than timeout_s = 8 s"
    assert made_in_turn[-1] == 4
    assert set(made(tmp_path).values()) == {1}


def test_a_run_that_kills_workers_is_given_up_and_none_beside_it(tmp_path, dask):
    campaign = Campaign.of(study(tmp_path, [*range(100, 130), 6], 0.02), tmp_path / "runs")
    assert campaign.make(on=dask) == (30, 1, 0)
    assert "its Dask workers died, tcp://" in campaign.failures()[0][1]
    counts = made(tmp_path)
    assert counts.pop("6") in (2, 3)  # first others of its part may have done it
    # One may have been in the making on each worker that died.
    assert sum(counts.values()) <= 30 + 1


def test_a_run_that_nobody_waits_for_any_more_is_ended(tmp_path, dask):
    study(tmp_path, [4])
    sleeper = tmp_path / "marks" / "sleeper"
    command = ["campaign", "run", str(tmp_path / "plan.toml"), "--on", dask.address]
    with subprocess.Popen([sys.executable, "-m", "ptaskmodel", *command]) as front:
        wait_until(lambda: sleeper.exists() and sleeper.read_text())
        front.kill()
    wait_until(lambda: not Path(f"/proc/{sleeper.read_text()}").exists())


def test_workers_that_see_no_file_of_ours_are_sent_them(tmp_path, dask, monkeypatch):
    plan = study(tmp_path, [*range(10, 30)])
    here = Campaign.of(plan, tmp_path / "here")
    here.make(1)
    sent = []
    content = dask_pool.content_of
    really = dask_pool.input_at
    monkeypatch.setattr(
        dask_pool, "input_at", lambda *given: really(*given)._replace(mark=(("elsewhere", 0, 0),))
    )
    monkeypatch.setattr(
        dask_pool, "content_of", lambda path: sent.append(path.name) or content(path)
    )
    monkeypatch.setattr(dask_pool, "TOKEN", ".of-another-machine")
    there = Campaign.of(plan, tmp_path / "there")
    assert there.make(on=dask) == (20, 0, 0)
    assert table(there, tmp_path / "t.csv") == table(here, tmp_path / "t.csv")
    assert 2 <= len(sent) <= 4  # an input and a function, to each worker once
    record = there.store.read(there.runs[0].id)
    assert record["run"] == "study.py:measure"
    assert record["parameters"] == there.runs[0].parameters


CACHING = """
import functools
from pathlib import Path

content = functools.lru_cache(lambda path: Path(path).read_text())

def measure(parameters):
    return {"y": float(content(parameters["file"]))}
"""


def test_what_a_worker_keeps_in_memory_is_not_older_than_the_campaign(tmp_path, dask):
    (tmp_path / "study.py").write_text(CACHING)
    text = 'run = "study.py:measure"\nfiles = ["file"]\n[parameters]\nfile = "in.txt"\n'
    for value in (1.0, 2.0):
        (tmp_path / "in.txt").write_text(str(value))
        campaign = Campaign.of(
            plan_of(f"{text}[factors]\nx = [1, 2, 3]", tmp_path, "plan"), tmp_path / "runs"
        )
        campaign.make(on=dask)
        assert list(campaign.frame()["y"]) == [value] * 3


def test_what_cannot_be_used_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 0.3)
    plan = str(study(tmp_path, [10]).folder / "plan.toml")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    for arguments, said in (
        (
            ["--on", "localhost"],
            "'localhost' is not a scheduler; give tcp://HOST:PORT",
        ),
        (["--on", "tls://127.0.0.1:1"], "give a CA, a certificate and a key with tls://"),
        (["--tls-key", "k.pem"], "belong to --on tls://"),
        (["--on", nobody, "--processes", "2"], "--processes starts processes here"),
        (["--on", nobody], "no Dask scheduler answers"),
    ):
        assert main(["campaign", "run", plan, *arguments]) == 2
        assert said in capsys.readouterr().err


def test_a_goodbye_that_takes_too_long_spoils_nothing(tmp_path, dask, monkeypatch):
    really = distributed.Client.close

    def late(client, timeout=None):
        really(client)
        if timeout is not None:  # as we ask; Dask itself asks once more when it forgets a client
            raise TimeoutError(f"timed out after {timeout} s.")

    monkeypatch.setattr(distributed.Client, "close", late)
    assert Campaign.of(study(tmp_path, [10]), tmp_path / "runs").make(on=dask) == (1, 0, 0)


class Timing:
    """A Dask cluster whose workers go on, and are heard, at moments drawn from a seed.

    It keeps Dask's order: what a worker has sent is heard before its death is, in one stream; what
    it has not sent dies with it.
    """

    id, status = "client", "running"

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pool = None
        self.stream, self.deaths, self.killer = [], [], 6
        self.parts, self.unsent, self.going_on = {}, {}, {}
        for name in "ab":
            self.join(name)

    def join(self, name):
        self.parts[name], self.unsent[name] = [], []
        self.going_on[name] = self.work(name)

    def nthreads(self):
        return dict.fromkeys(self.going_on, 1)

    def submit(self, function, part, *after, key, workers, **options):
        future = SimpleNamespace(key=key, status="pending", add_done_callback=lambda hear: None)
        future.cancel = lambda: setattr(future, "status", "cancelled")
        self.parts[workers[0]].append((part, future))
        return future

    def log_event(self, topic, event):
        self.stream.append((self.pool._hear, event))

    def work(self, name):
        """What a worker does; it sends what it said so far where it yields True."""
        while True:
            while not self.parts[name]:
                yield
            part, future = self.parts[name].pop(0)
            if future.status == "cancelled":
                continue
            say = self.stream if len(part.calls) == 1 else self.unsent[name]
            self.stream.append((self.pool._hear, {"part": part.key, "began": True}))
            for call in part.calls:
                yield
                if future.status == "cancelled" and self.random.random() < 0.5:
                    break
                if call.parameters["x"] == self.killer:
                    self.deaths.append(name)
                    return
                record = json.dumps({"id": call.id, "status": "done", "wall_s": 0.3})
                said = {"part": part.key, "run": call.id, "record": record, "kept": True}
                say.append((self.pool._hear, said))
            future.status = "finished" if future.status == "pending" else future.status
            self.unsent[name].append((self.pool._end, part.key))

    def step(self):
        """One worker goes on, or sends what it said."""
        name = self.random.choice(list(self.going_on))
        if self.random.random() < 0.3:
            self.stream += self.unsent[name]
            self.unsent[name].clear()
        elif next(self.going_on[name], "dead") == "dead":
            del self.going_on[name]
            self.join(f"{name}'")
            for action, worker in (("remove-worker", name), ("add-worker", f"{name}'")):
                self.stream.append((self.pool._see, {"action": action, "worker": worker}))


@pytest.mark.parametrize("seed", range(60))
def test_a_run_kills_three_workers_at_most_whatever_the_timing(tmp_path, monkeypatch, seed):
    """Once where others may have done it, then alone; the others are made, and none is charged."""
    monkeypatch.setattr(dask_pool, "STALE_S", -1.0)
    plan = study(tmp_path, [*range(10, 30), 6, *range(30, 34)])
    cluster = Timing(seed)
    cluster.pool = pool = dask_pool.ClusterPool(plan, Store(tmp_path), Cluster("tcp://127.0.0.1:1"))
    told = {}
    pool._client = cluster
    pool._tell = lambda run, status, took_s, error: told.setdefault(run.point["x"], []).append(
        status
    )
    pool._waiting.extend(plan.runs())
    pool._look()
    while pool._waiting or pool._flights:
        pool._hand_out()
        cluster.step()
        while cluster.stream and cluster.random.random() < 0.5:
            hear, what = cluster.stream.pop(0)
            hear(what)
    assert len(cluster.deaths) in (2, 3)
    assert told == {x: ["failed" if x == 6 else "done"] for x in (*range(10, 34), 6)}


def test_a_part_that_waits_behind_no_other_is_not_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_pool, "STALE_S", -1.0)
    plan = study(tmp_path, [10, 11, 12])
    pool = dask_pool.ClusterPool(plan, Store(tmp_path), Cluster("tcp://127.0.0.1:1"))
    pool._client = Timing(0)
    pool._waiting.extend(plan.runs())
    pool._look()
    pool._hand_out()
    slow, quick, behind = pool._shares.values()
    assert (slow.worker, quick.worker, behind.worker) == ("a", "b", "a")
    quick.future.status = "finished"
    quick.flights.clear()
    pool._end(quick.future.key)
    pool._hand_out()
    assert [share.worker for share in pool._shares.values()] == ["a", "b"]
    assert slow.future.key in pool._shares


def test_what_batches_of_messages_lose_charges_the_right_run(tmp_path):
    """Workers die before they have sent what they said, apart from what is to be sure."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        with distributed.Client(cluster) as client:
            client.run(lambda dask_worker: setattr(dask_worker.batched_stream, "interval", 60.0))
        campaign = Campaign.of(study(tmp_path, [10, 11, 6]), tmp_path / "runs")
        assert campaign.make(on=Cluster(cluster.scheduler_address)) == (2, 1, 0)
    assert made(tmp_path) == {"10": 1, "11": 1, "6": 2}


def test_another_version_is_refused(tmp_path, dask, monkeypatch):
    monkeypatch.setattr(dask_pool, "__version__", "0.0.1")
    campaign = Campaign.of(study(tmp_path, [10]), tmp_path / "runs")
    with pytest.raises(CampaignError, match=r"here it is 0.0.1; install the same"):
        campaign.make(on=dask)


# With certificates, and everything killed


def certificates(place):
    """A certificate that signs itself, and its key."""
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", "2", "-subj", "/CN=campaign", "-keyout", "key.pem", "-out", "c.pem"),
    ]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    return place / "c.pem", place / "key.pem"


class Machines:
    """A scheduler and two workers of their own."""

    def __init__(self, place):
        self.place = place
        self.certificate, self.key = certificates(place)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self.address = f"tls://127.0.0.1:{self.port}"
        self.processes = []

    def start(self):
        listening = ["--protocol", "tls", "--host", "127.0.0.1"]
        tls = [f"--tls-ca-file={self.certificate}", f"--tls-cert={self.certificate}"]
        tls += [f"--tls-key={self.key}", "--no-dashboard"]
        self.scheduler = self._run(
            "distributed.cli.dask_scheduler", *listening, "--port", self.port, *tls
        )
        self.workers = [
            self._run(
                "distributed.cli.dask_worker", self.address, *listening, *tls, "--no-nanny",
                "--nthreads", "1", "--local-directory", str(self.place / "local"),
            )
            for _ in range(2)
        ]  # fmt: skip

    def _run(self, module, *arguments, log="log.txt"):
        with (self.place / log).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments], stdout=log, stderr=log, cwd=self.place,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )  # fmt: skip
        self.processes.append(process)
        return process

    def campaign(self, *arguments):
        tls = ["--tls-ca", self.certificate, "--tls-cert", self.certificate, "--tls-key", self.key]
        command = ["campaign", *arguments, "--on", self.address, *map(str, tls)]
        return self._run("ptaskmodel", *command, log="front.txt")

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def machines(tmp_path):
    found = Machines(tmp_path)
    yield found
    found.end()


def kept(directory):
    """What is kept of each run."""
    index = Store(directory).index()
    return {index.line(k).run_id: index.line(k).text for k in range(len(index.ids))}


def wait_for(count, runs):
    wait_until(lambda: len(kept(runs)) >= count)


def test_whatever_is_killed_nothing_is_lost_or_made_twice(tmp_path, machines):
    plan = study(tmp_path, [*range(100, 160)], sleep_s=0.05)
    runs = tmp_path / "plan-runs"
    machines.start()
    first = machines.campaign("run", str(tmp_path / "plan.toml"))
    wait_for(8, runs)
    machines.workers[0].send_signal(signal.SIGKILL)
    wait_for(16, runs)
    first.kill()
    first.wait()
    before = kept(runs)
    second = machines.campaign("resume", str(tmp_path / "plan-runs"))
    wait_for(len(before) + 10, runs)
    machines.scheduler.send_signal(signal.SIGKILL)
    assert second.wait(60) == 2
    said = (tmp_path / "front.txt").read_text().splitlines()
    assert [line.partition("//")[0] for line in said] == ["ptaskmodel: error: tls:"]
    assert "the scheduler is gone" in said[0]
    for process in machines.workers:
        process.kill()
    before = kept(runs)
    assert main(["campaign", "resume", str(tmp_path / "plan-runs"), "--processes", "2"]) == 0
    assert kept(runs).items() >= before.items()
    undisturbed = Campaign.of(plan, tmp_path / "undisturbed")
    counts = made(tmp_path)
    assert len(counts) == 60
    assert sum(counts.values()) <= 60 + 5  # what was in the making when something was killed
    undisturbed.make(2)
    disturbed = Campaign.in_directory(tmp_path / "plan-runs")
    assert table(disturbed, tmp_path / "a.csv") == table(undisturbed, tmp_path / "b.csv")
