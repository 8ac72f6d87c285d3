"""Sharing of resources: problems, solvers and certificates, without platforms or time."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.sharing.allocation": (
        "Allocation",
        "Certificate",
        "verify",
    ),
    "ptaskmodel.sharing.arrays": (
        "LIMIT_BOUND",
        "LIMIT_NOTHING",
    ),
    "ptaskmodel.sharing.problem": ("SharingProblem",),
    "ptaskmodel.sharing.rules": ("RULES",),
    "ptaskmodel.sharing.solvers": (
        "bmf",
        "fairbottleneck",
        "fairbottleneck_corrected",
        "flow_maxmin",
        "maxmin",
        "proportional",
        "solve",
    ),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
