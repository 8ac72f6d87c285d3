"""The command calibrate, and simulate --calibration."""

import json

import pytest

from ptaskmodel.apps import TwoGroups
from ptaskmodel.calibration.run import CalibrationOptions, calibrate_file
from ptaskmodel.cli import main

pytestmark = pytest.mark.jit


@pytest.fixture
def runtimes(repository_measurements):
    return str(repository_measurements / "pdgemm_runtimes.csv")


def test_calibrate_reports_and_writes(runtimes, tmp_path, capsys):
    output = tmp_path / "c.json"
    assert main(["calibrate", runtimes, "--fit-on", "endpoints", "--output", str(output)]) == 0
    assert "(28 rows)" in capsys.readouterr().out
    groups = json.loads(output.read_text())["groups"]
    unused = [
        abs(row["relative_error"])
        for group in groups
        for row in group["predictions"]
        if not row["used_in_fit"] and row["relative_error"] is not None
    ]
    assert len(unused) == 28
    assert sum(unused) / 28 <= 0.009
    assert max(unused) <= 0.043


def test_what_is_printed_as_json_is_what_is_written(runtimes, tmp_path, capsys):
    output = tmp_path / "c.json"
    assert main(["calibrate", runtimes, "--json", "--output", str(output)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(output.read_text())


def test_the_joint_fit_reports_each_pattern_left_out(runtimes, capsys):
    assert main(["calibrate", runtimes]) == 0
    assert "each pattern left out" in capsys.readouterr().out


def test_calibrate_the_simulated_task(runtimes, tmp_path, capsys):
    output = tmp_path / "c.json"
    command = ["calibrate", runtimes, "--model", "ptask", "--fit-on", "endpoints"]
    assert main([*command, "--output", str(output)]) == 0
    found = json.loads(output.read_text())
    assert found["model"] == "ptask"
    assert set(found["groups"][0]["parameters"]) == {
        "network_efficiency",
        "compute_efficiency",
        "competitors",
    }


def test_calibrate_on_the_follow_up(repository_measurements, tmp_path):
    file = str(repository_measurements / "pdgemm_tcp_connections.csv")
    output = tmp_path / "c.json"
    options = ["--model", "ptask", "--fit-on", "endpoints", "--competitors", "n_host_pairs"]
    assert main(["calibrate", file, *options, "--part", "0.25", "--output", str(output)]) == 0
    paravance = json.loads(output.read_text())["groups"][1]["parameters"]
    assert paravance["competitors"]["value"] == pytest.approx(6.69, abs=0.05)
    assert 0.8 < paravance["network_efficiency"]["value"] < 1.0


def test_a_users_own_measurements_end_in_a_simulation(tmp_path, capsys):
    (tmp_path / "p.xml").write_text(TwoGroups("lab", nodes_per_group=1).xml())
    (tmp_path / "t.json").write_text(
        '{"tasks": [{"id": "app", "hosts": ["lab-0", "lab-1"],'
        ' "flows": [[0, 1, 1e11], [1, 0, 1e11]]}]}'
    )
    (tmp_path / "m.csv").write_text(
        "interference_on_s,interference_off_s,competitors,runtime_s\n0,0,0,100\ninf,0,3,250\n"
    )
    files = ["--platform", str(tmp_path / "p.xml"), "--tasks", str(tmp_path / "t.json")]
    output = str(tmp_path / "c.json")
    command = ["calibrate", str(tmp_path / "m.csv"), "--model", "ptask", *files]
    assert main([*command, "--pair", "lab-0,lab-1", "--output", output]) == 0
    values = json.loads((tmp_path / "c.json").read_text())["groups"][0]["parameters"]
    assert values["network_efficiency"]["value"] == pytest.approx(0.8, rel=1e-4)
    assert values["competitors"]["value"] == pytest.approx(2.0, rel=1e-3)
    capsys.readouterr()
    simulate = ["simulate", str(tmp_path / "p.xml"), str(tmp_path / "t.json")]
    assert main([*simulate, "--calibration", output, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert summary["makespan"] == pytest.approx(100.0, rel=1e-4)
    (tmp_path / "t.json").write_text(
        '{"tasks": [{"id": "app", "hosts": ["lab-0", "lab-1"],'
        ' "flows": [[0, 1, 1e11], [1, 0, 1e11]]}, {"id": "noise", "hosts": ["lab-0", "lab-1"],'
        ' "flows": [[0, 1, 1e18], [1, 0, 1e18]], "competitors": 3, "walltime": 1000}]}'
    )
    assert main([*simulate, "--calibration", output, "--json"]) == 0
    records = json.loads(capsys.readouterr().out)["records"]
    assert records[0]["finish_time"] == pytest.approx(250.0, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fix", "competitors=3"], "need --model ptask"),
        (["--model", "ptask", "--fix", "competitors=zero"], "give NAME=VALUE with a value > 0"),
        (["--model", "ptask", "--pair", "a,b"], "go together; give all three"),
        (["--model", "ptask", "--part", "2"], "2.0 is not in the range"),
        (["--competitors", "n_flows"], "no column 'n_flows'"),
        (["--output", "/nowhere/c.json"], "cannot be written"),
    ],
)
def test_mistakes_end_with_code_2_and_one_line(runtimes, capsys, options, message):
    assert main(["calibrate", runtimes, "--fit-on", "endpoints", *options]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error.splitlines()[-1]


def test_a_bad_file_ends_with_code_2(tmp_path, capsys):
    (tmp_path / "m.csv").write_text("runtime_s,interference_on_s,interference_off_s\nlong,0,0\n")
    assert main(["calibrate", str(tmp_path / "m.csv")]) == 2
    assert "m.csv:2: runtime_s is 'long'" in capsys.readouterr().err


def test_a_group_needs_a_calibration(tmp_path, capsys):
    (tmp_path / "p.xml").write_text(TwoGroups("lab", nodes_per_group=1).xml())
    (tmp_path / "t.json").write_text('{"tasks": [{"id": "a", "hosts": ["lab-0"], "cpu": [1]}]}')
    files = [str(tmp_path / "p.xml"), str(tmp_path / "t.json")]
    assert main(["simulate", *files, "--group", "cluster=grisou"]) == 2
    assert "give --calibration FILE" in capsys.readouterr().err


@pytest.mark.parametrize(("fit_on", "fits"), [("all", 2 + 2 * 3), ("endpoints", 2)])
def test_fits_are_counted(tmp_path, fit_on, fits):
    rows = ["kind,mean_runtime_s,interference_on_s,interference_off_s"]
    for kind in "ab":
        rows += [f"{kind},100,0,0", f"{kind},200,inf,0", f"{kind},150,15,15"]
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n")
    told = []
    options = CalibrationOptions(fit_on=fit_on)
    calibrate_file(tmp_path / "m.csv", options, progress=lambda *numbers: told.append(numbers))
    assert told == [(k, fits) for k in range(1, fits + 1)]


def test_a_calibration_is_a_table(tmp_path):
    rows = ["mean_runtime_s,interference_on_s,interference_off_s", "100,0,0", "200,inf,0"]
    (tmp_path / "m.csv").write_text("\n".join([*rows, "150,15,15"]) + "\n")
    table = calibrate_file(tmp_path / "m.csv").frame()
    assert table["measured_s"].tolist() == [100.0, 200.0, 150.0]
    assert table["used_in_fit"].all()
