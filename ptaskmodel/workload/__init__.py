"""Workloads: tasks, jobs and traces, their works; read them from files, change and write them."""

from collections.abc import Mapping

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.workload.formats.tasks_json": ("load_tasks",),
    "ptaskmodel.workload.tasks": (
        "closed_loop",
        "Delay",
        "Execution",
        "Flow",
        "ParallelTask",
        "Sequence",
        "Task",
    ),
    "ptaskmodel.workload.works": (
        "DelayWork",
        "HomogeneousWork",
        "ParallelWork",
        "SequenceWork",
        "Work",
    ),
}

# Patterns of communication of the parallel tasks that replace delays (see `ptask_rule`).
PATTERNS: Mapping[str, str] = {
    "alltoall": "every host to every other, equal parts",
    "ring": "each host to the next",
    "stencil": "each host to its 4 neighbours on a torus as square as possible",
    "master": "the first host to each other and back",
}

__all__, __getattr__, __dir__ = face(__name__, NAMES, "PATTERNS")
