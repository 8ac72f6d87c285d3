"""Tables and pictures of the study of simulated Slurm, of campaigns that were run.

python experiments/slurm/tables.py RUNS... -o results/slurm
"""

from __future__ import annotations

import figures
import findings
import suspension
from common import Row, mean_rows, write

from ptaskmodel.campaign import told_campaigns, write_findings

# Of which the means over orders and seeds are written too: by what, and what tells runs apart.
MEANS = {
    "separate": (("test_s", "controllers", "kind"), "seed"),
    "sharing": (("memory", "sharing"), "seed"),
    "phases": (("test_s", "controllers", "kind"), "phase"),
    "suspension": (("log", "policy"), "order"),
    "queue": (("log", "policy"), "order"),
    "victims": (("log", "select"), "order"),
    "snapshots": (("sizes", "asked"), "seed"),
}


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    tables: dict[str, list[Row]] = {}
    for campaign in campaigns:
        for run, record in campaign.records():
            tables.setdefault(run.parameters["table"], []).extend(record["series"])
    for name, rows in tables.items():
        if not rows:
            continue
        shown = rows
        if name in MEANS:
            by, each = MEANS[name]
            write(output, f"{name}_runs", rows)
            means = mean_rows(rows, by)
            shown = [{key: v for key, v in row.items() if key != each} for row in means]
        write(output, name, shown)
        if name == "suspension":
            write(output, "suspension_orders", suspension.relations(rows))
        figures.draw(name, shown if name in ("separate", "sharing") else rows, output)
    print(write_findings(output, findings.found(tables)))


if __name__ == "__main__":
    main()
