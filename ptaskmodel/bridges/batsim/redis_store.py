"""Jobs and profiles by way of Redis, as Batsim up to version 4 offers it."""

from __future__ import annotations

from typing import Any

import msgspec

from ptaskmodel.bridges.batsim.job_messages import Entry
from ptaskmodel.errors import SimulationError, WorkloadError, shown


class RedisStore:
    """Keys ``PREFIX:job_w0!12`` and ``PREFIX:profile_w0!name`` of a Redis server.

    Raises SimulationError if there is no server, or no Python package for it.
    """

    def __init__(self, host: str, port: int, prefix: str) -> None:
        try:
            import redis
        except ImportError:
            raise SimulationError(
                "Redis needs the Python package redis: pip install redis"
            ) from None
        self._where = f"Redis at {host}:{port}"
        self._errors = redis.RedisError
        self._server = redis.Redis(host, port, socket_timeout=10)
        self._prefix = prefix
        self._profiles: set[str] = set()
        self._call("ping")

    def _call(self, command: str, *arguments: Any) -> Any:
        try:
            return getattr(self._server, command)(*arguments)
        except self._errors as error:
            raise SimulationError(f"{self._where}: {error}") from None

    def put(self, entry: Entry) -> None:
        """Let a job and its profile be found."""
        values = {f"{self._prefix}:job_{entry.id}": msgspec.json.encode(entry.fields)}
        if entry.profile_id not in self._profiles:
            self._profiles.add(entry.profile_id)
            key = f"{self._prefix}:profile_{entry.profile_id}"
            values[key] = msgspec.json.encode(entry.profile_fields)
        self._call("mset", values)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """The object of a "job" or "profile" that the scheduler put there; WorkloadError if not."""
        key = f"{self._prefix}:{kind}_{name}"
        raw = self._call("get", key)
        try:
            found = None if raw is None else msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise WorkloadError(f"/data/{kind}: {self._where} has no object at {shown(key)}")
        return found

    def close(self) -> None:
        self._server.close()
