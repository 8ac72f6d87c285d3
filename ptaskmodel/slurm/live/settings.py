"""The slurm.conf of a live run: the user's, with the processes and directories of the run."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ptaskmodel.errors import SlurmError
from ptaskmodel.files import AnyPath
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf.facts import LINEAR, Conf
from ptaskmodel.slurm.conf.lines import Pair, read_lines
from ptaskmodel.slurm.conf.values import hosts

CLUSTER = "ptaskmodel"
# How keys begin that are of the site where the file comes from: daemons, places, hardware.
SITE = (
    "accountingstorage",
    "acctgather",
    "allowspecresources",
    "auth",
    "backup",
    "bcast",
    "burstbuffer",
    "clifilter",
    "clustername",
    "communication",
    "control",
    "corespecplugin",
    "cpufreq",
    "cred",
    "cryptotype",
    "debugflags",
    "disablerootjobs",
    "eiotimeout",
    "extsensors",
    "federation",
    "gpufreq",
    "groupupdate",
    "healthcheck",
    "interactivestep",
    "jobacct",
    "jobcomp",
    "jobcontainer",
    "jobcredential",
    "jobfileappend",
    "jobsubmit",
    "launch",
    "logtime",
    "mail",
    "mcs",
    "mpi",
    "nodefeatures",
    "plugindir",
    "plugstack",
    "power",
    "prep",
    "privatedata",
    "proctrack",
    "propagate",
    "rebootprogram",
    "reconfigflags",
    "resume",
    "returntoservice",
    "routeplugin",
    "salloc",
    "sbcast",
    "schedulerport",
    "scron",
    "slurmctld",
    "slurmd",
    "slurmsched",
    "slurmuser",
    "srun",
    "statesave",
    "suspend",
    "switchtype",
    "task",
    "tmpfs",
    "track",
    "treewidth",
    "unkillable",
    "usepam",
    "usespank",
    "vsize",
    "x11",
)
KEPT = ("accountingstorageenforce", "accountingstoragetres")
# What Slurm does when a job begins and ends counts, not what is done then.
# Of these, what they decide is taken from the facts.
TAKEN = ("clustername", "accountingstoragetype", "slurmdtimeout", "returntoservice")
PROGRAMS = ("epilog", "epilogslurmctld", "prolog", "prologslurmctld")
IGNORED_PROGRAMS = ("prologflags", "prologepilogtimeout", "taskprolog", "taskepilog")
NODE_KEYS = ("nodeaddr", "nodehostname", "bcastaddr", "port", "reason")
NO_ACCOUNTS = "accounting_storage/none"
GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run lives: its directory, the loopback's address and ports that it has for itself.

    ports: of slurmctld, slurmdbd, and then of the nodes' daemons.
    """

    directory: Path
    address: str
    ports: int
    notes: list[str] = field(default_factory=list)

    @property
    def controller_port(self) -> int:
        return self.ports

    @property
    def database_port(self) -> int:
        return self.ports + 1

    @property
    def node_port(self) -> int:
        return self.ports + 2


@reader(SlurmError)
def slurm_conf(path: AnyPath, account: Account, conf: Conf, place: Place, *, pings: bool) -> str:
    """The text of a run's slurm.conf.

    conf: what the file at ``path`` says. account: of it. pings: whether nodes that do not answer go
    down.
    Raises SlurmError.
    """
    lines: list[str] = []
    dropped: dict[str, None] = {}
    port = place.node_port
    given: set[str] = set()
    for pairs in read_lines(path, account):
        kind = pairs[0].key.lower()
        if kind == "nodename":
            line, port = _node_line(pairs, place.address, port)
            lines.append(line)
        elif kind in ("partitionname", "nodeset", "downnodes", "frontendname"):
            lines.append(_line(pairs))
        else:
            for pair in pairs:
                key = pair.key.lower()
                if key in PROGRAMS and pair.value.lower() not in ("", "(null)", "none"):
                    lines.append(f"{pair.key}=/bin/true")
                elif not _is_of_site(key):
                    lines.append(_line([pair]))
                    given.add(key)
                elif key not in TAKEN:
                    dropped.setdefault(pair.key)
    if dropped:
        some = ", ".join(list(dropped)[:6]) + (", ..." if len(dropped) > 6 else "")
        place.notes.append(f"{len(dropped)} keys of the site are set aside: {some}")
    kinds = sorted({one.name for line in conf.nodes for one in line.gres})
    ours = _ours(conf, place, pings) | ({"GresTypes": ",".join(kinds)} if kinds else {})
    lines += [f"{key}={value}" for key, value in ours.items() if key.lower() not in given]
    return "\n".join(lines) + "\n"


def _is_of_site(key: str) -> bool:
    if key in PROGRAMS or key in IGNORED_PROGRAMS:
        return True
    return key.startswith(SITE) and key not in KEPT


def _line(pairs: list[Pair]) -> str:
    return " ".join(
        f'{pair.key}="{pair.value}"' if " " in pair.value else f"{pair.key}={pair.value}"
        for pair in pairs
    )


def _node_line(pairs: list[Pair], address: str, port: int) -> tuple[str, int]:
    """A NodeName line with addresses of ours, and the next free port."""
    kept = [pair for pair in pairs if pair.key.lower() not in NODE_KEYS]
    if pairs[0].value.upper() == "DEFAULT":
        return _line(kept), port
    try:
        count = len(hosts(pairs[0].value))
    except ValueError as fault:
        raise SlurmError(f"{pairs[0].where}: NodeName: {fault}") from None
    last = port + count - 1
    ports = str(port) if count == 1 else f"[{port}-{last}]"
    where = f"NodeHostname=localhost NodeAddr={address} Port={ports}"
    return f"{_line(kept)} {where}", last + 1


def _ours(conf: Conf, place: Place, pings: bool) -> dict[str, object]:
    """What is needed to run here, and what costs time and decides nothing is off."""
    at, me = place.directory, getpass.getuser()
    database = conf.database
    return {
        "ClusterName": CLUSTER,
        "SlurmctldHost": f"localhost({place.address})",
        "SlurmctldPort": place.controller_port,
        "SlurmdPort": place.node_port,
        "SlurmUser": me,
        "SlurmdUser": me,
        "AuthType": "auth/none",
        "CredType": "cred/none",
        "StateSaveLocation": at / "state",
        "SlurmdSpoolDir": at / "spool/%n",
        "SlurmctldPidFile": at / "slurmctld.pid",
        "SlurmdPidFile": at / "slurmd.%n.pid",
        "SlurmctldLogFile": at / "log/slurmctld.log",
        "SlurmdLogFile": at / "log/slurmd.%n.log",
        "SlurmctldDebug": "debug",
        "SlurmdDebug": "info",
        "DebugFlags": "Backfill" if conf.select_type == LINEAR else "Backfill,CPU_Bind",
        "LogTimeFormat": "iso8601_ms",
        "ProctrackType": "proctrack/pgid",
        "TaskPlugin": "task/none",
        "SwitchType": "switch/none",
        "MpiDefault": "none",
        "ReturnToService": conf.return_to_service if pings else 2,
        "AccountingStorageType": "accounting_storage/slurmdbd" if database else NO_ACCOUNTS,
        "AccountingStorageHost": place.address,
        "AccountingStoragePort": place.database_port,
        "JobAcctGatherType": "jobacct_gather/none",
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": at / "log/ended.txt",
        "SlurmdParameters": "config_overrides",
        "TreeWidth": 65533,
        "SlurmdTimeout": conf.slurmd_timeout_s if pings else 0,
        "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
        "PropagateResourceLimits": "NONE",
        "MailProg": "/bin/true",
    }


def topology_conf(conf: Conf) -> str | None:
    """The topology.conf that the facts stand for, None if there are no switches."""
    if not conf.switches:
        return None
    lines = []
    for switch in conf.switches:
        below = ("Nodes", switch.nodes) if switch.nodes else ("Switches", switch.switches)
        lines.append(f"SwitchName={switch.name} {below[0]}={','.join(below[1])}")
    return "\n".join(lines) + "\n"


def gres_conf(conf: Conf, devices: Path) -> str | None:
    """A gres.conf with the counts that nodes have; None if they have none.

    GPUs count only if there are files for them: `devices`, with a number behind the name, see
    `most_gpus`.
    """
    lines = []
    for line in conf.nodes:
        first = 0
        for one in line.gres:
            kind = f" Type={one.type}" if one.type else ""
            amount = f"Count={one.count}"
            if one.name == GPU and one.count:
                amount = f"File={devices}[{first}-{first + one.count - 1}]"
                first += one.count
            lines.append(f"NodeName={','.join(line.names)} Name={one.name}{kind} {amount}")
    return "\n".join(lines) + "\n" if lines else None


def most_gpus(conf: Conf) -> int:
    """How many GPUs a node has at most."""
    counts = [sum(one.count for one in line.gres if one.name == GPU) for line in conf.nodes]
    return max(counts, default=0)


def environment(place: Place) -> Mapping[str, str]:
    """Of all programs of a run; nothing of the user's gets there."""
    return {
        "PATH": os.pathsep.join((str(place.directory / "bin"), "/usr/sbin:/usr/bin:/sbin:/bin")),
        "TZ": "UTC",
        "SLURM_CONF": str(place.directory / "slurm.conf"),
        "LC_ALL": "C",
    }
