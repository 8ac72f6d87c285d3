"""Files of every kind that commands read, and what becomes of them when something spoils them."""

from __future__ import annotations

import json
import random
from pathlib import Path

from slurm import good_files

SWF = "; Version: 2.2\n; MaxProcs: 8\n" + "".join(
    f"{k} {10 * k} 5 {60 + k} 2 -1 -1 2 600 -1 1 {k % 3} 1 -1 1 -1 -1 -1\n" for k in range(1, 9)
)
GWF = "# JobID SubmitTime ...\n" + "".join(
    f"{k} {10 * k} 5 {60 + k} 2 -1 -1 2 600 -1 1 u{k % 3} g1 -1 q1 -1" + 13 * " -1" + "\n"
    for k in range(1, 9)
)
WORKFLOWS = "WorkflowID,JobID,SubmitTime,RunTime,NProcs,ReqNProcs,Dependencies\n" + "".join(
    f"{k // 4},{k},{10 * k},{60 + k},2,2,{k - 1 if k % 4 else ''}\n" for k in range(8)
)
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="1Gf" core="2"/>
    <host id="b" speed="2Gf"><prop id="color" value="red"/></host>
    <link id="l" bandwidth="1Gbps" latency="10us"/>
    <link id="m" bandwidth="1Gbps" latency="10us" sharing_policy="SPLITDUPLEX"/>
    <route src="a" dst="b"><link_ctn id="l"/><link_ctn id="m" direction="UP"/></route>
  </zone>
</platform>
"""
CLUSTER = """<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="1Gbps" lat="10us"/>
</platform>
"""
TASKS = json.dumps(
    {
        "profiles": {
            "p": {"type": "parallel", "cpu": [1e9, 2e9], "com": [0, 1e6, 2e6, 0]},
            "d": {"type": "delay", "delay": 3},
            "s": {"type": "composed", "seq": ["p", "p"], "repeat": 2},
        },
        "tasks": [
            {"id": "t1", "hosts": ["a", "b"], "profile": "p"},
            {"id": "t2", "hosts": ["a", "b"], "profile": "s", "start": 1, "weight": 2},
            {"id": "t3", "profile": "d", "after": ["t1"]},
            {"id": "t4", "hosts": ["a"], "cpu": 1e9, "walltime": 60},
        ],
    },
    indent=1,
)
WORKLOAD = json.dumps(
    {
        "nb_res": 8,
        "jobs": [
            {"id": k, "subtime": k, "res": 2, "walltime": 600, "profile": "dps"[k % 3]}
            for k in range(6)
        ],
        "profiles": {
            "d": {"type": "delay", "delay": 30},
            "p": {"type": "parallel", "cpu": [1e9, 2e9], "com": [0, 1e6, 2e6, 0]},
            "s": {"type": "composed", "seq": ["p", "d"], "repeat": 2},
        },
    },
    indent=1,
)
MEASURED = (
    "app,mean_runtime_s,interference_on_s,interference_off_s,runs,stddev_s\n"
    "x,100,0,0,3,1.5\nx,130,10,10,3,1.5\nx,180,inf,0,3,2.5\n"
)
TRANSFERS = "client,size_B,duration_s,start_s\n" + "".join(
    f"{'ab'[k % 2]},{size},{(size + 82 * -(-size // 1024)) / 1.25e9 + 9.4e-6!r},{k}\n"
    for k, size in enumerate((102_408, 256_008, 512_008) * 4)
)
GRAPH = """<platform version="4.1">
  <zone id="z" routing="Dijkstra">
    <host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><router id="s"/><router id="t"/>
    <link id="as" bandwidth="1Gbps" latency="10us" sharing_policy="SPLITDUPLEX"/>
    <link id="at" bandwidth="1Gbps" latency="10us" sharing_policy="SPLITDUPLEX"/>
    <link id="sb" bandwidth="1Gbps" latency="10us" sharing_policy="SPLITDUPLEX"/>
    <link id="tb" bandwidth="1Gbps" latency="10us" sharing_policy="SPLITDUPLEX"/>
    <route src="a" dst="s"><link_ctn id="as" direction="UP"/></route>
    <route src="a" dst="t"><link_ctn id="at" direction="UP"/></route>
    <route src="s" dst="b"><link_ctn id="sb" direction="UP"/></route>
    <route src="t" dst="b"><link_ctn id="tb" direction="UP"/></route>
  </zone>
</platform>
"""
FLOWS = json.dumps(
    {"tasks": [{"id": f"f{k}", "hosts": ["a", "b"], "flows": [[0, 1, 1e5]]} for k in range(4)]}
)
LOOPS = json.dumps(
    {
        "loops": [
            {
                "id": f"r{k}", "hosts": ["a", "b"], "flows": [[0, 1, 1e5]], "count": 6,
                "at_once": 2, "seed": k, "think": think, "connection": None if k else "c",
            }
            for k, think in enumerate(
                (1e-3, {"exponential": 2e-3}, {"uniform": [1e-3, 2e-3]}, {"file": "think.txt"})
            )
        ]
    },
    indent=1,
)  # fmt: skip
ROUTES = "task,flow,path\n" + "".join(f"f{k},0,a {'st'[k % 2]} b\n" for k in range(4))
WIRE = json.dumps(
    {
        "network_model": "DCTCP", "mss_B": 1448, "header_B": 54, "ack_B": 54,
        "measured_from": "connect", "initial_window": 10, "rtt_weights": True,
        "mark_packets": 20, "mark_s": 2e-5, "queue_packets": 5000, "pfc_packets": [150, 200],
    },
    indent=1,
)  # fmt: skip
TRACE = "".join(
    f"{rank} init\n{rank} compute 1e9\n{rank} {'send 1 0 1000' if rank == 0 else 'recv 0 0 1000'}\n"
    f"{rank} allreduce 10000 1000\n{rank} finalize\n"
    for rank in range(2)
)
DUMP = """Cluster - 'c':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'bio':Description='bio':Organization='x':Fairshare=3
Account - 'physics':Fairshare=2:MaxJobs=7
Parent - 'bio'
User - 'bob':DefaultAccount='bio':Fairshare=parent:MaxJobs=3
Parent - 'physics'
User - 'ann':DefaultAccount='physics':Fairshare=1
"""
SCRIPT = """#!/bin/bash
sacctmgr -i add qos urgent Priority=100 \\
    MaxWall=30
sacctmgr -i add account physics,bio Fairshare=100
sacctmgr -i add user ann DefaultAccount=physics MaxSubmitJobs=1000 qos=normal
sacctmgr -i add user bob account=bio
sacctmgr -i modify user where account=physics set qos+=urgent
sacctmgr show associations
"""
EVENTS = "".join(
    f"-dt {k} -e submit_batch_job | -J j{k} -sim-walltime 60 --uid=ann -t 10 -n 4 -p low x.job\n"
    for k in range(5)
)
SACCT_JSON = json.dumps(
    {
        "meta": {"Slurm": {"release": "23.11"}},
        "jobs": [
            {
                "job_id": k, "user": "ann", "account": "physics", "partition": "low",
                "allocation_nodes": 1, "required": {"CPUs": 4},
                "state": {"current": ["COMPLETED"]},
                "time": {
                    "submission": 1_700_000_000 + k, "start": 1_700_000_010 + k, "elapsed": 60,
                    "end": 1_700_000_070 + k,
                    "limit": {"set": True, "infinite": False, "number": 30},
                },
            }
            for k in range(1, 6)
        ],
    },
    indent=1,
)  # fmt: skip
SACCT = good_files.SACCT.split("\n")[0] + "".join(
    f"\n{k}|ann|physics|low|normal|2024-03-01T10:00:{k}|2024-03-01T10:00:{k}|2024-03-01T10:01:00|"
    "2024-03-01T10:11:00|00:10:00|00:30:00|1|billing=4,cpu=4,mem=4G,node=1|COMPLETED"
    for k in range(10, 16)
)
TABLE = "id,submit,nodes,limit,run,user,partition\n" + "".join(
    f"j{k},{k},1,600,{60 + k},ann,low\n" for k in range(6)
)
UNITS = "AutoDetect=off\nNodeName=n[1-4] Name=gpu Type=tesla File=/dev/nvidia[0-1] Cores=0-3\n"
PLAN = """run = "batch"
metrics = ["mean_waiting_time"]
[parameters]
platform = "c.xml"
workload = "l.swf"
[factors]
policy = ["fcfs", "easy"]
"""
CONF = "slurm.conf"
WIRES = ("calibrate", "--model", "wire")
ROUTED = ("simulate", "g.xml", "f.json", "--network-parameters", "wire.json", "--routing")
LOOPED = ("simulate", "g.xml", "loops.json", "--network-model", "DCTCP", "--routing", "ecmp")
PACKETS = ("--network-level", "packets")
# Of each kind of file: its name, its text, and the words of a command that reads it.
KINDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "platform": ("p.xml", PLATFORM, ("simulate", "p.xml", "t.json")),
    "cluster": ("c.xml", CLUSTER, ("batch", "c.xml", "w.json")),
    "tasks": ("t.json", TASKS, ("simulate", "p.xml", "t.json")),
    "batsim": ("w.json", WORKLOAD, ("batch", "c.xml", "w.json")),
    "swf": ("l.swf", SWF, ("batch", "c.xml", "l.swf")),
    "gwf": ("l.gwf", GWF, ("batch", "c.xml", "l.gwf")),
    "workflows": ("w.gwf", WORKFLOWS, ("batch", "c.xml", "w.gwf", "--dependencies")),
    "measurements": ("m.csv", MEASURED, ("calibrate", "m.csv", "--fit-on", "endpoints")),
    "transfers": ("x.csv", TRANSFERS, (*WIRES, "x.csv", "--bandwidth", "10Gbps")),
    "measured loops": (
        "l.csv",
        TRANSFERS,
        (*WIRES, "x.csv", "--bandwidth", "10Gbps", "--loops", "l.csv"),
    ),
    "loops": ("loops.json", LOOPS, LOOPED),
    "think times": ("think.txt", "0.001\n0.002\n0.003\n", LOOPED),
    "trace": ("r.txt", TRACE, ("replay", "p.xml", "r.txt")),
    "slurm.conf": (CONF, good_files.CONF, ("slurm", CONF, "jobs.csv")),
    "topology.conf": ("topology.conf", good_files.TOPOLOGY, ("slurm", CONF, "jobs.csv")),
    "gres.conf": ("gres.conf", UNITS, ("slurm", CONF, "jobs.csv")),
    "jobs.csv": ("jobs.csv", TABLE, ("slurm", CONF, "jobs.csv")),
    "sacct": ("sacct.txt", SACCT, ("slurm", CONF, "sacct.txt")),
    "sacct --json": ("sacct.json", SACCT_JSON, ("slurm", CONF, "sacct.json")),
    "events": ("j.events", EVENTS, ("slurm", CONF, "j.events")),
    "script": ("accounts.sh", SCRIPT, ("slurm", CONF, "jobs.csv", "--accounts", "accounts.sh")),
    "dump": ("accounts.txt", DUMP, ("slurm", CONF, "jobs.csv", "--accounts", "accounts.txt")),
}
# Files of which nothing is left out, that a command refuses or takes as they are.
WHOLE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "graph": ("g.xml", GRAPH, (*ROUTED, "platform")),
    "flows": ("f.json", FLOWS, (*ROUTED, "ecmp")),
    "routes": ("routes.csv", ROUTES, (*ROUTED, "file:routes.csv")),
    "wire": ("wire.json", WIRE, (*ROUTED, "ecmp")),
    "wire of packets": ("wire.json", WIRE, (*ROUTED, "ecmp", *PACKETS)),
    "flows of packets": ("f.json", FLOWS, (*ROUTED, "ecmp", *PACKETS)),
    "routes of packets": ("routes.csv", ROUTES, (*ROUTED, "file:routes.csv", *PACKETS)),
    "loops of packets": ("loops.json", LOOPS, (*LOOPED, *PACKETS)),
    # Parallel tasks, which packets do not know.
    "tasks of packets": (
        "t.json",
        TASKS,
        ("simulate", "p.xml", "t.json", "--network-model", "ROCE", *PACKETS),
    ),
}
SPICE = (
    *("", " ", "nan", "inf", "-1", "1e308", "9" * 25, "-inf", "é", "\0", '"', "'", "\\", "<", "{"),
    *("|", ",", ";", "=", "#", "null", "[]", "None", "n[1-", "\ufeff", "\n\n", "\t", "%s", "../x"),
)
FOREIGN = ("<html><body>404</body></html>", "-bash: x: command not found", "PK\3\4", "{}")


def write_all(folder: Path) -> None:
    """One good file of each kind."""
    for name, text, _ in (KINDS | WHOLE).values():
        (folder / name).write_text(text, encoding="utf-8")


def mutated(text: str, draw: random.Random) -> tuple[str, str]:
    """The text after one change, and what was done."""
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    how = draw.choice(HOWS)
    if how == "drop line":
        del lines[at]
    elif how == "double line":
        lines.insert(at, lines[at])
    elif how == "swap lines":
        other = draw.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif how == "truncate":
        return text[: draw.randrange(len(text))], how
    elif how == "foreign":
        lines.insert(at, draw.choice(FOREIGN))
    elif how == "empty":
        return draw.choice(("", "\n", " \n\n")), how
    elif how == "letter":
        place = draw.randrange(len(text))
        return text[:place] + draw.choice(SPICE) + text[place + draw.randrange(3) :], how
    else:
        lines[at] = _changed(lines[at], how, draw)
    return "\n".join(lines), how


HOWS = (
    *("drop line", "double line", "swap lines", "truncate", "foreign", "empty", "letter"),
    *("word", "word", "word", "drop word", "double word", "swap words"),
)


def _changed(line: str, how: str, draw: random.Random) -> str:
    """A line with one of its words changed."""
    mark = next((one for one in ("|", ",", " ") if one in line), " ")
    words = line.split(mark)
    at, other = draw.randrange(len(words)), draw.randrange(len(words))
    if how == "word":
        word = words[at]
        key, equals, _ = word.rpartition("=") if "=" in word else word.rpartition(":")
        words[at] = key + equals + draw.choice(SPICE)
    elif how == "drop word":
        del words[at]
    elif how == "double word":
        words.insert(at, words[at])
    else:
        words[at], words[other] = words[other], words[at]
    return mark.join(words)


def verdict(status: int, out: str, error: str, name: str) -> str | None:
    """What is wrong with the answer of a command about a file of a `name`; None: nothing is."""
    said = out + error
    if "Traceback" in error or "internal error" in said or status not in (0, 2):
        return f"status {status}"
    messages = [line for line in error.splitlines() if line.startswith("ptaskmodel: error: ")]
    if status == 2:
        if len(messages) != 1:
            return f"{len(messages)} messages"
        place = messages[0].removeprefix("ptaskmodel: error: ")
        named = name in place or place.startswith("task '")
        return None if named else "does not name the file"
    return "an error, but status 0" if messages else None
