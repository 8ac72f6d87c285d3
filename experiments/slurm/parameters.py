"""What Jokanovic et al. varied: bf_interval, depth, and the number of nodes."""

from __future__ import annotations

from pathlib import Path

from common import Row, by_scheduler, configuration, ended, evenly, measures

from ptaskmodel.slurm.jobs.submissions import NODES, submissions_of
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.scaling import loaded

INTERVALS_s = (7, 15, 30, 60, 90)
DEPTHS = (20, 50, 100)
CHANGES = (-0.25, -0.125, 0.0, 0.125, 0.25)
LOADS = (0.9, 1.3, 2.0)  # at which nodes are varied, too: is it the queue?
AT_LOAD = "nodes at load "
HALF, HALF_LOADS = "of half", (2.0, 4.0)  # half the nodes, at the usual load and at these


def varied(log: str | Path, nodes: int, count: int, load: float) -> list[Row]:
    """A row a setting: means, and how far they are from those of 30 s, 100 jobs, all nodes."""
    settings = [("bf_interval", s, f"bf_interval={s}", 0.0) for s in INTERVALS_s]
    settings += [("bf_max_job_test", n, f"bf_interval=30,bf_max_job_test={n}", 0.0) for n in DEPTHS]
    usual = evenly(log, count, load, nodes)
    loads = {f"{AT_LOAD}{each:g}": loaded(usual, each / load) for each in LOADS}
    loads["nodes"] = usual
    for name in loads:
        settings += [(name, round(nodes * (1 + c)), "bf_interval=30", c) for c in CHANGES]
    halves = {HALF: usual} | {f"{HALF} at load {x:g}": loaded(usual, x / load) for x in HALF_LOADS}
    for name in halves:
        settings += [(name, round(nodes * (1 + c)), "bf_interval=30", c) for c in (0.0, -0.5)]
    rows = []
    for name, value, options, change in settings:
        workload = {**loads, **halves}.get(name, usual)
        size = round(nodes * (1 + change))
        conf = configuration(
            "SelectType=select/linear",
            f"SchedulerParameters={options},bf_window=4320",
            f"NodeName=n[1-{size}] CPUs=1",
            "PartitionName=p Nodes=ALL Default=YES",
        )
        most = (0.5 if name in halves else 0.75) * nodes
        fitting = workload.with_jobs(tuple(j for j in workload.jobs if j.num_hosts <= most))
        run = simulate_slurm(conf, submissions_of(fitting, conf, NODES).jobs, compiled=True)
        rows.append(
            {
                "setting": name,
                "value": value,
                **measures([run]),
                **by_scheduler(ended(run)),
                "tests": run.loop.statistics.tested,
            }
        )
    usuals = {"bf_interval": 30, "bf_max_job_test": 100, **dict.fromkeys((*halves, *loads), nodes)}
    for name, value in usuals.items():
        mine = [row for row in rows if row["setting"] == name]
        base = next(row for row in mine if row["value"] == value)
        for row in mine:
            for key in ("waiting_s", "response_s", "slowdown"):
                row[f"{key}_off_%"] = 100 * (row[key] / base[key] - 1)
    return rows
