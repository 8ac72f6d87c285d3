"""What runs: tasks, their works, and the readers of task files."""

from ptaskmodel.workload.tasks import (
    Delay,
    DelayWork,
    Execution,
    Flow,
    HomogeneousWork,
    ParallelTask,
    ParallelWork,
    Sequence,
    SequenceWork,
    Task,
    Work,
)
from ptaskmodel.workload.tasks_json import load_tasks

__all__ = [
    "Delay",
    "DelayWork",
    "Execution",
    "Flow",
    "HomogeneousWork",
    "ParallelTask",
    "ParallelWork",
    "Sequence",
    "SequenceWork",
    "Task",
    "Work",
    "load_tasks",
]
