"""Simulate how long parallel applications take when they share a platform (parallel-task model).

This is the public interface. Each name is loaded from its module on first use, so that ``import
ptaskmodel`` is fast. `NAMES` lists the names by module (see `ptaskmodel.lazy`).
"""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.batch.options": ("BatchOptions",),
    "ptaskmodel.batch.run": (
        "BatchResult",
        "run_batch",
    ),
    "ptaskmodel.errors": (
        "PlatformError",
        "PTaskModelError",
        "RouteError",
        "SharingError",
        "SimulationError",
        "WorkloadError",
    ),
    "ptaskmodel.mpi.run": (
        "replay",
        "ReplayResult",
    ),
    "ptaskmodel.platform.facts": ("AvailabilityTrace",),
    "ptaskmodel.platform.platform": ("Platform",),
    "ptaskmodel.platform.reader.xml": ("load_platform",),
    "ptaskmodel.platform.topologies.dragonfly": ("Dragonfly",),
    "ptaskmodel.platform.topologies.fat_tree": ("FatTree",),
    "ptaskmodel.platform.topologies.torus": ("Torus",),
    "ptaskmodel.results.task_comparison": (
        "compare",
        "Comparison",
    ),
    "ptaskmodel.results.loading": (
        "load_results",
        "Results",
    ),
    "ptaskmodel.results.pages.report": ("write_report",),
    "ptaskmodel.results.pictures.catalogue": ("draw_results",),
    "ptaskmodel.runs.batch": (
        "batch_into",
        "BatchRun",
    ),
    "ptaskmodel.runs.scheduling_options": ("BatchWriting",),
    "ptaskmodel.runs.options": ("SimulationOptions",),
    "ptaskmodel.runs.simulate": (
        "simulate_into",
        "SimulationRun",
    ),
    "ptaskmodel.simulation.checkpoint": (
        "load_checkpoint",
        "save_checkpoint",
    ),
    "ptaskmodel.simulation.records": (
        "TaskRecord",
        "TaskRef",
    ),
    "ptaskmodel.simulation.simulation": (
        "Observer",
        "Simulation",
    ),
    "ptaskmodel.slurm.run": (
        "simulate_slurm",
        "SlurmRun",
    ),
    "ptaskmodel.workload.amounts": ("FieldError",),
    "ptaskmodel.workload.blocks": ("TaskBlock",),
    "ptaskmodel.workload.formats.tasks_json": ("load_tasks",),
    "ptaskmodel.workload.reading": (
        "read_workload",
        "workload_from_frame",
    ),
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
        "TraceWork",
    ),
}

__version__ = "0.1.0"
__all__, __getattr__, __dir__ = face(__name__, NAMES, "__version__")
