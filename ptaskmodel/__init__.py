"""How long parallel applications take when they share a platform: the parallel-task model.

The public face: every name of ``__all__`` is loaded from its module on first use (PEP 562), so that
``import ptaskmodel`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptaskmodel.errors import (
        PlatformError,
        PTaskModelError,
        RouteError,
        SharingError,
        SimulationError,
        WorkloadError,
    )
    from ptaskmodel.platform import Platform, load_platform
    from ptaskmodel.simulation.refs import Observer, TaskRecord, TaskRef
    from ptaskmodel.simulation.simulation import Simulation
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
    from ptaskmodel.workload.tasks_json import load_tasks

__version__ = "0.1.0"

__all__ = [
    "Delay",
    "DelayWork",
    "Execution",
    "Flow",
    "HomogeneousWork",
    "Observer",
    "PTaskModelError",
    "ParallelTask",
    "ParallelWork",
    "Platform",
    "PlatformError",
    "RouteError",
    "Sequence",
    "SequenceWork",
    "SharingError",
    "Simulation",
    "SimulationError",
    "Task",
    "TaskRecord",
    "TaskRef",
    "WorkloadError",
    "__version__",
    "load_platform",
    "load_tasks",
]

_NAMES_BY_MODULE = {
    "ptaskmodel.simulation.simulation": ("Observer", "Simulation", "TaskRecord", "TaskRef"),
    "ptaskmodel.errors": (
        "PTaskModelError",
        "PlatformError",
        "RouteError",
        "SharingError",
        "SimulationError",
        "WorkloadError",
    ),
    "ptaskmodel.platform": ("Platform", "load_platform"),
    "ptaskmodel.workload.tasks": (
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
    ),
    "ptaskmodel.workload.tasks_json": ("load_tasks",),
}
_HOMES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
