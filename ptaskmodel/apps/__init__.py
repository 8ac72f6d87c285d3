"""Where parallel tasks come from: collectives, PDGEMM, interference, the two-group platform."""

from ptaskmodel.apps.collectives import (
    all_to_all,
    allgather,
    allreduce,
    broadcast,
    reduce,
)
from ptaskmodel.apps.communication import Communication, bytes_between, join
from ptaskmodel.apps.interference import OnOff, connection_work, interference_tasks
from ptaskmodel.apps.pdgemm import Pdgemm, place
from ptaskmodel.apps.two_groups import TwoGroups

__all__ = [
    "Communication",
    "OnOff",
    "Pdgemm",
    "TwoGroups",
    "all_to_all",
    "allgather",
    "allreduce",
    "broadcast",
    "bytes_between",
    "connection_work",
    "interference_tasks",
    "join",
    "place",
    "reduce",
]
