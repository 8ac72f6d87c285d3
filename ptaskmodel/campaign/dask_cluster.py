"""Where the workers of a Dask cluster are found: its scheduler's address, and certificates."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptaskmodel.errors import CampaignError

LOOPBACK = ("127.0.0.1", "[::1]", "localhost")
SCHEMES = ("tcp://", "tls://")
CONNECT_S = 20.0
# Those that write what becomes of a client's connections.
LOGGERS = (
    "distributed.client", "distributed.comm.core", "distributed.comm.tcp", "distributed.core",
    "distributed.utils", "distributed.batched", "tornado.application", "asyncio",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask scheduler: its address, tcp://HOST:PORT or tls://HOST:PORT.

    ca, certificate, key: PEM files, for tls. Whoever reaches a scheduler runs programs as its
    owner: listen on the loopback, or have certificates. Raises CampaignError.
    """

    address: str
    ca: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None

    def __post_init__(self) -> None:
        if not self.address.startswith(SCHEMES):
            raise CampaignError(
                f"'{self.address}' is no scheduler: give tcp://HOST:PORT or tls://HOST:PORT"
            )
        given = [one for one in (self.ca, self.certificate, self.key) if one is not None]
        tls = self.address.startswith("tls://")
        if len(given) != (3 if tls else 0):
            raise CampaignError(
                f"{self.address}: give a CA, a certificate and a key with tls://, none with tcp://"
            )
        for path in given:
            if not Path(path).is_file():
                raise CampaignError(f"{path}: no such file")

    def is_open(self) -> bool:
        """Whether it is neither encrypted nor on this machine only."""
        host = self.address.removeprefix("tcp://").rpartition(":")[0]
        return self.ca is None and host not in LOOPBACK

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """A connection to it. Raises CampaignError if there is none.

        What Dask logs of a scheduler that is gone is left out: our error says it.
        """
        try:
            from distributed import Client
            from distributed.security import Security
        except ImportError:
            raise CampaignError("Dask is not installed: run pip install distributed") from None
        security = None
        if self.ca is not None:
            security = Security(
                tls_ca_file=str(self.ca),
                tls_client_cert=str(self.certificate),
                tls_client_key=str(self.key),
                require_encryption=True,
            )
        with _quiet():
            try:
                client = Client(
                    self.address, security=security, timeout=CONNECT_S, set_as_default=False
                )
            except (OSError, ValueError) as fault:
                reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
                raise CampaignError(
                    f"{self.address}: no Dask scheduler answers: {reason}"
                ) from None
            try:
                yield client
            finally:
                with contextlib.suppress(TimeoutError):  # a busy loop: what was asked for is done
                    client.close(timeout=1.0)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the log of Dask's connections, which are also lost on purpose."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(_is_critical)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_critical)


def _is_critical(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.CRITICAL
