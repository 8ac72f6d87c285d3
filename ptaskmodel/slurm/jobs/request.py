"""The request of a job: its submission, its real behaviour, and its ``--constraint`` on nodes.

``[a|b]``: all nodes of one kind, the first kind that suffices. ``a*2``, ``[a*1&b*2]``: numbers of
nodes with a feature; in brackets, different nodes for each.
Source: sbatch's manual, and `build_feature_list` and `valid_feature_counts` of Slurm 22.05.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from ptaskmodel.remarks import Remark
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.workload.works import Work

# More nodes than there are.
UNBOUNDED = 1 << 30
WHOLE_NODES, OF_USER = "nodes", "user"


def _nothing() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ArrayTask:
    """Where a job stands in an array. job: the array's id. at_most: how many run at once."""

    job: str
    index: int
    at_most: int | None = None


class Command(NamedTuple):
    """What is done to a job by hand. action: cancel, hold, release, suspend, resume, requeue."""

    date_s: float
    action: str


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What sbatch was told of a job, and its true work.

    Dates are seconds from the simulation's date 0; ``run_s`` (None: the platform decides) is how
    long it runs unless killed. None: not given, so that the defaults of partition, account or
    Slurm hold.

    partitions: none: the default one. limit_min: whole minutes, as sbatch rounds them up.
    cpus_are_given: whether it gave the CPUs of a task. least_cpus: in all, where they do not follow
    from its tasks. fewer_tasks: those that it asked for, if its GPUs want more nodes.
    least_cpus_per_node: as ``--mincpus``. memory: at most one of both; 0 asks for
    all of a node's. cpus_raised: by how much MaxMemPerCPU multiplied the CPUs of a task.
    gres: of each node; gpus, gpus_per_socket, gpus_per_task: as the options of
    these names, and so cpus, memory and tasks for each GPU. enforce_binding: as ``--gres-flags``.
    constraint, prefer: as the options. exclusive: ``"nodes"`` or ``"user"``. distribution:
    ``"block"`` or ``"cyclic"`` over sockets. dependency: as ``--dependency``, with ids of the
    workload; think_s: how long it waits after the last of these has ended.
    fails: whether its exit code is not 0. stubborn: it ignores SIGTERM, so that KillWait passes.
    logged_wait_s: how long it waited in the log that it is from, s; None: not known.
    """

    id: str
    submit_s: float
    work: Work
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    name: str | None = None
    partitions: tuple[str, ...] = ()
    min_nodes: int | None = None
    max_nodes: int | None = None
    tasks: int | None = None
    cpus_per_task: int = 1
    cpus_are_given: bool = False
    least_cpus: int | None = None
    fewer_tasks: int | None = None
    tasks_per_node: int | None = None
    least_cpus_per_node: int = 1
    memory_per_node_MiB: int | None = None
    memory_per_cpu_MiB: int | None = None
    cpus_raised: int = 1
    gres: tuple[Gres, ...] = ()
    gpus: tuple[Gres, ...] = ()
    gpus_per_socket: tuple[Gres, ...] = ()
    gpus_per_task: tuple[Gres, ...] = ()
    cpus_per_gpu: int | None = None
    memory_per_gpu_MiB: int | None = None
    tasks_per_gpu: int | None = None
    enforce_binding: bool = False
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    tasks_per_socket: int | None = None
    tasks_per_core: int | None = None
    constraint: str | None = None
    prefer: str | None = None
    nodelist: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    contiguous: bool = False
    spread: bool = False
    one_thread: bool = False
    switches: int | None = None
    switch_wait_s: int | None = None
    distribution: str | None = None
    exclusive: str | None = None
    oversubscribe: bool = False
    limit_min: int | None = None
    time_min_min: int | None = None
    begin_s: float | None = None
    deadline_s: float | None = None
    nice: int = 0
    priority: int | None = None
    hold: bool = False
    dependency: str | None = None
    think_s: float = 0.0
    array: ArrayTask | None = None
    licenses: Mapping[str, int] = field(default_factory=_nothing)
    reservation: str | None = None
    requeue: bool | None = None
    fails: bool = False
    stubborn: bool = False
    commands: tuple[Command, ...] = ()
    logged_wait_s: float | None = None
    where: str = ""

    @property
    def run_s(self) -> float | None:
        """How long it runs whatever the platform, s; None: that depends on it."""
        return self.work.duration_s

    @property
    def cpus(self) -> int | None:
        """The least number of CPUs that it asked for; None: it asked for nodes alone."""
        if self.least_cpus is not None:
            return self.least_cpus
        return None if self.tasks is None else self.tasks * self.cpus_per_task

    def cpus_on(self, nodes: int) -> int:
        """Return how many CPUs it asks for, on as few `nodes` as it asks for.

        With a range of nodes, sbatch counts one task, and slurmctld those of nodes only if they are
        more than the CPUs of that.
        """
        if self.least_cpus is not None:
            return self.least_cpus
        if self.tasks is not None:
            return self.tasks * self.cpus_per_task
        tasks = nodes * (self.tasks_per_node or 1)
        is_range = self.max_nodes not in (None, self.min_nodes)
        if is_range and (self.tasks_per_node is None or tasks <= self.cpus_per_task):
            tasks = 1
        return tasks * self.cpus_per_task

    @property
    def gives_memory(self) -> bool:
        """Whether it asked for memory of a node or a CPU."""
        return self.memory_per_node_MiB is not None or self.memory_per_cpu_MiB is not None

    @property
    def least_nodes(self) -> int:
        """The least number of nodes that it asked for."""
        return self.nodes_asked()[0]

    def nodes_asked(self, min_nodes: int = 1) -> tuple[int, int]:
        """The least and the most nodes that it asks for, at most one for each of its tasks.

        min_nodes: the least MinNodes of its partitions, which it asks for at least.
        """
        tasks, least, most = self.tasks, self.min_nodes, self.max_nodes
        tasks = UNBOUNDED if tasks is None else tasks or 1
        if least is None:
            least = max(min_nodes, min(len(set(self.nodelist)), tasks))
            return least, max(least, min(most or UNBOUNDED, tasks))
        # Comparisons: this is asked of each job many times.
        most = least if most is None else most
        least = least if least < tasks else tasks
        return least if least > min_nodes else min_nodes, most if most < tasks else tasks

    @property
    def is_overfull(self) -> bool:
        """Whether it asks for more tasks than its nodes may have with so many on each."""
        room = self.nodes_asked()[1] * (self.tasks_per_node or UNBOUNDED)
        return self.tasks is not None and self.tasks > room

    @property
    def array_id(self) -> str:
        """The id that all tasks of its array share; its own if it is none."""
        return self.id if self.array is None else self.array.job


# What a request asks of nodes, whenever and for however long.
_OF_NODES = (
    *("min_nodes", "max_nodes", "tasks", "cpus_per_task", "tasks_per_node"),
    *("cpus_raised", "least_cpus_per_node"),
    *("memory_per_node_MiB", "memory_per_cpu_MiB", "gres", "constraint", "nodelist", "exclude"),
    *("gpus", "gpus_per_socket", "gpus_per_task", "cpus_per_gpu", "memory_per_gpu_MiB"),
    *("tasks_per_gpu", "enforce_binding"),
    *("sockets_per_node", "cores_per_socket", "cpus_are_given", "least_cpus", "fewer_tasks"),
    *("tasks_per_socket", "tasks_per_core"),
    *("contiguous", "spread", "one_thread", "switches", "switch_wait_s", "distribution"),
    *("exclusive", "oversubscribe"),
)
asked_of_nodes = attrgetter(*_OF_NODES)
# The same, and of which partitions.
all_asked = attrgetter("partitions", "prefer", *_OF_NODES)


def preferring(request: JobRequest) -> JobRequest:
    """Return the `request` with the features that it prefers as its constraint, if it does."""
    return request if request.prefer is None else replace(request, constraint=request.prefer)


@dataclass(frozen=True, slots=True)
class Submissions:
    """Jobs in order of submission, and where they come from.

    t0: Unix time of the simulation's date 0; None: unknown. remarks: what was left out or changed
    when they were read. open_ended: ids of jobs of which a log does not say how long they would
    run, as they were killed at their limits or cancelled before they started.
    """

    jobs: tuple[JobRequest, ...]
    t0: int | None = None
    remarks: tuple[Remark, ...] = ()
    open_ended: frozenset[str] = frozenset()


_TOKEN = re.compile(r"\s*([][()&|]|\*\d+|[^][()&|*]+)")


class Feature(NamedTuple):
    """A feature, or features in parentheses; after an operator, & if it is the first."""

    operator: str
    name: str = ""
    group: tuple[Feature, ...] = ()


class Portion(NamedTuple):
    """So many nodes with a feature. apart: not those of the portions before."""

    feature: Feature
    nodes: int
    apart: bool


@dataclass(frozen=True, slots=True)
class Constraint:
    """What is asked: of all nodes, then one of some ways, or so many nodes with each feature."""

    of_all: tuple[Feature, ...] = ()
    ways: tuple[Feature, ...] = ()
    portions: tuple[Portion, ...] = ()

    @property
    def names(self) -> set[str]:
        """The features that it names."""
        asked = [*self.of_all, *self.ways, *(portion.feature for portion in self.portions)]
        return {each.name for one in asked for each in (one.group or (one,))}


NOTHING = Constraint()


def has_all(asked: Collection[Feature], features: Collection[str]) -> bool:
    """Whether `features` fulfil what is asked, from left to right."""
    found = True
    for one in asked:
        has = has_all(one.group, features) if one.group else one.name in features
        found = found and has if one.operator == "&" else found or has
    return found


@functools.lru_cache(4096)
def parsed(text: str | None) -> Constraint:
    """What the `text` of a constraint says. Raises ValueError if Slurm does not take it."""
    if text is None:
        return NOTHING
    tokens = _tokens(text.replace(",", "&"))
    terms = list(_terms(tokens))
    inside = [term for term in terms if term.bracket]
    if len(inside) == 1:
        terms, inside = [term._replace(bracket=False) for term in terms], []
    if any(term.nodes for term in terms):
        if any(term.bracket and (term.joined == "|" or not term.nodes) for term in terms):
            raise ValueError("give each feature in brackets a number of nodes, joined by &")
        return Constraint(
            portions=tuple(
                Portion(term.feature, term.nodes, term.bracket) for term in terms if term.nodes
            )
        )
    if any(term.joined == "&" for term in inside):
        raise ValueError("give each feature in brackets a number of nodes, such as [a*1&b*2]")
    return Constraint(
        tuple(term.feature for term in terms if not term.bracket),
        tuple(term.feature for term in inside),
    )


def constraint_of(request: JobRequest) -> Constraint:
    """What a `request` asks of the features of nodes; nothing, if it is refused for that."""
    try:
        return parsed(request.constraint)
    except ValueError:
        return NOTHING


class _Term(NamedTuple):
    """A feature. bracket: whether in brackets; joined: there, by what with its neighbours."""

    feature: Feature
    nodes: int
    bracket: bool
    joined: str


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    while place < len(text.rstrip()):
        token = _TOKEN.match(text, place)
        if token is None:
            raise ValueError(f"{text[place:]!r} is not understood")
        found.append(token[1].strip())
        place = token.end()
    return found[::-1]


def _terms(left: list[str]) -> Iterator[_Term]:
    """The terms of tokens, which are taken from the end of a list."""
    operator, bracket, brackets = "&", False, 0
    while True:
        if left and left[-1] == "[" and not bracket and not brackets:
            left.pop()
            bracket, brackets = True, 1
        opened = operator
        feature, count = _feature(left, operator)
        closes = bool(left) and left[-1] == "]"
        within, bracket = bracket, bracket and not closes
        if closes:
            if not within:
                raise ValueError("brackets do not match")
            left.pop()
        operator = left.pop() if left else ""
        if operator not in ("&", "|", ""):
            raise ValueError(f"{operator!r} stands where & or | may")
        joined = operator if within and not closes else opened if within else ""
        yield _Term(feature, count, within, joined)
        if not operator:
            break
    if bracket:
        raise ValueError("brackets do not match")


def _feature(left: list[str], operator: str) -> tuple[Feature, int]:
    """A feature or a group, and how many nodes of it are asked for; 0: not told."""
    word = left.pop() if left else ""
    if word == "(":
        members = [_named(left, "&")]
        while left and left[-1] in "&|":
            members.append(_named(left, left.pop()))
        if not left or left.pop() != ")":
            raise ValueError("parentheses do not match")
        feature = Feature(operator, group=tuple(members))
    else:
        left.append(word)
        feature = _named(left, operator)
    if left and left[-1].startswith("*"):
        count = int(left.pop()[1:])
        if not count:
            raise ValueError("give a number of nodes above 0")
        return feature, count
    return feature, 0


def _named(left: list[str], operator: str) -> Feature:
    word = left.pop() if left else ""
    if not word or word[0] in "[]()&|*":
        raise ValueError("a feature is missing")
    return Feature(operator, word)
