"""The one family of errors that a user can mend; our own bugs stay outside it."""

from __future__ import annotations


class PTaskModelError(Exception):
    """A mistake in what the user gave: a file, an option, an argument.

    The message is one line that says where (file and line, or JSON pointer), what, and the remedy.
    The command line prints it and exits with code 2.
    """


class PlatformError(PTaskModelError):
    """A platform file or a platform fact is wrong."""


class RouteError(PlatformError):
    """Two points of the platform have no usable route."""


class WorkloadError(PTaskModelError):
    """A task, a profile or a workload file is wrong."""


class SharingError(PTaskModelError):
    """A sharing problem is malformed."""


class SimulationError(PTaskModelError):
    """A simulation was asked for something that it cannot do."""
