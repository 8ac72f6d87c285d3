"""Ranges of host names."""

from __future__ import annotations

import pytest

from ptaskmodel.workload.formats.host_names import expand


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("node", ["node"]),
        ("a b", ["a b"]),
        ("node-[0-2]", ["node-0", "node-1", "node-2"]),
        ("node-[08-10].site", ["node-08.site", "node-09.site", "node-10.site"]),
        ("[1,3,5-7]", ["1", "3", "5", "6", "7"]),
        ("n[3,1,3]", ["n3", "n1", "n3"]),
        ("n[00]", ["n00"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("r[0-1]n[0-1]", ["r0n0", "r0n1", "r1n0", "r1n1"]),
    ],
)
def test_ranges(expression, names):
    assert list(expand(expression)) == names


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "not a printable name"),
        ("  ", "not a printable name"),
        ("a\nb", "not a printable name"),
        ("n[0-3", "brackets that do not match"),
        ("n]0[", "brackets that do not match"),
        ("n[[0]]", "brackets that do not match"),
        ("n[]", "has '' in a bracket"),
        ("n[1,]", "has '' in a bracket"),
        ("n[a-b]", "has 'a-b' in a bracket"),
        ("n[1-2-3]", "has '1-2-3' in a bracket"),
        ("n[-1]", "has '-1' in a bracket"),
        ("n[5-3]", "goes down; write 3-5"),
        ("n[00-100]", "the same number of digits"),
        ("n[0-1000000]", "stands for more than 1000000 hosts"),
        ("n[0-999999][0-9]", "stands for more than 1000000 hosts"),
        ("n[0-99999999999999999999]", "in a bracket"),
    ],
)
def test_bad_ranges(expression, reason):
    with pytest.raises(ValueError, match=reason):
        expand(expression)
