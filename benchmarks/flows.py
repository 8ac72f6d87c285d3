"""What flows of DCTCP cost on a fat tree of 1,024 hosts (k = 16), with routes by ECMP.

    python benchmarks/flows.py [--count 10000] [--load 0.4] [--repeat 3] [--solver RULE ...]

Prints a row for each rule: processor time of the simulation alone (`simulation_processor_time_s` of
`ptaskmodel simulate`), the least of several runs.
"""

from __future__ import annotations

import argparse
import time

import costs  # noqa: F401  (puts tests/ on the path)
import loads

from ptaskmodel import Simulation
from ptaskmodel.platform.routing import Ecmp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="number of flows")
    parser.add_argument("--load", type=float, default=0.4, help="part of what hosts can send")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--solver", nargs="+", default=["proportional", "maxmin"], metavar="RULE")
    options = parser.parse_args()
    platform, flows = loads.wire_flows(options.count, options.load)
    for rule in options.solver:
        took_s = []
        for _ in range(options.repeat):
            simulation = Simulation(platform, network_model="DCTCP", routing=Ecmp(1), solver=rule)
            simulation.add_all(flows)
            began = time.process_time()
            simulation.run()
            took_s.append(time.process_time() - began)
        print(f"| {options.count:,} | {options.load} | {rule} | {min(took_s):.1f} |", flush=True)


if __name__ == "__main__":
    main()
