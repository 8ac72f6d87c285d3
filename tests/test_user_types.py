"""Programs of users pass mypy --strict, whether the package is installed or its folder is used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = '''"""Programs that users write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ptaskmodel as pm
from ptaskmodel.batch import BatchSimulation, Decision, Job, Start, View
from ptaskmodel.sharing import SharingProblem, bmf


class Watcher(pm.Observer):
    def task_ended(self, task: pm.TaskRef) -> None:
        end_s: float | None = task.end_s
        print(task.id, end_s)


class Smallest:
    def decide(self, view: View) -> Iterator[Decision]:
        for job in sorted(view.queue, key=lambda job: job.num_hosts):
            if view.fits(job):
                yield Start(job)


def build() -> pm.Platform:
    made = pm.Platform.build("lab")
    made.cluster("c", pm.Torus((2, 2)), speed=1e9, bandwidth=1e9, latency=1e-6)
    return made.finish()


def simulate(platform: pm.Platform) -> float:
    simulation = pm.Simulation(platform, solver="bmf")
    simulation.observe(Watcher())
    simulation.add(pm.ParallelTask(["a", "b"], flops=[1e9, 1e9], flows=[(0, 1, 1e6)]))
    simulation.add(pm.Delay(duration_s=3.0))
    simulation.run(until_s=10.0)
    record: pm.TaskRecord = simulation.records()[0]
    return simulation.makespan_s if record.end_s is None else record.end_s


def batch(platform: pm.Platform, place: Path) -> float:
    options = pm.BatchOptions(policy="easy")
    run = pm.batch_into(place, platform, pm.read_workload("w.json"), options)
    makespan_s: float = run.summary["makespan_s"]
    return makespan_s


def rates() -> list[float]:
    problem = SharingProblem.build([[(0, 1.0)], [(0, 1.0)]], capacity=[1.0])
    return [float(rate) for rate in bmf(problem).rates]


def attempts(jobs: list[Job]) -> int:
    return len(BatchSimulation(jobs, 4, Smallest()).run().attempts)


simulate("no platform")
'''


@pytest.mark.parametrize("way", ["plain", "editable"])
def test_programs_pass_and_their_mistakes_are_found(tmp_path, way):
    pytest.importorskip("mypy")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    libraries = [sysconfig.get_path("purelib"), *filter(os.path.isdir, sys.path)]
    if way == "plain":
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / "ptaskmodel", packages / "ptaskmodel", ignore=ignored)
        libraries = [path for path in libraries if not (Path(path) / "ptaskmodel").is_dir()]
    else:
        libraries.insert(0, str(ROOT))
    (packages / "others.pth").write_text("\n".join(libraries))
    (tmp_path / "program.py").write_text(PROGRAM)
    python = f"--python-executable={tmp_path / 'venv' / 'bin' / 'python'}"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", python, "--cache-dir=cache", "program.py"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert 'incompatible type "str"; expected "Platform"' in checked.stdout, checked.stdout
    assert checked.stdout.count("error:") == 1, checked.stdout
