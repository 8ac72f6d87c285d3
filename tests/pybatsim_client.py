"""Runs schedulers of pybatsim, one session after the other; in the Python that pybatsim is in.

python pybatsim_client.py ENDPOINT... < "names of schedulers, a line each"
"""

import logging
import sys

from batsim.batsim import Batsim
from batsim.tools.launcher import instanciate_scheduler

logging.disable(logging.CRITICAL)
for name, endpoint in zip(sys.stdin.read().split(), sys.argv[1:]):  # noqa: B905
    Batsim(instanciate_scheduler(name, options={}), endpoint, -1).start()
