"""The command line: it imports each subcommand on use, and reports every kind of failure.

A wrong command line gives one line that says what to give instead. ``--help`` imports little more
than click.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from ptaskmodel import __version__
from ptaskmodel.cli.command import HELP, TYPED, Group, tell
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.interrupts import taken
from ptaskmodel.memory import available_bytes, collector_seldom

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_OF_BATSIM = ("-p", "-w", "-e", "-s", "--platform", "--workload", "--export")
_WITHOUT_SCHEDULER = ("--no-sched", "--batexec")
_OF_FLOWS = ("--routing", "--routes", "--draws", "--network-level", "--network-parameters")
_OF_JOBS = ("batch", "serve", "slurm")
_NOT_WHOLE = re.compile(r"is not a valid integer( range)?$")
USER_ERROR = 2
BY_SIGNAL = 128
PIPE_CLOSED = 141  # 128 + SIGPIPE
# A command line of these alone runs nothing that logs or warns.
ANSWERED_AT_ONCE = frozenset({*HELP["help_option_names"], "--version"})
# What writing to standard output can end in (files of ours are looked after in `files`).
OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
RUN, PREPARE, LOOK, STUDY = "Run", "Prepare", "Look", "Study"


def mistake_text(error: click.UsageError) -> str:
    """One line on a mistake in a command line: the command, what is wrong, what it takes."""
    context = error.ctx
    message = " ".join(error.format_message().split()).rstrip(".")
    if context is None:
        return message
    command = context.command_path.partition(" ")[2]
    if isinstance(error, click.MissingParameter) and error.param is not None:
        message = f"{_missing(error.param)}; give {_usage(context)}"
    elif isinstance(error, click.BadParameter):
        return _NOT_WHOLE.sub("is not a whole number; give one", message)
    elif command == "batch" and getattr(error, "option_name", None) in _OF_BATSIM:
        message += "; give PLATFORM WORKLOAD -o DIR, or take Batsim's options with `batsim`"
    elif command in _OF_JOBS and getattr(error, "option_name", None) in _OF_FLOWS:
        option = error.option_name  # type: ignore[attr-defined]
        message = f"No option '{option}': jobs take the routes of the platform, as rates; simulate"
        message += f" those that run at once as tasks, with `simulate {option}`"
    elif command == "report" and message.startswith("Got unexpected extra argument"):
        message = "a page is about one run; for several use `ptaskmodel compare A B --page FILE`"
    elif getattr(error, "option_name", None) in _WITHOUT_SCHEDULER:
        message = f"No such option '{error.option_name}'; use ptaskmodel batch --policy fcfs"  # type: ignore[attr-defined]
    what = f"{command}: {message}" if command else message
    return f"{what} (`{context.command_path} --help` says more)"


def _missing(parameter: click.Parameter) -> str:
    """What is missing, and what it may be."""
    name = parameter.human_readable_name
    if isinstance(parameter, click.Option):
        name = max(parameter.opts, key=len)
    if isinstance(parameter.type, click.Choice):
        return f"{name} is missing, one of {', '.join(parameter.type.choices)}"
    return f"{name} is missing"


def _usage(context: click.Context) -> str:
    """The command with what it cannot do without."""
    parts = [context.command_path]
    for parameter in context.command.params:
        if isinstance(parameter, click.Argument):
            parts.append(parameter.human_readable_name)
        elif parameter.required:
            parts.append(f"{parameter.opts[0]} {parameter.metavar or str(parameter.name).upper()}")
    return " ".join(parts)


class Entry(NamedTuple):
    """Where a subcommand lives, and its line of help (so that --help imports none of them)."""

    place: str
    help: str


SECTIONS = {
    RUN: {
        "demo": Entry(
            "ptaskmodel.cli.commands.demo:demo", "Run the first example, and explain its result."
        ),
        "simulate": Entry("ptaskmodel.cli.commands.simulate:simulate", "Run tasks on a platform."),
        "batch": Entry(
            "ptaskmodel.cli.commands.batch:batch", "Schedule a workload of jobs on a platform."
        ),
        "slurm": Entry(
            "ptaskmodel.cli.commands.batch:slurm", "Simulate a slurm.conf on a workload."
        ),
        "slurm-live": Entry(
            "ptaskmodel.cli.commands.batch:slurm_live",
            "Run a real Slurm on simulated nodes.",
        ),
        "replay": Entry(
            "ptaskmodel.cli.commands.simulate:replay", "Replay traces of an MPI application."
        ),
        "serve": Entry(
            "ptaskmodel.cli.commands.batsim:serve", "Connect a scheduler written for Batsim."
        ),
    },
    PREPARE: {
        "init": Entry(
            "ptaskmodel.cli.commands.demo:init", "Create a project: platform, tasks, notebook."
        ),
        "platform": Entry(
            "ptaskmodel.cli.commands.platform:platform", "Inspect, check or draw a platform file."
        ),
        "tasks": Entry("ptaskmodel.cli.commands.simulate:tasks", "Check a tasks file."),
        "workload": Entry(
            "ptaskmodel.cli.commands.workload:workload",
            "Inspect, generate and transform workloads.",
        ),
        "trace": Entry(
            "ptaskmodel.cli.commands.trace:trace", "Inspect, generate and convert MPI traces."
        ),
        "warmup": Entry(
            "ptaskmodel.cli.commands.demo:warmup", "Does nothing any more (until 0.3)."
        ),
    },
    LOOK: {
        "report": Entry(
            "ptaskmodel.cli.commands.results:report", "Write an HTML page about a run."
        ),
        "plot": Entry("ptaskmodel.cli.commands.results:plot", "Draw the results of a run."),
        "compare": Entry("ptaskmodel.cli.commands.results:compare", "Compare two or more runs."),
        "schema": Entry(
            "ptaskmodel.cli.commands.results:schema", "Print the JSON Schema of a file."
        ),
    },
    STUDY: {
        "campaign": Entry(
            "ptaskmodel.cli.commands.campaign:campaign", "Make, save and compare many runs."
        ),
        "calibrate": Entry(
            "ptaskmodel.cli.commands.calibrate:command", "Fit parameters to measured runtimes."
        ),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class LazyGroup(Group):
    """A group whose commands are in SECTIONS."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [name for name in COMMANDS if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name].help) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])


@click.group(cls=LazyGroup, context_settings=HELP)
@click.version_option(__version__, prog_name="ptaskmodel")
def program() -> None:
    """How long parallel applications take when they share a platform.

    Begin with `ptaskmodel demo`; then `ptaskmodel init NAME` for a project of your own.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done. 2: a mistake of the user, told in one line on stderr. 128 and more: ended by that
    signal (130: Ctrl-C), after all is cleaned up. Our own bugs keep their traceback (and Python's
    exit code 1).
    """
    if "_PTASKMODEL_COMPLETE" in os.environ:
        program.main(prog_name="ptaskmodel")
    return run_as(program, "ptaskmodel", arguments)


def run_as(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command as a program of that name; the exit codes are those of `main`."""
    given = sys.argv[1:] if arguments is None else arguments
    # The context takes the list apart; what was typed for this program can be run once more.
    typed = tuple(given) if arguments is None and command is program else None
    with taken(), _alone() if arguments is None else contextlib.nullcontext():
        if set(given) <= ANSWERED_AT_ONCE:
            return _exit_code(command, name, list(given), typed)
        from ptaskmodel.cli.progress import talking

        with talking():
            return _exit_code(command, name, list(given), typed)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Nothing but a command runs in this process, which ends with it.

    Waiting threads of BLAS, which numpy starts, sleep instead of spinning for 2**26 cycles. When
    Python ends, it searches nothing that is there now for cycles.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    with collector_seldom():
        try:
            yield
        finally:
            gc.freeze()


def _exit_code(
    command: click.Command, name: str, given: list[str], typed: tuple[str, ...] | None
) -> int:
    try:
        with command.make_context(name, given) as context:
            context.meta[TYPED] = typed
            command.invoke(context)
        if sys.stdout is not None:  # as it is where it was closed
            sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USER_ERROR
    except click.UsageError as error:
        tell(f"error: {mistake_text(error)}")
        return USER_ERROR
    except click.ClickException as error:
        tell(f"error: {error.format_message()}")
        return USER_ERROR
    except PTaskModelError as error:
        _tell_more(error.__cause__)
        tell(f"error: {error}")
        return USER_ERROR
    except MemoryError as error:
        _tell_more(error)
        free = f"{available_bytes():,} bytes are free"
        tell(f"error: the memory does not suffice: {free}; give less, or take a larger machine")
        return USER_ERROR
    except (KeyboardInterrupt, click.Abort) as end:
        tell("interrupted")
        return BY_SIGNAL + getattr(end, "number", signal.SIGINT)
    except BrokenPipeError:
        _forget_output()
        return PIPE_CLOSED
    except OSError as error:
        if error.filename is None and error.errno not in OUTPUT_ERRORS:
            raise
        _forget_output()
        tell(f"error: {error.filename or 'standard output'}: {error.strerror}")
        return USER_ERROR
    return 0


def _tell_more(error: BaseException | None) -> None:
    """The traceback of an `error`, if one asks for more than messages (-v)."""
    from ptaskmodel.cli.progress import is_verbose

    if error is not None and is_verbose():
        import traceback

        traceback.print_exception(error)


def _forget_output() -> None:
    """Python flushes stdout once more when it ends: give it a place that takes it."""
    with contextlib.suppress(AttributeError, OSError):  # it was closed, or is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
