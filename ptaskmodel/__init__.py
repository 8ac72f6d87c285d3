"""How long parallel applications take when they share a platform: the parallel-task model.

The public face: every name of ``__all__`` is loaded from its module on first use (PEP 562), so that
``import ptaskmodel`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    )

__version__ = "0.1.0"

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
    "__version__",
    "load_tasks",
    "load_platform",
    "Platform",
    "TaskRef",
    "TaskRecord",
    "Simulation",
    "Observer",
]

_HOMES = {
    "Delay": "ptaskmodel.workload.tasks",
    "DelayWork": "ptaskmodel.workload.tasks",
    "Execution": "ptaskmodel.workload.tasks",
    "Flow": "ptaskmodel.workload.tasks",
    "HomogeneousWork": "ptaskmodel.workload.tasks",
    "ParallelTask": "ptaskmodel.workload.tasks",
    "ParallelWork": "ptaskmodel.workload.tasks",
    "Sequence": "ptaskmodel.workload.tasks",
    "SequenceWork": "ptaskmodel.workload.tasks",
    "Observer": "ptaskmodel.engine.simulation",
    "Simulation": "ptaskmodel.engine.simulation",
    "TaskRecord": "ptaskmodel.engine.simulation",
    "TaskRef": "ptaskmodel.engine.simulation",
    "Platform": "ptaskmodel.platform",
    "load_platform": "ptaskmodel.platform",
    "load_tasks": "ptaskmodel.workload",
    "Task": "ptaskmodel.workload.tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
