"""Options of ``simulate``."""

from __future__ import annotations

from ptaskmodel.engine.usage.network_models import FLUID_MODELS
from ptaskmodel.runs.options.rows import (
    COUNT,
    COURSE,
    FILE,
    FLAG,
    NOT_NEGATIVE,
    PLATFORM,
    RESULTS,
    ROUTING,
    Option,
    calibration_rows,
    model_rows,
    recording_rows,
)

FLUID, PACKETS = "fluid", "packets"
SIMULATE = (
    *model_rows(FLUID_MODELS),
    Option(
        "network_parameters", FILE, None, None,
        "Parameters of a wire model (DCTCP, CUBIC, ROCE, RDMA): a JSON file.", PLATFORM,
    ),
    Option(
        "network_level", (FLUID, PACKETS), FLUID, None,
        "fluid: flows share links at rates; packets: they queue (DCTCP, ROCE; flows alone).",
        PLATFORM,
    ),
    ROUTING,
    Option(
        "draws", COUNT, None, None,
        "Also simulate so often with other routes (seeds of ecmp, unless a file gives them) and "
        "starts: ranges of durations.", COURSE, metavar="N",
    ),
    Option(
        "jitter_s", NOT_NEGATIVE, 1e-6, "s", "Largest delay of a start in --draws.", COURSE,
        flag="--jitter", metavar="T",
    ),
    *calibration_rows("tasks without competitors", PLATFORM),
    Option(
        "until_s", NOT_NEGATIVE, None, "s", "Stop at this date.", COURSE, flag="--until",
        metavar="T",
    ),
    *recording_rows("task"),
    Option(
        "routes", FLAG, False, None,
        "Also write the route of each flow: routes.csv, which --routing file: reads.",
        RESULTS, writes=True,
    ),
    Option(
        "neighbours", FLAG, False, None,
        "Also write by how much each task slowed each other task, and on which host "
        "or link: interference.csv (needs --output).", RESULTS,
        writes=True,
    ),
    Option(
        "checkpoint_every_s", NOT_NEGATIVE, None, None,
        "Write a checkpoint this often (wall time), beside the results: OUTPUT.checkpoint.", COURSE,
        flag="--checkpoint-every", metavar="SECONDS", writes=True,
    ),
    Option(
        "resume", FLAG, False, None,
        "Continue from the checkpoint, if there is one, with bit-identical results.",
        COURSE, writes=True,
    ),
)  # fmt: skip
