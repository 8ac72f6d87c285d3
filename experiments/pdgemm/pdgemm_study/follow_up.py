"""The follow-up experiment: runs against the number of competitors, predicted from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ptaskmodel.calibration.fit_ptask import ptask_fitter
from ptaskmodel.calibration.measurements import read_measurements
from ptaskmodel.calibration.pdgemm_setting import pdgemm_setting
from ptaskmodel.calibration.results import Calibration, GroupCalibration, Prediction, summarise

if TYPE_CHECKING:
    import pandas

# The runs were stopped after 4 of the 16 iterations.
FOLLOW_UP_PART = 0.25
# What the switches of a cluster share by.
COMPETITORS_OF_FOLLOW_UP = {"grisou": "n_tcp_connections", "paravance": "n_host_pairs"}


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A cluster's follow-up: runs against competitors, and the predictions of three fits."""

    cluster: str
    runs: pandas.DataFrame
    first_only: GroupCalibration
    halves: tuple[GroupCalibration, GroupCalibration]

    @property
    def first_only_error(self) -> float:
        return summarise(_disturbed(self.first_only)).mean

    @property
    def half_errors(self) -> list[float]:
        """Mean error of each half, predicted by the fit of the other."""
        return [
            summarise([row for row in _disturbed(half) if not row.used_in_fit]).mean
            for half in self.halves
        ]


def follow_up(first: Calibration, measurements: Path) -> list[FollowUp]:
    """The follow-up predicted from the first experiment, and each half from the other half.

    first: the ptask calibrated on the first experiment; the application's count k is that of the
    non-blocking runs with sub-blocks. The undisturbed runs of the follow-up give its length.
    """
    import pandas as pd

    found = []
    for cluster, column in COMPETITORS_OF_FOLLOW_UP.items():
        (group,) = [
            group
            for group in read_measurements(measurements, column)
            if group.labels["cluster"] == cluster
        ]
        setting = pdgemm_setting(cluster, part=FOLLOW_UP_PART)
        k = first.group(cluster=cluster, broadcast="nonblocking", block_subdivisions="50").value(
            "competitors"
        )
        known = ptask_fitter(setting, {"compute_efficiency": 1.0, "competitors": k})
        rows = group.measurements
        first_only = known(group, [row.pattern.none for row in rows])
        free = ptask_fitter(setting)
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
        halves = (free(group, even), free(group, odd))
        found.append(FollowUp(cluster, table, first_only, halves))
    return found


def _disturbed(group: GroupCalibration) -> list[Prediction]:
    return [row for row in group.predictions if not row.measurement.pattern.none]
