"""Batch scheduling: jobs wait in a queue, and a policy decides when and where each starts.

Callers import every public name from here. Each is loaded from its module on first use; `NAMES`
lists them (see `ptaskmodel.lazy`).
"""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.batch.allocations": (
        "Allocation",
        "allocation_by_name",
        "ALLOCATIONS",
    ),
    "ptaskmodel.batch.class_metrics": (
        "by_class",
        "ClassRow",
        "fair_starts",
        "FairStart",
        "Replayed",
    ),
    "ptaskmodel.batch.jobs.checkpoints": ("Checkpointing",),
    "ptaskmodel.batch.jobs.execution": (
        "actual_duration_s",
        "Attempt",
        "DelayExecution",
        "FAILED",
        "KILLED",
        "REJECTED",
        "RUNNING",
        "SUCCESS",
        "SUSPENDED",
        "WAITING",
        "WALLTIME",
        "walltime_or_inf",
    ),
    "ptaskmodel.batch.jobs.queue": ("ClosedLoop",),
    "ptaskmodel.batch.loop.decisions": (
        "Decision",
        "Drain",
        "Event",
        "Kill",
        "PolicyFault",
        "Reject",
        "Requeue",
        "Resume",
        "SetPower",
        "Start",
        "Suspend",
        "Wake",
    ),
    "ptaskmodel.batch.loop.loop": ("BatchSimulation",),
    "ptaskmodel.batch.loop.power_states": (
        "Pstates",
        "Switch",
    ),
    "ptaskmodel.batch.loop.schedule": (
        "HostChange",
        "Schedule",
    ),
    "ptaskmodel.batch.loop.view": (
        "Policy",
        "View",
    ),
    "ptaskmodel.batch.machine.capacity": ("HostCapacity",),
    "ptaskmodel.batch.machine.failures": (
        "FailureLaw",
        "failures_of",
        "read_failures",
        "read_maintenance",
        "Window",
    ),
    "ptaskmodel.batch.machine.host_sets": ("HostSet",),
    "ptaskmodel.batch.machine.machine": (
        "HostPstates",
        "Machine",
        "machine_of",
    ),
    "ptaskmodel.batch.options": ("BatchOptions",),
    "ptaskmodel.batch.plan": (
        "only_delays",
        "Plan",
    ),
    "ptaskmodel.batch.policies": (
        "POLICIES",
        "policy_by_name",
        "user_policy",
    ),
    "ptaskmodel.batch.policies.backfilling": (
        "Conservative",
        "Easy",
        "Fcfs",
        "Filler",
    ),
    "ptaskmodel.batch.policies.metric_aware": ("MetricAware",),
    "ptaskmodel.batch.policies.power": (
        "PowerCap",
        "SleepIdle",
    ),
    "ptaskmodel.batch.policies.preemptive": (
        "Gang",
        "Preemptive",
    ),
    "ptaskmodel.batch.policies.redirection": ("Redirection",),
    "ptaskmodel.batch.policies.tuning": (
        "by_queue_depth",
        "by_utilisation",
        "Check",
        "Measures",
        "Rule",
        "Tuning",
    ),
    "ptaskmodel.batch.queue_metrics": (
        "OverTime",
        "QueueMeasures",
    ),
    "ptaskmodel.batch.run": (
        "BatchResult",
        "new_simulation",
        "run_batch",
    ),
    "ptaskmodel.batch.schedule_metrics": (
        "contention_slowdown",
        "job_times",
        "load",
        "metrics",
    ),
    "ptaskmodel.batch.verifier": (
        "check_policy",
        "check_schedule",
        "random_jobs",
        "Verifier",
    ),
    "ptaskmodel.workload.jobs": (
        "Job",
        "Workload",
    ),
}
__all__, __getattr__, __dir__ = face(__name__, NAMES)
