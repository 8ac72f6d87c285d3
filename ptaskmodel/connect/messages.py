"""Messages that a scheduler may send, and the errors of wrong messages.

An error is one line: the time, the event, the field, and the remedy.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ptaskmodel.batch.loop.decisions import PolicyFault
from ptaskmodel.errors import shown

PROTOCOLS = (2, 3, 4)
# Batsim writes six decimals, so dates that come back may be so much too early, s.
ROUNDED_S = 1e-6
LARGEST_MESSAGE = 2**26  # bytes
_PLACE = re.compile(r"(?P<what>.*?)(?: - at `(?P<place>.*)`)?", re.DOTALL)
_EVENT = re.compile(r"\$\.events\[(?P<event>\d+)\](?P<field>.*)")
NEWER = {"REGISTER_JOB": "SUBMIT_JOB", "REGISTER_PROFILE": "SUBMIT_PROFILE"}


class SchedulerFault(PolicyFault):
    """A scheduler broke the protocol, fell silent or left; the message says how and when."""

    def __init__(
        self, what: str, *, now: float, event: int | None = None, kind: str = "", field: str = ""
    ) -> None:
        place = "" if event is None else f"event {event} ({kind}){': ' + field if field else ''}: "
        super().__init__(f"the scheduler, at {now!r} s: {place}{what}")


Names = Annotated[list[str], Meta(min_length=1)]


class Data(Struct, forbid_unknown_fields=True):
    """The data of an event; `Said` are the events."""


class AdditionalJob(Data):
    """A parallel task that is done beside that of a job."""

    alloc: str
    profile_name: str
    profile: dict[str, Any] | None = None


class Execute(Data):
    job_id: str
    alloc: str
    mapping: dict[str, int | str] | None = None
    storage_mapping: dict[str, int] | None = None
    additional_io_job: AdditionalJob | None = None


class OneJob(Data):
    job_id: str


class SomeJobs(Data):
    job_ids: Names


class Call(Data):
    timestamp: float


class NewProfile(Data):
    workload_name: str
    profile_name: str
    profile: dict[str, Any] | None = None  # None: it is in Redis


class NewJob(Data):
    job_id: str
    job: dict[str, Any] | None = None  # None: it is in Redis
    profile: dict[str, Any] | None = None  # protocol 2


class Notice(Data):
    type: str


class ResourceState(Data):
    resources: str
    state: str


class Nothing(Data):
    pass


class Wanted(Data):
    consumed_energy: Nothing


class Question(Data):
    requests: Wanted


class Estimate(Data):
    job_id: str
    estimated_waiting_time: float


class Estimated(Data):
    estimate_waiting_time: Estimate


class Metadata(Data):
    job_id: str
    metadata: str


class JobState(Struct):
    job_id: str
    job_state: str


class Message(Data):
    job_id: str
    msg: str


class Said(Struct, tag_field="type"):
    timestamp: float


class ExecuteJob(Said, tag="EXECUTE_JOB"):
    data: Execute


class RejectJob(Said, tag="REJECT_JOB"):
    data: OneJob


class KillJob(Said, tag="KILL_JOB"):
    data: SomeJobs


class CallMeLater(Said, tag="CALL_ME_LATER"):
    data: Call


class RegisterProfile(Said, tag="REGISTER_PROFILE"):
    data: NewProfile


class RegisterJob(Said, tag="REGISTER_JOB"):
    data: NewJob


class Notify(Said, tag="NOTIFY"):
    data: Notice


class SetResourceState(Said, tag="SET_RESOURCE_STATE"):
    data: ResourceState


class Query(Said, tag="QUERY"):
    data: Question


class Answer(Said, tag="ANSWER"):
    data: Estimated


class SetJobMetadata(Said, tag="SET_JOB_METADATA"):
    data: Metadata


class ChangeJobState(Said, tag="CHANGE_JOB_STATE"):
    data: JobState


class ToJobMessage(Said, tag="TO_JOB_MSG"):
    data: Message


class SubmitProfile(RegisterProfile, tag="SUBMIT_PROFILE"):
    """As protocol 2 calls it."""


class SubmitJob(RegisterJob, tag="SUBMIT_JOB"):
    """As protocol 2 calls it."""


Common = (
    ExecuteJob
    | RejectJob
    | KillJob
    | CallMeLater
    | Notify
    | SetResourceState
    | Query
    | Answer
    | SetJobMetadata
    | ChangeJobState
    | ToJobMessage
)


class Reply(Struct):
    """What a scheduler answers: it is busy until ``now``."""

    now: float
    events: list[Common | RegisterProfile | RegisterJob]


class OldReply(Struct):
    """The same in protocol 2."""

    now: float
    events: list[Common | SubmitProfile | SubmitJob]


_DECODERS: dict[int, msgspec.json.Decoder[Any]] = {
    protocol: msgspec.json.Decoder(OldReply if protocol == 2 else Reply) for protocol in PROTOCOLS
}
OLDER = {old: new for new, old in NEWER.items()}


def read_reply(raw: bytes, protocol: int, now: float) -> tuple[Reply | OldReply, float]:
    """The reply in a message, and the earliest date that it says; dates before ``now`` become that.

    Raises SchedulerFault, which names the event and the field.
    """
    if len(raw) > LARGEST_MESSAGE:
        raise SchedulerFault(
            f"its message has {len(raw):,} bytes, more than {LARGEST_MESSAGE:,}; split it", now=now
        )
    try:
        raw.decode()  # what is not looked at has to be text, too
        reply: Reply | OldReply = _DECODERS[protocol].decode(raw)
    except msgspec.ValidationError as error:
        raise _fault(error, raw, protocol, now) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SchedulerFault(f"its message is not JSON: {error}", now=now) from None
    except RecursionError:
        raise SchedulerFault("its message is nested too deep", now=now) from None
    earliest = min((reply.now, *(event.timestamp for event in reply.events)))
    _check_dates(reply, now)
    return reply, earliest


def kind_of(event: Said) -> str:
    """The type of an event, as it stands in the message."""
    return str(event.__struct_config__.tag)


def _check_dates(reply: Reply | OldReply, now: float) -> None:
    """The dates ascend, to that of the reply; as in Batsim, what is past takes effect ``now``."""
    last, end = now, max(reply.now, now)
    for k, event in enumerate(reply.events):
        date, where = event.timestamp, {"now": now, "event": k, "kind": kind_of(event)}
        if date > reply.now + ROUNDED_S:
            raise SchedulerFault(
                f"{date!r} s is after the 'now' of the message, {reply.now!r} s",
                field="/timestamp",
                **where,  # type: ignore[arg-type]
            )
        if max(date, now) < last - ROUNDED_S:
            raise SchedulerFault(
                f"{date!r} s is before {last!r} s; sort the events by time",
                field="/timestamp",
                **where,  # type: ignore[arg-type]
            )
        last = event.timestamp = min(max(date, last), end)
    reply.now = end


def _fault(error: msgspec.ValidationError, raw: bytes, protocol: int, now: float) -> SchedulerFault:
    """A mistake in a message, with the number and the type of the event."""
    match = _PLACE.fullmatch(str(error))
    assert match is not None
    what, place = match["what"], match["place"] or ""
    found = _EVENT.fullmatch(place)
    if found is None:
        return SchedulerFault(f"its message{_pointer(place)}: {_lower(what)}", now=now)
    k = int(found["event"])
    try:
        event = msgspec.json.decode(raw)["events"][k]
    except RecursionError:
        event = None
    kind = event.get("type") if isinstance(event, dict) else None
    if found["field"] == ".type":
        what = f"{shown(kind)} is not an event type of protocol {protocol}"
        other = NEWER.get(str(kind)) or OLDER.get(str(kind))
        if other is not None:
            what += f"; write {other}, or choose --protocol"
    return SchedulerFault(
        _lower(what),
        now=now,
        event=k,
        kind=shown(kind) if not isinstance(kind, str) else kind[:60],
        field=_pointer(found["field"]).strip(),
    )


def _pointer(place: str) -> str:
    """``$.data.job_ids[0]`` as the end of " /data/job_ids/0"."""
    parts = [part for part in re.split(r"[.\[\]$]+", place) if part]
    return f" /{'/'.join(parts)}" if parts else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def parse_resources(text: str, count: int) -> int:
    """The resources of a set such as "0-2 5" as a mask; ValueError with what is wrong.

    count: how many there are.
    """
    mask = 0
    parts = text.split()
    if not parts:
        raise ValueError("the set of resources is empty; name one or more")
    for part in parts:
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
            raise ValueError(f"{shown(text)} is not a set of resources such as '0-2 5'")
        if max(len(first), len(last)) > 9 or int(last) >= count:
            raise ValueError(f"{shown(part)} is out of range; resources are 0 to {count - 1}")
        begin, end = int(first), int(last)
        if end < begin:
            raise ValueError(f"{shown(part)} runs backwards; give the smaller number first")
        mask |= (1 << end + 1) - (1 << begin)
    return mask


def is_date(value: float) -> bool:
    """Whether a number can be a date."""
    return math.isfinite(value)
