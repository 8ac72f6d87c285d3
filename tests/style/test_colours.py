"""Colours of roles are told apart by everybody, and text is read on its ground."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from ptaskmodel.style.figures import (
    CATEGORIES,
    DARK,
    DARK_CATEGORIES,
    HEAT,
    LIGHT,
    MARKERS,
    REASONS,
    SIDE_BY_SIDE,
    SIGNS,
    contrast,
    css,
    text_on,
)

# What people see without one kind of cones: Machado, Oliveira and Fernandes 2009, severity 1.
SEEN = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def lab(colour, eye):
    """CIE L*a*b* of a colour "#RRGGBB" as an eye of SEEN sees it."""
    part = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SEEN[eye]) @ linear, 0.0, 1.0)
    t = XYZ @ seen / (XYZ @ np.ones(3))
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest(colours, eye):
    """The smallest distance of two colours, as the CIE has defined it in 1976."""
    pairs = itertools.combinations([lab(colour, eye) for colour in colours], 2)
    return min(float(np.linalg.norm(a - b)) for a, b in pairs)


@pytest.mark.parametrize(
    ("colours", "least"),
    [
        ([getattr(LIGHT, role) for role in SIDE_BY_SIDE], (46.5, 22.5, 22.5, 16.5)),
        ([getattr(DARK, role) for role in SIDE_BY_SIDE], (45.5, 32.5, 21.5, 19.5)),
        ([LIGHT.gain, LIGHT.lose], (100, 57.5, 57.5, 57.5)),
        ([DARK.gain, DARK.lose], (80, 40.5, 40.5, 40.5)),
        (CATEGORIES, (28.5, 16.5, 15.5, 16.5)),
        (DARK_CATEGORIES, (43.5, 18.5, 14.0, 19.0)),
    ],
    ids=["light", "dark", "gain", "dark gain", "categories", "dark categories"],
)
def test_colours_side_by_side_are_told_apart(colours, least):
    for eye, distance in zip(("normal", "deutan", "protan", "tritan"), least, strict=True):
        assert closest(colours, eye) >= distance, eye


@pytest.mark.parametrize("roles", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_read_on_paper_and_panel(roles):
    for text in (
        "ink",
        "soft",
        "use",
        "wait_text",
        "transfer_text",
        "lost_text",
        "gain",
        "lose",
        "link",
    ):
        for ground in ("paper", "panel"):
            assert contrast(getattr(roles, text), getattr(roles, ground)) >= 4.5, (text, ground)


def test_marks_are_seen_or_have_an_outline_of_ink():
    for colour in (*(getattr(LIGHT, role) for role in SIDE_BY_SIDE), *CATEGORIES, *HEAT):
        assert max(contrast(colour, LIGHT.paper), contrast(colour, LIGHT.ink)) >= 3
        assert contrast(text_on(colour), colour) >= 4.0


def test_lines_of_categories_are_seen_on_dark_paper():
    assert min(contrast(colour, DARK.paper) for colour in DARK_CATEGORIES) >= 3


def test_amounts_get_darker():
    lightness = [lab(colour, "normal")[0] for colour in HEAT]
    assert lightness == sorted(lightness, reverse=True)


def test_a_page_has_the_same_colours():
    light, dark = css().splitlines()
    grounds = (light, LIGHT, HEAT, CATEGORIES), (dark, DARK, HEAT[::-1], DARK_CATEGORIES)
    for text, roles, heat, categories in grounds:
        found = dict(re.findall(r"--([\w-]+): (#\w{6});", text))
        assert found["wait-text"] == roles.wait_text
        assert found["heat-0"] == heat[0]
        assert set(found.values()) == {*roles, *HEAT, *categories, *REASONS}
    assert len(MARKERS) == len(SIGNS) == len(CATEGORIES)
