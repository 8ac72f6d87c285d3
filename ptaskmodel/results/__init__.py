"""Results of simulations: directories, tables, traces, pictures, comparisons and pages.

The names of what a command can write or draw are here, for its options.
"""

from __future__ import annotations

from collections.abc import Mapping

TRACE_FORMATS: Mapping[str, str] = {
    "csv": "a table for any tool",
    "parquet": "the same table, compact, for data frames",
    "paje": "for the tools that read Paje traces",
    "perfetto": "for the Perfetto UI",
}

TIMELINE_FORMATS = ("paje", "perfetto")

# By what the picture "topology" can be coloured.
COLOURS: Mapping[str, str] = {
    "mean": "mean use over the run",
    "peak": "highest use in an interval",
    "limiting": "time in which it limited somebody",
}

# By what the picture "gantt" can be coloured.
GANTT_COLOURS: Mapping[str, str] = {
    "slowdown": "contention slowdown",
    "state": "what became of it",
    "user": "user, of Slurm's jobs",
    "size": "how many hosts it has",
    "waiting": "how long it waited",
    "task": "a colour a task, if they are few",
}

PICTURES: Mapping[str, str] = {
    "gantt": "tasks on hosts over time",
    "progress": "how much of each task is done over time",
    "links": "what part of each link is used over time",
    "hosts": "what part of each host is used over time",
    "topology": "the platform coloured by use",
    "routes": "the platform coloured by how many flows cross each link, of `simulate --routes`",
    "queues": "the queues of links, and pauses, over time, of `simulate --network-level packets`",
    "slowdowns": "their distribution",
    "load": "hosts in use and the queue of a batch over time",
    "queue": "how long those in the queue have waited, utilisation and tuning over time",
    "waits": "how long jobs of a batch waited, by size, length and user",
    "reasons": "how many jobs of a simulated Slurm wait for which reason over time",
    "backfill": "what backfill of a simulated Slurm tested in each cycle, and how long it took",
    "power": "what hosts and links draw over time, and the energy of that",
    "ranges": "how long tasks take in the draws of `simulate --draws`: median, and 80 % of them",
    "ranks": "what each rank of a replay did when",
    "times": "how long each rank of a replay did what",
    "matrix": "who sent how much to whom in a replay",
}
