"""Slurm's daemons on the loopback interface, under the virtual clock, in a temporary directory.

It also injects failures: daemons die and come back. The virtual clock is a memory page that all
processes of a run share; `Clock` drives it.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import resource
import select
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from math import ceil, inf
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.errors import SlurmError, cut, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf.facts import Conf, Nodes, nodes_of
from ptaskmodel.slurm.live.processes import Ended, Processes, Sleepers, how
from ptaskmodel.slurm.live.programs import Built, Installed, LiveFault, address
from ptaskmodel.slurm.live.reading import last_error
from ptaskmodel.slurm.live.settings import Place, environment, gres_conf, most_gpus, topology_conf

REACHED, HAPPENED, PAUSED, NOBODY = range(4)
NS = 1_000_000_000
NEVER = 2**63 - 1
# The driver comes back so often, real seconds, that an interruption is heard.
TURN_S = 0.1
# For how long something may run without a pause, real seconds, before the run is given up.
PATIENCE_S = 120.0
FILES = 65_536
_STATISTICS = ("wake_ups", "express", "of_one_process", "walks")


class Clock:
    """Dates of it are ns since 1970. Everything sleeps whenever a method that moves it returns.

    watched: a descriptor that can be read when something has happened. express: whether what can
    be known without looking at all tasks is not looked at; dates are the same.
    """

    def __init__(
        self,
        driver: Path,
        supervisor: int,
        first: int,
        watched: int,
        *,
        slack_us: float,
        express: bool,
    ) -> None:
        self._library = library = ctypes.CDLL(str(driver))
        # The driver keeps four files of each task open.
        self._limits = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        library.driver_open.restype = ctypes.c_void_p
        library.driver_now.restype = ctypes.c_int64
        self._page = os.memfd_create("ptaskmodel-clock")
        self._driver = ctypes.c_void_p(
            library.driver_open(
                self._page,
                ctypes.c_int64(first),
                ctypes.c_int64(round(slack_us * 1000)),
                supervisor,
                watched,
                max(soft, wanted) // 2,
                int(express),
            )
        )
        if not self._driver:
            raise LiveFault("there is no memory for the clock")
        self._busy_since: float | None = None

    @property
    def place(self) -> str:
        """Where processes find the page."""
        return f"/proc/{os.getpid()}/fd/{self._page}"

    @property
    def now(self) -> int:
        return int(self._library.driver_now(self._driver))

    @property
    def statistics(self) -> dict[str, int]:
        """How often a thread was woken, and what was looked at then."""
        found = (ctypes.c_uint64 * len(_STATISTICS))()
        self._library.driver_statistics(self._driver, found)
        return dict(zip(_STATISTICS, found, strict=True))

    def touched(self) -> None:
        """Note that something outside may have woken a process."""
        self._library.driver_touched(self._driver)

    def race(self, pids: Sequence[int]) -> None:
        """Of processes that would race to a date, let these `pids` wake in this order."""
        self._library.driver_racers(self._driver, (ctypes.c_int * len(pids))(*pids), len(pids))

    def watch_file(self, descriptor: int) -> None:
        """Something has happened too when this file grows beyond what was `seen`."""
        self._library.driver_grows(self._driver, descriptor)

    def seen(self, size: int) -> None:
        self._library.driver_seen(self._driver, ctypes.c_int64(size))

    def run(self, until: int | None) -> int:
        """Move to a date (None: without end), or to when something has happened; tell which.

        Raises LiveFault if something does not come to rest.
        """
        what = int(
            self._library.driver_run(
                self._driver,
                ctypes.c_int64(NEVER if until is None else until),
                ctypes.c_int64(int(TURN_S * NS)),
            )
        )
        busy = int(self._library.driver_busy(self._driver)) if what == PAUSED else 0
        if not busy:
            self._busy_since = None
            return what
        now = time.monotonic()
        if self._busy_since is None:
            self._busy_since = now
        if now - self._busy_since > PATIENCE_S:
            raise LiveFault(
                f"{_name_of(busy)} has not come to rest for {PATIENCE_S:g} s; run it again"
            )
        return what

    def close(self) -> None:
        if self._driver:
            self._library.driver_close(self._driver)
            self._driver = ctypes.c_void_p()
            resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)
            os.close(self._page)


def ns_of(seconds: float) -> int:
    """A length of time in ns, rounded up: what is due at a date is due when it is reached."""
    return ceil(seconds * NS - 1e-3)


def _name_of(task: int) -> str:
    try:
        return Path(f"/proc/{task}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return f"task {task}"


FOLDERS = ("bin", "state", "spool", "log", "out", "gpus")
CONTROLLER = "slurmctld"
# The clock begins so long before slurmctld, s; nodes must be up so long before the first date.
LEAD_S = 10
DATABASE_S = 600
READY_S = 2
# Clients that have no answer so long after they asked, s, wait to ask again.
ANSWERS_S = 0.01
# By this in its environment a daemon is known, and what it started.
MARK = "PTASKMODEL_DAEMON"
DIES, STARTS, RESTARTS = "dies", "starts", "restarts"
COLUMNS = ("time", "daemon", "what")
LARGEST = 1e12


class Answer(NamedTuple):
    """What a client of Slurm said."""

    status: int
    text: str


class Asked(NamedTuple):
    """A client of Slurm: its process, and the file of what it says."""

    pid: int
    output: Path


class Cluster:
    """Daemons of a configuration; see `running` for what they are used for.

    settle_s: how long before date 0 slurmctld comes up. t0: date 0 in Unix time.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        has: Installed,
        parts: Built,
        *,
        t0: int,
        settle_s: float,
        slack_us: float,
        express: bool,
        farewell: str,
    ) -> None:
        self.conf = conf
        self.nodes = nodes
        self.t0 = t0
        self._happened: Callable[[], None] = lambda: None
        self._let_pass: Callable[[float], bool] = self.advance
        self._watched: tuple[int, Path] | None = None
        self.directory = Path(tempfile.mkdtemp(prefix="ptaskmodel-slurm-"))
        self.directory.chmod(0o755)
        self._settle_s = settle_s
        self._counter = itertools.count()
        self._killed = ""  # the daemon that is killed on purpose now
        self._ended: dict[int, int] = {}  # status of clients, and of what was killed, by pid
        self._clients: set[int] = set()
        self._pids: dict[str, int] = {}  # of daemons
        # One processor for all: the driver and who it wakes take turns anyway, and so do those who
        # race elsewhere.
        self._processors = os.sched_getaffinity(0)
        mine = sorted(self._processors)[os.getpid() % len(self._processors)]
        os.sched_setaffinity(0, {mine})
        self.processes = Processes(self.directory, farewell)
        self.sleepers = Sleepers()
        self._epoll = select.epoll()
        self._epoll.register(self.processes, select.EPOLLIN)
        self._epoll.register(self.sleepers, select.EPOLLIN)
        self.clock: Clock | None = None
        try:
            lead_s = settle_s + (DATABASE_S if conf.database else LEAD_S)
            first = round((t0 - lead_s) * NS)
            self.clock = Clock(
                parts.driver,
                self.processes.supervisor,
                first,
                self._epoll.fileno(),
                slack_us=slack_us,
                express=express,
            )
            self._lay_out(has, parts)
            self.place = Place(self.directory, *address(2 + len(nodes)))
            self._environment = dict(environment(self.place)) | {
                "LD_PRELOAD": str(self.path("bin", "clock.so")),
                "PTASKMODEL_CLOCK": self.clock.place,
                "PTASKMODEL_ADDRESS": self.place.address,
                "PTASKMODEL_USERS": str(self.path("users")),
            }
        except BaseException:
            self.close()
            raise

    def path(self, *parts: str) -> Path:
        return self.directory.joinpath(*parts)

    def _lay_out(self, has: Installed, parts: Built) -> None:
        for name in FOLDERS:
            self.path(name).mkdir()
        # Daemons learn from their own names what they are, and Debian's have others.
        for name, path in has.programs.items():
            self.path("bin", name).symlink_to(path)
        for part in (parts.clock, parts.job):
            shutil.copy(part, self.path("bin", part.name))
            self.path("bin", part.name).chmod(0o755)

    def watch(
        self, path: Path, happened: Callable[[], None], advance: Callable[[float], bool]
    ) -> None:
        """Call something, all being quiet, when a file has grown or jobs have something to say.

        advance: lets time pass while a client runs.
        """
        assert self.clock is not None
        path.touch()
        self._watched = (os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)
        self._happened = happened
        self._let_pass = advance
        self.clock.watch_file(self._watched[0])

    # --- jobs -------------------------------------------------------------------------------

    def end_job(self, number: int, code: int) -> None:
        """Let the script of a job end."""
        assert self.clock is not None
        self.sleepers.end(number, code)
        self.clock.touched()

    def let_ignore_term(self, number: int) -> None:
        """Let the script of a job ignore SIGTERM."""
        assert self.clock is not None
        self.sleepers.ignore_term(number)
        self.clock.touched()

    def clean_in_order(self, names: Sequence[str]) -> None:
        """Let nodes, `names`, that would race to be clean of killed jobs be so in this order."""
        assert self.clock is not None
        pids = [self._pids.get(f"slurmd.{name}", 0) for name in names]
        self.clock.race([pid for pid in pids if pid])

    # --- dates ------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The date, s from date 0."""
        assert self.clock is not None
        return (self.clock.now - self.t0 * NS) / NS

    def _date(self, seconds: float) -> int:
        return self.t0 * NS + ns_of(seconds)

    def settle(self) -> None:
        """Let all come to rest; no time passes."""
        assert self.clock is not None
        while not self._run(self.clock.now):
            pass

    def advance(self, until: float) -> bool:
        """Let time pass until a date, or until something has happened; whether it is that date.

        Raises LiveFault if a daemon has ended or something does not come to rest.
        """
        return self._run(None if until == inf else self._date(until))

    def _run(self, date: int | None) -> bool:
        assert self.clock is not None
        what = self.clock.run(date)
        for ended in self.processes.ended():
            self._note(ended)
        if what == HAPPENED:
            self._happened()
            if self._watched is not None:
                self.clock.seen(self._watched[1].stat().st_size)
        elif what == NOBODY:
            raise LiveFault("no process of Slurm waits for anything any more")
        return what == REACHED

    def _note(self, ended: Ended) -> None:
        if ended.pid not in self._clients and self._killed != ended.name:
            why = last_error(self.path("log", f"{ended.name}.log"))
            why = why or last_error(self.path("out", ended.name))
            said = f": {why}" if why and ended.status >= 0 else ""
            raise LiveFault(cut(f"{ended.name} {how(ended.status)}{said}"))
        self._clients.discard(ended.pid)
        self._ended[ended.pid] = ended.status

    # --- processes --------------------------------------------------------------------------

    def start(self, name: str, words: Sequence[str], **more: str) -> int:
        """Start a daemon under the clock."""
        assert self.clock is not None
        environment = self._environment | more | {MARK: name}
        pid = self.processes.start(name, words, environment, self.path("out", name))
        self._pids[name] = pid
        self.clock.touched()
        return pid

    def client(self, *words: str) -> Answer:
        """Run a client of Slurm; time passes only if Slurm waits before it answers."""
        asked = self.ask(*words)
        while (answer := self.answer(asked)) is None:
            self._let_pass(inf)
        return answer

    def ask(self, *words: str) -> Asked:
        """Start a client of Slurm, of these `words`; it has its answer, or waits to ask again."""
        assert self.clock is not None
        name = f"{words[0]}.{next(self._counter)}"
        output = self.path("out", name)
        environment = self._environment | {"PTASKMODEL_ALONE": "1"}
        pid = self.processes.start(name, words, environment, output)
        self._clients.add(pid)
        self.clock.touched()
        soon = self.now + ANSWERS_S
        while pid not in self._ended and not self._let_pass(soon):
            pass
        return Asked(pid, output)

    def answer(self, asked: Asked) -> Answer | None:
        """What a client that was `asked` said at its end; None: it still waits."""
        if asked.pid not in self._ended:
            return None
        text = asked.output.read_text(encoding="utf-8", errors="replace")
        asked.output.unlink()
        return Answer(self._ended.pop(asked.pid), text)

    def configure(self, text: str) -> None:
        """Lay down a slurm.conf, and what goes with it."""
        self.path("slurm.conf").write_text(text, encoding="utf-8")
        for number in range(most_gpus(self.conf)):
            self.path("gpus", f"gpu{number}").touch()
        for name, content in (
            ("topology.conf", topology_conf(self.conf)),
            ("gres.conf", gres_conf(self.conf, self.path("gpus", "gpu"))),
        ):
            if content is not None:
                self.path(name).write_text(content, encoding="utf-8")

    def boot(self) -> None:
        """Start nodes and controller; time stands at date 0 minus a little."""
        for name in self.nodes.names:
            self.start_node(name)
        while not self.advance(-self._settle_s):
            pass
        self.start_controller()
        listed = 0  # sinfo prints no nodes that are in no partition
        for nodes in self.nodes.partitions.values():
            listed |= nodes
        wanted = (self.nodes.usable & listed).bit_count()
        while self._up() < wanted:
            if self.now > -READY_S:
                raise LiveFault(
                    f"{wanted - self._up()} of {wanted} nodes have not come up: "
                    f"{last_error(self.path('log', 'slurmctld.log')) or 'no reason is given'}"
                )
            self.advance(self.now + 1)

    def _up(self) -> int:
        answer = self.client("sinfo", "-h", "-N", "-r", "-t", "idle", "-o", "%N")
        return len(set(answer.text.split())) if answer.status == 0 else 0

    def start_node(self, name: str) -> None:
        """Start the daemon of a node."""
        self.path("spool", name).mkdir(exist_ok=True)
        slurmd, stepd = (str(self.path("bin", name)) for name in ("slurmd", "slurmstepd"))
        self.start(f"slurmd.{name}", [slurmd, "-D", "-N", name, "-d", stepd])

    def start_controller(self, *, again: bool = False) -> None:
        """Start slurmctld, afresh or with the state that it left."""
        words = [str(self.path("bin", CONTROLLER)), "-D"]
        self.start(CONTROLLER, words if again else [*words, "-i"])

    def kill(self, name: str) -> None:
        """Kill a daemon on purpose, with all that it started, and wait for its end."""
        assert self.clock is not None
        pid = self._pids.pop(name)
        self._killed = name
        self.processes.kill(f"{MARK}={name}")
        self.clock.touched()
        while pid not in self._ended:
            self.settle()
        self._killed = ""

    def running(self, name: str) -> bool:
        """Whether a daemon is there."""
        return name in self._pids

    def close(self) -> None:
        """End all processes and remove all files."""
        with contextlib.ExitStack() as stack:
            stack.callback(os.sched_setaffinity, 0, self._processors)
            stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
            if self.clock is not None:
                stack.callback(self.clock.close)
            stack.callback(self._epoll.close)
            if self._watched is not None:
                stack.callback(os.close, self._watched[0])
            stack.callback(self.sleepers.close)
            stack.callback(self.processes.end)


class Failure(NamedTuple):
    """daemon: the name of a node, whose slurmd is meant, or slurmctld. what: see above."""

    date_s: float
    daemon: str
    what: str


@reader(SlurmError)
def read_failures(path: AnyPath, account: Account, conf: Conf) -> tuple[Failure, ...]:
    """Return the failures of daemons in the CSV file at `path`, by time; conf: names the nodes.

    account: of the file. Lines that cannot be read are left out, and told; SlurmError is raised if
    most are such.
    """
    header, rows = account.table(read_text(path, error=SlurmError))
    if tuple(header) != COLUMNS:
        account.problem(f"give the columns {','.join(COLUMNS)}", 1)
        account.check()
    known = {*nodes_of(conf).names, CONTROLLER}
    found = []
    for line, (date, daemon, what) in rows:
        with account.row(line):
            try:
                date_s = float(date)
            except ValueError:
                date_s = -1.0
            if not 0 <= date_s <= LARGEST:
                raise SlurmError(f"time is {shown(date)}; give seconds, 0 or more")
            if daemon not in known:
                raise SlurmError(f"daemon is {shown(daemon)}; give a node or {CONTROLLER}")
            if what not in (DIES, STARTS, RESTARTS):
                raise SlurmError(f"what is {shown(what)}; give dies, starts or restarts")
            found.append(Failure(date_s, daemon, what))
    account.check_rows()
    return tuple(sorted(found, key=lambda failure: failure.date_s))
