"""Writes the table of a campaign: Parquet, or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ptaskmodel.errors import CampaignError
from ptaskmodel.files import whole_path

if TYPE_CHECKING:
    import pandas

PARQUET = ".parquet"


def write_table(frame: pandas.DataFrame, path: str | Path) -> None:
    """Write a table, whole, in the format that its name asks for: .parquet or .csv.

    Raises CampaignError for another name, or if Parquet needs a library that is missing.
    """
    path = Path(path)
    if path.suffix not in (PARQUET, ".csv"):
        raise CampaignError(f"{path}: tables are .parquet or .csv; choose one of them")
    with whole_path(path, error=CampaignError) as partial:
        if path.suffix == ".csv":
            frame.to_csv(partial, index=False, lineterminator="\n")
            return
        try:
            _plain(frame).to_parquet(partial, index=False, engine="pyarrow")
        except ImportError:
            raise CampaignError(
                f"{path}: Parquet needs pyarrow: run pip install pyarrow, or give .csv"
            ) from None


def _plain(frame: pandas.DataFrame) -> pandas.DataFrame:
    """With columns of one type each: levels of mixed types as text."""
    mixed = {
        name: frame[name].map(str)
        for name in frame.columns
        if frame[name].dtype == object and len({type(value) for value in frame[name]}) > 1
    }
    return frame.assign(**mixed)
