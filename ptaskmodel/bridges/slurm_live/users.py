"""Users of a workload, made known to Slurm where the machine does not know them."""

from __future__ import annotations

import pwd
from collections.abc import Iterable, Sequence

from ptaskmodel.batch.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.batch.slurm.requests.request import JobRequest
from ptaskmodel.bridges.slurm_live.faults import LiveFault
from ptaskmodel.errors import shown
from ptaskmodel.files import AnyPath

# Numbers that machines give to nobody, and that a container has.
FIRST, LAST = 61_184, 65_519


def users_of(requests: Sequence[JobRequest], accounts: AnyPath | None) -> list[str]:
    """The users of jobs and of a file of accounts, by name. Raises SlurmError."""
    found = {request.user for request in requests}
    if accounts is not None:
        found |= {one.user for one in read_accounts(accounts).associations}
    return sorted(name for name in found if name)


def passwd(users: Iterable[str]) -> str:
    """Lines as of /etc/passwd for those whom the machine does not know. Raises LiveFault."""
    lines = []
    number = FIRST
    for name in users:
        try:
            pwd.getpwnam(name)
        except KeyError:
            if not name.isprintable() or set(name) & set(":, /") or name.isdigit():
                raise LiveFault(
                    f"user {shown(name)}: give a name that a system could have"
                ) from None
            lines.append(f"{name}:x:{number}:{number}::/:/bin/sh\n")
            number += 1
    if number > LAST:
        raise LiveFault(f"there are {len(lines)} users; give at most {LAST - FIRST}")
    return "".join(lines)
