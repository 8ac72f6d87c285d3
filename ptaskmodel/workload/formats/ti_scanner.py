# mypy: allow-untyped-defs, allow-incomplete-defs
"""A kernel that parses the bytes of a time-independent trace in one pass."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.workload.actions import ACTIONS, NUMBER, UNREAD

# All names of actions in traces, with the action of each: `smpirun` writes "waitAny", people as it
# writes "waitall".
SPELLED = {**NUMBER, "waitany": NUMBER["waitAny"]}
LONGEST_NAME = 16
NAMES = np.zeros((len(SPELLED), LONGEST_NAME), dtype=np.uint8)
for _row, _name in enumerate(SPELLED):
    NAMES[_row, : len(_name)] = np.frombuffer(_name.encode(), dtype=np.uint8)
LENGTHS = np.array([len(name) for name in SPELLED])
MEANT = np.array(list(SPELLED.values()))
IS_UNREAD = np.isin(np.arange(len(ACTIONS)), UNREAD)
# Powers of ten that are exact in double precision.
TENS = np.array([10.0**k for k in range(23)])

NEW_LINE, RETURN, TAB, BLANK, HASH = 10, 13, 9, 32, 35
ZERO, NINE, PLUS, MINUS, POINT, E, UPPER_E = 48, 57, 43, 45, 46, 101, 69

# Why a line is refused, in `scan`'s second answer.
FINE, NO_RANK, NO_ACTION, UNKNOWN_ACTION = range(4)


@jit
def is_between(byte):
    """Whether a byte stands between the words of a line."""
    return byte in (BLANK, TAB, RETURN)


@jit
def number_at(text, first, last, tens):
    """(value, whether it is exactly that) of a decimal number in ``text[first:last]``.

    Exact: at most 15 digits and a power of ten that is exact, which the one division or product
    rounds as it should be.
    """
    at = first
    sign = 1.0
    if at < last and (text[at] == MINUS or text[at] == PLUS):
        sign = -1.0 if text[at] == MINUS else 1.0
        at += 1
    digits = 0
    value = 0
    power = 0
    point = False
    while at < last:
        byte = text[at]
        if ZERO <= byte <= NINE:
            value = 10 * value + (int(byte) - ZERO)
            digits += 1
            power -= point
        elif byte == POINT and not point:
            point = True
        else:
            break
        at += 1
        if digits > 15:
            return 0.0, False
    if digits == 0:
        return 0.0, False
    if at < last and (text[at] == E or text[at] == UPPER_E):
        at += 1
        falls = False
        if at < last and (text[at] == MINUS or text[at] == PLUS):
            falls = text[at] == MINUS
            at += 1
        exponent = 0
        begun = at
        while at < last and ZERO <= text[at] <= NINE and exponent < 1000:
            exponent = 10 * exponent + (int(text[at]) - ZERO)
            at += 1
        if at == begun:
            return 0.0, False
        power += -exponent if falls else exponent
    if at < last or power > 22 or power < -22:
        return 0.0, False
    if power < 0:
        return sign * value / tens[-power], True
    return sign * value * tens[power], True


@entry
def scan(text, names, lengths, meant, is_unread, tens, ranks, actions, lines, starts, values, odd):
    """Read the actions of a trace into arrays; returns what there is and what stopped it.

    ranks, actions, lines, starts: one entry an action (starts: one more); values: all fields that
    are read, of those in ``odd`` (entry of values, first byte, last byte) the value is still to be
    found. Answers: number of actions, one of NO_RANK, ... or FINE, the line at fault, entries of
    odd, most fields of an action.
    """
    n = 0
    used = 0
    oddities = 0
    line = 0
    at = 0
    size = text.size
    starts[0] = 0
    while at < size:
        line += 1
        end = at
        while end < size and text[end] != NEW_LINE:
            end += 1
        word = 0
        action = -1
        while at < end:
            while at < end and is_between(text[at]):
                at += 1
            if at == end or (word == 0 and text[at] == HASH):
                break
            first = at
            while at < end and not is_between(text[at]):
                at += 1
            if word == 0:
                rank = 0
                if at - first > 9:
                    return n, NO_RANK, line, oddities
                for k in range(first, at):
                    if text[k] < ZERO or text[k] > NINE:
                        return n, NO_RANK, line, oddities
                    rank = 10 * rank + (int(text[k]) - ZERO)
                ranks[n] = rank
            elif word == 1:
                for known in range(lengths.size):
                    if lengths[known] == at - first:
                        k = 0
                        while k < at - first and names[known, k] == text[first + k]:
                            k += 1
                        if k == at - first:
                            action = meant[known]
                            break
                if action < 0:
                    return n, UNKNOWN_ACTION, line, oddities
            elif is_unread[action]:
                # Whether there is a field is all that is asked.
                values[used] = 0.0
                used += 1
                break
            else:
                value, exact = number_at(text, first, at, tens)
                values[used] = value
                if not exact:
                    odd[oddities, 0] = used
                    odd[oddities, 1] = first
                    odd[oddities, 2] = at
                    oddities += 1
                used += 1
            word += 1
        if word == 1:
            return n, NO_ACTION, line, oddities
        if word > 1:
            actions[n] = action
            lines[n] = line
            n += 1
            starts[n] = used
        at = end + 1
    return n, FINE, 0, oddities
