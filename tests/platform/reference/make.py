"""Records SimGrid's routes in this directory: run it where g++ and SimGrid 3.32 are installed.

    PYTHONPATH=tests python tests/platform/reference/make.py

For each of our platforms, and for generated ones (written here as generated_SEED.xml), draws pairs
of hosts and writes NAME.tsv: source, destination, latency (17 digits), links, or "error".
The recorded files were made with SimGrid 3.32 (Debian 12).
"""

from __future__ import annotations

import random
from pathlib import Path

import live_routes
from random_platforms import random_platform

HERE = Path(__file__).resolve().parent
PLATFORMS = HERE.parent.parent.parent / "platforms"
SEEDS = range(1000, 1024)
PAIRS = 40


def record(platform: Path) -> None:
    """Write the routes of some pairs of a platform."""
    names = sorted(live_routes.run(platform, "").stdout.splitlines())
    generator = random.Random(7)
    drawn = {(generator.choice(names), generator.choice(names)) for _ in range(PAIRS)}
    lines = []
    for pair, route in sorted(live_routes.routes(platform, sorted(drawn)).items()):
        if route.links is None:
            lines.append("\t".join((*pair, "error")))
        else:
            lines.append("\t".join((*pair, repr(route.latency_s), *route.links)))
    (HERE / f"{platform.stem}.tsv").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Record all that SimGrid loads."""
    for platform in sorted(PLATFORMS.glob("*.xml")):
        record(platform)
    for seed in SEEDS:
        platform = HERE / f"generated_{seed}.xml"
        platform.write_text(random_platform(seed))
        if live_routes.loads(platform):
            record(platform)
        else:
            platform.unlink()


if __name__ == "__main__":
    main()
