"""Options of ``serve``: those of a batch that a scheduler does not decide, and of the scheduler."""

from __future__ import annotations

from ptaskmodel.connect.batsim.options import ConnectionOptions, SessionOptions
from ptaskmodel.options import rows_of
from ptaskmodel.runs.options.batch import BATCH

# What an external scheduler decides, or sees otherwise.
DECIDED = {
    *("policy", "order", "backfill_order", "policy_options", "allocation", "seed", "estimates"),
    *("profiles", "ratio", "pattern", "calibration", "group", "leave_out_larger"),
    *("walltimes", "on_failure", "failures", "failure_law", "checkpoint", "maintenance"),
    *("licences", "dependencies", "loop", "until_s", "fairness", "frozen", "verify", "tau_s"),
    "neighbours",
}
SERVE = (
    *rows_of(ConnectionOptions),
    *rows_of(SessionOptions),
    *(row for row in BATCH if row.name not in DECIDED),
)
