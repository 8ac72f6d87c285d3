"""Axes of pictures have numbers as people write them."""

from __future__ import annotations

import pytest

from ptaskmodel.style.figures import new_figure, picture, plain_log


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.3, 2.0, {"0.4", "0.5", "1", "2"}), (0.01, 2000.0, {"0.01", "0.1", "1", "10", "1,000"})],
)
def test_logarithmic_axes_have_no_powers(low, high, shown):
    @picture
    def drawn():
        figure = new_figure(6.5, 3.0)
        axes = figure.add_subplot()
        axes.plot([low, high], [1, 2])
        axes.set_xscale("log")
        plain_log(axes.xaxis)
        figure.draw_without_rendering()
        ticks = [*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks()]
        return [tick.label1.get_text() for tick in ticks]

    found = drawn()
    assert shown <= set(found)
    assert not any("10^" in text for text in found)
