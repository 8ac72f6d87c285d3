"""SimPy processes that wait for parallel tasks: jobs in a queue, a backup, an impatient user.

From the root of the repository: python experiments/simpy_bridge/example.py
"""

from __future__ import annotations

from collections.abc import Iterator

import simpy

import ptaskmodel as pm
from ptaskmodel.connect.simpy import SimPyBridge

GB = 1e9


class Cluster:
    """Pairs of nodes, given out first come, first served."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        platform = pm.load_platform("platforms/small_cluster.xml")
        self.bridge = SimPyBridge(env, pm.Simulation(platform))
        self.pairs = simpy.Store(env)
        self.pairs.items = [["node-0", "node-1"], ["node-2", "node-3"]]

    def say(self, text: str) -> None:
        print(f"{self.env.now:6.2f} s  {text}")

    def job(self, name: str) -> Iterator[simpy.Event]:
        """Wait for two nodes, compute and exchange there; the user may give up meanwhile."""
        hosts = yield self.pairs.get()
        self.say(f"{name} starts on {' and '.join(hosts)}")
        end = self.bridge.run(
            pm.ParallelTask(hosts, flops=100e9, bytes=[[0, 10 * GB], [10 * GB, 0]], id=name)
        )
        try:
            record = yield end
            self.say(f"{name} is done after {record.execution_s:.2f} s")
        except simpy.Interrupt as why:
            done = self.bridge.task(end).progress
            self.bridge.cancel(end)
            self.say(f"{name} is stopped at {done:.0%}: {why.cause}")
        yield self.pairs.put(hosts)

    def backup(self, at_s: float) -> Iterator[simpy.Event]:
        """Copy what node-0 holds; its cable is shared with the job there."""
        yield self.env.timeout(at_s)
        record = yield self.bridge.run(pm.Flow("node-0", "node-31", 5 * GB, id="backup"))
        self.say(f"backup is done after {record.execution_s:.2f} s")


def main() -> None:
    env = simpy.Environment()
    cluster = Cluster(env)
    jobs = [env.process(cluster.job(f"job {k}")) for k in range(3)]
    env.process(cluster.backup(2.0))

    def user() -> Iterator[simpy.Event]:
        yield env.timeout(6.0)
        jobs[1].interrupt("its user has seen enough")

    env.process(user())
    env.run()


if __name__ == "__main__":
    main()
