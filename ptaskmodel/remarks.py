"""Collect the remarks on a run: every warning and note, and how it affects the results.

Every warning of the package passes `warn`, which keeps it for the run's summary.json. The command
line keeps and shows warnings of other packages (`keep`). What a reader made of a file is in an
`Account`: what it left unread, took for something else, assumed, or left out.

A function that reads a file is a `reader`: it gets the `Account` of the file after the path, and
tells it in passing. mypy refuses one that takes none, and, where a run reads its files, a function
that is no `Reader`.

    @reader(WorkloadError)
    def read_jobs(path: AnyPath, account: Account) -> Workload:
        account.unused("the column 'colour'", line=1, field="colour")
        account.taken("commas separate the fields")
        account.assumed("no memory: each job holds that of its nodes", field="ReqMem")
        for line, row in rows:
            with account.row(line):  # what is refused inside costs this row alone, and is told
                jobs.append(job_of(row))
        account.check_rows(len(rows))  # refuses the file if most of its rows cannot be read
        with account.problems(line):  # what is refused inside is a problem of the file
            ...
        return Workload(jobs)

    read_jobs(path)  # refuses the file with all its problems in one message; has the remarks

Whatever has remarks hands them to `for_summary`. The terminal shows the first of those that are
alike (`shortened`), summary.json has all that are kept.

Every command imports this at its start, ``--help`` too: what only some readers need is imported
where it is used.
"""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
)

from ptaskmodel.errors import BETWEEN_PROBLEMS, MOST_PROBLEMS, PTaskModelError

if TYPE_CHECKING:
    from ptaskmodel.files import AnyPath

WARNING, NOTE = "warning", "note"
LEVELS = (WARNING, NOTE)
# What every record of a summary has.
ALWAYS = ("level", "text", "effect")

OVERLOAD, STOPPED, KILLED, FAILED = "overload", "stopped", "killed", "failed"
REFUSED, NEVER_STARTED = "refused", "never started"
ESTIMATES_OUTLIVED, NO_ATTRIBUTION = "estimates outlived", "no attribution"
# What a remark says of the numbers beside it.
EFFECTS: Mapping[str, str] = {
    OVERLOAD: "more comes than can be served: waits and slowdowns grow with the length of the run",
    STOPPED: "the run ended early: means are over what had ended by then",
    KILLED: "jobs were cut off: their execution times are shorter than their work",
    FAILED: "work ended by a failure or was never done",
    REFUSED: "jobs were not let in: no number includes them",
    NEVER_STARTED: "jobs still waited at the end: means leave them out",
    ESTIMATES_OUTLIVED: "the scheduler planned with estimates that jobs exceeded",
    NO_ATTRIBUTION: "what limited whom was not recorded",
}

NOT_USED, TAKEN, ASSUMED, LEFT_OUT = "not used", "taken as", "assumed", "left out"
# Remarks of a kind on a field that are kept; of more the number is.
MOST = 1000


class Remark(NamedTuple):
    """One sentence on a run, or on a file that was read.

    effect: a key of `EFFECTS`; None: it changes no reading. kind: what remarks on a file have in
    common (see `Account`); where several are alike, the terminal shows the first. file, line,
    field: the place, where there is one; the text names the line, too. more: how many that
    are alike follow and are not kept.
    """

    text: str
    level: str = NOTE
    effect: str | None = None
    kind: str | None = None
    file: str | None = None
    line: int | None = None
    field: str | None = None
    more: int | None = None


_kept: ContextVar[dict[str, Remark] | None] = ContextVar("remarks", default=None)


def warn(text: str, effect: str | None = None, category: type[Warning] = UserWarning) -> None:
    """Issue a Python warning with this `text`, once a run, and keep it for the run's summary.

    effect: a key of `EFFECTS`; None: it changes no reading. category: class of the Python warning.
    """
    if text in (_kept.get() or ()):
        return
    keep(Remark(text, WARNING, effect))
    warnings.warn(text, category, stacklevel=3)


def warn_of(told: Sequence[Remark], category: type[Warning] = UserWarning) -> None:
    """Keep what is told of a file; issue one Python warning, of a `category`, of those alike."""
    for remark in told:
        keep(remark)
    token = _kept.set(None)  # the command line keeps what it shows
    try:
        for record in shortened(for_summary(told)):
            warnings.warn(record["text"], category, stacklevel=3)
    finally:
        _kept.reset(token)


def finding(line: int, kind: str, text: str) -> Remark:
    """A remark of a `kind`: a `text` on a `line` of a file, without the place (see `placed`)."""
    return Remark(text, WARNING, None, kind, None, line)


def keep(remark: Remark) -> None:
    """Keep a remark for the run that is being made, unless its text is kept already."""
    kept = _kept.get()
    if kept is not None:
        kept.setdefault(remark.text, remark)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Keep the remarks made inside, apart from those before: of one command, or of one run."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


@contextlib.contextmanager
def joining() -> Iterator[None]:
    """Keep the remarks made inside, with those of the command that this run is a part of."""
    with contextlib.nullcontext() if _kept.get() is not None else listening():
        yield


def for_summary(*more: Iterable[Remark | str]) -> list[dict[str, Any]]:
    """All remarks of a run for its summary.json: those kept, then more; each text once.

    Strings are notes without an effect. Of a remark on no file, the fields of a place are left out.
    """
    found: dict[str, Remark] = {}
    for each in ((_kept.get() or {}).values(), *more):
        for one in each:
            remark = Remark(one) if isinstance(one, str) else one
            found.setdefault(remark.text, remark)
    return [
        {
            name: value
            for name, value in remark._asdict().items()
            if name in ALWAYS or value is not None
        }
        for remark in found.values()
    ]


def shortened(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The records of a summary; of those alike on lines of a file the first, and how many follow.

    Alike: of the same level, effect, kind, file and field. Rows of JSON have no line.
    """
    alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        key = tuple(map(record.get, ("level", "effect", "kind", "file", "field")))
        is_row = record.get("line") is not None or key[:3] == (WARNING, None, LEFT_OUT)
        alike.setdefault(key if is_row else (record["text"],), []).append(record)
    found: list[Mapping[str, Any]] = []
    for first, *others in alike.values():
        more = len(others) + sum(each.get("more", 0) for each in (first, *others))
        text = f"{first['text']} (and {more:,} more such)" if more else first["text"]
        found.append({**first, "text": text})
    return found


_Group = tuple[str, str | None, str]


class _Catching:
    """A context that gives errors of a kind, and a line, to a function; entered for each row."""

    __slots__ = ("_error", "_line", "_tell")

    def __init__(
        self,
        error: type[PTaskModelError],
        tell: Callable[[PTaskModelError, int | None], None],
        line: int | None,
    ) -> None:
        self._error, self._tell, self._line = error, tell, line

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, self._error):
            return False
        self._tell(error, self._line)
        return True


class Account:
    """What is told while a file is read.

    Parameters
    ----------
    path : path
        The file.
    error : subclass of PTaskModelError
        What a file that cannot be read raises; what is caught of a row.
    """

    def __init__(self, path: AnyPath, error: type[PTaskModelError]) -> None:
        from ptaskmodel.files import shown_path

        self.file = shown_path(path)
        self.found: list[Remark] = []  # their texts without the place
        self._error = error
        self._counts: Counter[_Group] = Counter()
        # The first line and the number of those that are alike, by what is wrong.
        self._problems: dict[str, tuple[int | None, int]] = {}
        self._bad_rows: list[tuple[int | None, str]] = []
        self._num_rows = self._num_bad_rows = self._num_problems = 0

    def unused(self, what: str, line: int | None = None, field: str | None = None) -> None:
        """Tell `what` of the file has no effect, at a `line` and `field`."""
        self.tell(NOT_USED, what, line, field)

    def taken(self, what: str, line: int | None = None, field: str | None = None) -> None:
        """Tell `what` of the file was changed or taken for what else, at a `line` and `field`."""
        self.tell(TAKEN, what, line, field)

    def assumed(self, what: str, line: int | None = None, field: str | None = None) -> None:
        """Tell `what` was assumed, as the file does not say it, at a `line` and `field`."""
        self.tell(ASSUMED, what, line, field)

    def left_out(self, what: str, line: int | None = None, field: str | None = None) -> None:
        """Tell `what` that could be read was left out, at a `line` and `field`."""
        self.tell(LEFT_OUT, what, line, field)

    def tell(
        self,
        kind: str,
        what: str,
        line: int | None = None,
        field: str | None = None,
        level: str = NOTE,
    ) -> None:
        """Tell `what`, at a `line` and `field`; MOST of a `kind`, `field` and `level` are kept."""
        key = kind, field, level
        self._counts[key] += 1
        if self._counts[key] <= MOST:
            self.found.append(Remark(what, level, None, kind, self.file, line, field))

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All that was told, rows that were left out first."""
        rows = [
            Remark(f"left out: {what}", WARNING, None, LEFT_OUT, self.file, line)
            for line, what in self._bad_rows
        ]
        counts = self._counts | Counter({(LEFT_OUT, None, WARNING): self._num_bad_rows})
        told = []
        for remark in (*rows, *self.found):
            key = str(remark.kind), remark.field, remark.level
            more = counts.pop(key, 0) - MOST
            told.append(placed(remark if more <= 0 else remark._replace(more=more)))
        return tuple(told)

    def row(self, line: int | None) -> _Catching:
        """What is refused inside costs the row at a `line`: it is left out, and told."""
        return _Catching(self._error, self._bad_row_of, line)

    def _bad_row_of(self, error: PTaskModelError, line: int | None) -> None:
        self.bad_row(self._what(error, line), line)

    def bad_row(self, what: str, line: int | None = None) -> None:
        """The row at a `line` cannot be read (`what` is wrong), and is left out."""
        self._num_bad_rows += 1
        if self._num_bad_rows <= MOST:
            self._bad_rows.append((line, what))

    def table(self, text: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
        """The names of the columns of a CSV table, and its rows, each with its line.

        text: of the file; commas, else semicolons or tabs, separate columns. Rows that are no CSV,
        or have more or fewer fields, are left out, and so are lines that begin with #.
        """
        from ptaskmodel.csv_tables import csv_rows, separator

        rows = csv_rows(text)
        line, header = next((one for one in rows if one[1]), (1, []))
        if isinstance(header, str):
            raise self._error(f"{self.file}:{line}: {header}; write plain CSV")
        mark = separator(text)
        if mark != ",":
            name = "tabs" if mark == "\t" else "semicolons"
            self.taken(f"{name} separate the columns, as there are no commas in the first line")
        return [name.strip() for name in header], self._rows(rows, len(header))

    def _rows(
        self, rows: Iterable[tuple[int, list[str] | str]], columns: int
    ) -> Iterator[tuple[int, list[str]]]:
        for line, row in rows:
            if isinstance(row, str):
                self._num_rows += 1
                self.bad_row(f"{row}; write plain CSV", line)
                continue
            if not any(map(str.strip, row)):
                continue
            if row[0].startswith("#"):
                self.unused("the line begins with #, as a comment", line)
                continue
            self._num_rows += 1
            while len(row) > columns and not row[-1]:  # as spreadsheets write them
                row.pop()
            if len(row) != columns:
                fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
                self.bad_row(f"has {fields} instead of {columns}; give one for each column", line)
            else:
                yield line, row

    def check_rows(self, rows: int | None = None, bad: int | None = None) -> None:
        """Refuse the file if more than half of its rows cannot be read.

        rows: how many it has (None: `table` counted). bad: of these (None: those told).
        """
        bad = self._num_bad_rows if bad is None else bad
        if 2 * bad > (self._num_rows if rows is None else rows):
            others, self._problems = self._problems, {}
            self._tell_rows()
            self._problems |= others
            self._refuse()

    def problems(self, line: int | None = None) -> _Catching:
        """What is refused inside, at a `line`, is a problem; what follows is looked at too."""
        return _Catching(self._error, self.refused, line)

    def refused(self, error: PTaskModelError, line: int | None = None) -> None:
        """An `error` is a problem of the file, at the line that it names, else at a `line`."""
        named = re.match(rf"{re.escape(self.file)}:(\d+): ", error.message)
        line = line if named is None else int(named[1])
        self.problem(self._what(error, line), line)

    def problem(self, what: str, line: int | None = None) -> None:
        """The file cannot be read: `what` is wrong at a `line`; `check` raises it."""
        self._num_problems += 1
        first, number = self._problems.get(what, (line, 0))
        if number or len(self._problems) < MOST_PROBLEMS:
            self._problems[what] = first, number + 1

    @property
    def has_problems(self) -> bool:
        """Whether `check` raises."""
        return self._num_problems > 0

    def check(self) -> None:
        """Raise the error of this file with all its problems, if it has any."""
        if self.has_problems:
            self._tell_rows()  # what would have been left out is wrong as well
            self._refuse()

    def _tell_rows(self) -> None:
        """Bad rows are problems."""
        for line, what in self._bad_rows:
            self.problem(what, line)
        self._num_problems += self._num_bad_rows - len(self._bad_rows)

    def _refuse(self) -> NoReturn:
        """Raise the error of this file with all its problems."""
        named = [
            (line, f"{what} (and {number - 1:,} more such)" if number > 1 else what)
            for what, (line, number) in list(self._problems.items())[:MOST_PROBLEMS]
        ]
        if len(named) == 1:
            ((line, what),) = named
            place = self.file if line is None else f"{self.file}:{line}"
            raise self._error(f"{place}: {what}")
        named.sort(key=lambda one: one[0] or 0)
        lines = [what if line is None else f"line {line}: {what}" for line, what in named]
        rest = self._num_problems - sum(number for _, number in self._problems.values())
        lines += [f"and {rest:,} more"] if rest else []
        head = f"{self.file}: {self._num_problems:,} problems:"
        raise self._error(BETWEEN_PROBLEMS.join([head, *lines]))

    def _what(self, error: PTaskModelError, line: int | None) -> str:
        """The message of an error without the place that the account names itself."""
        text = error.message
        for place in (f"{self.file}:{line}: ", f"{self.file}: "):
            text = text.removeprefix(place)
        return text


P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Reader(Protocol[P, T_co]):
    """A function that reads a file and keeps an account of it: what `reader` makes of one."""

    keeps_account: Literal[True]

    def __call__(self, path: AnyPath, /, *args: P.args, **more: P.kwargs) -> T_co:
        """What the file at a path says."""
        ...


def reader(
    error: type[PTaskModelError], category: type[Warning] | None = None
) -> Callable[[Callable[Concatenate[AnyPath, Account, P], T]], Reader[P, T]]:
    """Make a function that takes a path and its `Account` a function of the path alone.

    error: what a file that cannot be read raises, with all its problems. What was told goes into
    the field `remarks` of what was read; if it has none, it becomes warnings (see `warn_of`).
    category: of Python warnings that tell the remarks of what was read, too.
    """
    import inspect

    def decorated(read: Callable[Concatenate[AnyPath, Account, P], T]) -> Reader[P, T]:
        @functools.wraps(read)
        def reading(path: AnyPath, /, *args: P.args, **more: P.kwargs) -> T:
            account = Account(path, error)
            found = read(path, account, *args, **more)
            account.check()
            return _told(found, account.remarks, category)

        signature = inspect.signature(read)
        place, _, *others = signature.parameters.values()
        made: Any = reading
        made.__signature__ = signature.replace(parameters=[place, *others])
        made.keeps_account = True
        return cast("Reader[P, T]", made)

    return decorated


def _told(found: T, remarks: Sequence[Remark], category: type[Warning] | None) -> T:
    """What was found, with further remarks, each of them once; warnings of a category tell them."""
    value: Any = found
    if not hasattr(value, "remarks"):
        warn_of(remarks)
        return found
    known = set(value.remarks)
    further = [one for one in remarks if one not in known]
    told = (*further, *value.remarks)
    if category is not None:
        warn_of(told, category)
    if not further:
        return found
    if isinstance(value, tuple):
        made = value._replace(remarks=told)  # type: ignore[attr-defined]
    else:
        import copy

        made = copy.copy(value)
        object.__setattr__(made, "remarks", told)  # it may be frozen
    return cast("T", made)


def placed(remark: Remark) -> Remark:
    """The remark with the place in its text, if it is on a line of its file."""
    if remark.line is None:
        return remark
    return remark._replace(text=f"{remark.file}:{remark.line}: {remark.text}")
