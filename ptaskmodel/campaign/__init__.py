"""Campaigns: many runs that vary factors, made in parallel, kept on disk, and compared.

Callers import every name from here; each is loaded from its module on first use.
"""

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
    "ptaskmodel.campaign.plan": (
        "Plan",
        "plan_of",
        "read_plan",
        "Run",
    ),
    "ptaskmodel.campaign.differences": (
        "between",
        "Finding",
        "near",
        "ordered",
        "stated",
        "write_findings",
    ),
    "ptaskmodel.campaign.report": ("write_campaign_report",),
    "ptaskmodel.campaign.statistics": (
        "effects",
        "means",
        "paired",
        "pareto",
    ),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
