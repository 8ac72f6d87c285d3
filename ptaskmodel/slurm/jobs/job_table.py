"""Read ``jobs.csv``: jobs with their run times, each with its options of sbatch."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.csv_tables import is_header, separator
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs import sbatch
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, ArrayTask, JobRequest, Submissions
from ptaskmodel.workload.works import DelayWork

MOST_JOBS = 1_000_000
NEEDED = ("id", "submit", "run")
SCRIPT = "script"
LIMITS = ("limit", "time", SCRIPT)
MOST_SCRIPT_BYTES = 1_000_000
Fields = dict[str, Any]
# Jobs of which a row says one of these may share their nodes.
_PARTS_OF_NODES = {
    *("tasks", "cpus_per_task", "tasks_per_node", "gpus", "gpus_per_task", "gpus_per_socket"),
    *("cpus_per_gpu", "tasks_per_gpu"),
}
_WHOLE_ALL_THE_SAME = (
    "jobs that name nodes but no cores get whole nodes, also where extra asks for CPUs, GPUs or "
    "tasks of nodes; exclusive 0 gives parts of nodes"
)
_WHOLE_WITH_GRES = (
    "jobs that ask for gres or gpus_per_node, but for no cores, tasks or --gpus, get whole nodes; "
    "-n or exclusive 0 gives parts of nodes"
)
EXTRA = "extra"
# Run times, and cells of the columns that are not needed, that are read once: many jobs are alike.
KEPT = 10_000


class Column(NamedTuple):
    """A column that is none of sbatch's options. read: the fields of a request that it gives."""

    help: str
    read: Callable[[str], Fields]


def _seconds(text: str) -> float:
    value = values.number(text)
    if value > values.LONGEST_S:
        raise ValueError("give seconds, less than 20 years")
    return value


@lru_cache(KEPT)
def _work(text: str) -> DelayWork:
    return DelayWork(_seconds(text))


def _exclusive(text: str) -> Fields:
    """Whole nodes (1), parts of them (0), or nodes that no other user has (user)."""
    if text in ("0", "1"):
        return {"exclusive": WHOLE_NODES if text == "1" else None}
    return sbatch.option("exclusive", text)


COLUMNS: Mapping[str, Column] = {
    "id": Column("Name of the job; `depend` of other jobs uses it. Required.", lambda text: {}),
    "submit": Column("Submission time, s. Required.", lambda text: {"submit_s": _seconds(text)}),
    "run": Column(
        "Run time unless the job is killed, s. Required.",
        lambda text: {"work": _work(text)},
    ),
    "limit": Column(
        "Time limit, s, rounded up to minutes. This or `time` is required.",
        lambda text: {"limit_min": math.ceil(_seconds(text) / 60)},
    ),
    "nodes": Column("Number of nodes: N, or MIN-MAX.", sbatch.node_range),
    "cores": Column(
        "Number of tasks, as `ntasks`. Without this and other columns of tasks, CPUs or GPUs "
        "(but `gres` and `gpus_per_node`), a job gets whole nodes.",
        lambda text: {"tasks": values.whole(text, 1)},
    ),
    "tasks": Column("Same as `cores`.", lambda text: {"tasks": values.whole(text, 1)}),
    "exclusive": Column(
        "1: whole nodes; 0: parts of nodes; user: no other user on them.", _exclusive
    ),
    "user": Column("User who submits the job.", lambda text: {"user": text}),
    "depend": Column(
        "Same as `dependency`, with ids of this file.", lambda text: {"dependency": text}
    ),
    "begin": Column("Earliest start, s.", lambda text: {"begin_s": _seconds(text)}),
    "deadline": Column("Latest end, s.", lambda text: {"deadline_s": _seconds(text)}),
    SCRIPT: Column(
        "A script, relative to this file: its `#SBATCH` lines are the job's options. Other columns "
        "win, as options of a command line do. Its job gets parts of nodes, as with sbatch.",
        lambda text: {},
    ),
    EXTRA: Column(
        "Further sbatch options, as on its command line. With `-n` a job gets parts of nodes, "
        "without the column `nodes` also with `-N` and options of tasks, CPUs and GPUs (but "
        "`--gres` and `--gpus-per-node`).",
        sbatch.options,
    ),
}


def looks_like(start: bytes) -> bool:
    """Whether a file that begins with `start` may be one."""
    text = start.decode("utf-8-sig", "replace")
    first = next((line for line in text.split("\n") if is_header(line)), "")
    names = _names(first.split(separator(text)))
    return set(NEEDED) <= set(names) and not set(LIMITS).isdisjoint(names)


def _names(cells: Sequence[str]) -> list[str]:
    """Columns as this reader calls them: of sbatch's options - and _ mean the same."""
    return [cell.strip().lstrip("-").lower().replace("-", "_") for cell in cells]


@reader(SlurmError)
def read_jobs(path: AnyPath, account: Account, phase_s: float = PHASE_S) -> Submissions:
    """The jobs of the ``jobs.csv`` at `path`, each submitted ``phase_s`` after its date there.

    Its columns are those of `COLUMNS` and sbatch's long options by their names (`sbatch.NAMES`); of
    options without a value 1 or yes says that they are given. What no column is known for is told.

    A row that cannot be read is left out, and told. account: of the file. Raises SlurmError with
    file and line, if most rows are such.
    """
    silent: set[str] = set()
    assumed: set[str] = set()
    text = read_text(path, error=SlurmError, told=account.taken)
    if not looks_like(text[:4096].encode()):
        raise SlurmError(
            f"{account.file}:1: columns are missing; give id, submit, limit and run, "
            "separated by commas"
        )
    found: list[JobRequest] = []
    seen: dict[str, int] = {}
    names, rows = account.table(text)
    header = _names(names)
    readers = _readers(header, account)
    folder = Path(path).parent
    id_at, submit_at, run_at = map(header.index, NEEDED)
    others = itemgetter(*(k for k, name in enumerate(header) if name not in NEEDED))
    kept: dict[Any, Fields] = {}  # of jobs that are alike but for the columns that are needed
    for line, row in rows:
        with account.row(line):
            cells = [cell.strip() for cell in row]
            name = cells[id_at]
            if (before := seen.setdefault(name, line)) != line:
                raise SlurmError(
                    f"job {shown(name)} also occurs in line {before}; give each job its own id"
                )
            if not name or not name.isprintable():
                raise SlurmError(f"id is {shown(name)}; give a printable name")
            fields = {
                "name": name,
                "where": f"{account.file}:{line}",
                "submit_s": _value("submit", cells[submit_at], _seconds) + phase_s,
                "work": _value("run", cells[run_at], _work),
            }
            common = kept.get(key := others(cells))
            if common is None:
                if len(kept) >= KEPT:
                    kept.clear()
                of_row = dict(zip(header, cells, strict=True))
                kept[key] = common = _common(of_row, readers, folder, silent, assumed)
            fields |= common
            found += _of_array(name, fields) if "array" in fields else (JobRequest(name, **fields),)
        if len(found) > MOST_JOBS:
            raise SlurmError(f"{account.file}: has more than {MOST_JOBS:,} jobs; split the file")
    account.check_rows()
    if not found:
        raise SlurmError(f"{account.file}:1: has no jobs below the header; add rows")
    sbatch.tell_silent(silent, account)
    for what in assumed:
        account.assumed(what, field=EXTRA)
    return Submissions(tuple(sorted(found, key=lambda job: job.submit_s)))


_Readers = Sequence[tuple[str, Callable[[str], Fields]]]


def _readers(header: Sequence[str], account: Account) -> _Readers:
    """What reads each column that is not needed, ``extra`` last; those not known are told."""
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise SlurmError(f"{account.file}:1: the column {shown(twice)} occurs twice; remove one")
    unknown = [name for name in header if name not in COLUMNS and name not in sbatch.NAMES]
    if unknown:
        account.unused(f"columns that are not used: {', '.join(map(shown, unknown))}", 1)
    known = [name for name in header if name not in (*unknown, *NEEDED, SCRIPT)]
    known.sort(key=EXTRA.__eq__)
    return [(name, COLUMNS[name].read if name in COLUMNS else _of_sbatch(name)) for name in known]


def _of_sbatch(name: str) -> Callable[[str], Fields]:
    return lambda text: sbatch.option(name, text)


def _of_script(name: str, folder: Path) -> Fields:
    """The fields that a script gives; none without one."""
    if not name:
        return {}
    text = read_text(folder / name, most=MOST_SCRIPT_BYTES, error=SlurmError)
    try:
        return sbatch.script_options(text)
    except ValueError as fault:
        raise SlurmError(f"script {shown(name)}: {fault}") from None


def _value(column: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as fault:
        raise SlurmError(f"{column} is {shown(text)}: {fault}") from None


def _common(
    row: Mapping[str, str],
    readers: _Readers,
    folder: Path,
    silent: set[str],
    assumed: set[str],
) -> Fields:
    """What a row gives but its columns that are needed.

    silent: is given options of no effect. assumed: is given what is assumed of the row.
    """
    by_script = _of_script(row.get(SCRIPT, ""), folder)
    given: Fields = {}
    own: Fields = {}  # what columns but extra, which is the last, give
    for column, read in readers:
        if not row[column]:
            continue
        more = _value(column, row[column], read)
        if column == EXTRA:
            given = more
            continue
        if not own.keys().isdisjoint(more):
            _check_once(own.keys() & more.keys() - {sbatch.PASSED_OVER}, row, readers, column)
        own = sbatch.joined(own, more)
    asks_parts = not _PARTS_OF_NODES.isdisjoint(given)
    of_extra = "tasks" in given or ("min_nodes" not in own and (asks_parts or "min_nodes" in given))
    parts = row.get(SCRIPT) or of_extra or not _PARTS_OF_NODES.isdisjoint(own)
    whole = None if parts else WHOLE_NODES
    given = sbatch.joined(sbatch.joined(by_script, own), given)
    if whole and "exclusive" not in given and (asks_parts or given.get("gres")):
        assumed.add(_WHOLE_ALL_THE_SAME if asks_parts else _WHOLE_WITH_GRES)
    silent |= given.pop(sbatch.PASSED_OVER, set())
    if "limit_min" not in given:
        nor = f", nor has {shown(script)}" if (script := row.get(SCRIPT)) else ""
        raise SlurmError(f"has no time limit{nor}; give limit (s), or time in sbatch's format")
    return {"exclusive": whole} | given


def _of_array(name: str, fields: Fields) -> Iterator[JobRequest]:
    """The tasks of an array."""
    indices, at_most = fields.pop("array")
    for index in indices:
        yield JobRequest(f"{name}_{index}", array=ArrayTask(name, index, at_most), **fields)


def _check_once(
    fields: Collection[str], row: Mapping[str, str], readers: _Readers, column: str
) -> None:
    """No column before another gives one of the fields that this gives, too."""
    for before, read in readers:
        if before == column:
            return
        if row.get(before) and not read(row[before]).keys().isdisjoint(fields):
            raise SlurmError(f"{before} and {column} set the same field; keep one")
