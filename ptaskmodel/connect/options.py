"""Options of ``serve`` and ``batsim``: how a scheduler is reached, and what is agreed with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ptaskmodel.errors import SimulationError
from ptaskmodel.options import COUNT, FILE, FLAG, POSITIVE, SCHEDULER, TEXT, option

ENDPOINT = "tcp://localhost:28000"
PROTOCOLS = (2, 3, 4)
# Where Redis is and how its keys begin, as a scheduler is told if it is not used.
NO_REDIS = ("127.0.0.1", 6379, "default")


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How a scheduler is reached; the names are those of the options of ``serve``.

    socket: where it listens. scheduler: the command that starts it (see
    `transport.start_scheduler`). timeout_s: longest wait for a reply, s. record: file for all
    messages. replay: a record that takes the place of the scheduler. events: files of external
    events. Raises SimulationError for a replay with a scheduler.
    """

    # fmt: off
    socket: str | None = option(
        None, TEXT, f"Where the scheduler listens  [default: {ENDPOINT}; with --scheduler a free "
        "port of the loopback]", SCHEDULER, metavar="ENDPOINT",
    )
    scheduler: str | None = option(
        None, TEXT, "Start this scheduler, and end it with the run; {socket} stands for the "
        "endpoint.", SCHEDULER, metavar="COMMAND",
    )
    timeout_s: float | None = option(
        None, POSITIVE, "Longest time of a reply  [default: unlimited]", SCHEDULER,
        flag="--timeout", metavar="SECONDS",
    )
    record: Path | None = option(
        None, FILE, "Write every message, one per line.", SCHEDULER, writes=True,
    )
    replay: Path | None = option(
        None, FILE, "Use the replies of a record instead of a scheduler; stop at the first "
        "request that differs.", SCHEDULER,
    )
    events: tuple[Path, ...] = option(
        (), FILE, "External events, one JSON object per line. Repeatable.", SCHEDULER, many=True,
    )
    # fmt: on

    def __post_init__(self) -> None:
        if self.replay is not None and (self.scheduler is not None or self.socket is not None):
            raise SimulationError("--replay needs no scheduler; leave out --scheduler and --socket")


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What is agreed with a scheduler beforehand; the names are those of the options of ``serve``.

    protocol: its version. energy: whether the scheduler may ask for it. redis: HOST:PORT of the
    server by which jobs and profiles go, if they do; redis_prefix begins its keys. Raises
    SimulationError for another version, or another text for Redis.
    """

    # fmt: off
    protocol: int = option(4, COUNT, "Version of the protocol: 2, 3 or 4.", SCHEDULER)
    energy: bool = False
    dynamic_jobs: bool = option(False, FLAG, "The scheduler may register jobs.", SCHEDULER)
    acknowledge_dynamic_jobs: bool = option(
        False, FLAG, "Notify the scheduler when these are submitted.", SCHEDULER,
    )
    profile_reuse: bool = False
    forward_profiles: bool = option(False, FLAG, "Send each job's profile with the job.", SCHEDULER)
    compute_sharing: bool = option(False, FLAG, "Hosts may have several jobs at once.", SCHEDULER)
    storage_sharing: bool = option(
        True, FLAG, "Tell the scheduler that storages are not shared.", SCHEDULER,
        flag="--no-storage-sharing",
    )
    forward_unknown_events: bool = option(
        False, FLAG, "Also forward events of other types.", SCHEDULER,
    )
    scheduler_config: str = option(
        "", TEXT, "Configuration that the scheduler receives at the beginning.", SCHEDULER,
    )
    redis: str | None = option(
        None, TEXT, "Publish jobs and profiles in Redis.", SCHEDULER, metavar="HOST:PORT",
    )
    redis_prefix: str = option("default", TEXT, "Prefix of keys in Redis.", SCHEDULER)
    # fmt: on

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise SimulationError(f"--protocol: there is no version {self.protocol}; use 2, 3 or 4")
        self.redis_server()

    def redis_server(self) -> tuple[str, int, str] | None:
        """Return the host, the port and the prefix of keys in Redis; None if it is not used."""
        if self.redis is None:
            return None
        host, _, port = self.redis.rpartition(":")
        if not host or not port.isdecimal() or len(port) > 5:
            raise SimulationError(f"--redis: '{self.redis[:60]}' is not HOST:PORT")
        return host, int(port), self.redis_prefix
