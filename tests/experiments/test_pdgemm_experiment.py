"""The tables and figures of the PDGEMM experiment, on a part of it."""

from pathlib import Path

import pandas
import pytest
from matplotlib.figure import Figure
from pdgemm_study import figures
from pdgemm_study.follow_up import follow_up
from pdgemm_study.tables import (
    PATTERNS,
    calibrations,
    comparison_table,
    error_table,
    gain_table,
    phase_activity,
    placement_rows,
    placement_table,
    progress_over_time,
    read_published,
    time_scale_table,
    with_competitors,
)

from ptaskmodel.calibration import read_measurements
from ptaskmodel.calibration.fits import NOMINAL, REFERENCE_SEED, pdgemm_setting
from ptaskmodel.calibration.measurements import Measurement

MEASURED = Path(__file__).resolve().parents[2] / "calibration" / "measurements"

pytestmark = pytest.mark.jit


@pytest.fixture(scope="module")
def groups():
    return with_competitors(read_measurements(MEASURED / "pdgemm_runtimes.csv"))


@pytest.fixture(scope="module")
def found(groups):
    return calibrations(groups, "endpoints")


@pytest.fixture(scope="module")
def placements():
    seeds = (0, 1, 2, 3, REFERENCE_SEED)
    every = pandas.DataFrame([row for seed in seeds for row in placement_rows(seed)])
    published_s = read_published(MEASURED / "ptask_predicted_runtimes.csv")
    return placement_table(published_s, every), every


def test_the_reference_placement_rounds_to_the_published_row(placements):
    summary, every = placements
    assert (summary.reference_placement_s.round() == summary.published_s).all()
    assert every.placement.nunique() == 5
    assert summary.closed_form_gap_s.max() < 1e-3 + 3e-5 * 31


def test_the_comparison_has_a_row_for_each_measurement(found):
    table = comparison_table(found)
    assert len(table) == 48
    assert table["ptask, endpoints, error"].notna().sum() == 28 + 14
    errors = error_table(found).set_index(["model", "rows"])
    assert errors.loc[("ptask, endpoints", "all groups"), "mean_error"] <= 0.011
    assert errors.loc[("phases, endpoints", "without sub-blocks"), "count"] == 12


def test_the_gain_of_phases_is_reported(found):
    gains = gain_table(
        {
            **found,
            "ptask, all": found["ptask, endpoints"],
            "phases, all": found["phases, endpoints"],
        }
    )
    assert len(gains) == 4
    blocking = gains[(gains.cluster == "paravance") & (gains.broadcast == "blocking")].iloc[0]
    assert blocking["phases, endpoints"] < 0.5 * blocking["ptask, endpoints"]


def test_progress_has_two_slopes():
    setting = pdgemm_setting().merged()
    row = Measurement(PATTERNS[4], None, competitors=2.0)
    dates, done = progress_over_time(setting, NOMINAL, row)
    assert done[-1] == 1.0
    disturbed, undisturbed = done[44] / dates[44], (done[59] - done[46]) / (dates[59] - dates[46])
    assert disturbed / undisturbed == pytest.approx(1 / 3, rel=1e-3)


def test_phases_use_the_network_and_the_cores_in_turn():
    blocking = phase_activity(pdgemm_setting(blocking=True, phases=16).merged(), NOMINAL)
    assert len(blocking) == 32
    assert blocking.router_Bps[::2].to_list() == pytest.approx([2.5e9] * 16, rel=1e-4)
    assert not blocking.router_Bps[1::2].any()
    assert blocking.flops[1::2].to_list() == pytest.approx([256 * 38.4e9] * 16)
    overlapped = phase_activity(pdgemm_setting(phases=16).merged(), NOMINAL)
    assert overlapped.end_s.iloc[-1] < blocking.end_s.iloc[-1]


def test_a_finer_time_scale_costs_more(groups):
    labels = {"cluster": "paravance", "broadcast": "blocking", "block_subdivisions": "1"}
    table = time_scale_table([group for group in groups if group.labels == labels], repeats=1)
    assert table.phases.to_list() == [0, 1, 2, 4, 8, 16]
    assert table.mean_error.iloc[-1] < table.mean_error.iloc[0]
    assert isinstance(figures.time_scale_figure(table), Figure)


def test_every_figure_is_drawn(found, placements, tmp_path):
    summary, every = placements
    table = comparison_table({**found, "rates, all": found["rates, endpoints"]})
    plain = dict(zip(summary.pattern, summary.reference_placement_s, strict=True))
    clusters = follow_up(found["ptask, endpoints"], MEASURED / "pdgemm_tcp_connections.csv")
    setting = pdgemm_setting(blocking=True, phases=16).merged()
    line = progress_over_time(
        pdgemm_setting().merged(), NOMINAL, Measurement(PATTERNS[0], None), 20.0
    )
    drawn = [
        figures.placements_figure(summary, every),
        figures.clusters_figure(table, plain),
        figures.residuals_figure(table),
        figures.progress_figure(
            {"grisou": {"none": line}}, {"grisou": (0.1, 0.2)}, {"grisou": {"none": (312.0, 1.0)}}
        ),
        figures.activity_figure(
            {("blocking", "whole"): phase_activity(setting, NOMINAL)}, {"whole": 60.0}
        ),
        figures.follow_up_figure(
            clusters, pandas.read_csv(MEASURED / "pdgemm_tcp_connections_models.csv")
        ),
    ]
    for number, figure in enumerate(drawn):
        figure.savefig(tmp_path / f"{number}.png", dpi=40)
        assert (tmp_path / f"{number}.png").stat().st_size > 3000
