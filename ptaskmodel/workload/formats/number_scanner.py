# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels that read numbers exactly as Python does, or refuse them: in JSON, lines, TI traces."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.workload.actions import ACTIONS, NUMBER, UNREAD

_MOST_DIGITS = 18
_EXACT = 2**53
_SPLIT = 2.0**27 + 1.0
# What a sum of two doubles leaves out is far below this part of their last digit.
_DOUBT = 1e-8


@entry
def cut(text, fields, ends, numbers, cuts, powers, smallest):
    """Read the arrays of the fields; returns the number of those that were understood.

    fields: the quoted names one after the other, cut at ``ends``. Of each array, ``cuts`` gets
    where it begins and ends, the number of ``numbers`` up to its last, and the length of its rows
    (0: it has none).
    """
    found = 0
    used = 0
    i = 0
    while i < text.size:
        begin = _bracket(text, i, fields, ends) if text[i] == 34 else -1
        i += 1
        if begin < 0:
            continue
        i = begin + 1
        end, until, row = _array(text, begin, numbers, used, powers)
        if end >= 0 and until - used >= smallest:
            cuts[found, 0], cuts[found, 1], cuts[found, 2], cuts[found, 3] = begin, end, until, row
            found += 1
            used = until
            i = end
    return found


@jit
def _bracket(text, i, fields, ends):
    """The place of the bracket that opens the array of a field whose name begins at i, or -1.

    In JSON this cannot be inside a string, where quotes have backslashes before them.
    """
    first = 0
    for last in ends:
        j = 0
        while first + j < last and i + j < text.size and text[i + j] == fields[first + j]:
            j += 1
        if first + j == last:
            j = _after_blanks(text, i + j)
            if j < text.size and text[j] == 58:
                j = _after_blanks(text, j + 1)
                if j < text.size and text[j] == 91:
                    return j
            return -1
        first = last
    return -1


@jit
def _after_blanks(text, i):
    while i < text.size and (text[i] == 32 or text[i] == 10 or text[i] == 13 or text[i] == 9):
        i += 1
    return i


@jit
def _array(text, i, numbers, used, powers):
    """Read the array at a bracket: the place after it (-1: not understood), see ``cut``."""
    nothing = (-1, used, 0)
    first = used
    begin_of_row = used
    row = -1
    depth = 1
    wants_value = True
    just_opened = True
    i += 1
    while depth > 0:
        if i >= text.size:
            return nothing
        byte = int(text[i])
        if byte == 32 or byte == 10 or byte == 13 or byte == 9:
            i += 1
        elif byte == 44:  # a comma
            if wants_value:
                return nothing
            wants_value = True
            i += 1
        elif byte == 91:  # a row
            if depth == 2 or not wants_value or (row < 0 and used > first):
                return nothing
            depth, just_opened = 2, True
            begin_of_row = used
            i += 1
        elif byte == 93:
            if wants_value and not just_opened:
                return nothing
            if depth == 2:
                if used == begin_of_row or (row >= 0 and used - begin_of_row != row):
                    return nothing
                row = used - begin_of_row
            depth -= 1
            wants_value = just_opened = False
            i += 1
        else:
            if not wants_value or (depth == 1 and row >= 0):
                return nothing
            i, numbers[used] = number(text, i, powers)
            if i < 0:
                return nothing
            used += 1
            wants_value = just_opened = False
    return i, used, max(row, 0)


@jit
def number(text, i, powers):
    """The place after the number at ``i`` (-1: not understood), and its value."""
    negative = text[i] == 45
    if negative:
        i += 1
    begin = i
    i, mantissa = _digits(text, i, 0)
    digits = i - begin
    if digits == 0 or (digits > 1 and text[begin] == 48):
        return -1, 0.0
    exponent = 0
    whole = True
    if i < text.size and text[i] == 46:
        point = i + 1
        i, mantissa = _digits(text, point, mantissa)
        exponent = point - i
        digits -= exponent
        whole = False
        if exponent == 0:
            return -1, 0.0
    if i < text.size and (text[i] == 101 or text[i] == 69):
        i += 1
        smaller = i < text.size and text[i] == 45
        if smaller or (i < text.size and text[i] == 43):
            i += 1
        begin = i
        i, power = _digits(text, i, 0)
        if i == begin or i > begin + 3:
            return -1, 0.0
        exponent += -power if smaller else power
        whole = False
    if digits > _MOST_DIGITS:
        return -1, 0.0
    value = _double(mantissa, exponent, powers)
    if np.isnan(value):
        return -1, 0.0
    # A whole number has one zero only.
    return i, -value if negative and not (whole and mantissa == 0) else value


@jit
def _digits(text, i, number):
    """The place after digits, and the number that they go on."""
    while i < text.size and 48 <= text[i] <= 57:
        number = 10 * number + (int(text[i]) - 48)
        i += 1
    return i, number


@jit
def _double(mantissa, exponent, powers):
    """The double nearest to mantissa * 10**exponent, mantissa < 10**18; nan if that is in doubt.

    W. D. Clinger, "How to read floating point numbers accurately", 1990: exact where both parts
    are; else in twice the precision (products by Dekker's method), unless two doubles are about
    equally near.
    """
    if mantissa == 0:
        return 0.0
    size = abs(exponent)
    if size >= powers.size:
        return np.nan
    power = powers[size]
    high = float(mantissa)
    if mantissa <= _EXACT:
        return high * power if exponent >= 0 else high / power
    low = float(mantissa - int(high))
    if exponent >= 0:
        near, rest = _product(high, power)
        rest += low * power
    else:
        near = high / power
        back, error = _product(near, power)
        rest = (((high - back) - error) + low) / power
    value = near + rest
    dropped = abs(rest - (value - near))
    last = _last_digit(value)
    for half in (0.5, 0.25):  # below a power of two doubles are closer
        if abs(dropped - half * last) < _DOUBT * last:
            return np.nan
    return value


@jit
def _last_digit(value):
    """What the last digit of a double is worth.

    Rump, Ogita and Oishi, "Accurate floating-point summation, part I", 2008, algorithm 3.5.
    """
    large = (2.0**52 + 1.0) * value
    return 2.0**-52 * abs(large - (1.0 - 2.0**-53) * large)


@jit
def _product(a, b):
    """a * b rounded, and what rounding lost."""
    product = a * b
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, lost


@entry
def read_rows(text, rows, powers, largest):
    """Read lines of as many numbers as rows are wide; returns how many rows these are.

    -1: something is unusual, such as a number beyond ``largest``. Blank lines count not.
    """
    count = 0
    column = 0
    i = 0
    while i < text.size:
        byte = int(text[i])
        if byte == 10 or byte == 13:
            if column > 0:
                if column < rows.shape[1]:
                    return -1
                count += 1
                column = 0
            i += 1
        elif byte == 32 or byte == 9:
            i += 1
        else:
            if column == rows.shape[1] or count == rows.shape[0]:
                return -1
            i, value = number(text, i, powers)
            if i < 0 or not abs(value) <= largest or (i < text.size and text[i] > 32):
                return -1
            # A whole number may be a zero with a sign here.
            if value == 0.0 and byte == 45:
                return -1
            rows[count, column] = value
            column += 1
    if column > 0:
        if column < rows.shape[1]:
            return -1
        count += 1
    return count


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

    Exact: at most 18 digits, leading zeros apart, and a power of ten that is exact (see `_double`).
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
    is_number = False
    while at < last:
        byte = text[at]
        if ZERO <= byte <= NINE:
            value = 10 * value + (int(byte) - ZERO)
            is_number = True
            digits += value != 0
            power -= point
        elif byte == POINT and not point:
            point = True
        else:
            break
        at += 1
        if digits > _MOST_DIGITS:
            return 0.0, False
    if not is_number:
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
    if at < last:
        return 0.0, False
    exact = _double(value, power, tens)
    if np.isnan(exact):
        return 0.0, False
    return sign * exact, True


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
        word = 0
        action = -1
        while True:
            while at < size and is_between(text[at]):
                at += 1
            if at == size or text[at] == NEW_LINE or (word == 0 and text[at] == HASH):
                break
            first = at
            while at < size and text[at] != NEW_LINE and not is_between(text[at]):
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
        while at < size and text[at] != NEW_LINE:
            at += 1
        at += 1
    return n, FINE, 0, oddities
