"""Make parallel tasks: from traces of programs, collectives, PDGEMM, and interference."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.apps.collectives": (
        "Communication",
        "all_to_all",
        "allgather",
        "allreduce",
        "broadcast",
        "bytes_between",
        "join",
        "reduce",
    ),
    "ptaskmodel.apps.interference": (
        "OnOff",
        "TwoGroups",
        "connection_work",
        "interference_tasks",
    ),
    "ptaskmodel.apps.pdgemm": (
        "Pdgemm",
        "place",
    ),
    "ptaskmodel.apps.programs": (
        "Size",
        "program",
    ),
    "ptaskmodel.apps.trace_models": (
        "InCompany",
        "compare_in_company",
    ),
    "ptaskmodel.apps.trace_works": (
        "phases_at_collectives",
        "windows",
    ),
    "ptaskmodel.mpi.traffic": ("bundle",),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
