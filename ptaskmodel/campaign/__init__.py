"""Many runs: factors, executors, results that survive anything, comparisons."""

from __future__ import annotations

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.campaign.campaign": (
        "Campaign",
        "Estimate",
        "Status",
        "told_campaigns",
        "write_table",
    ),
    "ptaskmodel.campaign.dask_cluster": ("Cluster",),
    "ptaskmodel.campaign.plan": ("Plan", "Run", "plan_of", "read_plan"),
    "ptaskmodel.campaign.report": ("write_campaign_report",),
    "ptaskmodel.campaign.statistics": ("means", "paired", "pareto"),
    "ptaskmodel.campaign.variance": ("effects",),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
