"""PDGEMM in the two-group set-up: what is calibrated where no other application is given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from ptaskmodel.apps.interference import TwoGroups
from ptaskmodel.apps.pdgemm import Pdgemm, place
from ptaskmodel.calibration.ptask import Setting
from ptaskmodel.platform import Platform

CLUSTERS = ("paravance", "grisou")
ORDER = 80_000
PROCESSES = 256
# A placement whose undisturbed runtime is that of the published table, 311.5 s.
REFERENCE_SEED = 70


@functools.cache
def two_groups_platform(name: str) -> Platform:
    """The platform of ``TwoGroups(name)``."""
    return TwoGroups(name).platform()


def pdgemm_setting(
    cluster: str = "paravance",
    *,
    sub_blocks: int = 1,
    blocking: bool = False,
    phases: int | None = None,
    seed: int = REFERENCE_SEED,
    part: float = 1.0,
) -> Setting:
    """The measured PDGEMM on ``cluster``, its ranks placed at random with ``seed``.

    phases: None for one bundled task (``Pdgemm.work``); part: of the whole run.
    """
    groups = TwoGroups(cluster)
    app = Pdgemm(ORDER, PROCESSES, sub_blocks, blocking)
    work = app.work(phases)
    if part != 1.0:
        work = work.divided(1.0 / part, 1.0 / part)
    return Setting(
        two_groups_platform(cluster),
        place(groups.hosts, PROCESSES, "random", seed),
        work,
        (groups.hosts[0], groups.hosts[groups.nodes_per_group]),
    )


def bundle_of_labels(labels: Mapping[str, str], part: float = 1.0) -> Setting:
    """The bundled task (or a part of it) on the cluster that a group's labels name.

    Other labels do not matter to a bundle. Any cluster but the measured ones has the same nodes.
    """
    named = labels.get("cluster", "")
    return _known_setting(named if named in CLUSTERS else CLUSTERS[0], None, 1, False, part)


def phases_of_labels(phases: int) -> Callable[[Mapping[str, str]], Setting]:
    """The settings of groups in ``phases`` phases, blocking and cut as their labels say."""

    def setting(labels: Mapping[str, str]) -> Setting:
        return _known_setting(
            labels["cluster"],
            phases,
            int(labels["block_subdivisions"]),
            labels["broadcast"] == "blocking",
        )

    return setting


@functools.lru_cache(maxsize=32)
def _known_setting(
    cluster: str, phases: int | None, sub_blocks: int, blocking: bool, part: float = 1.0
) -> Setting:
    return pdgemm_setting(
        cluster, phases=phases, blocking=blocking, sub_blocks=sub_blocks, part=part
    ).merged()
