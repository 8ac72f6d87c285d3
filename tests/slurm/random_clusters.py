"""Random configurations, accounts and jobs, and a watch that checks what must hold at any time."""

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf

from hypothesis import strategies as st
from slurm.small_clusters import job

from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.slurm.conf.facts import LINEAR, Gres
from ptaskmodel.slurm.jobs.record import LIVE

SELECTS = {
    "linear": "SelectType=select/linear\n",
    "linear memory": "SelectType=select/linear\nSelectTypeParameters=CR_Memory\n",
    "cpus": "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n",
    "cores": "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n",
    "cores memory": "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n",
    "sockets": "SelectType=select/cons_tres\nSelectTypeParameters=CR_Socket\n",
    "least loaded": "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core,CR_LLN\n",
}
PREEMPTIONS = {
    "none": "",
    "suspend": "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n",
    "requeue": "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n",
    "cancel": "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n",
}
OPTIONS = (
    *("bf_interval=7", "bf_resolution=30", "bf_window=30", "bf_max_job_test=3", "defer"),
    *("bf_continue", "bf_job_part_count_reserve=1", "default_queue_depth=3", "bf_busy_nodes"),
    *("partition_job_depth=2", "bf_min_age_reserve=60", "pack_serial_at_end", "assoc_limit_stop"),
    *("sched_interval=20", "batch_sched_delay=0", "bf_max_job_user=2", "preempt_youngest_first"),
)
NODES = """NodeName=a[1-2] Sockets=2 CoresPerSocket=2 RealMemory=4000 Gres=gpu:2 Feature=big
NodeName=b[1-3] CPUs=4 RealMemory=2000 Weight=5
"""
USERS = ("ann", "bob", "cy")
LICENCES = {"matlab": 3}
COMMON = "Licenses=matlab:3\nMinJobAge=999999\nSlurmdTimeout=30\nReturnToService=1\n"
ACCOUNTING = (
    "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=limits,qos\n"
)
ACCOUNTS = """add account lab maxjobs=4 grptres=cpu=14
add user ann account=lab maxjobs=2
add user bob account=lab maxtres=node=2
add user cy account=lab
modify qos normal set maxtresperuser=cpu=8 maxwall=15
"""


@st.composite
def confs(draw, builtin=False, accounts=False):
    """The text of a slurm.conf: 5 nodes of two kinds, a partition low, and maybe a partition high.

    builtin: no backfill, no preemption, jobs in order of submission.
    """
    text = draw(st.sampled_from(sorted(SELECTS.values()))) + COMMON + NODES
    mode = "none" if builtin else draw(st.sampled_from(sorted(PREEMPTIONS)))
    shared = "FORCE:1" if mode == "suspend" else draw(st.sampled_from(["NO", "EXCLUSIVE", "YES:2"]))
    if builtin:
        text += "SchedulerType=sched/builtin\nPriorityType=priority/basic\n"
        shared = draw(st.sampled_from(["NO", "EXCLUSIVE"]))
    else:
        text += PREEMPTIONS[mode]
        chosen = draw(st.lists(st.sampled_from(OPTIONS), max_size=4, unique=True))
        text += f"SchedulerParameters={','.join(chosen)}\n" if chosen else ""
        kind = draw(st.sampled_from(["basic", "multifactor"]))
        text += f"PriorityType=priority/{kind}\nPriorityWeightJobSize=100\nPriorityWeightAge=10\n"
        text += f"PriorityCalcPeriod=1\nOverTimeLimit={draw(st.integers(0, 1))}\n"
        text += f"JobRequeue={draw(st.integers(0, 1))}\n"
    text += ACCOUNTING if accounts else ""
    text += f"PartitionName=low Nodes=ALL Default=YES OverSubscribe={shared} MaxTime=60\n"
    high = "a[1-2],b1" if draw(st.booleans()) else "ALL"
    text += f"PartitionName=high Nodes={high} OverSubscribe={shared} PriorityTier=5 MaxTime=60\n"
    return text


@st.composite
def jobs(draw, plain=False, most=14):
    """Jobs in order of submission; plain: nothing but sizes, and all of one partition."""
    found = []
    date = 0.5
    for k in range(draw(st.integers(2, most))):
        date += draw(st.sampled_from([0.0, 1.0, 4.0, 30.0, 200.0]))
        run_s = draw(st.sampled_from([0.0, 5.0, 61.0, 150.0, 700.0]))
        limit = draw(st.sampled_from([1, 3, 10, 15]))
        options = {"user": draw(st.sampled_from(USERS)), "account": "lab"}
        if draw(st.booleans()):
            options["tasks"] = draw(st.integers(1, 9))
        nodes = draw(st.sampled_from([1, 1, 2, 3, 5])) if "tasks" not in options else None
        if not plain:
            options |= draw(extras(k))
        one = job(f"j{k}", date, run_s, limit, nodes=nodes, **options)
        found.append(replace(one, name="same" if one.dependency == "singleton" else None))
    return found


@st.composite
def extras(draw, k):
    """Some rare wishes of a job."""
    found = {}
    for wish in draw(st.lists(st.integers(0, 9), max_size=2, unique=True)):
        if wish == 0:
            found["memory_per_node_MiB"] = draw(st.sampled_from([500, 1500, 3000]))
        elif wish == 1:
            found["gres"] = (Gres("gpu", None, draw(st.integers(1, 2))),)
        elif wish == 2:
            found["licenses"] = {"matlab": draw(st.integers(1, 3))}
        elif wish == 3 and k:
            kind = draw(st.sampled_from(["after", "afterany", "afterok", "afternotok"]))
            found["dependency"] = f"{kind}:j{draw(st.integers(0, k - 1))}"
        elif wish == 4:
            found["dependency"] = "singleton"
        elif wish == 5:
            found["partitions"] = draw(st.sampled_from([("high",), ("low", "high")]))
        elif wish == 6:
            found["begin_s"] = float(draw(st.sampled_from([60, 333])))
        elif wish == 7:
            found["stubborn"] = True
        elif wish == 8:
            found["fails"] = True
        else:
            found["requeue"] = draw(st.booleans())
    return found


failures = st.dictionaries(
    st.sampled_from(["a1", "b1", "b3"]),
    st.tuples(st.integers(1, 900), st.integers(1, 900)).map(
        lambda pair: [(float(pair[0]), False), (float(sum(pair)), True)]
    ),
    max_size=2,
)


@dataclass
class Checking:
    """A watch that checks, whenever time goes on, that nothing is used twice and all limits hold.

    accounts: whether those of ACCOUNTS hold. starts: when jobs started, in order.
    """

    nodes: object
    conf: object
    accounts: bool = False
    held: dict = field(default_factory=dict)
    starts: list = field(default_factory=list)
    now: float = -inf
    dead: set = field(default_factory=set)

    @property
    def looks_at_plans(self):
        return False

    def note(self, date, what, job):
        if what == "end":
            del self.held[job.id]
        self.at(date)
        if what not in ("submit", "end", "suspend", "resume", "cancel"):
            self.held[job.id] = job
            self.starts.append((date, job.id))
            assert not self.dead & set(self.nodes.names_of(job.allocation.nodes))

    def turned(self, controller, turn):
        self.at(turn.date_s)

    def of_node(self, date, what, name):
        self.at(date)
        self.dead = self.dead | {name} if what == "dies" else self.dead
        self.dead = self.dead - {name} if what == "answers" else self.dead

    def at(self, date):
        if date > self.now:
            self.now = date
            self.check()

    def check(self):
        memory, gpus, licences, cores, cpus = (Counter() for _ in range(5))
        per_user, user_cpus, jobs_on = Counter(), Counter(), Counter()
        for held in self.held.values():
            assert held.state in LIVE, held
            place, request = held.allocation, held.request
            runs = held.state == "RUNNING"
            licences.update(request.licenses)
            per_user[request.user] += 1
            taken = place.cpus or [self.nodes.cpus[k] for k in members(place.nodes)]
            user_cpus[request.user] += sum(taken)
            for position, k in enumerate(members(place.nodes)):
                assert self.nodes.usable >> k & 1
                jobs_on[k] += runs
                if place.memory_MiB:
                    memory[k] += place.memory_MiB[position]
                for one in request.gres:
                    gpus[k] += one.count
                if place.cpus:
                    cpus[k] += place.cpus[position] * runs
                if place.cores and runs:
                    cores.update((k, c) for c in range(8) if place.cores[position] >> c & 1)
        share = max(partition.max_share for partition in self.conf.partitions)
        assert all(used <= self.nodes.memory_MiB[k] for k, used in memory.items())
        assert all(used <= (2 if self.nodes.names[k][0] == "a" else 0) for k, used in gpus.items())
        assert all(used <= LICENCES[name] for name, used in licences.items())
        assert all(used <= share for used in cores.values())
        assert all(used <= share * self.nodes.cpus[k] for k, used in cpus.items())
        if self.conf.select_type == LINEAR:
            assert all(count <= share for count in jobs_on.values())
        if self.accounts:
            assert per_user["ann"] <= 2
            assert sum(per_user.values()) <= 14
            assert sum(user_cpus.values()) <= 14
            assert all(used <= 8 for used in user_cpus.values())
