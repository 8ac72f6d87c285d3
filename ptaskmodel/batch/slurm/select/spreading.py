"""How the CPUs and the memory of a job are dealt among its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ptaskmodel.batch.slurm.needs import ALL, PER_CPU, Need


def dealt(need: Need, offered: Sequence[int], threads: Sequence[int]) -> list[int]:
    """CPUs on each node, in order of index: a task on each, then round after round.

    offered: the CPUs that a job may use of each node. threads: CPUs of a core of each; a round
    gives the tasks of a core. After `dist_tasks_compute_c_b` of Slurm 22.05.
    """
    step, per_node = need.cpus_per_task, need.tasks_per_node
    count = len(offered)
    cpus = max(count * (per_node or 1), need.cpus, count * need.cpus_per_node)
    tasks = cpus
    if step > 1:
        tasks = per_node * count if per_node else cpus // step
    left = max(tasks, 1)
    given = [0] * count
    held = [0] * count

    def give(node: int) -> None:
        nonlocal left
        left -= 1
        held[node] += 1
        given[node] = min(given[node] + step, offered[node])

    def has_room(node: int) -> bool:
        return offered[node] - given[node] >= step and not (per_node and held[node] >= per_node)

    room = False
    for node in range(count):
        if left and offered[node]:
            give(node)
            room |= given[node] < offered[node]
    for node in range(count):
        for _ in range(given[node] % threads[node] // step):
            if left and has_room(node):
                give(node)
    crowded = not room
    turns = [max(each // step, 1) for each in threads]
    while left > 0:
        if not crowded:
            open_to = [node for node in range(count) if has_room(node)]
            left -= _whole_rounds(left, open_to, turns, step, per_node, offered, given, held)
        room = False
        for node in range(count):
            for _ in range(turns[node]):
                if not left or not (crowded or has_room(node)):
                    break
                give(node)
                room |= offered[node] - given[node] >= step
        crowded |= not room
    return given


def _whole_rounds(
    left: int,
    open_to: Sequence[int],
    turns: Sequence[int],
    step: int,
    per_node: int | None,
    offered: Sequence[int],
    given: list[int],
    held: list[int],
) -> int:
    """Give, at once, the tasks of rounds that leave room on each node with room; how many.

    open_to: the nodes with room. turns: tasks of a round on each node.
    """
    in_all = sum(turns[node] for node in open_to)
    if not in_all:
        return 0
    rounds = (left - 1) // in_all
    for node in open_to:
        each = turns[node]
        rounds = min(rounds, (offered[node] - given[node]) // (step * each) - 1)
        if per_node:
            rounds = min(rounds, (per_node - held[node]) // each - 1)
        if rounds <= 0:
            return 0
    for node in open_to:
        given[node] += rounds * turns[node] * step
        held[node] += rounds * turns[node]
    return rounds * in_all


def memory_of(need: Need, real: int, cpus: int) -> int:
    """MiB that a job takes of a node on which it has so many CPUs."""
    assert need.memory is not None
    kind, amount = need.memory
    if kind == ALL:
        return real
    return amount * cpus if kind == PER_CPU else amount
