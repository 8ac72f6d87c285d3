"""Make parallel tasks: from traces of programs, collectives, PDGEMM, and interference."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.apps.collectives": (
        "all_to_all",
        "allgather",
        "allreduce",
        "broadcast",
        "bytes_between",
        "Communication",
        "join",
        "reduce",
    ),
    "ptaskmodel.apps.interference": (
        "connection_work",
        "interference_tasks",
        "OnOff",
        "TwoGroups",
    ),
    "ptaskmodel.apps.pdgemm": (
        "Pdgemm",
        "place",
    ),
    "ptaskmodel.apps.programs": (
        "program",
        "Size",
    ),
    "ptaskmodel.apps.trace_works": (
        "compare_in_company",
        "InCompany",
        "phases_at_collectives",
        "windows",
    ),
    "ptaskmodel.mpi.traffic": ("bundle",),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
