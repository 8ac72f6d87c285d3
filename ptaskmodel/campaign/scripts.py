"""What a script is told that makes tables and pictures of campaigns: RUNS... -o DIR."""

from __future__ import annotations

import argparse
from pathlib import Path

from ptaskmodel.campaign.campaign import Campaign


def told_campaigns(description: str) -> tuple[list[Campaign], Path]:
    """The campaigns whose directories the command line names, and the directory it asks for, made.

    description: the script's docstring; its first line is shown by --help.
    Raises CampaignError.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, help="directories of campaigns")
    parser.add_argument("-o", "--output", type=Path, required=True, help="made if it is not there")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    return [Campaign.in_directory(place) for place in given.runs], given.output
