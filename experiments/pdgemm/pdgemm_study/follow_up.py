"""The follow-up experiment: runs against the number of competitors, predicted from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pdgemm_study.tables import FIRST_CONNECTIONS
from ptaskmodel.calibration.fits import pdgemm_setting, ptask_fitter
from ptaskmodel.calibration.measurements import MeasuredGroup, read_measurements
from ptaskmodel.calibration.results import Calibration, GroupCalibration, Prediction, summarise

if TYPE_CHECKING:
    import pandas

# The runs were stopped after 4 of the 16 iterations.
FOLLOW_UP_PART = 0.25
# What the switches of a cluster share by.
COMPETITORS_OF_FOLLOW_UP = {"grisou": "n_tcp_connections", "paravance": "n_host_pairs"}


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A cluster's follow-up: runs against competitors, and the mean errors of three predictions.

    half_errors: of each half, predicted by the fit of the other.
    """

    cluster: str
    runs: pandas.DataFrame
    first_only_error: float
    half_errors: tuple[float, float]


def follow_up(first: Calibration, measurements: Path) -> list[FollowUp]:
    """The follow-up predicted from the first experiment, and each half from the other half.

    first: the ptask calibrated on the first experiment; the application's count k is that of the
    non-blocking runs with sub-blocks. The undisturbed runs of the follow-up give its length.
    """
    import pandas as pd

    found = []
    for cluster in COMPETITORS_OF_FOLLOW_UP:
        group = _group(cluster, measurements)
        rows = group.measurements
        first_only = _predicted(group, _count(first, cluster))
        free = ptask_fitter(pdgemm_setting(cluster, part=FOLLOW_UP_PART))
        even = [number % 2 == 0 for number in range(len(rows))]
        odd = [not taken for taken in even]
        table = pd.DataFrame(
            {
                "cluster": cluster,
                "competitors": [0.0 if row.pattern.none else row.competitors for row in rows],
                "measured_s": [row.runtime_s for row in rows],
                "first_only_s": [row.predicted_s for row in first_only.predictions],
            }
        )
        half_errors = [_unused_error(free(group, half)) for half in (even, odd)]
        found.append(FollowUp(cluster, table, _error(first_only), tuple(half_errors)))
    return found


def grisou_errors(
    first: Calibration, measurements: Path, connections: Sequence[float]
) -> dict[float, float]:
    """Mean error of the prediction of Grisou's follow-up, for each number w of connections that
    the first experiment may have had.

    first: calibrated for FIRST_CONNECTIONS. That experiment determines k / w alone, so with other
    connections k is as many times larger.
    """
    group, k = _group("grisou", measurements), _count(first, "grisou")
    return {w: _error(_predicted(group, k * w / FIRST_CONNECTIONS)) for w in connections}


def _group(cluster: str, measurements: Path) -> MeasuredGroup:
    """The follow-up on a cluster, with what its switches share by as competitors."""
    groups = read_measurements(measurements, COMPETITORS_OF_FOLLOW_UP[cluster])
    (group,) = [group for group in groups if group.labels["cluster"] == cluster]
    return group


def _count(first: Calibration, cluster: str) -> float:
    """The application's count k in the first experiment."""
    labels = {"cluster": cluster, "broadcast": "nonblocking", "block_subdivisions": "50"}
    return first.group(**labels).value("competitors")


def _predicted(group: MeasuredGroup, k: float) -> GroupCalibration:
    """A follow-up predicted with a count k; its undisturbed runs say how long it is."""
    setting = pdgemm_setting(group.labels["cluster"], part=FOLLOW_UP_PART)
    known = ptask_fitter(setting, {"compute_efficiency": 1.0, "competitors": k})
    return known(group, [row.pattern.none for row in group.measurements])


def _error(group: GroupCalibration) -> float:
    return summarise(_disturbed(group)).mean


def _unused_error(group: GroupCalibration) -> float:
    return summarise([row for row in _disturbed(group) if not row.used_in_fit]).mean


def _disturbed(group: GroupCalibration) -> list[Prediction]:
    return [row for row in group.predictions if not row.measurement.pattern.none]
