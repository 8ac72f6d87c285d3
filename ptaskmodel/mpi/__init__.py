"""Replay MPI applications: ranks on the engine, message by message."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.mpi.run": (
        "Replay",
        "ReplayResult",
        "hosts_in_file",
        "hosts_named",
        "hosts_of_ranks",
        "replay",
    ),
    "ptaskmodel.workload.formats.ti_trace": (
        "read_trace",
        "write_trace",
    ),
    "ptaskmodel.workload.traces": (
        "Trace",
        "trace_of_actions",
        "write_text_trace",
    ),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
