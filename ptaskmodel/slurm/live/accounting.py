"""Start slurmdbd and its database, for accounts, fair share and QOSs.

It also makes the users of a workload known to Slurm's processes if the machine lacks them.
"""

from __future__ import annotations

import getpass
import os
import pwd
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ptaskmodel.errors import cut, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.slurm.accounts.commands import PassedOver, calls_of, meaning
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.accounts.scripts import Variables, joined_lines, unrolled
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.live.cluster import Cluster
from ptaskmodel.slurm.live.processes import how
from ptaskmodel.slurm.live.programs import SQL, LiveFault
from ptaskmodel.slurm.live.settings import CLUSTER

TABLES = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
SECONDS = 120
# How long slurmdbd may take to be there, s of its own clock.
PATIENCE_S = 300.0
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
            for words in _calls(text):
                _tell(cluster, words)


def _calls(text: str) -> Iterator[list[str]]:
    """The words of each command of a script that changes something, for our cluster."""
    variables = Variables()
    for number, line in unrolled(joined_lines(text), variables, "the accounts"):
        try:
            for call in calls_of(variables.line(line)):
                if not isinstance(meaning(call, True), PassedOver):
                    yield [word for word in call.words if not word.startswith("cluster=")]
        except ValueError as fault:
            raise LiveFault(f"line {number} of the accounts: {fault}") from None


def _tell(cluster: Cluster, words: list[str]) -> None:
    answer = cluster.client("sacctmgr", "-i", *words)
    # It ends with 1 where nothing new was added.
    if answer.status not in (0, 1) or "error" in answer.text.lower():
        said = " ".join(answer.text.split())
        raise LiveFault(f"sacctmgr {' '.join(words)[:80]}: {said[:200]}")


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
