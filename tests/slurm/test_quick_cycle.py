"""Backfill cycles by the kernel are those of Python, job by job, and so are their counts."""

import random

import pytest
from slurm.live.random_cases import write
from slurm.small_clusters import CORES, LINEAR, conf_of, job

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.conf.facts import nodes_of as all_nodes
from ptaskmodel.slurm.conf.phases import Costs, Phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, ArrayTask, Command
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.slurm.scheduling import main
from ptaskmodel.slurm.scheduling.shared_cycles import SharedCycles
from ptaskmodel.slurm.scheduling.slot_kernel import CUTS, ENTRIES, MOST, POSITION, TESTED
from ptaskmodel.slurm.scheduling.threads import BackfillThread
from ptaskmodel.slurm.scheduling.vectorised_backfill import suits

TWO = """NodeName=n[1-70] CPUs=4
PartitionName=p Nodes=n[1-50] Default=YES
PartitionName=q Nodes=n[30-70] PriorityTier=2
"""


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_makes_the_same_cycles(tmp_path, seed):
    draw = random.Random(seed)
    options = "SchedulerParameters=bf_max_job_test=30,bf_window=200,bf_node_space_size=25\n"
    size = "PriorityWeightJobSize=1000\n" if seed == 2 else ""
    priority = LINEAR.replace("basic", "multifactor") + size if seed == 2 else LINEAR
    # Jobs with longer limits wait for ever, and nobody for them.
    short = TWO.replace("PriorityTier=2", "PriorityTier=2 MaxTime=50") if seed == 1 else TWO
    conf = conf_of(tmp_path, ("" if seed == 0 else options) + priority + short)
    assert suits(conf, all_nodes(conf))
    jobs = []
    for k in range(110):
        limit = draw.randint(1, 60)
        run_s = limit * 60 * draw.random() * 1.1
        nodes = draw.choice([1, 1, 2, 3, 5, 8, 13, 21, 34])
        where = draw.choice([(), ("q",)])
        date = 20 * k * draw.random()
        again = (Command(date + 500, "requeue"),) if draw.random() < 0.1 else ()
        if draw.random() < 0.1:
            again = (Command(date + 300, "suspend"), Command(date + 900, "resume"))
        jobs.append(job(f"j{k}", date, run_s, limit, nodes=nodes, partitions=where, commands=again))
    found = [
        simulate_slurm(conf, jobs, phases=Phases(boot_s=-41.0), compiled=compiled, costs=costs)
        for compiled, costs in (
            *((False, Costs(counts_all=True)), (True, Costs(counts_all=True))),
            (True, Costs()),
        )
    ]
    slow, quick, cut = (
        [
            (one.id, one.start_s, one.end_s, one.allocation, one.by, one.tested_cpus)
            for one in each.jobs
        ]
        for each in found
    )
    assert slow == quick == cut
    every, again, few = (each.loop.statistics for each in found)
    assert every == again
    assert (every.cycles, every.waiting) == (few.cycles, few.waiting)
    assert every.tested > few.tested > 200


class Plans(Watch):
    """Notes the starts that each cycle plans, too."""

    looks_at_plans = True

    def __init__(self):
        super().__init__()
        self.planned = []

    def turned(self, controller, turn):
        super().turned(controller, turn)
        self.planned.append([(one.id, one.planned_s) for one in controller.reservations.planned])


SHARED = """NodeName=a[1-40] Sockets=2 CoresPerSocket=4 RealMemory=8000
NodeName=b[1-20] CPUs=8 ThreadsPerCore=2 CoresPerSocket=4 RealMemory=4000 Weight={weight}
NodeName=c[1-9] Sockets=1 CoresPerSocket=6 RealMemory=8000 Feature=big
PartitionName=p Nodes=a[1-40],b[1-10] Default=YES DefMemPerCPU=500
PartitionName=q Nodes=ALL PriorityTier=2 DefMemPerCPU=200 {shared}
"""
SHARED_CASES = (
    ("CR_Core", "", ""),
    ("CR_CPU_Memory", "bf_max_job_test=30,bf_window=200,bf_node_space_size=25", ""),
    ("CR_Core_Memory", "bf_window_linear=60,bf_resolution=30", "OverSubscribe=EXCLUSIVE"),
    ("CR_Core_Memory", "bf_window=90", "MaxTime=50"),
)


@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_makes_the_same_cycles_on_shared_nodes(tmp_path, seed):
    draw = random.Random(seed)
    unit, options, shared = SHARED_CASES[seed % len(SHARED_CASES)]
    plugin = "cons_res" if seed % 8 > 5 else "cons_tres"
    text = f"SelectType=select/{plugin}\nSelectTypeParameters={unit}\n"
    text += f"SchedulerParameters={options}\nOverTimeLimit={seed % 2}\n" if options else ""
    text += "PriorityType=priority/multifactor\nPriorityWeightJobSize=1000\n"
    conf = conf_of(tmp_path, text + SHARED.format(weight=1 + seed % 2, shared=shared))
    assert suits(conf, all_nodes(conf))
    jobs = []
    for k in range(130):
        limit = draw.randint(1, 60)
        date = 9 * k * draw.random()
        again = (Command(date + 500, "requeue"),) if draw.random() < 0.1 else ()
        if draw.random() < 0.1:
            again = (Command(date + 300, "suspend"), Command(date + 900, "resume"))
        asked = {"tasks": draw.choice([1, 2, 5, 13, 34, 89, 200])}
        if draw.random() < 0.3:
            asked["nodes"] = draw.choice([(1, 4), (3, 3), (2, 20)])
            asked["exclusive"] = draw.choice([None, WHOLE_NODES])
        if draw.random() < 0.3:
            asked["memory_per_node_MiB"] = draw.choice([0, 900, 3500])
        asked["constraint"] = "big" if draw.random() < 0.05 else None
        asked["nodelist"] = ("a3",) if draw.random() < 0.05 else ()
        asked["partitions"] = draw.choice([(), ("q",)])
        asked["cpus_per_task"] = draw.choice([1, 1, 1, 2, 3])
        run_s = limit * 60 * draw.random() * 1.1
        jobs.append(job(f"j{k}", date, run_s, limit, commands=again, **asked))
    watches = Plans(), Plans()
    found = [
        simulate_slurm(conf, jobs, phases=Phases(boot_s=-41.0), compiled=compiled, watch=watch)
        for compiled, watch in zip((False, True), watches, strict=True)
    ]
    slow, quick = (
        [
            (one.id, one.start_s, one.end_s, one.allocation, one.by, one.tested_cpus)
            for one in each.jobs
        ]
        for each in found
    )
    assert slow == quick
    assert watches[0].planned == watches[1].planned
    assert watches[0].reasons == watches[1].reasons
    assert found[0].loop.statistics == found[1].loop.statistics
    assert found[0].loop.statistics.tested > 200


@pytest.mark.parametrize("seed", range(2))
def test_the_kernel_makes_the_same_cycles_of_a_long_queue(tmp_path, seed):
    draw = random.Random(seed)
    text = f"NodeName=n[1-70] CPUs={8 + 12 * seed}\nPartitionName=p Nodes=ALL Default=YES\n"
    text += "PartitionName=q Nodes=n[40-70]\nSchedulerParameters=bf_window=600\n"
    conf = conf_of(tmp_path, CORES.replace("basic", "multifactor") + text)
    assert suits(conf, all_nodes(conf))
    jobs = []
    for k in range(160):
        limit = draw.randint(1, 90)
        asked = {"partitions": ("q",)} if draw.random() < 0.3 else {}
        asked["tasks"] = int(2 ** draw.uniform(0, 8))
        if draw.random() < 0.2:
            asked["nodes"] = draw.choice([(2, 9), (5, 20)])
        jobs.append(job(f"j{k}", 900 * draw.random(), limit * draw.randint(5, 60), limit, **asked))
    watches = Plans(), Plans()
    found = [
        simulate_slurm(conf, jobs, phases=Phases(boot_s=-41.0), compiled=compiled, watch=watch)
        for compiled, watch in zip((False, True), watches, strict=True)
    ]
    slow, quick = ([(one.id, one.start_s, one.allocation) for one in run.jobs] for run in found)
    assert slow == quick
    assert watches[0].planned == watches[1].planned
    assert found[0].loop.statistics == found[1].loop.statistics
    assert found[0].loop.statistics.most_tested > 50


CUT_CASES = (
    ("CR_Core", "", ""),
    ("CR_CPU_Memory", "DefMemPerCPU=500\n", "bf_max_job_user=9,bf_window=100"),
    ("CR_Core_Memory", "", "bf_max_job_test=40,bf_node_space_size=30"),
    ("CR_Core", "PriorityWeightJobSize=500\n", "bf_window_linear=60"),
)


@pytest.mark.parametrize("seed", range(8))
def test_cycles_that_end_where_no_other_job_can_start_have_the_same_starts(tmp_path, seed):
    draw = random.Random(seed)
    unit, lines, options = CUT_CASES[seed % len(CUT_CASES)]
    plugin = "cons_res" if seed % 4 == 2 else "cons_tres"
    # CPUs of cores with two threads are counted one by one; in half of the cases jobs are plain.
    threads, rare = 1 + (unit == "CR_CPU_Memory"), seed > 3
    text = f"SelectType=select/{plugin}\nSelectTypeParameters={unit}\n{lines}"
    text += f"SchedulerParameters={options}\n" if options else ""
    text += "PriorityType=priority/multifactor\nPriorityWeightAge=1000\n"
    text += f"NodeName=n[1-40] CPUs=8 ThreadsPerCore={threads} CoresPerSocket={8 // threads} "
    text += "RealMemory=8000\nNodeName=m[1-10] CPUs=12 CoresPerSocket=12 RealMemory=16000 "
    text += "Feature=big\nPartitionName=p Nodes=ALL Default=YES\n"
    text += "PartitionName=q Nodes=n[31-40],m[1-10] PriorityTier=2\n"
    conf = conf_of(tmp_path, text)
    assert suits(conf, all_nodes(conf))
    jobs = []
    for k in range(170):
        limit = draw.randint(1, 60)
        again = (Command(draw.randint(500, 900), "requeue"),) if draw.random() < 0.05 else ()
        asked = {"tasks": draw.choice([1, 1, 2, 3, 5, 13, 34, 89, 200])}
        if rare and draw.random() < 0.1:
            asked |= {"nodes": draw.choice([(1, 4), (3, 3)]), "exclusive": WHOLE_NODES}
        if rare and draw.random() < 0.2:
            asked["memory_per_node_MiB"] = draw.choice([900, 3500])
        asked["constraint"] = "big" if draw.random() < 0.05 else None
        asked["partitions"] = draw.choice([(), (), ("q",)])
        asked["cpus_per_task"] = draw.choice([1, 1, 1, 1, 2]) if rare else 1
        run_s = limit * 60 * draw.random() * 1.1
        jobs.append(job(f"j{k}", 1500 * draw.random(), run_s, limit, commands=again, **asked))
    found = [
        simulate_slurm(conf, jobs, phases=Phases(boot_s=-41.0), compiled=compiled, costs=costs)
        for compiled, costs in ((False, Costs(counts_all=True)), (True, Costs()))
    ]
    slow, quick = (
        [
            (one.id, one.start_s, one.end_s, one.allocation, one.by, one.tested_cpus)
            for one in run.jobs
        ]
        for run in found
    )
    assert slow == quick
    all_tested, cut = (run.loop.statistics for run in found)
    assert (all_tested.cycles, all_tested.waiting) == (cut.cycles, cut.waiting)
    assert all_tested.tested * (0.7 if seed in (0, 3) else 1.0) > cut.tested > 0


# Cases of sites, some of whose cycles end early; of the last ones none does.
CUT_SITES = (
    *(("licence", 13), ("multipart", 13), ("units", 14), ("hyper", 15), ("licence", 15)),
    *(("old", 15), ("units", 15)),
)
UNCUT_SITES = ("gpu", 13), ("univ", 14), ("partqos", 14)


@pytest.mark.parametrize(("kind", "seed"), CUT_SITES + UNCUT_SITES)
def test_cut_cycles_of_sites_have_the_same_decisions(tmp_path, kind, seed, monkeypatch):
    write(kind, seed, tmp_path)
    conf = read_conf(tmp_path / "slurm.conf")
    jobs = read_submissions(tmp_path / "jobs.csv", conf).jobs
    accounts = read_accounts(tmp_path / "sacctmgr.txt") if conf.database else None
    cut, run_cycle = [], SharedCycles.run

    def noted(self, date):
        tested, numbers = run_cycle(self, date), self._state.numbers
        cut.append(tested is not None and numbers[CUTS] and numbers[POSITION] < numbers[ENTRIES])
        return tested

    monkeypatch.setattr(SharedCycles, "run", noted)
    every, few = (
        simulate_slurm(conf, jobs, accounts=accounts, compiled=compiled, costs=costs)
        for compiled, costs in ((False, Costs(counts_all=True)), (True, Costs()))
    )
    decided = [
        [(job.id, job.start_s, job.end_s, job.allocation, job.by, job.state) for job in run.jobs]
        for run in (every, few)
    ]
    assert decided[0] == decided[1]
    assert every.loop.statistics.cycles == few.loop.statistics.cycles
    assert any(cut) == ((kind, seed) in CUT_SITES)


@pytest.mark.parametrize("seed", range(5))
def test_cycles_end_though_jobs_that_they_do_not_reach_could_start(tmp_path, seed, monkeypatch):
    draw = random.Random(seed)
    most, step, window = ((20, 60, 600), (3, 60, 60), (20, 30, 600))[seed % 3]
    text = f"{CORES.replace('basic', 'multifactor')}PriorityWeightAge=1000\n"
    text += f"SchedulerParameters=bf_max_job_test={most},bf_resolution={step},bf_window={window}\n"
    text += "NodeName=n[1-9] CPUs=8 CoresPerSocket=8\nPartitionName=p Nodes=ALL Default=YES\n"
    text += "PartitionName=q Nodes=n[6-9] PriorityTier=2\n"
    conf = conf_of(tmp_path, text)
    jobs = []
    for k in range(100):
        limit = draw.randint(1, 60) if draw.random() < 0.8 else draw.choice([200, 700])
        asked = {"tasks": draw.choice([1, 1, 1, 2, 3, 5, 13, 34, 70])}
        kind = draw.random()
        if kind < 0.1:
            asked |= {"tasks": max(asked["tasks"], 6), "nodes": (draw.randint(1, 3), 6)}
        elif kind < 0.15:
            asked["nodelist"] = (f"n{draw.randint(1, 9)}",)
        elif kind < 0.25:
            asked |= {"tasks": min(asked["tasks"], 32), "partitions": ("q",)}
        run_s = limit * 60 * draw.random() * 1.2
        jobs.append(job(f"j{k}", 600 * draw.random(), run_s, limit, **asked))
    behind, cut, start, run_cycle = [], [], SharedCycles._start, SharedCycles.run

    def started(self, *asked):
        numbers = self._state.numbers
        behind.append(numbers[POSITION] >= numbers[MOST])
        return start(self, *asked)

    def noted(self, date):
        tested, numbers = run_cycle(self, date), self._state.numbers
        deep = numbers[ENTRIES] > numbers[MOST] > numbers[POSITION]
        cut.append(tested is not None and deep and numbers[MOST] > numbers[TESTED])
        return tested

    monkeypatch.setattr(SharedCycles, "_start", started)
    monkeypatch.setattr(SharedCycles, "run", noted)
    every, few = (
        [
            (one.id, one.start_s, one.end_s, one.allocation, one.by, one.tested_cpus)
            for one in simulate_slurm(conf, jobs, compiled=compiled, costs=costs).jobs
        ]
        for compiled, costs in ((False, Costs(counts_all=True)), (True, Costs()))
    )
    assert every == few
    assert any(cut)
    assert any(behind) or seed % 3 == 1


@pytest.mark.parametrize("limited", ["cost", "phase"])
def test_cycles_whose_tests_take_time_are_not_cut(tmp_path, limited):
    draw = random.Random(1)
    text = "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
    text += "SchedulerParameters=bf_interval=7,bf_max_time=3,bf_yield_interval=1000000\n"
    text += "NodeName=n[1-20] CPUs=8 CoresPerSocket=8\nPartitionName=p Nodes=ALL Default=YES\n"
    jobs = [
        job(f"j{k}", 300 * draw.random(), 600 * draw.random(), 10, tasks=draw.randint(1, 90))
        for k in range(80)
    ]
    cost_s, phase_s = (0.05, 0.0) if limited == "cost" else (0.0, 0.05)
    found = [
        simulate_slurm(
            conf_of(tmp_path, text),
            jobs,
            phases=Phases(boot_s=-41.0, test_s=phase_s),
            compiled=True,
            costs=Costs(cost_s, counts_all=counts_all),
        )
        for counts_all in (True, False)
    ]
    every, few = ([(one.id, one.start_s, one.allocation) for one in run.jobs] for run in found)
    assert every == few
    assert found[0].loop.statistics == found[1].loop.statistics


GPU_NODES = """GresTypes=gpu
DefMemPerCPU=300
NodeName=a[1-12] CPUs=8 RealMemory=8000
NodeName=g[1-6] CPUs=16 RealMemory=16000 Gres=gpu:v:4
NodeName=h[1-3] CPUs=16 RealMemory=9000 Gres=gpu:2
PartitionName=p Nodes=a[1-12],h[1-3] Default=YES
PartitionName=g Nodes=g[1-6],h[1-3] {defaults}
PartitionName=d Nodes=a[1-2],g[1-2],h1 PriorityTier=2 MaxTime=10
"""
GPU_CASES = (
    ("", ""),
    ("DefCpuPerGPU=2 DefMemPerGPU=1500", "bf_max_job_user=5,bf_window=100"),
    ("DefCpuPerGPU=3", "bf_max_job_test=25,bf_max_job_user_part=6,bf_max_job_part=20"),
    ("DefMemPerGPU=900", "bf_window_linear=60,bf_resolution=30"),
)


def jobs_with_gpus(draw, count):
    """Jobs that ask for GPUs in all, of each node, or task, and others beside them."""
    jobs = []
    for k in range(count):
        limit = draw.choice([5, 10, 10, 30, 60])
        asked = {"tasks": draw.choice([1, 1, 2, 4, 16]), "partitions": draw.choice([(), ("d",)])}
        if draw.random() < 0.7:
            one = Gres("gpu", draw.choice([None, None, "v"]), draw.choice([1, 1, 2, 4]))
            way = draw.choice(["gres", "gpus", "gpus_per_task"])
            asked = {way: (one,), "partitions": ("g",), "tasks": 1}
            if draw.random() < 0.1:
                asked["exclusive"] = WHOLE_NODES
            if draw.random() < 0.1:
                asked["memory_per_gpu_MiB"] = draw.choice([500, 1500])
            asked["partitions"] = draw.choice([("g",), ("g",), ("g",), ("d",)])
            if draw.random() < 0.3:
                asked |= {"nodes": (2, 2), "tasks": 2}
        if draw.random() < 0.1:
            asked["array"] = ArrayTask(f"a{k}", 1, None)
        asked["user"] = draw.choice(["ann", "bob", "cleo"])
        run_s = limit * 60 * draw.choice([0.1, 0.6, 1.0, 1.2])
        jobs.append(job(f"j{k}", 8 * k * draw.random(), run_s, limit, **asked))
    return jobs


@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_makes_the_same_cycles_of_jobs_with_gpus(tmp_path, seed, monkeypatch):
    draw = random.Random(seed)
    defaults, options = GPU_CASES[seed % len(GPU_CASES)]
    text = CORES.replace("CR_Core", "CR_Core_Memory").replace("basic", "multifactor")
    text += "PriorityWeightJobSize=1000\n"
    text += f"SchedulerParameters={options}\n" if options else ""
    conf = conf_of(tmp_path, text + GPU_NODES.format(defaults=defaults))
    assert suits(conf, all_nodes(conf))
    jobs = jobs_with_gpus(draw, 140)
    made = []
    run_cycle = SharedCycles.run

    def counted(self, date):
        made.append(run_cycle(self, date))
        return made[-1]

    noted, backfill = [], BackfillThread.cycle

    def noting(self, *arguments):
        backfill(self, *arguments)
        noted[-1].append(bytes(self._controller.allocations.select.favours))

    monkeypatch.setattr(SharedCycles, "run", counted)
    monkeypatch.setattr(BackfillThread, "cycle", noting)
    phases = Phases(boot_s=-41.0, clean_s=20.0 if seed > 3 else 0.0)
    found, seen = [], []
    for compiled in (True, False):
        noted.append([])
        watch = Plans()
        if not compiled:
            monkeypatch.setattr(main, "repeats", lambda controller: False)
        run = simulate_slurm(conf, jobs, phases=phases, compiled=compiled, watch=watch)
        starts = [(one.id, one.start_s, one.allocation, one.by) for one in run.jobs]
        found.append((starts, watch.planned, watch.reasons, run.loop.statistics, noted[-1]))
        seen.append([one.tested_cpus for one in run.jobs])
    assert found[0] == found[1]
    assert seen[0] == seen[1]
    assert found[0][3].tested > 200
    # Of more jobs than bf_max_job_test none may want certain nodes.
    least = 0.5 if "bf_max_job_test" in options else 0.9
    assert len([one for one in made if one is not None]) > least * len(made)


def test_a_pass_whose_partitions_are_all_blocked_ends_as_one_that_looks_at_each_job(tmp_path):
    draw = random.Random(5)
    jobs = [
        job(
            f"j{k}",
            3 * k * draw.random(),
            draw.randint(1, 900),
            20,
            nodes=draw.randint(1, 40),
            partitions=draw.choice([(), ("q",)]),
            array=ArrayTask(f"a{k % 9}", k, None) if k % 3 == 0 else None,
        )
        for k in range(150)
    ]
    found = []
    # A depth of partitions that no queue reaches has every job looked at.
    for options in "default_queue_depth=20", "default_queue_depth=20,partition_job_depth=1000":
        watch = Watch()
        text = f"SchedulerParameters={options}\n" + LINEAR + TWO
        run = simulate_slurm(conf_of(tmp_path, text), jobs, watch=watch)
        found.append((watch.reasons, watch.events, [one.start_s for one in run.jobs]))
    assert found[0] == found[1]
    assert {reason for _, reason, _ in found[0][0]} >= {"Priority", "Resources"}


@pytest.mark.parametrize("seed", range(4))
def test_passes_in_which_nothing_differs_are_left_out_unseen(tmp_path, seed, monkeypatch):
    draw = random.Random(seed)
    text = [CORES, LINEAR][seed % 2] + SHARED.format(weight=1, shared="")
    text = text.replace("basic", "multifactor") if seed > 1 else text
    text += "MinJobAge=30\nPriorityWeightAge=1000\nSchedulerParameters=default_queue_depth=9\n"
    jobs = [
        job(
            f"j{k}",
            20 * k * draw.random(),
            draw.randint(1, 1900),
            30,
            tasks=draw.randint(1, 300),
            partitions=draw.choice([(), (), ("q",), ("p", "q")]),
            nodelist=("a7",) if draw.random() < 0.05 else (),
            array=ArrayTask(f"a{k % 9}", k, draw.choice([None, 2]))
            if draw.random() < 0.1
            else None,
            commands=(Command(20 * k + 700, "hold"),) if draw.random() < 0.1 else (),
        )
        for k in range(120)
    ]
    found = []
    for leaves_out in True, False:
        if not leaves_out:
            monkeypatch.setattr(main, "repeats", lambda controller: False)
            monkeypatch.setattr(main, "is_steady", lambda controller: False)
        watch = Plans()
        run = simulate_slurm(conf_of(tmp_path, text), jobs, watch=watch)
        found.append((watch.reasons, watch.events, watch.planned, run.loop.statistics))
    assert found[0] == found[1]
    assert found[0][3].tested > 100
