"""Batches on hosts that sleep, with energy, for tests."""

from __future__ import annotations

import ptaskmodel as pm
from ptaskmodel.batch import BatchOptions, Job, Wake, Workload, machine_of
from ptaskmodel.batch.jobs.metering import MeteredExecution
from ptaskmodel.batch.plan import Plan
from ptaskmodel.batch.run import new_simulation
from ptaskmodel.workload.works import DelayWork

SPEEDS = ["100Mf", "50Mf", "20Mf", "1e-9f", f"{1 / 6!r}f", f"{1 / 15!r}f"]
WATTS = "100:200,93:170,90:150,10:10,120:120,110:110"
SLEEP = "3:4:5"


def machine_platform(hosts=4, speeds=SPEEDS, cores=1, **properties: str) -> pm.Platform:
    """Hosts that sleep (6 s to fall asleep, 15 to come back), and a master that does not count."""
    facts = {"wattage_per_state": WATTS, "sleep_pstates": SLEEP} | properties
    build = pm.Platform.build("energy")
    build.host("master_host", "100Mf", properties={"wattage_per_state": "100:200"})
    for k in range(hosts):
        build.host(f"h{k}", speeds, cores, properties=facts)
        build.link(f"l{k}", "100MBps", "0s", properties={"wattage_range": "1:3"})
    for a in range(hosts):
        for b in range(a + 1, hosts):
            build.route(f"h{a}", f"h{b}", [f"l{a}", f"l{b}"])
    return build.finish()


def ptask_job(name: str, submit_s: float, hosts: int, flops: float, size: float) -> Job:
    """A job that sends round a ring."""
    flows = [[k, (k + 1) % hosts, size] for k in range(hosts)] if hosts > 1 else None
    names = [str(k) for k in range(hosts)]
    work = pm.ParallelTask(names, flops=[flops] * hosts, flows=flows).work
    return Job(name, submit_s, hosts, f"p{name}", work)


def delay_job(name: str, submit_s: float, hosts: int, seconds: float, **more) -> Job:
    return Job(name, submit_s, hosts, f"d{seconds}", DelayWork(seconds), **more)


def workload_of(*jobs: Job) -> Workload:
    return Workload(jobs, {job.profile: job.work for job in jobs}, num_hosts=None, name="w")


class Script:
    """Yields what it was given for a date, once that has come."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def decide(self, view):
        while self.steps and self.steps[0][0] <= view.now:
            yield from self.steps.pop(0)[1]
        for job in view.queue:
            if view.is_waiting(job) and view.fits(job):
                yield job
        if self.steps:
            yield Wake(self.steps[0][0])


def run(platform: pm.Platform, policy, *jobs: Job, **options):
    """(schedule, energy) of a batch under a policy that is an object."""
    machine = machine_of(platform)
    plan = Plan(machine, workload_of(*jobs), BatchOptions(energy=True, **options))
    first = min(job.submit_time_s for job in jobs)
    busy = plan.options.delay_power == "busy"
    metered = MeteredExecution(
        plan.execution, machine, plan.ptasks, first_submit_s=first, busy_delays=busy
    )
    simulation = new_simulation(plan, machine, metered=metered)
    simulation._policy = policy
    schedule = simulation.run()
    return schedule, metered.energy(schedule.now_s)
