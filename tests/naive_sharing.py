"""Slow, obvious oracles for the sharing rules, written from their definitions alone."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np


def rows_of(problem):
    """[(resource, usage, share)] of each task, uses of 0 left out."""
    rows = []
    for i in range(problem.n):
        row = []
        for k in range(problem.start[i], problem.start[i + 1]):
            if problem.usage[k] > 0:
                share = problem.share[k] if problem.share[k] > 0 else problem.usage[k]
                row.append((int(problem.resource[k]), float(problem.usage[k]), float(share)))
        rows.append(row)
    return rows


def fairbottleneck(problem, corrected=False, max_rounds=20_000):
    """The rounds of the fair bottleneck in plain floats; None if they do not end."""
    rows = rows_of(problem)
    n = problem.n
    capacity = problem.capacity.tolist()
    fatpipe = problem.fatpipe.tolist()
    bound = problem.bound.tolist()
    if corrected:
        for i, row in enumerate(rows):
            bound[i] = min([bound[i]] + [capacity[r] / a for r, a, _ in row if fatpipe[r]])
        rows = [[e for e in row if not fatpipe[e[0]]] for row in rows]
    x = [0.0] * n
    increment = [0.0] * n
    live = {i for i in range(n) if rows_of(problem)[i]}
    for i in set(range(n)) - live:
        x[i] = bound[i] if corrected and bound[i] < np.inf else 1.0
    remaining = {r: capacity[r] for r in range(problem.m)}
    for _ in range(max_rounds):
        if not live:
            return np.array(x)
        uses = {r: sum(e[0] == r for i in live for e in rows[i]) for r in remaining}
        remaining = {r: c for r, c in remaining.items() if uses[r] > 0}
        offered = {r: c if fatpipe[r] else c / uses[r] for r, c in remaining.items()}
        at_bound = set()
        for i in live:
            increment[i] = min([offered[r] / a for r, a, _ in rows[i]] + [bound[i] - x[i]])
            x[i] += increment[i]
            if x[i] == bound[i]:
                at_bound.add(i)
        live -= at_bound
        charged = [i for i in range(n) if not corrected or i in live or i in at_bound]
        for r in list(remaining):
            taken = [
                a * increment[i]
                for i in reversed(charged)
                for s, a, _ in reversed(rows[i])
                if s == r
            ]
            if fatpipe[r]:
                taken = [min([offered[r], *taken])]
            for amount in taken:
                remaining[r] -= amount
                if remaining[r] < 1e-5:
                    remaining[r] = 0.0
            if remaining[r] <= 0.0:
                del remaining[r]
                live -= {i for i in live if any(s == r for s, _, _ in rows[i])}
        if corrected:
            for i in range(n):
                if i not in live:
                    increment[i] = 0.0
    return None


def maxmin(problem, flows=False):
    """Progressive filling in fractions: raise all, stop who is at a full resource or a bound.

    flows: a FATPIPE stops all its users when the largest use fills it, capacities of 0 are ignored.
    """
    rows = rows_of(problem)
    capacity = [Fraction(c) for c in problem.capacity.tolist()]
    weight = [Fraction(w) for w in problem.weight.tolist()]
    bound = [None if math.isinf(b) else Fraction(b) for b in problem.bound.tolist()]
    ignored = {r for r in range(problem.m) if flows and capacity[r] == 0}
    uses = [[(r, Fraction(a)) for r, a, _ in row if r not in ignored] for row in rows]
    x = {}
    for i, row in enumerate(uses):
        if not row:
            idle = Fraction(1) if bound[i] is None else bound[i]
            x[i] = Fraction(0) if rows[i] else idle
    rising = {i for i in range(problem.n) if i not in x}
    while rising:
        dates = []
        for r in range(problem.m):
            users = [(i, a) for i in rising for s, a in uses[i] if s == r]
            if not users:
                continue
            if problem.fatpipe[r] and not flows:
                dates += [(capacity[r] / (a * weight[i]), {i}) for i, a in users]
                continue
            if problem.fatpipe[r]:
                theta = capacity[r] / max(a * weight[i] for i, a in users)
            else:
                gone = sum(a * x[i] for i in x for s, a in uses[i] if s == r)
                theta = (capacity[r] - gone) / sum(a * weight[i] for i, a in users)
            dates.append((theta, {i for i, _ in users}))
        dates += [(bound[i] / weight[i], {i}) for i in rising if bound[i] is not None]
        first = min(theta for theta, _ in dates)
        for theta, users in dates:
            if theta == first:
                for i in users & rising:
                    x[i] = first * weight[i]
                rising -= users
    return np.array([float(x[i]) for i in range(problem.n)])


def all_bmf(problem, tolerance=1e-9):
    """Every bottleneck max fair allocation with a determined system: all choices of bottlenecks.

    Each task picks its bound (with FATPIPEs) or one of its SHARED resources; the levels of the
    resources picked follow from their loads. Exponential: for a handful of tasks without resources
    of capacity 0 or named twice.
    """
    rows = rows_of(problem)
    capacity, weight = problem.capacity, problem.weight
    bound = problem.bound.copy()
    for i, row in enumerate(rows):
        for r, a, _ in row:
            if problem.fatpipe[r]:
                bound[i] = min(bound[i], capacity[r] / a)
        if not row and math.isinf(bound[i]):
            bound[i] = 1.0
    rows = [[e for e in row if not problem.fatpipe[e[0]]] for row in rows]
    choices = [
        [*(r for r, _, _ in row), *([None] if math.isfinite(bound[i]) else [])]
        for i, row in enumerate(rows)
    ]
    found = []
    for seats in itertools.product(*choices):
        picked = sorted({r for r in seats if r is not None})
        place = {r: k for k, r in enumerate(picked)}
        matrix = np.zeros((len(picked), len(picked)))
        rest = capacity[picked].copy()
        for i, row in enumerate(rows):
            for r, a, _ in row:
                if r in place:
                    if seats[i] is None:
                        rest[place[r]] -= a * bound[i]
                    else:
                        share = next(m for s, _, m in row if s == seats[i])
                        matrix[place[r], place[seats[i]]] += a * weight[i] / share
        try:
            level = np.linalg.solve(matrix, rest) if picked else rest
        except np.linalg.LinAlgError:
            continue
        if np.any(level <= 0):
            continue
        x = np.empty(problem.n)
        good = True
        for i, row in enumerate(rows):
            limits = [level[place[r]] * weight[i] / m for r, _, m in row if r in place]
            x[i] = min([bound[i], *limits])
            if seats[i] is None:
                sits = bound[i]
            else:
                share = next(m for s, _, m in row if s == seats[i])
                sits = level[place[seats[i]]] * weight[i] / share
            good = good and sits <= x[i] * (1 + tolerance)
        load = np.zeros(problem.m)
        for i, row in enumerate(rows):
            for r, a, _ in row:
                load[r] += a * x[i]
        shared = ~problem.fatpipe
        if good and np.all(load[shared] <= capacity[shared] * (1 + tolerance)):
            found.append(x)
    return found
