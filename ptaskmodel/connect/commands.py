"""Check and execute the commands of an external scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ptaskmodel.batch.jobs.execution import KILLED, SUCCESS, WALLTIME, Attempt, Progress
from ptaskmodel.batch.loop.decisions import Decision, Kill, Reject, SetPower, Start
from ptaskmodel.batch.loop.view import View
from ptaskmodel.batch.machine.host_sets import HostSet, Mask, members, text
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.connect import messages
from ptaskmodel.connect.events import (
    KILLED_NEXT,
    THEN_ANSWER,
    THEN_RESOURCES,
    Storages,
    progress_of,
)
from ptaskmodel.connect.jobs import (
    ENDED,
    REJECTED,
    RUNNING,
    SUBMITTED,
    Book,
    Conversation,
    Entry,
    talks,
)
from ptaskmodel.connect.options import SessionOptions
from ptaskmodel.connect.placing import together, work_on
from ptaskmodel.errors import shown
from ptaskmodel.workload.batch_works import EndlessWork, PlacedWork

Carried = Iterator[Decision]
FINISHED = ("registration_finished", "submission_finished")
CONTINUES = ("continue_registration", "continue_submission")
BY_HAND_ENDS = (SUCCESS, WALLTIME, KILLED)


class Refused(Exception):
    """A decision that cannot be carried out: the field at fault, and why."""

    def __init__(self, what: str, field: str = "") -> None:
        super().__init__(what)
        self.field = field


class SchedulerSide(Protocol):
    """What orders need of the side that speaks for the scheduler: `scheduler.ExternalScheduler`."""

    @property
    def machine(self) -> Machine: ...

    def tell(self, rank: int, kind: str, data: dict[str, Any]) -> None: ...

    def tell_end(self, entry: Entry, attempt: Attempt) -> None: ...

    def call_at(self, date_s: float) -> None: ...

    def submit(self, entry: Entry) -> None: ...

    def given(self, fields: dict[str, Any] | None, kind: str, name: str) -> dict[str, Any]: ...

    def progress(self, entry: Entry) -> Progress: ...

    def consumed_J(self) -> float: ...

    def converse(self, entry: Entry) -> Iterator[Decision]: ...

    def advance(self, conversation: Conversation) -> Iterator[Decision]: ...


class Orders:
    """Carries out what a scheduler says. registering: whether it may register jobs still."""

    def __init__(
        self,
        scheduler: SchedulerSide,
        book: Book,
        options: SessionOptions,
        storages: Storages,
    ) -> None:
        self._scheduler = scheduler
        self._book = book
        self._options = options
        self._storages = storages
        self._switching: list[tuple[Mask, list[Mask], str]] = []
        self.registering = options.dynamic_jobs
        self._ways: dict[type, Callable[[Any, View], Carried]] = {
            messages.ExecuteJob: self._execute,
            messages.RejectJob: self._reject,
            messages.KillJob: self._kill,
            messages.CallMeLater: self._call_later,
            messages.RegisterProfile: self._register_profile,
            messages.SubmitProfile: self._register_profile,
            messages.RegisterJob: self._register_job,
            messages.SubmitJob: self._register_job,
            messages.Notify: self._notify,
            messages.SetResourceState: self._set_state,
            messages.Query: self._query,
            messages.Answer: self._take_note,
            messages.SetJobMetadata: self._set_metadata,
            messages.ChangeJobState: self._change_state,
            messages.ToJobMessage: self._to_job,
        }

    def carry_out(self, event: messages.Said, view: View) -> Carried:
        """The decisions that an event of a scheduler amounts to. Raises Refused, WorkloadError."""
        return self._ways[type(event)](event, view)

    # --- jobs -------------------------------------------------------------------------------

    def _job(self, name: str, field: str = "/data/job_id") -> Entry:
        entry = self._book.entries.get(name)
        if entry is None or entry.state is None:
            raise Refused(f"there is no job {shown(name)}; use the id of a submitted one", field)
        return entry

    def _submitted(self, name: str) -> Entry:
        entry = self._job(name)
        if entry.state != SUBMITTED:
            raise Refused(
                f"job {shown(name)} is {entry.state}, not {SUBMITTED}; choose another",
                "/data/job_id",
            )
        return entry

    def _execute(self, event: messages.ExecuteJob, view: View) -> Carried:
        data = event.data
        entry = self._submitted(data.job_id)
        machine = self._scheduler.machine
        hosts = self._resources(data.alloc, machine.num_hosts, "/data/alloc")
        self._check_usable(hosts, view)
        places = members(hosts)
        work = work_on(
            entry.job, places, machine, self._storages, data.mapping, data.storage_mapping
        )
        if data.additional_io_job is not None:
            work = self._beside(entry, work, places, data.additional_io_job)
        converses = talks(entry.job.work)
        yield Start(entry.job, HostSet(hosts), work=EndlessWork() if converses else work)
        entry.state, entry.attempt = RUNNING, view.attempt(entry.job)
        if converses:
            yield from self._scheduler.converse(entry)

    def _check_usable(self, hosts: Mask, view: View) -> None:
        pstates = view.pstates
        reasons = (
            (hosts & (pstates.switching_on | pstates.switching_off), "is switching its pstate"),
            (hosts & pstates.sleeping, "sleeps"),
            (hosts & ~view.available_mask, "is unavailable"),
            (0 if self._options.compute_sharing else hosts & ~view.free_mask, "runs a job"),
        )
        for wrong, why in reasons:
            if wrong:
                remedy = " (--enable-compute-sharing)" if why == "runs a job" else ""
                raise Refused(
                    f"resource {members(wrong)[0]} {why}{remedy}; use others", "/data/alloc"
                )

    def _beside(
        self, entry: Entry, work: Any, places: list[int], more: messages.AdditionalJob
    ) -> PlacedWork:
        """The work of a job and another parallel task, done as one."""
        machine, field = self._scheduler.machine, "/data/additional_io_job"
        shelf = entry.profiles
        if more.profile is not None:
            if more.profile_name in shelf.works:
                raise Refused(
                    f"profile {shown(more.profile_name)} already exists; leave it out, or give "
                    "another name",
                    f"{field}/profile_name",
                )
            self._book.add_profile(shelf, more.profile_name, more.profile, f"{field}/profile")
        if more.profile_name not in shelf.works:
            raise Refused(
                f"there is no profile {shown(more.profile_name)}; define it",
                f"{field}/profile_name",
            )
        count = machine.num_hosts + len(self._storages.names)
        mask = self._resources(more.alloc, count, f"{field}/alloc")
        names = tuple(
            machine.names[k] if k < machine.num_hosts else str(self._storages.name(k))
            for k in members(mask)
        )
        mine = tuple(machine.names[k] for k in places)
        placed = work if isinstance(work, PlacedWork) else PlacedWork(mine, entry.job.work)
        union, both = together(placed.work, shelf.works[more.profile_name], placed.hosts, names)
        return PlacedWork(union, both)

    def _reject(self, event: messages.RejectJob, view: View) -> Carried:
        entry = self._submitted(event.data.job_id)
        yield Reject(entry.job)
        entry.state = REJECTED

    def _kill(self, event: messages.KillJob, view: View) -> Carried:
        told, progress = [], {}
        for k, name in enumerate(dict.fromkeys(event.data.job_ids)):
            field = f"/data/job_ids/{k}"
            entry = self._job(name, field)
            if entry.state == RUNNING and entry.attempt is not None and not entry.by_hand:
                far = self._scheduler.progress(entry)
                progress[name] = progress_of(entry, far, self._options.protocol)
                yield Kill(entry.job)
                entry.killed = True
                self._scheduler.tell_end(entry, entry.attempt)
            elif entry.state != ENDED:
                raise Refused(f"job {shown(name)} is {entry.state}; kill only running jobs", field)
            elif entry.killed and not entry.reported:
                continue
            told.append(name)
        if told:
            data = {"job_ids": told, "job_progress": progress}
            self._scheduler.tell(KILLED_NEXT, "JOB_KILLED", data)

    def _set_metadata(self, event: messages.SetJobMetadata, view: View) -> Carried:
        entry = self._book.entries.get(event.data.job_id)
        if entry is None:
            raise Refused(f"there is no job {shown(event.data.job_id)}", "/data/job_id")
        if '"' in event.data.metadata:
            raise Refused("metadata contains a double quote; use single ones", "/data/metadata")
        entry.metadata = event.data.metadata
        return iter(())

    def _change_state(self, event: messages.ChangeJobState, view: View) -> Carried:
        """Jobs that the scheduler simulates itself begin and end as it says."""
        state = event.data.job_state
        entry = self._job(event.data.job_id)
        if entry.state == SUBMITTED and state == REJECTED:
            yield Reject(entry.job)
            entry.state = REJECTED
        elif entry.state == SUBMITTED and state == RUNNING:
            entry.by_hand = True
            yield Start(entry.job, HostSet(0), work=EndlessWork())
            entry.state, entry.attempt = RUNNING, view.attempt(entry.job)
        elif entry.state == RUNNING and entry.by_hand and state in BY_HAND_ENDS:
            entry.state = ENDED
            yield Kill(entry.job, state=state)
        else:
            how = "by EXECUTE_JOB" if entry.state == RUNNING and not entry.by_hand else ""
            raise Refused(
                f"job {shown(entry.id)} is {entry.state} {how}".rstrip()
                + f" and cannot become {shown(state)}: from {SUBMITTED} to {RUNNING} or "
                f"{REJECTED}, then to {', '.join(BY_HAND_ENDS)}",
                "/data/job_state",
            )

    def _to_job(self, event: messages.ToJobMessage, view: View) -> Carried:
        entry = self._job(event.data.job_id)
        entry.inbox.append(event.data.msg)
        if entry.conversation is not None:
            entry.conversation.notice(view.now)
            yield from self._scheduler.advance(entry.conversation)

    # --- dates, hosts, questions ------------------------------------------------------------

    def _call_later(self, event: messages.CallMeLater, view: View) -> Carried:
        date = event.data.timestamp
        if not messages.is_date(date) or date <= view.now:
            raise Refused(
                f"{date!r} s is not after the present, {view.now!r} s; give a later time",
                "/data/timestamp",
            )
        self._scheduler.call_at(date)
        return iter(())

    def _resources(self, given: str, count: int, field: str) -> Mask:
        try:
            return messages.parse_resources(given, count)
        except ValueError as error:
            raise Refused(str(error), field) from None

    def _set_state(self, event: messages.SetResourceState, view: View) -> Carried:
        self._check_energy()
        mask = self._resources(
            event.data.resources, self._scheduler.machine.num_hosts, "/data/resources"
        )
        state = event.data.state
        if not (state.isascii() and state.isdecimal() and len(state) < 10):
            raise Refused(
                f"{shown(state)} is not the number of a pstate; give a whole number", "/data/state"
            )
        yield SetPower(HostSet(mask), int(state))
        pstates = view.pstates
        left = mask & (pstates.switching_on | pstates.switching_off)
        self._switching.append((mask, [left], state))
        self.arrived(0)

    def arrived(self, hosts: Mask) -> None:
        """Hosts have got to their pstates; requests of which all have are answered."""
        still = []
        for mask, left, state in self._switching:
            left[0] &= ~hosts
            if left[0]:
                still.append((mask, left, state))
            else:
                data = {"resources": text(mask), "state": state}
                self._scheduler.tell(THEN_RESOURCES, "RESOURCE_STATE_CHANGED", data)
        self._switching = still

    def _check_energy(self) -> None:
        if not self._options.energy:
            raise Refused("energy is off; start with --energy")

    def _query(self, event: messages.Query, view: View) -> Carried:
        self._check_energy()
        joules = self._scheduler.consumed_J()
        self._scheduler.tell(THEN_ANSWER, "ANSWER", {"consumed_energy": joules})
        return iter(())

    def _take_note(self, event: messages.Answer, view: View) -> Carried:
        return iter(())

    # --- registration -----------------------------------------------------------------------

    def _check_registering(self) -> None:
        if not self._options.dynamic_jobs:
            raise Refused("dynamic jobs are off; start with --enable-dynamic-jobs")
        if not self.registering:
            raise Refused("registration has finished; continue it by a NOTIFY first")

    def _register_profile(self, event: messages.RegisterProfile, view: View) -> Carried:
        self._check_registering()
        data = event.data
        name = f"{data.workload_name}!{data.profile_name}"
        fields = self._scheduler.given(data.profile, "profile", name)
        self._book.register_profile(data.workload_name, data.profile_name, fields)
        return iter(())

    def _register_job(self, event: messages.RegisterJob, view: View) -> Carried:
        self._check_registering()
        data = event.data
        fields = self._scheduler.given(data.job, "job", data.job_id)
        workload, name = data.job_id.partition("!")[0], str(fields.get("profile"))
        shelf = self._book.shelves.get(workload)
        if data.profile is not None and (shelf is None or name not in shelf.works):
            self._book.register_profile(workload, name, data.profile)
        self._scheduler.submit(self._book.register_job(data.job_id, fields, view.now))
        return iter(())

    def _notify(self, event: messages.Notify, view: View) -> Carried:
        kind = event.data.type
        old = self._options.protocol == 2
        if kind == FINISHED[old]:  # as for Batsim, whether anything was registered or not
            self.registering = False
        elif kind == CONTINUES[old]:
            if not self._options.dynamic_jobs:
                self._check_registering()
            self.registering = True
        else:
            raise Refused(
                f"{shown(kind)} is unknown; use {FINISHED[old]} or {CONTINUES[old]}", "/data/type"
            )
        return iter(())
