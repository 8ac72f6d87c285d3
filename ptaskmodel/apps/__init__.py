"""Where parallel tasks come from: traces of programs, collectives, PDGEMM; interference."""

from ptaskmodel.faces import face

NAMES = {
    "ptaskmodel.apps.collectives": (
        "all_to_all",
        "allgather",
        "allreduce",
        "broadcast",
        "reduce",
    ),
    "ptaskmodel.apps.communication": (
        "Communication",
        "bytes_between",
        "join",
    ),
    "ptaskmodel.apps.interference": (
        "OnOff",
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
    "ptaskmodel.apps.two_groups": ("TwoGroups",),
    "ptaskmodel.replay.bundles": ("bundle",),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
