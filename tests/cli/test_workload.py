"""``ptaskmodel workload``: what it says and cuts, and options that it refuses in one line."""

from __future__ import annotations

import json

import pytest

from ptaskmodel.cli import main
from ptaskmodel.workload.reading import read_workload

DAY_S = 86400


@pytest.fixture
def log(tmp_path):
    """Four jobs of a day, one after the other, on 1, 4, 2 and 4 of 4 hosts."""
    jobs = [
        {"id": str(k), "subtime": k * DAY_S, "res": hosts, "profile": "day"}
        for k, hosts in enumerate((1, 4, 2, 4))
    ]
    path = tmp_path / "w.json"
    profiles = {"day": {"type": "delay", "delay": DAY_S}}
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    return path


def test_statistics_are_numbers_in_json(log, capsys):
    assert main(["workload", "info", str(log), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["hosts_per_job"] == {"mean": 2.75, "median": 3.0, "max": 4}
    assert facts["run_time_s"] == {"mean": DAY_S, "median": DAY_S, "max": DAY_S}
    assert facts["offered_load"] == 11 / 12
    assert main(["workload", "info", str(log)]) == 0
    assert "hosts per job         mean 2.75, median 3, max 4\n" in capsys.readouterr().out


def test_a_workload_without_jobs_has_few_facts(tmp_path, capsys):
    path = tmp_path / "w.json"
    path.write_text('{"jobs": [], "profiles": {}}')
    assert main(["workload", "info", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["jobs"] == 0
    assert "hosts_per_job" not in facts


@pytest.mark.parametrize(
    ("pick", "first"), [("first", "0"), ("busiest", "1"), ("1", "1"), ("2", "2")]
)
def test_windows_are_picked(log, tmp_path, capsys, pick, first):
    out = tmp_path / "cut.json"
    days = ["--days", "1", "--min-utilisation", "0.2", "--pick", pick]
    assert main(["workload", "extract", str(log), "-o", str(out), *days]) == 0
    assert [job["id"] for job in json.loads(out.read_text())["jobs"]] == [first]


def test_a_window_of_a_log_keeps_its_dates(tmp_path):
    rows = [[k + 1, k * DAY_S, 0, DAY_S, 16, *[-1] * 13] for k in range(3)]
    lines = ["; UnixStartTime: 1000", "; MaxProcs: 64", *(" ".join(map(str, row)) for row in rows)]
    log, out = tmp_path / "log.swf", tmp_path / "cut.swf"
    log.write_text("\n".join(lines) + "\n")
    days = ["--days", "1", "--min-utilisation", "0.2", "--pick", "1"]
    assert main(["workload", "extract", str(log), "-o", str(out), *days]) == 0
    assert "; UnixStartTime: 87400\n" in out.read_text()
    cut = read_workload(out)
    assert cut.begin_unix_s == 1000 + DAY_S
    assert cut.with_jobs(cut.jobs).begin_unix_s is None
    assert cut.with_jobs(cut.jobs, same_dates=True).begin_unix_s == 1000 + DAY_S


@pytest.mark.parametrize(
    "options", [[], ["--machine-hosts", "4"], ["--machine-hosts", "2", "--max-hosts", "1"]]
)
def test_the_use_of_a_log_is_counted_in_hosts(tmp_path, capsys, options):
    """Jobs of a day each on 16, 40 and 16 of 64 processors: 1, 3 and 1 of 4 hosts."""
    log = tmp_path / "log.swf"
    rows = [[k + 1, k * DAY_S, 0, DAY_S, size, *[-1] * 13] for k, size in enumerate((16, 40, 16))]
    lines = [" ".join(map(str, row)) for row in rows]
    log.write_text("\n".join(["; MaxProcs: 64", *lines, ""]))
    asked = ["--processors-per-host", "16", "--days", "1", "--min-utilisation", "0.2", *options]
    assert main(["workload", "extract", str(log), *asked]) == 0
    found = [line.split()[5] for line in capsys.readouterr().out.splitlines()]
    assert found == (["0.500"] if "--max-hosts" in options else ["0.250", "0.750"])


@pytest.mark.parametrize("pick", ["3", "-1", "last", "²", ""])
def test_other_windows_are_refused(log, tmp_path, capsys, pick):
    days = ["--days", "1", "--min-utilisation", "0.2", "--pick", pick]
    assert main(["workload", "extract", str(log), "-o", str(tmp_path / "x.json"), *days]) == 2
    assert "is not first, busiest or a number from 0 to 2" in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("extract", "--days"),
        ("extract", "--step-days"),
        ("extract", "--min-utilisation"),
        ("extract", "--machine-hosts"),
        ("convert", "--ratio"),
        ("convert", "--speed"),
        ("convert", "--bandwidth"),
        ("convert", "--max-hosts"),
        ("generate lublin", "--pace"),
        ("generate lublin", "--walltime-factor"),
        ("generate lublin", "--seed"),
        ("generate weibull", "--shape"),
        ("generate weibull", "--scale"),
        ("transform sample", "--ratio"),
        ("transform sample", "--window"),
        ("transform shrink", "--factor"),
        ("transform load", "--to"),
        ("transform resample", "--weeks"),
    ],
)
@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_options_that_are_no_such_numbers(log, tmp_path, capsys, command, option, value):
    files = [] if command == "generate lublin" else [str(log)]
    files += ["-o", str(tmp_path / "x.json")]
    assert main(["workload", *command.split(), *files, f"{option}={value}"]) == 2
    assert option in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()


def test_delays_become_parallel_tasks_of_hosts_told_in_units_or_by_a_platform(log, tmp_path):
    (tmp_path / "p.xml").write_text(
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3" speed="10Gf" '
        'bw="10Gbps" lat="1us"/></platform>'
    )
    told = {
        "units": ["--speed", "10Gf", "--bandwidth", "10Gbps"],
        "numbers": ["--speed", "1e10", "--bandwidth", "1.25e9"],
        "platform": ["--platform", str(tmp_path / "p.xml")],
    }
    made = []
    for name, options in told.items():
        output = tmp_path / f"{name}.json"
        command = ["workload", "convert", str(log), "-o", str(output), "--profiles", "ptask"]
        assert main([*command, *options]) == 0
        made.append(json.loads(output.read_text())["profiles"])
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--speed", "25Gflop", "--bandwidth", "1"], "25Gflop"),
        (["--speed", "0", "--bandwidth", "1"], "above 0"),
        (["--speed", "1Gf"], "or --platform FILE"),
    ],
)
def test_hosts_that_are_not_told_are_asked_for(log, tmp_path, capsys, options, said):
    output = tmp_path / "x.json"
    command = ["workload", "convert", str(log), "-o", str(output), "--profiles", "ptask"]
    assert main([*command, *options]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1
    assert not output.exists()


def test_too_many_windows_are_refused(log, capsys):
    assert main(["workload", "extract", str(log), "--days", "1", "--step-days", "1e-9"]) == 2
    assert "makes more than 1,000,000 windows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("load", "give either --factor or --to"),
        ("load --factor 2 --to 1", "give either --factor or --to"),
        ("sample --ratio 1e9", "a ratio of 1e+09 leaves no sample of 4 jobs"),
        ("sample --ratio 2 --offset 2", "the offset is 2; give 0 or more, below 2"),
        ("resample --weeks 20000", "20000 weeks; give 1 to 10000"),
        ("resample --weeks 10 --factor 5000", "the factor is 5000"),
        ("shuffle --dates odd", "--dates"),
    ],
)
def test_transforms_that_make_no_sense(log, tmp_path, capsys, options, message):
    kind, *rest = options.split()
    made = tmp_path / "x.json"
    assert main(["workload", "transform", kind, str(log), "-o", str(made), *rest]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert not made.exists()


@pytest.mark.parametrize("ending", [".json", ".swf", ""])
def test_a_byte_order_mark_is_read_over(tmp_path, capsys, ending):
    made, marked = tmp_path / f"made{ending or '.swf'}", tmp_path / f"marked{ending}"
    assert main(f"workload generate lublin -o {made} --jobs 5 --hosts 8".split()) == 0
    marked.write_bytes(b"\xef\xbb\xbf" + made.read_bytes())
    capsys.readouterr()
    assert main(["workload", "info", str(marked), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 5
