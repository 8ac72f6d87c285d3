"""Read options of sbatch into the request of a job, and events files, whose lines have them.

A line of the UB Slurm simulator's events is ``-dt SECONDS -e submit_batch_job | OPTIONS SCRIPT``:
seconds from the first event, and options of sbatch, among them ``-sim-walltime`` (how long the job
runs, s; -1: until its limit), ``--uid`` (its user), ``-jid`` (its id) and ``-cancel-in`` (s).
Source: that simulator's manual.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs.request import (
    OF_USER,
    WHOLE_NODES,
    ArrayTask,
    Command,
    JobRequest,
    Submissions,
)
from ptaskmodel.workload.works import DelayWork

Fields = dict[str, Any]
_Reader = Callable[[str], Fields]

# The largest index that Slurm's MaxArraySize can allow.
MOST_INDEX = 4_000_000
_LONG = {
    "-A": "--account",
    "-C": "--constraint",
    "-c": "--cpus-per-task",
    "-d": "--dependency",
    "-H": "--hold",
    "-J": "--job-name",
    "-L": "--licenses",
    "-m": "--distribution",
    "-N": "--nodes",
    "-n": "--ntasks",
    "-p": "--partition",
    "-q": "--qos",
    "-s": "--oversubscribe",
    "-t": "--time",
    "-w": "--nodelist",
    "-x": "--exclude",
    "-a": "--array",
    "-b": "--begin",
    "-B": "--extra-node-info",
    "-D": "--chdir",
    "-e": "--error",
    "-F": "--nodefile",
    "-G": "--gpus",
    "-h": "--help",
    "-k": "--no-kill",
    "-Q": "--quiet",
    "-S": "--core-spec",
    "-v": "--verbose",
    "-W": "--wait",
    "-i": "--input",
    "-o": "--output",
    "-M": "--clusters",
    "-O": "--overcommit",
}
_FLAGS: dict[str, Fields] = {
    "--contiguous": {"contiguous": True},
    "--spread-job": {"spread": True},
    "--hold": {"hold": True},
    "--oversubscribe": {"oversubscribe": True, "exclusive": None},
    "--requeue": {"requeue": True},
    "--no-requeue": {"requeue": False},
}
_OPTIONAL = {"--exclusive", "--get-user-env", "--nice", "--no-kill", "--oom-kill-step"}
GPU = "gpu"
# What --nice alone says.
NICE = "100"
# Options that change nothing of a schedule: those without a value, and those with one.
_SILENT_FLAGS = (
    *("--bell", "--get-user-env", "--ignore-pbs", "--no-bell", "--no-kill", "--parsable"),
    *("--oom-kill-step", "--quiet", "--stepmgr", "--verbose", "--wait"),
)
_SILENT = (
    *("--acctg-freq", "--bb", "--bbf", "--burst-buffer", "--chdir", "--cluster-constraint"),
    *("--comment", "--container", "--container-id", "--core-spec", "--cpu-freq"),
    *("--delay-boot", "--error", "--export", "--export-file", "--extra", "--gid", "--gpu-bind"),
    *("--gpu-freq", "--input", "--kill-on-invalid-dep", "--mail-type", "--mail-user"),
    *("--mcs-label", "--mem-bind", "--network", "--open-mode", "--output", "--power", "--profile"),
    *("--propagate", "--resv-ports", "--segment", "--signal"),
    *("--thread-spec", "--uid", "--wait-all-nodes", "--wckey", "--wrap"),
)
SILENT = (*_SILENT_FLAGS, *_SILENT)
# What they were, of the fields that options give.
PASSED_OVER = "passed_over"
# Options that change a schedule in a way that is not simulated, with the reason or the remedy.
REFUSED: Mapping[str, str] = {
    "--batch": "is not simulated: where a job's script runs; leave it out",
    "--begin": "is a date; give it in the column begin, s",
    "--clusters": "is not simulated: jobs of several clusters; leave it out",
    "--deadline": "is a date; give it in the column deadline, s",
    "--extra-node-info": "is not simulated; give --sockets-per-node, --cores-per-socket",
    "--nodefile": "is not simulated: a file of nodes; give --nodelist",
    "--overcommit": "is not simulated: more tasks than CPUs; give --ntasks",
    "--reboot": "is not simulated: nodes that boot before a job; leave it out",
    "--test-only": "is not a job: sbatch submits none with it; leave the row out",
    "--tmp": "is not simulated: room on disks; give --constraint",
    "--tres-per-task": "is not simulated: an option of Slurm 24.05; give --gpus-per-task",
    "--use-min-nodes": "is not simulated: fewer nodes than a range allows; give --nodes=N",
}


def options(
    text: str, before_script: bool = False, unknown: Callable[[str], None] | None = None
) -> Fields:
    """The fields of a `JobRequest` that the options in a command line's `text` give.

    before_script: whether the name of a script and its arguments may follow, which are ``script``
    then. ``array`` is the pair of indices and how many may run at once,
    PASSED_OVER the names of those without effect. unknown: is called with the
    name of each option that is not known, which is left out with its value; None: it is refused.
    Raises ValueError, with the option and the remedy, for an option that makes no sense.
    """
    found: Fields = {}
    try:
        rest = shlex.split(text)
    except ValueError:
        raise ValueError(f"the quote in {text[:40]!r} is not closed; close it") from None
    rest.reverse()
    while rest and not (before_script and not rest[-1].startswith("-")):
        name, value = _name(rest.pop())
        name = _LONG.get(name, name)
        if name in _FLAGS and (value is None or name in _OPTIONAL):
            found = joined(found, _FLAGS[name])
            continue
        if name not in _VALUED and unknown is not None:
            unknown(name)
            # The word behind may be the value if a script still follows.
            if value is None and len(rest) > 1 and not rest[-1].startswith("-"):
                rest.pop()
            continue
        if name in REFUSED:
            raise ValueError(f"{name}: {REFUSED[name]}")
        if name not in _VALUED:
            raise ValueError(f"the option {name[:40]!r} is unknown; remove it")
        if value is None and name not in _OPTIONAL:
            if not rest:
                raise ValueError(f"give {name} a value")
            value = rest.pop()
        try:
            found = joined(found, _VALUED[name](value or ""))
        except ValueError as fault:
            raise ValueError(f"{name}={value!r}: {fault}") from None
    return found | ({"script": rest[::-1]} if before_script else {})


def joined(found: Fields, more: Fields) -> Fields:
    """The fields ``found`` and ``more``, which come later; GPUs and other resources add up."""
    if "gres" in found and more.get("gres"):
        given = {one.name for one in more["gres"]}
        kept = tuple(one for one in found["gres"] if one.name not in given)
        more = more | {"gres": kept + more["gres"]}
    if PASSED_OVER in found and PASSED_OVER in more:
        more = more | {PASSED_OVER: found[PASSED_OVER] | more[PASSED_OVER]}
    return found | more


def tell_silent(options: Collection[str], account: Account) -> None:
    """Tell an `account` once which `options` of a file's jobs have no effect on a schedule."""
    if options:
        account.unused(f"options that change no schedule: {', '.join(sorted(options))}")


def script_options(text: str) -> Fields:
    """The fields that the ``#SBATCH`` lines at the begin of a script's `text` give.

    Raises ValueError with the line.
    """
    found: Fields = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#SBATCH"):
            try:
                found = joined(found, options(line.removeprefix("#SBATCH").partition(" #")[0]))
            except ValueError as fault:
                raise ValueError(f"line {number}: {fault}") from None
        elif line.strip() and not line.startswith("#"):
            break
    return found


def option(name: str, text: str) -> Fields:
    """The fields that one option gives with the value `text`, by its name with _ for -.

    The value of a flag is yes or no. Raises ValueError with the remedy.
    """
    known = NAMES[name]
    if known in _FLAGS:
        return _FLAGS[known] if values.yes_no(text) else {}
    return _VALUED[known](text)


def _name(word: str) -> tuple[str, str | None]:
    """An option's name and its value, if it is in the same word."""
    if word.startswith("--"):
        name, mark, value = word.partition("=")
        return name, value if mark else None
    if word.startswith("-") and len(word) > 1:
        return word[:2], word[2:].removeprefix("=") or None
    raise ValueError(f"{word[:40]!r} is not an option, which begins with -; remove it")


def node_range(text: str) -> Fields:
    """The `text` of ``-N``: a number of nodes, or least-most."""
    least, mark, most = text.partition("-")
    found = {"min_nodes": values.whole(least, 1), "max_nodes": values.whole(most or least, 1)}
    if mark and found["max_nodes"] < found["min_nodes"]:
        raise ValueError("give the smaller number first")
    return found


def array(text: str) -> Fields:
    """The `text` of ``--array``: indices, ranges and steps, and how many run at once after %."""
    items, mark, most = text.partition("%")
    indices: dict[int, None] = {}
    for item in values.names(items):
        span, _, step = item.partition(":")
        first, dash, last = span.partition("-")
        begin, by = values.whole(first), values.whole(step, 1) if step else 1
        end = values.whole(last) if dash else begin
        if end < begin or end > MOST_INDEX:
            raise ValueError("give indices such as 0-15:2%4")
        indices |= dict.fromkeys(range(begin, end + 1, by))
    if not indices:
        raise ValueError("give indices such as 0-15:2%4")
    return {"array": (tuple(sorted(indices)), values.whole(most, 1) if mark else None)}


def _exclusive(text: str) -> Fields:
    if text not in ("", "user"):
        raise ValueError("give nothing or user")
    return {"exclusive": OF_USER if text else WHOLE_NODES, "oversubscribe": False}


def _cpus_per_task(text: str) -> Fields:
    return {"cpus_per_task": values.whole(text, 1), "cpus_are_given": True}


def _hint(text: str) -> Fields:
    return {"one_thread": True} if text == "nomultithread" else {}


def _threads(text: str) -> Fields:
    return {"one_thread": values.whole(text, 1) == 1}


def _switches(text: str) -> Fields:
    count, mark, wait = text.partition("@")
    found: Fields = {"switches": values.whole(count, 1)}
    if mark:
        found["switch_wait_s"] = values.seconds(wait)
    return found


def _gres(text: str) -> Fields:
    if text.lower() == "none":
        return {"gres": ()}
    found = values.gres(text)
    typed = {one.name for one in found if one.type is not None}
    if any(one.type is None and one.name in typed for one in found):
        raise ValueError("give a type to each or to none, as sbatch asks for it")
    return {"gres": found}


def _gpus(text: str) -> tuple[Gres, ...]:
    """The text of ``--gpus-per-node``: a count, or counts of types between commas."""
    return values.gres(",".join(f"{GPU}:{one}" for one in text.split(",")))


def _gres_flags(text: str) -> Fields:
    if text not in ("enforce-binding", "disable-binding"):
        raise ValueError("give enforce-binding or disable-binding")
    return {"enforce_binding": text == "enforce-binding"}


def _distribution(text: str) -> Fields:
    """Of the levels of ``-m``, that over sockets: the second, or plane."""
    first, _, rest = text.lower().partition(":")
    second = rest.split(":")[0].split(",")[0]
    word = "block" if first.startswith("plane") else second
    return {"distribution": word} if word in ("block", "cyclic") else {}


def _one(field: str, read: Callable[[str], Any]) -> _Reader:
    return lambda text: {field: read(text)}


def _one_qos(text: str) -> str:
    if "," in text:
        raise ValueError("give one QOS: several, as Slurm 24.11 has them, are not simulated")
    return text


def _passed_over(name: str, text: str) -> frozenset[str]:
    return frozenset((name,))


def _whole(least: int) -> Callable[[str], int]:
    return lambda text: values.whole(text, least)


_VALUED: dict[str, _Reader] = {
    "--account": _one("account", str),
    "--array": array,
    "--constraint": _one("constraint", str),
    "--cores-per-socket": _one("cores_per_socket", _whole(1)),
    "--cpus-per-gpu": _one("cpus_per_gpu", _whole(1)),
    "--cpus-per-task": _cpus_per_task,
    "--dependency": _one("dependency", str),
    "--distribution": _distribution,
    "--exclude": _one("exclude", values.hosts),
    "--exclusive": _exclusive,
    "--gpus": _one("gpus", _gpus),
    "--gpus-per-node": _one("gres", _gpus),
    "--gpus-per-socket": _one("gpus_per_socket", _gpus),
    "--gpus-per-task": _one("gpus_per_task", _gpus),
    "--gres": _gres,
    "--gres-flags": _gres_flags,
    "--hint": _hint,
    "--job-name": _one("name", str),
    "--licenses": _one("licenses", values.licenses),
    "--mem": _one("memory_per_node_MiB", values.mebibytes),
    "--mem-per-cpu": _one("memory_per_cpu_MiB", values.mebibytes),
    "--mem-per-gpu": _one("memory_per_gpu_MiB", values.mebibytes),
    "--mincpus": _one("least_cpus_per_node", _whole(1)),
    "--nice": _one("nice", lambda text: values.whole(text or NICE, -(2**31), 2**31)),
    "--nodelist": _one("nodelist", values.hosts),
    "--nodes": node_range,
    "--ntasks": _one("tasks", _whole(1)),
    "--ntasks-per-core": _one("tasks_per_core", _whole(1)),
    "--ntasks-per-gpu": _one("tasks_per_gpu", _whole(1)),
    "--ntasks-per-node": _one("tasks_per_node", _whole(1)),
    "--ntasks-per-socket": _one("tasks_per_socket", _whole(1)),
    "--partition": _one("partitions", values.names),
    "--prefer": _one("prefer", str),
    # Slurm takes 0 for none given.
    "--priority": _one("priority", lambda text: values.whole(text, 0, 2**32 - 1) or None),
    "--qos": _one("qos", _one_qos),
    "--reservation": _one("reservation", str),
    "--sockets-per-node": _one("sockets_per_node", _whole(1)),
    "--switches": _switches,
    "--threads-per-core": _threads,
    "--time": _one("limit_min", values.minutes),
    "--time-min": _one("time_min_min", values.minutes),
}
_FLAGS |= {name: {PASSED_OVER: frozenset((name,))} for name in _SILENT_FLAGS}
_VALUED |= {name: _one(PASSED_OVER, partial(_passed_over, name)) for name in _SILENT}

# The long options by their names with _ for -.
NAMES = {known.removeprefix("--").replace("-", "_"): known for known in sorted({*_FLAGS, *_VALUED})}


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
    tell_silent(silent, account)
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
    fields: dict[str, Any] = options(shlex.join(rest), True, unknown.append)
    silent |= fields.pop(PASSED_OVER, frozenset())
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
