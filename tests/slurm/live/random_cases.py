"""Random configurations of Slurm as sites have them, with jobs for them.

    PYTHONPATH=tests python -m slurm.live.random_cases KIND SEED DIR

KIND: one of `sites.SITES` or `rarer_sites.RARER`, from whose menus each choice is drawn with the
case's seed.
"""

from __future__ import annotations

import csv
import io
import random
import sys
from collections.abc import Mapping
from pathlib import Path

from slurm.live.menus import PARTS, Menu, Site, rare
from slurm.live.rarer_sites import RARER
from slurm.live.sites import SITES

from ptaskmodel.slurm.conf.facts import LINEAR

N_JOBS = 60
COLUMNS = ("id", "submit", "nodes", "cores", "limit", "run", "user", "partition", "depend",
           "begin", "extra")  # fmt: skip
USERS = ("u1", "u2", "u3", "u4", "u5", "u6")
RUNS_S = (19, 44, 58, 87, 146, 233, 391, 733, 1460, 2920)
LIMITS_S = (300, 600, 1800, 3600, 7200)
# Options of SchedulerParameters that all sites may have.
SCHEDULER: Menu = {
    "bf_interval": (None, None, "20", "60", "90"),
    "bf_resolution": rare("30", "120", "300"),
    "bf_window": rare("60", "2880", times=6),
    "bf_max_job_test": rare("5", "20", "1000"),
    "bf_max_job_user": rare("3", times=10),
    "bf_max_job_part": rare("4", times=12),
    "bf_max_job_user_part": rare("2", times=15),
    "bf_max_job_assoc": rare("3", times=20),
    "bf_max_job_start": rare("2", times=12),
    "bf_max_job_array_resv": rare("1", "3", times=10),
    "bf_node_space_size": rare("6", times=15),
    "bf_min_age_reserve": rare("120", times=12),
    "bf_min_prio_reserve": rare("500", times=15),
    "bf_job_part_count_reserve": rare("1", "2", times=8),
    "bf_window_linear": rare("120", times=12),
    "bf_continue": rare("", times=3),
    "bf_busy_nodes": rare("", times=8),
    "bf_running_job_reserve": rare("", times=15),
    "bf_one_resv_per_job": rare("", times=12),
    "default_queue_depth": rare("3", "1000", times=8),
    "partition_job_depth": rare("2", "10", times=8),
    "sched_interval": rare("30", "120", times=8),
    "sched_min_interval": rare("1000000", times=8),
    "batch_sched_delay": rare("0", "10", times=8),
    "sched_max_job_start": rare("2", times=12),
    "defer": rare("", times=6),
    "assoc_limit_stop": rare("", times=12),
    "pack_serial_at_end": rare("", times=10),
    "kill_invalid_depend": rare("", times=6),
    "reduce_completing_frag": rare("", times=12),
    "max_array_tasks": rare("3", times=20),
    "preempt_youngest_first": rare("", times=8),
    "preempt_strict_order": rare("", times=8),
    "preempt_reorder_count": rare("2", times=8),
    "max_switch_wait": rare("60", times=8),
    "bf_licenses": (),
}
EVERY: Menu = {
    "KillWait": rare("10", "60"),
    "OverTimeLimit": rare("2", "5"),
    "CompleteWait": rare("10", times=12),
    "EnforcePartLimits": (None, None, "ANY", "ALL", "NO"),
    "JobRequeue": rare("0", times=5),
    "MinJobAge": rare("60", times=6),
    "Epilog": rare("/bin/true", times=5),
    "EpilogMsgTime": rare("0", times=10),
    "FirstJobId": rare("1000", times=6),
    "MaxArraySize": rare("4", times=15),
    "MaxJobCount": rare("40", times=25),
    "InactiveLimit": rare("120", times=10),
    "KillOnBadExit": rare("1", times=10),
    "ResvOverRun": rare("5", times=20),
}
KINDS = SITES | RARER
# What jobs that ask so for GPUs do not give: they would be refused.
WITHOUT = {
    "--cpus-per-gpu": ("-c",),
    "--mem-per-gpu": ("--mem",),
    "--ntasks-per-gpu": ("cores", "--ntasks-per-node"),
    "--gpus-per-task": ("--ntasks-per-node",),
}


def _given(draw: random.Random, menu: Menu) -> dict[str, str]:
    """What is drawn of a menu."""
    drawn = {key: draw.choice(choices) for key, choices in menu.items() if choices}
    return {key: value for key, value in drawn.items() if value is not None}


def _words(given: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" if value else key for key, value in given.items()]


def _node_lines(draw: random.Random, site: Site, units: str) -> tuple[int, int, list[str]]:
    """How many nodes and cores, and the lines of the nodes. units: SelectTypeParameters."""
    lines: list[str] = []
    nodes = cores = 0
    shape = {key: site.node[key] for key in ("Sockets", "CoresPerSocket")}
    alike = _given(draw, shape) if draw.random() < 0.7 else {}
    groups = draw.choice(site.groups)
    for _ in range(groups):
        count = draw.choice((3, 4, 6)) if groups > 1 else draw.choice((6, 8, 12))
        given = _given(draw, site.node) | alike
        if "Boards" in given:
            given["SocketsPerBoard"] = given.pop("Sockets")
        per_node = int(given.get("Sockets", given.get("SocketsPerBoard", "1")))
        per_node *= int(given["CoresPerSocket"])
        if "CR_Socket" in units:  # such a node would have no socket for jobs
            given.pop("CoreSpecCount", None)
        given["CPUs"] = str(per_node * int(given.get("ThreadsPerCore", "1")))
        lines.append(f"NodeName=n[{nodes + 1}-{nodes + count}] {' '.join(_words(given))}")
        nodes, cores = nodes + count, cores + count * per_node
    return nodes, cores, lines


def _partition_lines(draw: random.Random, site: Site, nodes: int) -> list[str]:
    lines = []
    for k, menu in enumerate(site.partitions):
        given = _given(draw, menu)
        first, last = PARTS[given["Nodes"]]
        if given["Nodes"] != "ALL":
            given["Nodes"] = f"n[{int(first * nodes) + 1}-{max(1, int(last * nodes))}]"
        default = " Default=YES" if k == 0 else ""
        lines.append(f"PartitionName=p{k} {' '.join(_words(given))}{default}")
    return lines


def _switch_lines(draw: random.Random, nodes: int) -> list[str]:
    lines, first = [], 1
    while first <= nodes:
        last = min(nodes, first + draw.choice((1, 2, 3)))
        lines.append(f"SwitchName=s{len(lines)} Nodes=n[{first}-{last}]")
        first = last + 1
    leaves = len(lines)
    if leaves > 3 and draw.random() < 0.5:
        half = leaves // 2
        lines.append(f"SwitchName=left Switches=s[0-{half - 1}]")
        lines.append(f"SwitchName=right Switches=s[{half}-{leaves - 1}]")
        return [*lines, "SwitchName=top Switches=left,right"]
    return [*lines, f"SwitchName=top Switches=s[0-{leaves - 1}]"]


def _account_lines(draw: random.Random, site: Site) -> list[str]:
    preempt = " Preempt=low" if "GraceTime" in site.limits else ""

    def limits(given: Mapping[str, str] | None = None) -> str:
        return " ".join(["", *_words(_given(draw, site.limits if given is None else given))])

    few = {key: site.limits[key] for key in ("GrpTRES", "GrpJobs") if key in site.limits}
    flags = draw.choice(("", "", " Flags=DenyOnLimit", " UsageFactor=2"))
    lines = [
        "add account a Fairshare=3" + limits(few),
        f"add account a1 parent=a Fairshare={draw.choice((1, 2))}",
        "add account a2 parent=a Fairshare=1" + limits(few),
        f"add account b Fairshare={draw.choice((1, 5))}",
        f"add qos low Priority=10{limits()}",
        f"add qos high Priority=100{limits()}{flags}{preempt}",
        f"add qos part Priority=0{limits()}",
    ]
    for user, account in zip(USERS, ("a1", "a1", "a2", "b", "b", "b"), strict=True):
        few = {key: site.limits[key] for key in ("MaxWall",) if key in site.limits}
        share = draw.choice(("1", "1", "2", "5", "parent"))
        jobs = draw.choice(("", "", "", " MaxJobs=3"))
        lines.append(
            f"add user {user} Account={account} Fairshare={share} QOS=normal,high,low "
            f"DefaultQOS=normal{jobs}{limits(few)}"
        )
    return lines


def _job(draw: random.Random, site: Site, k: int, cores: int) -> dict[str, str]:
    """A row of jobs.csv without its date; the cores it may take are left in `area`."""
    linear = site.jobs.get("-c") == ()
    run = draw.choice(RUNS_S)
    limit = max(60, int(run * draw.choice((0.6, 1, 1.2, 2, 4))))
    row = {"id": f"j{k}", "run": str(run), "user": draw.choice(USERS)}
    row["limit"] = str(draw.choice(LIMITS_S) if draw.random() < 0.3 else limit)
    options = _given(draw, site.jobs)
    if linear:
        row["nodes"] = options.pop("-N", None) or str(draw.choice((1, 1, 2, 2, 3, 4, 6)))
        options.pop("--ntasks-per-node", None)
        used = 8 * int(row["nodes"].split("-")[0])
    elif draw.random() < 0.65:
        row["cores"] = str(draw.choice((1, 1, 1, 2, 3, 4, 6, 8, 12, 20)))
        used = int(row["cores"])
    else:
        nodes = draw.choice((1, 2, 3))
        row["nodes"] = str(nodes) if draw.random() < 0.8 else f"{nodes}-{nodes + 2}"
        row["cores"] = str(nodes * draw.choice((1, 2, 3, 5)))
        used = int(row["cores"])
    if "--ntasks-per-node" in options:
        row.pop("cores", None)
        row.setdefault("nodes", "1")
    for name, others in WITHOUT.items():
        if name in options.get("", ""):
            for other in others:
                options.pop(other, None)
                row.pop(other, None)
            if "cores" not in row:
                row.setdefault("nodes", "1")
    row["area"] = str(min(used * int(options.get("-c", "1")), cores) * run)
    row["partition"] = options.pop("-p", "")
    if not row["partition"] and len(site.partitions) > 1 and draw.random() < 0.6:
        row["partition"] = f"p{draw.randrange(len(site.partitions))}"
    if "--begin" in options:
        row["begin"] = options.pop("--begin").removeprefix("now+")
    if "--deadline" in options:
        row["deadline"] = options.pop("--deadline")
    if "--mem" in options:
        options.pop("--mem-per-cpu", None)
    if "--array" in options:
        options.pop("--hold", None)
    if k and draw.random() < 0.08:
        kind = draw.choice(("afterany", "afterok", "after", "afternotok"))
        row["depend"] = f"{kind}:j{draw.randrange(k)}"
    if "--dependency" in options:
        row["depend"] = options.pop("--dependency")
    words = [options.pop("")] if "" in options else []
    words += [
        f"{key} '{value}'" if len(key) == 2 and value else f"{key}='{value}'" if value else key
        for key, value in options.items()
    ]
    row["extra"] = " ".join(words)
    return row


def _name_jobs(draw: random.Random, rows: list[dict[str, str]]) -> None:
    """Put jobs before into dependencies that leave them open."""
    for k, row in enumerate(rows):
        while "{j}" in row.get("depend", ""):
            name = rows[draw.randrange(k)]["id"] if k else ""
            row["depend"] = row["depend"].replace("{j}", name, 1) if k else ""


def _once(line: str) -> str:
    """A line of sacctmgr with the last of several flags or factors alone."""
    words = {word.partition("=")[0] if "=" in word else word: word for word in line.split()}
    return " ".join(words.values())


def case(kind: str, seed: int) -> dict[str, str]:
    """The texts of slurm.conf and jobs.csv, and of topology.conf and sacctmgr.txt if there are."""
    site, draw = KINDS[kind], random.Random(f"{kind} {seed}")
    given = _given(draw, EVERY | site.conf)
    drawn = _given(draw, SCHEDULER | {key: site.conf[key] for key in SCHEDULER if key in site.conf})
    given = {key: value for key, value in given.items() if key not in SCHEDULER}
    if not site.accounts:  # slurmctld would crash
        drawn.pop("assoc_limit_stop", None)
    if "MaxMemPerCPU" in given:  # sacctmgr would complain
        given.pop("MaxMemPerNode", None)
    if given["SelectType"] == LINEAR and given.get("SelectTypeParameters") != "CR_Memory":
        given.pop("SelectTypeParameters", None)  # slurmctld would not start
    if drawn:
        given["SchedulerParameters"] = ",".join(_words(drawn))
    lines = _words(given)
    nodes, cores, node_lines = _node_lines(draw, site, given.get("SelectTypeParameters", ""))
    lines += [*node_lines, *_partition_lines(draw, site, nodes)]
    texts: dict[str, str] = {}
    if site.tree:
        lines.insert(0, "TopologyPlugin=topology/tree")
        texts["topology.conf"] = "\n".join([*_switch_lines(draw, nodes), ""])
    if site.accounts:
        texts["sacctmgr.txt"] = "\n".join([*map(_once, _account_lines(draw, site)), ""])
    texts["slurm.conf"] = "\n".join([*lines, ""])
    rows = [_job(draw, site, k, cores) for k in range(N_JOBS)]
    work = sum(float(row.pop("area")) for row in rows)
    span = min(work / cores / draw.choice((0.8, 1.2, 1.8)), 12 * 3600.0)
    dates = sorted(round(draw.random() * span) for _ in rows)
    table = io.StringIO()
    columns = (*COLUMNS, "deadline") if "--deadline" in site.jobs else COLUMNS
    writer = csv.DictWriter(table, columns, restval="", lineterminator="\n")
    writer.writeheader()
    _name_jobs(random.Random(f"more {kind} {seed}"), rows)
    for date, row in zip(dates, rows, strict=True):
        row["submit"] = str(date)
        for name in ("begin", "deadline"):
            if name in row:
                row[name] = str(date + int(row[name]))
        if not site.accounts:
            row.pop("user")
        writer.writerow(row)
    texts["jobs.csv"] = table.getvalue()
    return texts


def write(kind: str, seed: int, place: Path) -> None:
    """Write the files of a case into the directory `place`."""
    place.mkdir(parents=True, exist_ok=True)
    for name, text in case(kind, seed).items():
        (place / name).write_text(text)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
