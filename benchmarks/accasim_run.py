"""Runs a log through AccaSim: python benchmarks/accasim_run.py LOG.swf PROCESSORS fifo|easy DIR.

For an interpreter in whose environment `pip install accasim` was done, not for that of the package.
"""

import collections
import collections.abc
import json
import sys
from pathlib import Path

# AccaSim 1.1.3 knows these names by their place before Python 3.10.
for name in ("Mapping", "MutableMapping", "Iterable", "Sequence"):
    if not hasattr(collections, name):
        setattr(collections, name, getattr(collections.abc, name))

from accasim.base.allocator_class import FirstFit  # noqa: E402
from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut  # noqa: E402
from accasim.base.simulator_class import Simulator  # noqa: E402

log, processors, policy, place = sys.argv[1:]
system = {
    "groups": {"g": {"core": 1}},
    "nodes": {"g": int(processors)},
    "resources": {"g": int(processors)},
    "equivalence": {"processor": {"core": 1}},
    "start_time": 0,
}
config = Path(place, "system.json")
config.write_text(json.dumps(system))
rule = {"fifo": FirstInFirstOut, "easy": EASYBackfilling}[policy](FirstFit())
outputs = {"statistics_output": False, "show_statistics": False, "LOG_LEVEL": "ERROR"}
Simulator(
    log, str(config), rule, RESULTS_FOLDER_NAME="r", RESULTS_FOLDER_PATH=place, **outputs
).start_simulation()
