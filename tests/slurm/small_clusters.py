"""Small clusters and jobs for tests: a slurm.conf as text, jobs as (id, submission, options)."""

from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.works import DelayWork

LINEAR = "SelectType=select/linear\nPriorityType=priority/basic\n"
CORES = "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nPriorityType=priority/basic\n"
FOUR = "NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4\nPartitionName=p Nodes=ALL Default=YES\n"


def conf_of(tmp_path, text):
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    return read_conf(path)


def job(name, submit_s, run_s, limit_min=None, *, nodes=None, **options):
    """A job; without tasks it asks for whole nodes."""
    whole = WHOLE_NODES if options.get("tasks") is None else None
    options.setdefault("exclusive", whole)
    least, most = nodes if isinstance(nodes, tuple) else (nodes, nodes)
    return JobRequest(
        name,
        submit_s,
        DelayWork(float(run_s)),
        min_nodes=least,
        max_nodes=most,
        limit_min=limit_min,
        **options,
    )


def run(conf, jobs, **options):
    """The records of the jobs by id, with dates from date 0; turns at whole seconds."""
    options.setdefault("phases", Phases(boot_s=-45.0))
    found = simulate_slurm(conf, jobs, **options)
    return found, {job.id: job for job in found.jobs}


def starts(records):
    return {name: record.start_s for name, record in records.items()}


def nodes_of(found, record):
    return [int(name[1:]) for name in found.nodes.names_of(record.allocation.nodes)]


def cores_of(record):
    """The cores of each node, as a set."""
    return [{k for k in range(64) if mask >> k & 1} for mask in record.allocation.cores]
