"""Policies at fault: what they did, where and when, in one line."""

from __future__ import annotations

import difflib
import sys
import traceback
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

PACKAGE = str(Path(__file__).resolve().parents[1])


class PolicyFault(SimulationError):
    """A policy broke a rule or down; the message says how, where and when."""


def policy_name(policy: object) -> str:
    return type(policy).__name__


def raised(policy: object, error: BaseException, now: float, job: Job | None) -> PolicyFault | None:
    """The fault that an exception amounts to; None if it does not come from a user's policy.

    job: what the policy was about, if it is known: else it is looked for where it raised.
    """
    place = _users_frame(policy, error.__traceback__)
    if place is None:
        return None
    frame, line = place
    name = f"{policy_name(policy)} raised {type(error).__name__}"
    about = job or _job_of(frame)
    text = f": {error}{_meant(error)}" if str(error) else ""
    where = f"{Path(frame.f_code.co_filename).name}:{line}"
    what = f"job '{about.id}', " if about is not None else ""
    return PolicyFault(f"policy {name} at {where}{text} ({what}{now:g} s): correct the policy")


def _meant(error: BaseException) -> str:
    """Of an attribute that an object of ours has not, the nearest that it has."""
    if not isinstance(error, AttributeError) or error.name is None:
        return ""
    if not type(error.obj).__module__.startswith("ptaskmodel."):
        return ""
    public = [name for name in dir(error.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(error.name, public, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def misbehaved(policy: object, what: str, now: float, answer: Any = None) -> PolicyFault:
    """The fault of a policy that did something that it may not; ``answer``: what it yields from.

    A policy that speaks for somebody else says it itself, with a method ``fault(what)``.
    """
    own = getattr(policy, "fault", None)
    if own is not None:
        fault: PolicyFault = own(what)
        return fault
    name, where = policy_name(policy), _line_of(policy, answer)
    return PolicyFault(f"policy {name} {what} (at {now:g} s{where}): correct the policy")


def _line_of(policy: object, answer: Any) -> str:
    """Where a user's policy is at, as ", file:line"."""
    frame = getattr(answer, "gi_frame", None)
    if frame is not None:
        code, line = frame.f_code, frame.f_lineno
    else:
        code = getattr(getattr(type(policy), "decide", None), "__code__", None)
        line = getattr(code, "co_firstlineno", 0)
    if code is None or code.co_filename.startswith(PACKAGE):
        return ""
    return f", {Path(code.co_filename).name}:{line}"


def _users_frame(policy: object, trace: TracebackType | None) -> tuple[FrameType, int] | None:
    """The innermost frame of the policy's file (else of any file not ours) and its line.

    None for a policy of this package: what it raises is a bug of ours.
    """
    module = type(policy).__module__
    if module.startswith("ptaskmodel."):
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    frames = list(traceback.walk_tb(trace))
    own = [(frame, line) for frame, line in frames if frame.f_code.co_filename == file]
    others = [
        (frame, line) for frame, line in frames if not frame.f_code.co_filename.startswith(PACKAGE)
    ]
    found = own or others
    return found[-1] if found else None


def _job_of(frame: FrameType) -> Job | None:
    """The job that a frame is at: a local variable that holds one."""
    held = [value for value in frame.f_locals.values() if isinstance(value, Job)]
    return held[-1] if held else None
