"""Small files of each kind that commands read, right ones and wrong ones, by name."""

from __future__ import annotations

import json

PLATFORM = (
    '<platform version="4.1"><zone id="z" routing="Full"><host id="node-0" speed="1Gf"/>'
    '<host id="node-1" speed="1Gf"/></zone></platform>'
)
TASKS = '{"tasks": [{"id": "t", "hosts": ["node-0"], "cpu": 1e9}]}'
JOBS = '{"nb_res": 4, "jobs": [{"id": "j", "subtime": 0, "res": 4, "profile": "d"}], "profiles": '
CONF = "ClusterName=c\nNodeName=n[1-4] CPUs=4\nPartitionName=main Nodes=ALL Default=YES\n"
TABLE = "id,submit,nodes,cores,limit,run\na,0,1,,60,10\n"
MEASURED = "mean_runtime_s,interference_on_s,interference_off_s\n100,0,0\n200,inf,0\n"
MORE = "".join(f'<host id="n{k}" speed="1Gf"/>' for k in range(4))
POLICIES = """class Soon:
    def decide(self, view):
        for job in sorted(view.queue, key=lambda job: job.submit_time):
            yield job


class Late(Soon):
    pass
"""
SACCT = "1000|job|main|ann|2024-03-01T08:00:00|00:10:00|COMPLETED\n"
TRACE = "0 init\n0 compute 1\n0 finalize\n"


def task(**fields):
    return json.dumps({"tasks": [{"id": "t", "hosts": ["node-0"], "cpu": 1, **fields}]})


def host(**fields):
    of_host = {"speed": "1Gf"} | {key: value for key, value in fields.items() if key == "speed"}
    link = {"bandwidth": "1Gbps", "latency": "1ms"} | fields
    return (
        f'<platform version="4.1"><zone id="z" routing="Full"><host id="node-0" '
        f'speed="{of_host["speed"]}"/><link id="l" bandwidth="{link["bandwidth"]}" '
        f'latency="{link["latency"]}"/></zone></platform>'
    )


FILES = {
    "p.xml": PLATFORM, "t.json": TASKS, "w.json": JOBS + '{"d": {"type": "delay", "delay": 1}}}',
    "six.xml": PLATFORM.replace("</zone>", MORE + "</zone>"),
    "policies.py": POLICIES, "sacct.txt": "JobID|JobName|Submit\n" + SACCT, "bare.txt": SACCT,
    "slurm.conf": CONF, "jobs.csv": TABLE, "m.csv": MEASURED, "r.txt": TRACE, "empty": "",
    "p16.xml": PLATFORM.encode("utf-16"), "t16.json": TASKS.encode("utf-16"),
    "jobs16.csv": TABLE.encode("utf-16"), "r16.txt": TRACE.encode("utf-16"),
    "m16.csv": MEASURED.encode("utf-16"), "conf16": CONF.encode("utf-16"),
    "tbom.json": b"\xef\xbb\xbf" + TASKS.encode(), "rbom.txt": b"\xef\xbb\xbf" + TRACE.encode(),
    "cut.xml": PLATFORM[:80],
    "host.json": task(hosts=["nod-0"]), "unit.json": task(cpu="1Gf"), "huge.json": task(cpu=1e300),
    "negative.json": task(cpu=-1), "comma.json": TASKS.replace("}]", ",}]"),
    "flow.json": task(hosts=["node-0", "node-1"], cpu=0, flows=[[0, 1, 1e9]]),
    "gflops.xml": host(speed="1Gflops"), "msec.xml": host(latency="1msec"),
    "slash.xml": host(bandwidth="1Gb/s"),
}  # fmt: skip
