"""The compiled choice among shared nodes is that of Python, node by node and core by core."""

import random
from dataclasses import replace

import pytest
from slurm.small_clusters import conf_of

from ptaskmodel.batch.machine.host_sets import of_hosts
from ptaskmodel.slurm.conf.facts import Gres, nodes_of
from ptaskmodel.slurm.jobs.gpus import completed
from ptaskmodel.slurm.jobs.needs import need_of
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest
from ptaskmodel.slurm.select.offer_kernel import SIZE, VARIES
from ptaskmodel.slurm.select.plugin import place_without, select_of
from ptaskmodel.workload.works import DelayWork

UNITS = "CR_CPU", "CR_Core", "CR_Core_Memory", "CR_CPU_Memory", "CR_Core,CR_ONE_TASK_PER_CORE"
PARTITIONS = """PartitionName=p Nodes=ALL Default=YES MaxTime=60 OverSubscribe={shared}
PartitionName=q Nodes=a[1-6],b[2-5] MaxTime=60 DefMemPerCPU=100
"""


def cluster(tmp_path, draw):
    """Nodes of up to three kinds, 15 in all, some with threads or a weight of their own."""
    plugin = draw.choice(["cons_tres", "cons_tres", "cons_res"])
    text = f"SelectType=select/{plugin}\nSelectTypeParameters={draw.choice(UNITS)}\n"
    text += f"SchedulerParameters=bf_window_linear={draw.choice([0, 0, 40])}\n"
    for name in "abc":
        shape = draw.choice(["CPUs=4", "Sockets=2 CoresPerSocket=3", "CPUs=8 ThreadsPerCore=2"])
        memory, weight = draw.choice([1000, 4000]), draw.choice([1, 1, 3])
        text += f"NodeName={name}[1-5] {shape} RealMemory={memory} Weight={weight}\n"
    shared = draw.choice(["NO", "NO", "EXCLUSIVE"])
    conf = conf_of(tmp_path, text + PARTITIONS.replace("a[1-6]", "a[1-5]").format(shared=shared))
    return conf, nodes_of(conf)


def request(draw, name):
    options = {"tasks": draw.choice([1, 1, 2, 3, 5, 8, 13, 24])}
    if draw.random() < 0.4:
        least = draw.choice([1, 2, 3, 5])
        options |= {"min_nodes": least, "max_nodes": draw.choice([least, least + 2, 9])}
        options["tasks"] = draw.choice([None, options["tasks"]])
    options["cpus_per_task"] = draw.choice([1, 1, 1, 2, 3])
    if draw.random() < 0.2:
        options["tasks_per_node"] = draw.choice([1, 2])
    kind = draw.choice(["memory_per_node_MiB", "memory_per_cpu_MiB", None, None])
    if kind:
        options[kind] = draw.choice([0, 50, 300, 900])
    if draw.random() < 0.2:
        options["nodelist"] = tuple(draw.sample(["a1", "a2", "b3", "c5"], draw.choice([1, 2])))
    options["one_thread"] = draw.random() < 0.2
    options["distribution"] = draw.choice([None, None, "block", "cyclic"])
    options["exclusive"] = WHOLE_NODES if draw.random() < 0.15 else None
    return JobRequest(name, 0.0, DelayWork(1.0), **options)


@pytest.mark.parametrize("seed", range(20))
def test_jobs_get_the_same_cores_now_and_later(tmp_path, seed):
    draw = random.Random(seed)
    conf, nodes = cluster(tmp_path, draw)
    quick, slow = select_of(conf, nodes), select_of(conf, nodes)
    assert quick.plain is not None
    slow.plain = None
    running = []
    found = 0
    for number in range(60):
        partition = draw.choice(conf.partitions)
        asked = request(draw, f"j{number}")
        need = need_of(asked, partition, conf, nodes)
        within = of_hosts(k for k in range(len(nodes)) if draw.random() < draw.choice([0.6, 1.0]))
        now = quick.start(need, within)
        assert now == slow.start(need, within), number
        ends = sorted((end, job.number, job) for end, job in running)
        later = [each.predict(need, within, ends) for each in (quick, slow)]
        assert (later[0] is None) == (later[1] is None), number
        if later[0] is not None:
            (date, mine), (its_date, its) = later
            assert (date, mine._replace(cores=())) == (its_date, its._replace(cores=())), number
            vector = quick.plain.vector_of(need)
            assert vector is None or vector[0][SIZE] in (VARIES, sum(its.cpus)), number
            found += 1
        job = JobRecord(asked, number, 0, [partition])
        job.set_needs([need])
        start_and_end(draw, (quick, slow), running, job, now)
    assert found > 5


def start_and_end(draw, both, running, job, now):
    """Start a job on the nodes `now`, if there are any, and end one of those running, or none."""
    if now is not None:
        limit = draw.choice([20, 70, 300, 2000])
        job.start(job.partitions[0], now, 0, "", limit_s=limit, longest_s=1, listed=job.number)
        running.append((job.end_s, job))
        for each in both:
            each.add(job)
    if running and draw.random() < 0.4:
        _, job = running.pop(draw.randrange(len(running)))
        for each in both:
            each.remove(job)


def gpu_cluster(tmp_path, draw):
    """Nodes without GPUs, and with GPUs of several types, or of none."""
    text = f"SelectType=select/cons_tres\nSelectTypeParameters={draw.choice(UNITS)}\n"
    text += f"GresTypes=gpu\nDefCpuPerGPU={draw.choice([0, 2, 3])}\n"
    text += f"DefMemPerGPU={draw.choice([0, 500])}\n" if draw.random() < 0.7 else ""
    for name, gres in (("a", "gpu:2"), ("b", "gpu:v:4"), ("c", "gpu:k:3")):
        shape = draw.choice(["CPUs=8", "Sockets=2 CoresPerSocket=6", "CPUs=12 ThreadsPerCore=2"])
        memory, weight = draw.choice([1500, 4000]), draw.choice([1, 1, 3])
        there = "" if name == "a" and draw.random() < 0.5 else f"Gres={gres}"
        text += f"NodeName={name}[1-5] {shape} RealMemory={memory} Weight={weight} {there}\n"
    conf = conf_of(tmp_path, text + PARTITIONS.replace("a[1-6]", "a[1-5]").format(shared="NO"))
    return conf, nodes_of(conf)


def gpu_request(draw, name):
    one = Gres("gpu", draw.choice([None, None, "v", "k"]), draw.choice([1, 1, 2, 4, 6]))
    options = {draw.choice(["gres", "gpus", "gpus_per_task"]): (one,)}
    if draw.random() < 0.1:
        options["gpus"] = (replace(one, count=one.count * draw.choice([1, 2, 3])),)
    if draw.random() < 0.5:
        options["min_nodes"] = least = draw.choice([1, 2, 3])
        options["max_nodes"] = draw.choice([least, least, least + 2])
    options["tasks"] = draw.choice([None, 1, 1, 2, 4, 7])
    options["cpus_per_task"] = draw.choice([1, 1, 2, 3])
    if draw.random() < 0.3:
        options["tasks_per_node"] = draw.choice([1, 2])
    kind = draw.choice(["memory_per_node_MiB", "memory_per_cpu_MiB", "memory_per_gpu_MiB", None])
    if kind:
        options[kind] = draw.choice([50, 300, 900])
    if draw.random() < 0.2:
        options["cpus_per_gpu"] = draw.choice([1, 2, 3])
    if draw.random() < 0.2:
        options["nodelist"] = tuple(draw.sample(["a1", "b3", "c5"], draw.choice([1, 2])))
    if draw.random() < 0.1:
        options["tasks_per_gpu"] = draw.choice([1, 2, 3])
    options["exclusive"] = WHOLE_NODES if draw.random() < 0.1 else None
    options["one_thread"] = draw.random() < 0.2
    options["distribution"] = draw.choice([None, None, "block", "cyclic"])
    return JobRequest(name, 0.0, DelayWork(1.0), **options)


@pytest.mark.parametrize("seed", range(30))
def test_jobs_get_the_same_gpus_and_leave_the_same_notes_of_them(tmp_path, seed):
    draw = random.Random(seed)
    conf, nodes = gpu_cluster(tmp_path, draw)
    quick, slow = select_of(conf, nodes), select_of(conf, nodes)
    slow.plain = None
    notes = bytearray(len(nodes)), bytearray(len(nodes))
    if seed % 5:
        quick.follow_favours(notes[0])
        slow.follow_favours(notes[1])
    running, found, plain = [], 0, 0
    for number in range(80):
        partition = draw.choice(conf.partitions)
        asked = (request if draw.random() < 0.2 else gpu_request)(draw, f"j{number}")
        try:
            asked = completed(asked, conf)
        except ValueError:
            continue
        need = need_of(asked, partition, conf, nodes)
        plain += bool(need.gres) and quick.plain.vector_of(need) is not None
        within = of_hosts(k for k in range(len(nodes)) if draw.random() < draw.choice([0.6, 1.0]))
        now = quick.start(need, within)
        assert now == slow.start(need, within), number
        assert notes[0] == notes[1], number
        ends = sorted((end, job.number, job) for end, job in running)
        mine, its = (each.predict(need, within, ends) for each in (quick, slow))
        assert notes[0] == notes[1], number
        assert (mine is None) == (its is None), number
        if mine is not None:
            found += 1
            cores = its[1].cores if mine[1].cores else ()
            assert mine == (its[0], its[1]._replace(cores=cores)), number
        job = JobRecord(asked, number, 0, [partition])
        job.set_needs([need])
        start_and_end(draw, (quick, slow), running, job, now)
    assert found > 5
    assert plain > 20


@pytest.mark.parametrize("seed", range(12))
def test_trials_without_some_jobs_are_as_if_these_had_been_removed(tmp_path, seed):
    draw = random.Random(seed)
    make, ask = [(cluster, request), (gpu_cluster, gpu_request)][seed % 2]
    conf, nodes = make(tmp_path, draw)
    quick, slow = select_of(conf, nodes), select_of(conf, nodes)
    slow.plain = None
    notes = bytearray(len(nodes)), bytearray(len(nodes))
    quick.follow_favours(notes[0])
    slow.follow_favours(notes[1])
    running, found = [], 0
    for number in range(60):
        asked = (request if draw.random() < 0.3 else ask)(draw, f"j{number}")
        try:
            asked = completed(asked, conf)
        except ValueError:
            continue
        need = need_of(asked, draw.choice(conf.partitions), conf, nodes)
        within = of_hosts(k for k in range(len(nodes)) if draw.random() < draw.choice([0.6, 1.0]))
        ends = sorted((end, job.number, job) for end, job in running)
        gone = [job for _, _, job in ends if draw.random() < 0.4]
        left = [end for end in ends if end[2] not in gone]
        trials = quick.without(gone, ends) if gone else quick.copy(), slow.copy()
        for each in gone:
            trials[1].remove(each)
        assert trials[0].place(need, within) == trials[1].place(need, within), number
        mine, its = (each.predict(need, within, left) for each in trials)
        assert (mine is None) == (its is None), number
        if mine is not None:
            cores = its[1].cores if mine[1].cores else ()
            assert mine == (its[0], its[1]._replace(cores=cores)), number
        mine, its = (place_without(each, need, within, gone) for each in (quick, slow))
        assert mine == its, number
        assert notes[0] == notes[1], number
        found += mine[0] is not None
        job = JobRecord(asked, number, 0, [need.partition])
        job.set_needs([need])
        now = quick.start(need, within)
        assert now == slow.start(need, within), number
        start_and_end(draw, (quick, slow), running, job, now)
        assert quick.start(need, within) == slow.start(need, within), number
    assert found > 3


@pytest.mark.parametrize("count", [201, 202, 203])
def test_two_hundred_ends_make_a_group_of_their_own(tmp_path, count):
    text = "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nNodeName=n[1-2] CPUs=256\n"
    conf = conf_of(tmp_path, text + "PartitionName=p Nodes=ALL Default=YES MaxTime=60\n")
    nodes, partition = nodes_of(conf), conf.partitions[0]
    quick, slow = select_of(conf, nodes), select_of(conf, nodes)
    slow.plain = None
    ends = []
    for number in range(count + 3):
        asked = JobRequest(f"j{number}", 0.0, DelayWork(1.0), tasks=1)
        need = need_of(asked, partition, conf, nodes)
        job = JobRecord(asked, number, 0, [partition])
        job.set_needs([need])
        where = quick.start(need, 0b01 if number < count else 0b10)
        limit_s = 100 if number < count else 101
        job.start(partition, where, 0, "", limit_s=limit_s, longest_s=1, listed=number)
        for each in (quick, slow):
            each.add(job)
        ends.append((job.end_s, number, job))
    asked = JobRequest("more", 0.0, DelayWork(1.0), tasks=250)
    need = need_of(asked, partition, conf, nodes)
    for each in (quick, slow):
        found = each.predict(need, 0b01, ends)
        assert (None if found is None else found[0][0]) == (None if count == 202 else 100)
