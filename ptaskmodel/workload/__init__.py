"""Workloads: tasks, jobs and traces, their works, and the readers of their files."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.workload.formats.tasks_json": ("load_tasks",),
    "ptaskmodel.workload.loops": ("closed_loop",),
    "ptaskmodel.workload.tasks": (
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

__all__, __getattr__, __dir__ = face(__name__, NAMES)
