"""The data about hosts that a work needs before it can be bound to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ptaskmodel.errors import WorkloadError
from ptaskmodel.remarks import warn

SHOWN = 5


class HostFacts(NamedTuple):
    """Cores by host name, and the host of each storage."""

    cores: Mapping[str, int]
    storages: Mapping[str, str]

    def storage_host(self, storage: str) -> str:
        """The host of a storage; a name that the platform lacks is that of its only one.

        Raises WorkloadError if the platform has no storage, or none of this name among several.
        """
        if storage in self.storages:
            return self.storages[storage]
        hosts = sorted(set(self.storages.values()))
        none = f"the platform has no storage '{storage}'"
        if len(hosts) == 1:
            warn(
                f"{none}; its only storage, {hosts[0]}, is used (as with --storage "
                f"{storage}={hosts[0]})"
            )
            return hosts[0]
        if hosts:
            known = ", ".join(sorted(self.storages)[:SHOWN])
            more = f" and {len(self.storages) - SHOWN} more" if len(self.storages) > SHOWN else ""
            raise WorkloadError(
                f"{none}, whose storages are {known}{more}; give --storage {storage}={hosts[0]}"
            )
        raise WorkloadError(
            f"{none}; give one host the property role=storage, or give --storage {storage}=HOST"
        )
