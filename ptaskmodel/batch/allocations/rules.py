"""The allocation rules, which choose among the free hosts or among partitions of them.

First fit takes the lowest hosts. Contiguous takes consecutive hosts, or as few runs of them as
possible. Topology takes hosts below as few leaf switches as possible. Random draws hosts. Spread
takes hosts far from each other. By partitions, each job runs alone in a host set of a catalogue, as
on Blue Gene.

Source of the choice of partitions: W. Tang, D. Ren, Z. Lan, N. Desai, "Toward balanced and
sustainable job scheduling for production supercomputers", Parallel Computing 39(12), 2013, and the
behaviour of the first author's simulator.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from ptaskmodel.batch.machine.capacity import asks_for_more_than_hosts
from ptaskmodel.batch.machine.host_sets import (
    Mask,
    contiguous,
    first_hosts,
    lowest,
    members,
    of_hosts,
    parse,
    runs,
)
from ptaskmodel.errors import SimulationError, WorkloadError
from ptaskmodel.files import AnyPath, read_bytes
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.jobs import Job


class FirstFit:
    """The free hosts of lowest number."""

    constrained = False

    def choose(self, count: int, free: Mask) -> Mask | None:
        return lowest(free, count)


class Contiguous:
    """The first run of consecutive free hosts that is long enough.

    Strict: the job waits until there is one. Otherwise, when there is none, the longest runs are
    taken first, which makes few pieces.
    """

    def __init__(self, strict: bool = True) -> None:
        self.constrained = strict

    def choose(self, count: int, free: Mask) -> Mask | None:
        found = contiguous(free, count)
        if found is not None or self.constrained:
            return found
        pieces = sorted(runs(free), key=lambda run: (-run[1], run[0]))
        chosen = 0
        for first, length in pieces:
            taken = min(length, count)
            chosen |= ((1 << taken) - 1) << first
            count -= taken
            if count == 0:
                break
        return chosen


class FewestSwitches:
    """Hosts under as few leaf switches as possible.

    One switch that has room is enough: the fullest such is taken. Otherwise the switches with most
    free hosts are emptied first, and the rest goes under the fullest switch that has room for it.
    ``switches``: the hosts below each leaf switch.
    """

    constrained = False

    def __init__(self, switches: Sequence[Mask]) -> None:
        self._switches = tuple(switches)

    def choose(self, count: int, free: Mask) -> Mask | None:
        chosen = 0
        rooms = [(below & free, k) for k, below in enumerate(self._switches) if below & free]
        while count:
            fitting = [room for room in rooms if room[0].bit_count() >= count]
            if fitting:
                hosts, _ = min(fitting, key=lambda room: (room[0].bit_count(), room[1]))
                return chosen | lowest(hosts, count)
            largest = max(rooms, key=lambda room: (room[0].bit_count(), -room[1]))
            chosen |= largest[0]
            count -= largest[0].bit_count()
            rooms.remove(largest)
        return chosen


class Random:
    """Free hosts at random, the same for the same seed and the same sequence of requests."""

    constrained = False

    def __init__(self, seed: int = 0) -> None:
        import random

        self._random = random.Random(seed)

    def choose(self, count: int, free: Mask) -> Mask | None:
        return of_hosts(self._random.sample(members(free), count))


class Spread:
    """Free hosts as evenly far apart as possible, in order of their numbers."""

    constrained = False

    def choose(self, count: int, free: Mask) -> Mask | None:
        hosts = members(free)
        return of_hosts(hosts[k * len(hosts) // count] for k in range(count))


# Intrepid: 5 rows of 8 racks of 2 midplanes; one host stands for one midplane of 512 nodes.
ROW, ROWS = 16, 5
MAX_PARTITIONS = 100_000
MAX_BUDDIES = 8192


class Partitions:
    """A job gets the smallest defined size that holds it, and the partition that blocks least.

    Of the free partitions of that size, the one within fewest *larger* free ones; of equal ones the
    one whose first host is lowest. A job holds the whole partition, also what it did not ask for;
    its work runs on the lowest hosts of it. ``catalogue``: the partitions, as masks; ``name``: of
    the catalogue, for messages. Raises SimulationError for an empty one.
    """

    constrained = True
    rounds_up = True

    def __init__(self, catalogue: Iterable[Mask], name: str = "partitions") -> None:
        by_size: dict[int, set[Mask]] = {}
        for hosts in catalogue:
            if hosts:
                by_size.setdefault(hosts.bit_count(), set()).add(hosts)
        if not by_size:
            raise SimulationError(f"allocation '{name}' has no partition; define some")
        self.name = name
        self._sizes = sorted(by_size)
        self._sets = {
            size: sorted(sets, key=lambda hosts: (hosts & -hosts, hosts))
            for size, sets in by_size.items()
        }

    def __deepcopy__(self, memo: object) -> Partitions:
        return self  # it never changes

    def held(self, count: int) -> int | None:
        """How many hosts a job that asks for ``count`` holds; None if no partition is so large."""
        if count == 0:
            return 0
        k = bisect_left(self._sizes, count)
        return self._sizes[k] if k < len(self._sizes) else None

    def check(self, jobs: Iterable[Job]) -> None:
        """SimulationError for a job that no partition holds or that asks for part of a host."""
        for job in jobs:
            if self.held(job.num_hosts) is None:
                raise SimulationError(
                    f"job '{job.id}' asks for {job.num_hosts} hosts and the largest partition of "
                    f"'{self.name}' has {self._sizes[-1]}; leave the job out"
                )
            if asks_for_more_than_hosts(job):
                raise SimulationError(
                    f"job '{job.id}' asks for more than whole hosts, and the partitions of "
                    f"'{self.name}' are whole hosts; use another allocation"
                )

    def choose(self, count: int, free: Mask) -> Mask | None:
        size = self.held(count)
        if not size:
            return size
        blocked = [
            larger
            for other in self._sizes[bisect_left(self._sizes, size) + 1 :]
            for larger in self._sets[other]
            if not larger & ~free
        ]
        best, least = None, len(blocked) + 1
        for hosts in self._sets[size]:
            if hosts & ~free:
                continue
            score = sum(not hosts & ~larger for larger in blocked)
            if score < least:
                best, least = hosts, score
                if score == 0:
                    break
        return best


def buddy(num_hosts: int) -> Partitions:
    """Aligned blocks of 1, 2, 4, ... hosts, and the whole machine.

    Raises SimulationError for a machine of more than `MAX_BUDDIES` hosts.
    """
    if num_hosts > MAX_BUDDIES:
        raise SimulationError(
            f"allocation 'buddy' is for {MAX_BUDDIES} hosts at most, and the machine has "
            f"{num_hosts}; let a host stand for several (--processors-per-host)"
        )
    blocks = {first_hosts(num_hosts)}
    size = 1
    while size <= num_hosts:
        blocks |= {first_hosts(size) << first for first in range(0, num_hosts - size + 1, size)}
        size *= 2
    return Partitions(blocks, "buddy")


def intrepid(num_hosts: int) -> Partitions:
    """The Blue Gene/P Intrepid, a host a midplane: 80 in rows of 16.

    Aligned blocks of 1, 2, 4, 8 and 16 in each row; pairs of rows (0-1 and 2-3), rows 0 to 3, all.
    The larger ones, and the wiring, are not published: these are plausible. Raises SimulationError
    for a machine of another size.
    """
    total = ROW * ROWS
    if num_hosts != total:
        raise SimulationError(
            f"allocation 'intrepid' has {total} midplanes, one host each, and the machine "
            f"{num_hosts} hosts; use a platform of {total}, or buddy"
        )
    blocks = {first_hosts(total)}
    for size in (1, 2, 4, 8, ROW, 2 * ROW, 4 * ROW):
        blocks |= {first_hosts(size) << first for first in range(0, total - size + 1, size)}
    return Partitions(blocks, "intrepid")


@reader(SimulationError)
def from_file(path: AnyPath, account: Account, num_hosts: int) -> Partitions:
    """The partitions of the file at a path, of a machine of `num_hosts`.

    On each line are hosts such as ``0-3 8``; # begins a comment. account: of the file. Raises
    SimulationError with every line that is no set of hosts of the machine.
    """
    text = read_bytes(path, error=SimulationError).decode("utf-8", errors="replace")
    catalogue: list[Mask] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].strip()
        if words:
            with account.problems(number):
                catalogue.append(_line(words, num_hosts))
        if len(catalogue) > MAX_PARTITIONS:
            raise SimulationError(
                f"{account.file}: more than {MAX_PARTITIONS} partitions; give fewer"
            )
    account.check()
    if not catalogue:
        raise SimulationError(
            f"{account.file}: no partition in it; give hosts such as 0-3 on each line"
        )
    return Partitions(catalogue, str(path))


def _line(words: str, num_hosts: int) -> Mask:
    """The hosts that a line names."""
    try:
        beyond = max(
            (int(word) for part in words.replace(",", " ").split() for word in part.split("-")),
            default=0,
        )
        if beyond >= num_hosts:
            raise SimulationError(f"host {beyond}: the machine has hosts 0 to {num_hosts - 1}")
        return parse(words)
    except (ValueError, WorkloadError) as error:
        what = str(error) if isinstance(error, WorkloadError) else f"'{words[:60]}' is no host list"
        raise SimulationError(f"{what}; give hosts such as 0-3 8") from None
