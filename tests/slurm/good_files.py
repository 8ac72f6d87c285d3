"""Files of all kinds that the command slurm reads, which go together and use most of what is known.

Tests spoil one of them at a time.
"""

from pathlib import Path

CONF = """ClusterName=c
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=60,bf_resolution=60,bf_window=2880,defer,default_queue_depth=50
PriorityType=priority/multifactor
PriorityWeightFairshare=10000
PriorityDecayHalfLife=1-0
PriorityWeightTRES=CPU=100,Mem=5
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
TopologyPlugin=topology/tree
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=limits,qos
Licenses=matlab:4,foo
NodeName=DEFAULT Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=16000
NodeName=n[1-4] Gres=gpu:tesla:2 Feature=big,fast Weight=10
NodeName=m[01-02] CPUs=8 State=UNKNOWN
NodeSet=bigs Feature=big
DownNodes=m02 State=DOWN
PartitionName=DEFAULT MaxTime=1-0 State=UP
PartitionName=low Nodes=bigs,m01 Default=YES PriorityTier=1 OverSubscribe=FORCE:1 DefMemPerCPU=1000
PartitionName=high Nodes=ALL PriorityTier=10 OverSubscribe=FORCE:1 PreemptMode=OFF MaxNodes=3
"""
TOPOLOGY = """SwitchName=s1 Nodes=n[1-2]
SwitchName=s2 Nodes=n[3-4],m[01-02]
SwitchName=top Switches=s[1-2]
"""
ACCOUNTS = """add account physics cluster=c fairshare=2 maxjobs=5 grptres=cpu=20
add user ann account=physics fairshare=1 qos=normal
modify qos normal set priority=10 maxwall=1-0 maxtresperuser=cpu=30
add qos urgent priority=100 preempt=normal gracetime=30 preemptmode=requeue usagefactor=2
modify user ann set qos+=urgent
Cluster - 'c':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'bio':Description='bio':Organization='x':Fairshare=3
Parent - 'bio'
User - 'bob':DefaultAccount='bio':Fairshare=parent:MaxJobs=3
Account|User|Partition|Share|MaxJobs|QOS|Def QOS
physics|cy||3|2|normal,urgent|normal

Name|Priority|GraceTime|Preempt|MaxWall|MaxTRESPU
urgent|50|00:00:30|normal|1-00:00:00|cpu=10
"""
RESERVATIONS = """create reservation ReservationName=m Nodes=n[3-4] Users=root \
StartTime=now+300 Duration=5
scontrol create reservation StartTime=2024-01-01T00:30:00 Duration=60 Nodes=ALL accounts=bio
"""
SACCT = """\
JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|Timelimit|ReqNodes|ReqTRES|State
1|ann|physics|low|normal|2024-03-01T10:00:10|2024-03-01T10:00:10|2024-03-01T10:01:00|\
2024-03-01T10:11:00|00:10:00|00:30:00|1|billing=4,cpu=4,mem=4G,node=1|COMPLETED
2_0|bob|bio|high|normal|2024-03-01T10:00:20|2024-03-01T10:02:20|2024-03-01T10:03:00|\
2024-03-01T10:13:00|00:10:00|01:00:00|2|cpu=16,gres/gpu=2,node=2,license/matlab=1|TIMEOUT
2_1|bob|bio|high|normal|2024-03-01T10:00:20|2024-03-01T10:00:20|Unknown|\
2024-03-01T10:13:00|00:00:00|1-00:00:00|2|cpu=16,node=2|CANCELLED by 0
"""
JOBS = """id,submit,nodes,cores,limit,run,user,account,qos,nice,partition,mem,depend,begin,extra
a,0,1-2,4,600,400,ann,physics,normal,0,low,1000,,,--gres=gpu:1
b,2,,16,300,120,bob,bio,,10,high,,afterok:a,,-L matlab:2
c,3,1,8,300,290,ann,physics,urgent,,"low,high",,,60,--array=0-3%2 --constraint=big&fast
"""
META = '{"t0": 1704067200, "loaded": -49.5, "speed": 20.0, "phase": 0.5, "jobs": 4}\n'
EVENTS = """time,who,what,id
-10,main,full queue,
0.5,job,submit,a
20,backfill,begin,
400,job,end,a
"""
GOOD = {
    "slurm.conf": CONF,
    "topology.conf": TOPOLOGY,
    "accounts.txt": ACCOUNTS,
    "reservations.txt": RESERVATIONS,
    "sacct.txt": SACCT,
    "jobs.csv": JOBS,
    "run.meta.json": META,
    "events.csv": EVENTS,
}


def write_all(folder: Path) -> None:
    """Write the good files into a folder."""
    for name, text in GOOD.items():
        (folder / name).write_text(text, encoding="utf-8")


def words(folder: Path, spoiled: str) -> list[str]:
    """The words of the command slurm, without a directory of results, that reads a file."""
    workload = spoiled if spoiled in ("sacct.txt", "jobs.csv") else "jobs.csv"
    found = ["slurm", str(folder / "slurm.conf"), str(folder / workload)]
    found += ["--accounts", str(folder / "accounts.txt")]
    if spoiled == "reservations.txt":  # dates of the calendar need to know date 0
        found += ["--meta", str(folder / "run.meta.json")]
    option = {
        "reservations.txt": "--reservations",
        "run.meta.json": "--meta",
        "events.csv": "--cycles",
        "failures.csv": "--failures",
    }.get(spoiled)
    return found if option is None else [*found, option, str(folder / spoiled)]
