"""Split what sacct prints into rows: a table of ``sacct -P``, or the jobs of ``sacct --json``.

`sacct.read_sacct` makes jobs of the rows. Names and command lines in a table may hold bars and new
lines, which sacct does not mark: what a row has too many of goes to the columns of free text.
Source: Slurm's manual of sacct, and the description of its REST interface for the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.remarks import NOT_USED, WARNING, Account
from ptaskmodel.style.text import several

Row = Mapping[str, str]

# Columns in which people write what they like.
FREE = ("jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "extra")
NEVER = ("", "Unknown", "None", "N/A", "NONE", "None assigned")
JOB_ID = re.compile(
    r"(\d{1,10})(?:\+\d{1,10})?(?:_(?:(\d{1,10})|\[([^]|]*)\]))?(?:\.\S+)?", re.ASCII
)
# With more bars than this in one row there are too many ways to read it.
MOST_BARS = 1000

_NOTHING = r"|Unknown|None|NONE|N/A|INVALID|\?"
# Some columns are empty in rows of jobs, others in those of steps.
_NUMBER = re.compile(rf"(-?\d+(\.\d+)?[KMGTP]?[cn]?)?{_NOTHING}", re.ASCII)
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\S*|\d+{_NOTHING}", re.ASCII)
_LENGTH = re.compile(
    rf"((\d+-)?(\d+:)+\d+(\.\d+)?|\d+|UNLIMITED|Partition_Limit)?{_NOTHING}", re.ASCII
)
_STATE = re.compile(r"[A-Z_]+(\+| by \S+)?")
_CODE = re.compile(r"(\d+:\d+)?", re.ASCII)
_TRES = re.compile(r"([^\s=|,]+=[^\s=|,]+(,|$))*")
_WORD = re.compile(r"\S*")
FORMS: Mapping[str, re.Pattern[str]] = {
    "jobid": JOB_ID,
    **dict.fromkeys(("submit", "eligible", "start", "end"), _DATE),
    **dict.fromkeys(
        (
            *("elapsed", "timelimit", "cputime", "totalcpu", "usercpu", "systemcpu", "suspended"),
            *("planned", "plannedcpu", "reserved", "resvcpu"),
        ),
        _LENGTH,
    ),
    **dict.fromkeys(
        (
            *("elapsedraw", "timelimitraw", "cputimeraw", "plannedcpuraw", "resvcpuraw"),
            *("ncpus", "reqcpus", "alloccpus", "nnodes", "reqnodes", "allocnodes", "ntasks"),
            *("priority", "uid", "gid", "associd", "qosraw", "dbindex", "jobidraw", "reqmem"),
        ),
        _NUMBER,
    ),
    "state": _STATE,
    **dict.fromkeys(("exitcode", "derivedexitcode"), _CODE),
    **dict.fromkeys(("reqtres", "alloctres"), _TRES),
}


def value(row: Row, name: str, read: Callable[[str], Any]) -> Any:
    """What `read` makes of the column `name` of a `row`; None: it is empty.

    Raises SlurmError with the name.
    """
    text = row.get(name, "")
    if not text:
        return None
    try:
        return read(text)
    except ValueError as fault:
        raise SlurmError(f"{name} is {shown(text)}: {fault}") from None


def table_rows(
    text: str, header: Sequence[str], account: Account
) -> Iterator[tuple[int, Row | str]]:
    """The rows of a table, `text`, without its header, each with the number of its first line.

    A row that cannot be read is what is wrong with it. header: the names of the columns, in lower
    case; a last one that is empty stands for the bar at the end of each line, as -p prints it.
    account: is told of lines that go on with the last column of the row before.
    """
    ends_in_bar = header[-1] == ""
    names = header[:-1] if ends_in_bar else header
    count = len(names)
    held: list[str] = []  # the cells of a row that goes on in the next line
    since = goes_on = 0
    joined: list[int] = []  # rows with bars in columns that are not free text
    more: list[int] = []  # lines after a whole row that are none themselves
    for number, line in enumerate(text.split("\n")[1:], start=2):
        cells = line.split("|")
        if ends_in_bar and cells[-1] == "":
            cells.pop()
        if held and not _begins(cells, count, count - len(held)):
            held[-1] += "\n" + (cells[0] if cells else "")
            cells, held = [*held, *cells[1:]], []
        else:
            if held:
                yield since, _too_few(held, count)
            held, since = [], number
            beside = not any(cells) or (goes_on and JOB_ID.fullmatch(cells[0]) is None)
            if len(cells) < count and beside:
                more += [number] if any(cells) else []
                continue
        if len(cells) < count:
            held = cells
            continue
        if len(cells) > count:
            fitted = _fitted(cells, names) or (cells[:-1] if cells[count:] == [""] else [])
            if not fitted:
                yield (
                    since,
                    f"{len(cells)} fields instead of {count}, and no way to join them fits "
                    "the columns; give one for each column",
                )
                continue
            cells = fitted
            if any(
                "|" in cell for name, cell in zip(names, cells, strict=True) if name not in FREE
            ):
                joined.append(since)
        yield since, dict(zip(names, cells, strict=True))
        goes_on = names[-1] in FREE
    if held:
        yield since, _too_few(held, count)
    if joined:
        what = several(len(joined), "row has", "rows have")
        account.taken(f"{what} bars that were taken for part of a name{_at(joined)}")
    if more:
        what = several(len(more), "line goes", "lines go")
        account.taken(f"{what} on with the text of the row before{_at(more)}")


def _at(lines: Sequence[int]) -> str:
    """Where lines are, for a remark."""
    return f" (line {lines[0]})" if len(lines) == 1 else f" (the first is line {lines[0]})"


def _too_few(cells: Sequence[str], count: int) -> str:
    return f"{several(len(cells), 'field')} instead of {count}; give one for each column"


def _begins(cells: Sequence[str], count: int, missing: int) -> bool:
    """Whether a line begins a row, of `count` fields, after one of which some are missing."""
    if not cells or JOB_ID.fullmatch(cells[0]) is None:
        return False
    completes = len(cells) == missing + 1 < count
    return len(cells) >= missing and not completes


def _fitted(cells: Sequence[str], names: Sequence[str]) -> list[str] | None:
    """A cell for each column, of a row that has too many: columns of free text hold bars.

    Of all ways that let each column of known form be read it is that in which the first column of
    free text has most. None: there is none.
    """
    if len(cells) - len(names) > MOST_BARS:
        return None
    forms = [None if name in FREE else FORMS.get(name, _WORD) for name in names]
    return _dealt(cells, forms) or _dealt(cells, [FORMS.get(name) for name in names])


def _dealt(cells: Sequence[str], forms: Sequence[re.Pattern[str] | None]) -> list[str] | None:
    """The same for columns of these forms; None: free text."""
    surplus = len(cells) - len(forms)
    # Of each column on, what surplus it and those behind it can hold.
    can: list[Sequence[int]] = [(0,)]
    for column in range(len(forms) - 1, -1, -1):
        form = forms[column]
        if form is not None:
            first = column + surplus
            can.append([x for x in can[-1] if form.fullmatch(cells[first - x]) is not None])
        else:
            can.append(range(can[-1][0], surplus + 1) if can[-1] else ())
    if surplus not in can[-1]:
        return None
    found: list[str] = []
    left, place = surplus, 0
    for column, form in enumerate(forms):
        behind = can[len(forms) - column - 1]
        after = left if form is not None else behind[0]
        found.append("|".join(cells[place : place + 1 + left - after]))
        place += 1 + left - after
        left = after
    return found


# Marks of Slurm for numbers that are not set, and for no limit; of memory of each CPU.
_NO_VALUE, _INFINITE = (2**32 - 2, 2**64 - 2), (2**32 - 1, 2**64 - 1)
_OF_CPU = 2**63
_NUMBERS = (int, float, type(None))


SHOWN = 4
# Of the document of a JSON: what is read, and who printed it, which changes nothing.
_HEAD = frozenset({"jobs", "meta", "plugin", "errors", "warnings"})


def tell_unused(names: Sequence[str], whose: str, account: Account) -> None:
    """Tell the `account` which `names` nothing reads. whose: what they are the names of."""
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        account.unused(f"{whose} that are not used: {', '.join(map(shown, names[:SHOWN]))}{more}")


def _tell_head(document: Mapping[str, Any], account: Account) -> None:
    """Tell what stands beside the jobs: what sacct reports, and what it does not print."""
    for name in ("errors", "warnings"):
        told = document.get(name) or []
        for each in told if isinstance(told, list) else [told]:
            text = each.get("description", each) if isinstance(each, dict) else each
            account.tell(
                NOT_USED, f"sacct printed under {name}: {shown(text)}", None, name, WARNING
            )
    tell_unused([name for name in document if name not in _HEAD], "fields", account)


def json_rows(document: Any, account: Account) -> Iterator[tuple[str, Row | str]]:
    """The jobs of a `document` of ``sacct --json`` as rows of a table, with JSON pointers.

    A job with a value of a wrong type is what is wrong with it. account: of the file, is told of
    what is not read. Raises SlurmError if there is no list of jobs.
    """
    where = account.file
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise SlurmError(f"{where}: /jobs: is not a list; give the output of sacct --json")
    if jobs and isinstance(jobs[0], dict) and "submit_time" in jobs[0]:
        raise SlurmError(
            f"{where}: /jobs/0: is a job of squeue or scontrol; give the output of sacct --json"
        )
    _tell_head(document, account)
    for place, job in enumerate(jobs):
        row: Row | str
        try:
            row = {name: read(job) for name, read in _OF_JSON.items()}
        except ValueError as fault:
            row = str(fault)
        yield f"/jobs/{place}", row


def _part(job: Any, *path: str) -> Any:
    """A value inside a job; None if it is not there. Raises ValueError if it is in no object."""
    for depth, name in enumerate(path):
        if job is None:
            return None
        if not isinstance(job, dict):
            raise _wrong(path[:depth], job, "an object")
        job = job.get(name)
    return job


def _wrong(path: Sequence[str], value: Any, instead: str) -> ValueError:
    where = "/".join(path) or "the job"
    return ValueError(f"{where} is {shown(value)}; give {instead}, as sacct prints")


def _text(*path: str) -> Callable[[Any], str]:
    def read(job: Any) -> str:
        value = _part(job, *path)
        if type(value) is list and len(value) > 0 and path[0] == "state":
            value = value[0] if len(value) == 1 else " ".join(map(str, value))
        if value in (None, []):
            return ""
        if type(value) not in (str, int):
            raise _wrong(path, value, "a text")
        return str(value)

    return read


def _amount(job: Any, *path: str) -> Any:
    """A number, or UNLIMITED; None if it is not set.

    Since 23.02 it is printed as {set, infinite, number}; before, marks stand for the first two.
    """
    value = _part(job, *path)
    if isinstance(value, dict):
        if value.get("infinite"):
            return "UNLIMITED"
        value = value.get("number") if value.get("set", True) else None
    if type(value) not in _NUMBERS:
        raise _wrong(path, value, "a number")
    if value in _NO_VALUE:
        return None
    return "UNLIMITED" if value in _INFINITE else value


def _number(*path: str, unit: str = "") -> Callable[[Any], str]:
    """A number as text; "" if it is not set or 0."""

    def read(job: Any) -> str:
        value = _amount(job, *path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return f"{value}{unit}" if value else ""

    return read


def _date(*path: str) -> Callable[[Any], str]:
    """Unix seconds as text, or a date that is a text already."""
    number = _number(*path)

    def read(job: Any) -> str:
        value = _part(job, *path)
        return value if isinstance(value, str) else number(job)

    return read


def _id(job: Any) -> str:
    array, index = _number("array", "job_id")(job), _amount(job, "array", "task_id")
    tasks = _text("array", "task")(job).strip("[]")
    if array and index is not None:
        return f"{array}_{index}"
    if array and tasks:
        return f"{array}_[{tasks}]"
    het = _number("het", "job_id")(job)
    if het:
        return f"{het}+{_number('het', 'job_offset')(job) or 0}"
    return _number("job_id")(job)


def _tres(which: str) -> Callable[[Any], str]:
    def read(job: Any) -> str:
        found = _part(job, "tres", which)
        parts = []
        if found is not None and type(found) is not list:
            raise _wrong(("tres", which), found, "a list")
        for one in found or ():
            if type(one) is not dict:
                raise _wrong(("tres", which), one, "objects")
            kind, name, count = map(one.get, ("type", "name", "count"))
            parts.append(f"{kind}/{name}={count}" if name else f"{kind}={count}")
        return ",".join(parts)

    return read


def _memory(job: Any) -> str:
    """What was asked for of each CPU or node.

    Before 23.02, one number: of each CPU if its highest bit is set.
    """
    both = _amount(job, "required", "memory")
    if isinstance(both, int) and both:
        of_cpu = both < 0 or both >= _OF_CPU
        return f"{both % _OF_CPU}{'Mc' if of_cpu else 'Mn'}"
    return _number("required", "memory_per_cpu", unit="Mc")(job) or _number(
        "required", "memory_per_node", unit="Mn"
    )(job)


def _code(job: Any) -> str:
    return f"{_number('exit_code', 'return_code')(job) or 0}:0"


_OF_JSON: Mapping[str, Callable[[Any], str]] = {
    "jobid": _id,
    "jobname": _text("name"),
    "user": lambda job: _text("user")(job) or _text("association", "user")(job),
    "account": _text("account"),
    "qos": _text("qos"),
    "partition": _text("partition"),
    "constraints": _text("constraints"),
    "nodelist": _text("nodes"),
    "submit": _date("time", "submission"),
    "eligible": _date("time", "eligible"),
    "start": _date("time", "start"),
    "end": _date("time", "end"),
    "elapsedraw": _number("time", "elapsed"),
    "timelimitraw": _number("time", "limit"),
    "allocnodes": _number("allocation_nodes"),
    "reqcpus": _number("required", "CPUs"),
    "reqtres": _tres("requested"),
    "alloctres": _tres("allocated"),
    "reqmem": _memory,
    "state": _text("state", "current"),
    "exitcode": _code,
}
