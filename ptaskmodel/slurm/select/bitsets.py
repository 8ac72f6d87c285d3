# mypy: allow-untyped-defs, allow-incomplete-defs
"""Sets of nodes as 64-bit words: their sizes, and the tightest runs of consecutive nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.kernels.decorators import entry, jit


def words_of(nodes: Mask, words: int) -> NDArray[np.uint64]:
    """A set of nodes as so many words."""
    return np.frombuffer(int(nodes).to_bytes(words * 8, "little"), dtype=np.uint64)


@jit
def choose(chosen, usable, runs, wanted):
    """chosen: the tightest run of usable that suffices, or the largest ones, from the lowest on.

    wanted: how many nodes. runs: scratch.
    """
    choose_some(chosen, usable, runs, wanted, 0, 0, 1)


@entry
def choose_some(chosen, usable, runs, wanted, spare, cpus, each):
    """As `choose` of usable and runs, but a run suffices with `spare` fewer nodes than wanted.

    cpus: what it must have, besides. each: the CPUs of a node. Returns how many nodes are chosen.
    """
    for w in range(len(chosen)):
        chosen[w] = 0
    number, got = _runs(usable, runs), 0
    while wanted > 0:
        least = max(wanted - spare, (cpus + each - 1) // each, 1)
        best = np.int64(-1)
        for r in range(number):
            length = runs[2 * r + 1]
            if length == 0:
                continue
            if best < 0:
                best = np.int64(r)
                continue
            most = runs[2 * best + 1]
            if length >= least:
                if most < least or length < most:
                    best = np.int64(r)
            elif most < least and length > most:
                best = np.int64(r)
        if best < 0:
            break
        first, length = runs[2 * best], min(runs[2 * best + 1], wanted)
        _fill(chosen, first, first + length)
        wanted -= length
        cpus -= length * each
        got += length
        runs[2 * best + 1] = 0
    return got


@jit
def _runs(words, runs):
    """(first, length) of each run of a set, in runs; how many there are."""
    number, length = 0, 0
    for w in range(len(words)):
        word = words[w]
        if word == np.uint64(0xFFFFFFFFFFFFFFFF):
            if length == 0:
                runs[2 * number] = w * 64
            length += 64
            continue
        if word == np.uint64(0):
            if length > 0:
                runs[2 * number + 1] = length
                number, length = number + 1, 0
            continue
        place = np.int64(0)
        while place < 64:
            rest = word >> np.uint64(place)
            if rest & np.uint64(1):
                more = min(trailing_zeros(~rest), 64 - place)
                if length == 0:
                    runs[2 * number] = w * 64 + place
                length += more
            else:
                more = min(trailing_zeros(rest), 64 - place)
                if length > 0:
                    runs[2 * number + 1] = length
                    number, length = number + 1, 0
            place += more
    if length > 0:
        runs[2 * number + 1] = length
        number += 1
    return number


@jit
def _fill(words, first, end):
    """Put the nodes from first to end into a set."""
    full = np.uint64(0xFFFFFFFFFFFFFFFF)
    for w in range(first >> 6, (end + 63) >> 6):
        word = full
        if w * 64 < first:
            word &= full << np.uint64(first - w * 64)
        if (w + 1) * 64 > end:
            word &= full >> np.uint64((w + 1) * 64 - end)
        words[w] |= word


@jit
def meet(some, others):
    """Whether two sets, `some` and `others`, have a node in common."""
    both = np.uint64(0)
    for w in range(len(some)):
        both |= some[w] & others[w]
    return both != np.uint64(0)


@jit
def is_within(some, others):
    """Whether all nodes of a set, `some`, are in another, `others`."""
    left = np.uint64(0)
    for w in range(len(some)):
        left |= some[w] & ~others[w]
    return left == np.uint64(0)


@jit
def trailing_zeros(word):
    """How many zeros a word ends in; 64 if it is 0."""
    if word == np.uint64(0):
        return np.int64(64)
    return ones(~word & (word - np.uint64(1)))


@jit
def ones(x):
    """How many ones a word has."""
    x = x - (x >> np.uint64(1) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
    x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # Compilers know this product for the one instruction that counts.
    return np.int64(x * np.uint64(0x0101010101010101) >> np.uint64(56))


@jit
def add_number(digits, words, place, number):
    """Add a `number` to the one in a `place` of many numbers in binary.

    digits: so many `words` of the last digits of all places, then as many of those before these,
    and so on.
    """
    shift, carry, left = np.uint64(place & 63), np.uint64(0), np.uint64(number)
    one = np.uint64(1)
    # Without branches: which digits there are cannot be foreseen.
    for i in range(place >> 6, len(digits), words):
        more = (left ^ carry) & one
        digit = digits[i] >> shift
        carry = (left & carry | digit & more) & one
        digits[i] ^= more << shift
        left >>= one


@jit
def sum_of(digits, some):
    """The sum of the numbers, as `digits`, in `some` places; see `add_number`."""
    total = np.int64(0)
    for b in range(len(digits) // len(some)):
        found = np.int64(0)
        for w in range(len(some)):
            found += ones(some[w] & digits[b * len(some) + w])
        total += found << b
    return total
