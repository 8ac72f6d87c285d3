"""The data about hosts that a work needs before it can be bound to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptaskmodel.errors import WorkloadError


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Cores by host name, and the host of each storage."""

    cores: Mapping[str, int]
    storages: Mapping[str, str]

    def storage_host(self, storage: str) -> str:
        """Raises WorkloadError if the platform has no such storage."""
        if storage not in self.storages:
            raise WorkloadError(
                f"the platform has no storage '{storage}': give one host the property "
                f"role=storage, or say --storage {storage}=HOST"
            )
        return self.storages[storage]
