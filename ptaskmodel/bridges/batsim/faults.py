"""What a scheduler did wrong, in one line: when, in which event and field, and the remedy."""

from __future__ import annotations

from ptaskmodel.batch.faults import PolicyFault


class SchedulerFault(PolicyFault):
    """A scheduler broke the protocol, fell silent or left; the message says how and when."""

    def __init__(
        self, what: str, *, now: float, event: int | None = None, kind: str = "", field: str = ""
    ) -> None:
        place = "" if event is None else f"event {event} ({kind}){': ' + field if field else ''}: "
        super().__init__(f"the scheduler, at {now!r} s: {place}{what}")
