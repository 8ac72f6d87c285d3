"""Run a workload under a real Slurm: from a slurm.conf and jobs to the records of the jobs.

With accounts, fair share or QOSs, slurmdbd and its database run too, and users of the workload that
the machine lacks are made known to Slurm's processes.
"""

from __future__ import annotations

import getpass
import os
import pwd
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from ptaskmodel.batch.jobs.execution import DelayExecution, Execution
from ptaskmodel.errors import PTaskModelError, cut, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.slurm.accounts.commands import PassedOver, calls_of, meaning
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.accounts.scripts import Variables, joined_lines, unrolled
from ptaskmodel.slurm.conf.facts import Conf, Nodes, nodes_of
from ptaskmodel.slurm.conf.phases import Phases, of_virtual_clock
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.live import LiveOptions
from ptaskmodel.slurm.live.cluster import CONTROLLER, DIES, RESTARTS, Asked, Cluster, Failure
from ptaskmodel.slurm.live.jobs import Book
from ptaskmodel.slurm.live.processes import batches_of, how, sbatch_words
from ptaskmodel.slurm.live.programs import SQL, LiveFault, built, installed
from ptaskmodel.slurm.live.reading import LOADED, Event, in_order
from ptaskmodel.slurm.live.settings import CLUSTER, slurm_conf
from ptaskmodel.slurm.loop import LONGEST_S, Progress
from ptaskmodel.slurm.run import execution_on

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform


TABLES = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
SECONDS = 120
# How long slurmdbd may take to be there, s of its own clock.
PATIENCE_S = 300.0
# The table of what is counted, in which slurmctld would enter resources only when it comes up.
TRACKED = """create database slurm;
create table slurm.tres_table (creation_time bigint unsigned not null,
deleted tinyint default 0 not null, id int not null auto_increment, type tinytext not null,
name tinytext not null default '', primary key (id), unique index udex (type(20), name(20)))
auto_increment=1001;
"""
# Numbers that machines give to nobody, and that a container has.
FIRST, LAST = 61_184, 65_519


def start_accounting(cluster: Cluster, accounts: AnyPath | None) -> None:
    """Start the database and slurmdbd, and tell it of the accounts. Raises LiveFault."""
    socket = _start_database(cluster)
    _write_conf(cluster)
    cluster.start("slurmdbd", [str(cluster.path("bin", "slurmdbd")), "-D"], MYSQL_UNIX_PORT=socket)
    until = cluster.now + PATIENCE_S
    while (answer := cluster.client("sacctmgr", "-n", "list", "cluster")).status:
        if cluster.now > until:
            said = (answer.text.strip().splitlines() or ["nothing"])[-1]
            raise LiveFault(f"slurmdbd does not answer; sacctmgr says: {cut(said)}")
        cluster.advance(cluster.now + 1)
        time.sleep(0.02)  # the database is below the clock
    _tell(cluster, ["add", "cluster", CLUSTER])
    if accounts is not None:
        text = read_text(accounts)
        if text.lstrip("# \n").startswith(("Cluster -", "Parent -")):
            _load(cluster, text)
        else:
            for number, words in _calls(text):
                _tell(cluster, words, f"line {number} of the accounts: ")


def _calls(text: str) -> Iterator[tuple[int, list[str]]]:
    """The line and words of each command of a script that changes something, for our cluster."""
    variables = Variables()
    for number, line in unrolled(joined_lines(text), variables, "the accounts"):
        try:
            for call in calls_of(variables.line(line)):
                if not isinstance(meaning(call, True), PassedOver):
                    words = [word for word in call.words if not word.startswith("cluster=")]
                    yield number, words
        except ValueError as fault:
            raise LiveFault(f"line {number} of the accounts: {fault}") from None


def _tell(cluster: Cluster, words: list[str], where: str = "") -> None:
    answer = cluster.client("sacctmgr", "-i", *words)
    # It ends with 1 where nothing new was added, and so it does for an unknown DefaultQOS.
    text = answer.text.lower()
    if answer.status not in (0, 1) or "error" in text or "you gave a bad" in text:
        said = " ".join(answer.text.split())
        raise LiveFault(f"{where}sacctmgr {' '.join(words)[:80]}: {said[:200]}")


def _load(cluster: Cluster, text: str) -> None:
    """A dump, of whatever cluster, becomes that of ours."""
    lines = text.splitlines()
    for k, line in enumerate(lines):
        if line.startswith("Cluster -"):
            rest = line.partition(":")[2]
            lines[k] = f"Cluster - '{CLUSTER}'" + (f":{rest}" if rest else "")
    place = cluster.path("accounts.cfg")
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _tell(cluster, ["load", f"file={place}"])


def tracked(conf: str) -> str:
    """SQL that enters the resources of AccountingStorageTRES, which limits may name at once.

    conf: the text of a slurm.conf.
    """
    found = re.findall(r"(?im)^AccountingStorageTRES=([\w,:/.-]+)", conf)
    pairs = [name.partition("/") for name in ",".join(found).split(",") if "/" in name]
    rows = [f"(1, '{kind.lower()}', '{name}')" for kind, _, name in pairs]
    into = "insert ignore into slurm.tres_table (creation_time, type, name) values "
    return f"{TRACKED}{into}{', '.join(rows)};\n" if rows else ""


def _start_database(cluster: Cluster) -> str:
    """Start MariaDB with an empty database; its socket. There is no other way to it."""
    data, bin_ = cluster.path("data"), str(cluster.path("bin", "mariadbd"))
    data.mkdir()
    socket = str(cluster.path("db"))
    words = [
        *(bin_, "--no-defaults", f"--datadir={data}", "--innodb-buffer-pool-size=32M"),
        *("--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=8M"),
        *("--innodb-use-native-aio=0", f"--user={getpass.getuser()}"),
    ]
    environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    try:
        sql = "".join((SQL / f"{name}.sql").read_text(encoding="utf-8") for name in TABLES)
        sql += tracked(cluster.path("slurm.conf").read_text(encoding="utf-8"))
        subprocess.run(
            [*words, "--bootstrap", "--log-warnings=0"],
            input=f"create database mysql;\nuse mysql;\n{sql}",
            text=True,
            check=True,
            env=environment,
            capture_output=True,
            timeout=SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as fault:
        raise LiveFault(f"{bin_} cannot make a database: {fault}") from None
    words += [
        *("--skip-grant-tables", "--skip-networking", f"--socket={socket}"),
        f"--pid-file={cluster.path('db.pid')}",
    ]
    leashed: Mapping[str, str] = environment | {"LD_PRELOAD": str(cluster.path("bin", "clock.so"))}
    pid = cluster.processes.start("mariadbd", words, leashed, cluster.path("out", "mariadbd"))
    until = time.monotonic() + SECONDS
    while not Path(socket).exists():
        for ended in cluster.processes.ended():
            if ended.pid == pid:
                raise LiveFault(f"mariadbd {how(ended.status)}")
        if time.monotonic() > until:
            raise LiveFault("mariadbd does not come up")
        time.sleep(0.01)
    assert cluster.clock is not None
    cluster.clock.touched()
    return socket


def _write_conf(cluster: Cluster) -> None:
    values = {
        "DbdHost": "localhost",
        "DbdAddr": cluster.place.address,
        "DbdPort": cluster.place.database_port,
        "SlurmUser": getpass.getuser(),
        "AuthType": "auth/none",
        "LogFile": cluster.path("log", "slurmdbd.log"),
        "PidFile": cluster.path("slurmdbd.pid"),
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": getpass.getuser(),
        "StorageLoc": "slurm",
        "CommunicationParameters": "NoInAddrAny",
        "DebugLevel": "info",
    }
    place = cluster.path("slurmdbd.conf")
    place.touch(mode=0o600)
    place.write_text("".join(f"{key}={value}\n" for key, value in values.items()))


def users_of(requests: Sequence[JobRequest], accounts: AnyPath | None) -> list[str]:
    """The users of jobs and of a file of accounts, by name. Raises SlurmError."""
    found = {request.user for request in requests}
    if accounts is not None:
        found |= {one.user for one in read_accounts(accounts).associations}
    return sorted(name for name in found if name)


def passwd(users: Iterable[str]) -> str:
    """Lines as of /etc/passwd for those whom the machine does not know. Raises LiveFault."""
    lines = []
    number = FIRST
    for name in users:
        try:
            pwd.getpwnam(name)
        except KeyError:
            if not name.isprintable() or set(name) & set(":, /") or name.isdigit():
                raise LiveFault(
                    f"user {shown(name)}; give a name that a system could have"
                ) from None
            lines.append(f"{name}:x:{number}:{number}::/:/bin/sh\n")
            number += 1
    if number > LAST:
        raise LiveFault(f"there are {len(lines)} users; give at most {LAST - FIRST}")
    return "".join(lines)


# Wall time between two words on how far a run is.
TELL_EVERY_S = 0.5
FAREWELL = "ptaskmodel: slurm-live was killed: Slurm's processes have been ended"


@dataclass(frozen=True, slots=True, eq=False)
class LiveRun:
    """What became of the jobs, in order of submission; dates in records are Unix seconds.

    phases: with date 0, and when the scheduler came up. events: what slurmctld's log says.
    simulated_s: the last date. wall_s: how long it took. statistics: of the clock. stopped: why it
    ended before its time, None if it ran to its end. cpus: how many each job had, by id.
    """

    conf: Conf
    nodes: Nodes
    phases: Phases
    jobs: tuple[JobRecord, ...]
    events: tuple[Event, ...]
    version: str
    simulated_s: float
    wall_s: float
    statistics: dict[str, int]
    cpus: dict[str, int]
    stopped: LiveFault | None = None
    notes: tuple[str, ...] = field(default=())

    def cpus_of(self, job: JobRecord) -> int:
        """How many CPUs a job had."""
        return self.cpus.get(job.id, 0)


def run_live(
    conf_path: AnyPath,
    requests: Sequence[JobRequest],
    *,
    accounts: AnyPath | None = None,
    platform: Platform | None = None,
    execution: Execution | None = None,
    options: LiveOptions | None = None,
    on_end: Callable[[JobRecord], None] | None = None,
    kept: str | None = None,
    progress: Progress | None = None,
) -> LiveRun:
    """Run jobs under a real Slurm until every job has ended.

    conf_path: the slurm.conf. requests: the jobs. options: None: the default ones. platform: its
    hosts are the nodes (see `execution_on`). execution: how long jobs run, if neither the platform
    nor their works say so. accounts: a file of commands of sacctmgr, or a dump. on_end: called when
    a job ends; kept: says where it keeps them, in case this process is killed. progress:
    called now and then with the time (s), the jobs that have ended and those that wait.

    Raises LiveFault if Slurm cannot run here, SlurmError for the slurm.conf. What stops it later is
    in the result.
    """
    options = options or LiveOptions()
    conf = read_conf(conf_path)
    has, parts = installed(database=conf.database), built()
    nodes = nodes_of(conf)
    if execution is None:
        limitless = DelayExecution(limited=False)
        execution = limitless if platform is None else execution_on(platform, conf)
    began = time.monotonic()
    cluster = Cluster(
        conf,
        nodes,
        has,
        parts,
        t0=options.t0,
        settle_s=options.settle_s,
        slack_us=options.slack_us,
        express=options.express,
        farewell=FAREWELL if kept is None else f"{FAREWELL}; {kept}",
    )
    try:
        book = Book(conf, nodes, cluster, execution, on_end)
        _configure(cluster, conf_path, requests, accounts, options)
        if conf.database:
            start_accounting(cluster, accounts)
        cluster.boot()
        stopped = _driven(_Run(cluster, book, requests, options, progress))
        loaded = (e.date_s for e in book.events if e.who == LOADED)
        assert cluster.clock is not None
        return LiveRun(
            conf,
            nodes,
            of_virtual_clock(options.t0, next(loaded, options.t0 - options.settle_s) - options.t0),
            tuple(book.records[r.id] for r in requests if r.id in book.records),
            in_order(book.events),
            has.version,
            cluster.now,
            time.monotonic() - began,
            cluster.clock.statistics,
            {record.id: book.cpus_of(record) for record in book.records.values()},
            stopped,
            tuple(cluster.place.notes),
        )
    finally:
        cluster.close()


def _configure(
    cluster: Cluster,
    conf_path: AnyPath,
    requests: Sequence[JobRequest],
    accounts: AnyPath | None,
    options: LiveOptions,
) -> None:
    """Lay down a configuration and the users that it needs."""
    conf, place = cluster.conf, cluster.place
    cluster.configure(slurm_conf(conf_path, conf, place, pings=bool(options.failures)))
    users = users_of(requests, accounts if conf.database else None)
    if users and os.getuid() != 0:
        if conf.database:
            raise LiveFault("users with accounts need root; run it as root, or without slurmdbd")
        me = getpass.getuser()
        place.notes.append(f"all jobs are those of {me}: only root runs those of others")
    cluster.path("users").write_text(passwd(users), encoding="utf-8")


def _driven(run: _Run) -> LiveFault | None:
    """Run to the end; what stopped it before, if anything did."""
    try:
        run.go()
    except PTaskModelError as fault:
        over = f"{run.book.over} of {len(run.requests)} jobs are over, and kept"
        return LiveFault(f"at {run.cluster.now:.3f} s: {fault}; {over}")
    return None


class _Run:
    """The loop: submissions and commands at their dates, until every job is over."""

    def __init__(
        self,
        cluster: Cluster,
        book: Book,
        requests: Sequence[JobRequest],
        options: LiveOptions,
        progress: Progress | None,
    ) -> None:
        self.cluster = cluster
        self.book = book
        self.options = options
        self.batches = list(batches_of(requests))[::-1]
        self.commands = sorted(
            ((c.date_s, k, c.action) for k, r in enumerate(requests) for c in r.commands),
            reverse=True,
        )
        self.requests = requests
        self.failures = list(options.failures)[::-1]
        self.users = os.getuid() == 0
        # Of sbatch, who tries again where Slurm has too many jobs.
        self.asked: list[tuple[Asked, Sequence[JobRequest]]] = []
        self.progress = progress
        self._told = time.monotonic()
        # When something last happened to a job before some waited for usage to decay.
        self._decays_since: float | None = None

    def go(self) -> None:
        book = self.book
        while True:
            submit = self.batches[-1][0].submit_s if self.batches else inf
            command = self.commands[-1][0] if self.commands else inf
            failure = self.failures[-1].date_s if self.failures else inf
            due = min(submit, command, failure)
            self._hear_sbatch()
            if due == inf and not self.asked and not book.still_there():
                return
            if due == inf and not self.asked and not book.running():
                due = book.last_s + self._patience_s()
            self._tell()
            if not book.advance(due):
                continue
            if submit == due:
                self._submit()
            elif command == due:
                self._command()
            elif failure == due:
                self._fail(self.failures.pop())
            elif book.last_s + self._patience_s() <= due:
                book.note_reasons()
                if self._decays_since == book.last_s or not book.waits_for_decay():
                    return  # what still waits does so for ever
                self._decays_since = book.last_s

    def _patience_s(self) -> float:
        """How long nothing may happen until the jobs that wait do so for ever, s."""
        decays = self._decays_since == self.book.last_s
        return max(self.options.idle_s, LONGEST_S) if decays else self.options.idle_s

    def _tell(self) -> None:
        if self.progress is not None and time.monotonic() - self._told >= TELL_EVERY_S:
            self._told = time.monotonic()
            self.progress(self.cluster.now, self.book.over, self.book.queued())

    def _submit(self) -> None:
        batch = self.batches.pop()
        words = sbatch_words(batch, self._text, self.book.numbers)
        if batch[0].user is not None and self.users:
            words.append(f"--uid={batch[0].user}")
        script = self.cluster.path("out", "job.sh")
        script.write_text(f"#!{self.cluster.path('bin', 'job')} {self.cluster.sleepers.name}\n")
        asked = self.cluster.ask(
            *("sbatch", "--parsable", "--output=/dev/null", "--chdir=/"),
            *(*words, str(script)),
        )
        self.asked.append((asked, batch))
        self._hear_sbatch()

    def _hear_sbatch(self) -> None:
        """Take note of what became of jobs that were submitted."""
        waiting = []
        for asked, batch in self.asked:
            answer = self.cluster.answer(asked)
            if answer is None:
                waiting.append((asked, batch))
                continue
            lines = answer.text.strip().splitlines() or ["refused"]
            number = lines[-1].split(";")[0] if answer.status == 0 else ""
            if number.isdigit():
                self.book.submitted(batch, int(number))
            else:
                self.book.refused(batch, lines[-1])
        self.asked = waiting

    def _command(self) -> None:
        _, which, action = self.commands.pop()
        number = self.book.number_of(self.requests[which])
        if number is None:
            return
        words = ("scancel", number) if action == "cancel" else ("scontrol", action, number)
        self.cluster.client(*words)

    def _fail(self, failure: Failure) -> None:
        """A daemon dies at once, or is started with what it left."""
        cluster, controller = self.cluster, failure.daemon == CONTROLLER
        name = CONTROLLER if controller else f"slurmd.{failure.daemon}"
        if failure.what in (DIES, RESTARTS) and cluster.running(name):
            cluster.kill(name)
            if not controller:
                self.book.node_died(failure.daemon)
        if failure.what != DIES and not cluster.running(name):
            if controller:
                cluster.start_controller(again=True)
            else:
                cluster.start_node(failure.daemon)

    def _text(self, date_s: float) -> str:
        date = datetime.fromtimestamp(self.options.t0 + int(date_s), UTC)
        return date.strftime("%Y-%m-%dT%H:%M:%S")
