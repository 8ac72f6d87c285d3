"""The priorities that a configuration asks for."""

from __future__ import annotations

from ptaskmodel.batch.slurm.accounts.facts import Accounts
from ptaskmodel.batch.slurm.accounts.fair_share import ShareTree
from ptaskmodel.batch.slurm.conf.facts import MULTIFACTOR, Conf
from ptaskmodel.batch.slurm.multifactor import Multifactor
from ptaskmodel.batch.slurm.priority import Basic, Sizes

Priorities = Basic | Multifactor


def priorities_of(
    conf: Conf, accounts: Accounts, tree: ShareTree, sizes: Sizes, began_s: int
) -> Priorities:
    """PriorityType's; began_s: when the controller starts, Unix seconds."""
    if conf.priority_type == MULTIFACTOR:
        return Multifactor(conf, accounts, tree, sizes, began_s)
    return Basic()
