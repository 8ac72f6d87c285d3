# mypy: allow-untyped-defs
"""Rounds of fair bottleneck that a FATPIPE makes endless, or nearly so, summed in closed form."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.fairbottleneck_laid import LIVE


@jit
def _first_negative(h0, h1, h2):
    """The first t >= 0 beyond which h0 + h1 t + h2 t^2 (h2 >= 0) is negative, or inf."""
    if h0 < 0.0 or h1 == -np.inf:
        return 0.0
    if h1 >= 0.0:
        return np.inf
    discriminant = h1 * h1 - 4.0 * h2 * h0
    if discriminant < 0.0:
        return np.inf
    return 2.0 * h0 / (-h1 + np.sqrt(discriminant))


@jit
def leap(shared, system, nothing_left, rate, v):
    """Do at once as many rounds as go on in the same way; returns True if they go on for ever.

    With every live task i limited by a FATPIPE f whose least consumer is a fixed task, each round
    takes the same c_f from f: after t rounds its remaining capacity is R_f - c_f t, the increment
    of i is (R_f - c_f t) / a, and a SHARED resource has R - (A + B/2) t + (B/2) t^2 left. SimGrid
    goes through these rounds one by one, 10^8 of them on an ordinary loopback, and for ever when
    c_f = 0. Here they are summed up to the first that would differ: another resource limits a task,
    a bound is reached, something is used up. For ever means: those tasks are given C_f / a.

    Resources are told by their places. A is written to ``share``, B to ``loss``, each task's
    limiting element to ``limiting``.
    """
    start, resource, usage = system.start, system.resource, system.usage
    n = start.size - 1
    state, increment, limiting, ceiling = v.state, v.increment, v.limiting, v.ceiling
    users, left, a_loss, b_loss = v.total, v.left, v.share, v.loss
    for r in range(system.capacity.size):
        a_loss[r] = 0.0 if r < shared else np.inf
        b_loss[r] = 0.0
    for i in range(n):
        if state[i] != LIVE:
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = v.place[resource[k]]
                    if r >= shared:
                        a_loss[r] = min(a_loss[r], usage[k] * increment[i])
                    else:
                        a_loss[r] += usage[k] * increment[i]
    for i in range(n):
        if state[i] == LIVE:
            least = np.inf
            limiting[i] = start[i]
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = v.place[resource[k]]
                    x = left[r] / (1 if r >= shared else users[r]) / usage[k]
                    if x < least:
                        least = x
                        limiting[i] = k
            f = v.place[resource[limiting[i]]]
            if f < shared or a_loss[f] == np.inf:
                return False
            for k in range(start[i], start[i + 1]):
                r = v.place[resource[k]]
                if usage[k] > 0.0 and r < shared:
                    ratio = usage[k] / usage[limiting[i]]
                    a_loss[r] += ratio * left[f]
                    b_loss[r] += ratio * a_loss[f]
    rounds = np.inf
    for i in range(n):
        if state[i] == LIVE:
            f = v.place[resource[limiting[i]]]
            a = usage[limiting[i]]
            c = a_loss[f]
            h0 = ceiling[i] - rate[i] - left[f] / a
            rounds = min(rounds, _first_negative(h0, (0.5 * c - left[f]) / a, 0.5 * c / a))
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = v.place[resource[k]]
                    if k != limiting[i]:
                        w = usage[k] * (1 if r >= shared else users[r])
                        h0 = left[r] / w - left[f] / a
                        h1 = c / a - (a_loss[r] + 0.5 * b_loss[r]) / w
                        rounds = min(rounds, _first_negative(h0, h1, 0.5 * b_loss[r] / w))
                    if r >= shared:
                        h0 = usage[k] * left[f] / a - a_loss[r]
                        rounds = min(rounds, _first_negative(h0, -usage[k] * c / a, 0.0))
    for r in range(system.capacity.size):
        if users[r] > 0:
            h1 = -(a_loss[r] + 0.5 * b_loss[r])
            rounds = min(rounds, _first_negative(left[r] - nothing_left, h1, 0.5 * b_loss[r]))
    if rounds == np.inf:
        return True
    t = np.floor(rounds) - 1.0
    if t >= 1.0:
        for i in range(n):
            if state[i] == LIVE:
                f = v.place[resource[limiting[i]]]
                rate[i] += (left[f] * t - a_loss[f] * (0.5 * t * (t - 1.0))) / usage[limiting[i]]
        for r in range(system.capacity.size):
            if users[r] > 0:
                left[r] -= (a_loss[r] + 0.5 * b_loss[r]) * t - 0.5 * b_loss[r] * t * t
    return False


@jit
def stop(shared, system, answer, v):
    """End rounds that would not end: a task limited by a FATPIPE is given its whole capacity."""
    for i in range(system.start.size - 1):
        if v.state[i] == LIVE:
            least = np.inf
            for k in range(system.start[i], system.start[i + 1]):
                r = system.resource[k]
                a = system.usage[k]
                if a > 0.0:
                    p = v.place[r]
                    x = v.left[p] / (1 if p >= shared else v.total[p]) / a
                    if x < least:
                        least = x
                        answer.limit[i] = r
                        if system.fatpipe[r]:
                            answer.rate[i] = min(v.ceiling[i], system.capacity[r] / a)
