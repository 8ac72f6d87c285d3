"""Read the events files of the UB Slurm simulator: a line for each job that is submitted.

A line is ``-dt SECONDS -e submit_batch_job | OPTIONS SCRIPT``: seconds from the first event, and
options of sbatch, among them ``-sim-walltime`` (how long the job runs, s; -1: until its limit),
``--uid`` (its user), ``-jid`` (its id) and ``-cancel-in`` (s). Source: that simulator's manual.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs import sbatch
from ptaskmodel.slurm.jobs.request import ArrayTask, Command, JobRequest, Submissions
from ptaskmodel.workload.works import DelayWork

SUBMIT = "submit_batch_job"
# How long jobs would run that run until their limit, beyond it.
BEYOND_s = 86_400.0
_LINE = re.compile(rb"^\s*-[^|\n]*-e\s+\w+[^|\n]*\||^\s*-e\s+\w+[^|\n]*\|", re.MULTILINE)
_OWN = ("-sim-walltime", "--sim-walltime", "--uid", "-jid", "--jid", "-cancel-in")


def looks_like(start: bytes) -> bool:
    """Whether a file that begins with `start` may be one."""
    return _LINE.search(start) is not None


@reader(SlurmError)
def read_events(path: AnyPath, account: Account, phase_s: float = PHASE_S) -> Submissions:
    """The jobs of the events file at `path`, each submitted ``phase_s`` after its date there.

    Lines that cannot be read, and events other than submissions, are left out and told. account: of
    the file. Raises SlurmError if that are most lines.
    """
    silent: set[str] = set()
    found: dict[str, JobRequest] = {}
    names: set[str] = set()
    open_ended: set[str] = set()
    rows = 0
    text = read_text(path, error=SlurmError, told=account.taken)
    for line, raw in enumerate(text.split("\n"), start=1):
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        rows += 1
        with account.row(line):
            try:
                jobs, is_open_ended = _jobs(raw, line, account, phase_s, silent, names)
            except ValueError as fault:
                raise SlurmError(str(fault)) from None
            twice = next((job.id for job in jobs if job.id in found), None)
            if twice is not None:
                raise SlurmError(f"job {shown(twice)} occurs twice; give each job its own name")
            found |= {job.id: job for job in jobs}
            open_ended |= {job.id for job in jobs if is_open_ended}
    account.check_rows(rows)
    sbatch.tell_silent(silent, account)
    if not found:
        raise SlurmError(f"{account.file}: has no {SUBMIT} event; add one")
    jobs = sorted(found.values(), key=lambda job: job.submit_s)
    return Submissions(tuple(jobs), open_ended=frozenset(open_ended))


def _jobs(
    raw: str, line: int, account: Account, phase_s: float, silent: set[str], names: set[str]
) -> tuple[list[JobRequest], bool]:
    """The job of a line, or the tasks of its array; and whether it runs until its limit.

    silent: is given its options of no effect. names: of the jobs before; is given this one's.
    """
    head, bar, tail = raw.partition("|")
    event = dict(zip((words := head.split())[::2], words[1::2], strict=False))
    if not bar or "-e" not in event:
        raise ValueError(f"is not an event; write -dt SECONDS -e {SUBMIT} | OPTIONS SCRIPT")
    if event["-e"] != SUBMIT:
        raise ValueError(f"the event {shown(event['-e'])} is not simulated; remove it")
    submit_s = _read("-dt", event.get("-dt", ""), values.number) + phase_s
    own, rest = _split(tail)
    unknown: list[str] = []
    fields: dict[str, Any] = sbatch.options(shlex.join(rest), True, unknown.append)
    silent |= fields.pop(sbatch.PASSED_OVER, frozenset())
    script = fields.pop("script")
    indices, at_most = fields.pop("array", (None, None))
    name = own.get("jid") or fields.get("name") or f"line{line}"
    fields.setdefault("name", name)
    if "jid" not in own and name in names:
        other = f"{name}-line{line}"
        account.taken(f"the name {shown(name)} occurs again: this job is {shown(other)}", line)
        name = other
    names.add(name)
    run = own.get("sim-walltime", "-1")
    is_open_ended = run.startswith("-")
    limit_s = 60.0 * (fields.get("limit_min") or 0)
    run_s = limit_s + BEYOND_s if is_open_ended else _read("-sim-walltime", run, values.number)
    if max(submit_s, run_s) > values.LONGEST_S:
        raise ValueError("the submission or the run time exceeds 20 years; correct them")
    if "cancel-in" in own:
        date_s = submit_s + _read("-cancel-in", own["cancel-in"], values.number)
        fields["commands"] = (Command(date_s, "cancel"),)
    fields |= {"submit_s": submit_s, "work": DelayWork(run_s), "user": own.get("uid")}
    fields["where"] = f"{account.file}:{line}"
    for option in unknown:
        account.unused(f"{name}: the option {shown(option)} is unknown", line, option)
    if any(word.startswith("-") for word in script):
        account.unused(f"{name}: options after the script {shown(script[0])} belong to it", line)
    if "sim-walltime" not in own:
        account.assumed(f"{name} has no -sim-walltime: it runs until its time limit", line)
    if indices is None:
        return [JobRequest(name, **fields)], is_open_ended
    tasks = [ArrayTask(name, index, at_most) for index in indices]
    return [JobRequest(f"{name}_{one.index}", array=one, **fields) for one in tasks], is_open_ended


def _split(text: str) -> tuple[dict[str, str], list[str]]:
    """The simulator's own options by name, without -, and the words that are sbatch's."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise ValueError("close the quote") from None
    own: dict[str, str] = {}
    rest: list[str] = []
    words.reverse()
    while words:
        word = words.pop()
        name, mark, value = word.partition("=")
        if name not in _OWN:
            rest.append(word)
            continue
        if not mark:
            if not words:
                raise ValueError(f"give {name} a value")
            value = words.pop()
        own[name.lstrip("-")] = value
    return own, rest


def _read(name: str, text: str, read: Callable[[str], float]) -> float:
    try:
        return read(text)
    except ValueError as fault:
        raise ValueError(f"{name} is {shown(text)}: {fault}") from None
