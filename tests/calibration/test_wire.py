"""A wire fitted to transfers: headers a packet, fixed costs, think times; refused tables."""

import csv
import json
import math

import numpy as np
import pytest

from ptaskmodel.calibration.measurements import MeasurementError
from ptaskmodel.calibration.wire import fit_wire, read_transfers
from ptaskmodel.cli import main
from ptaskmodel.engine.usage.network_models import read_wire

LINE_BPS = 1.25e9
SIZES = (102_408, 256_008, 512_008)


def alone_s(size, header=82.0, cost=9.4e-6):
    return (size + header * math.ceil(size / 1024)) / LINE_BPS + cost


def write(path, rows, columns=("size_B", "duration_s")):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([columns, *rows])
    return path


def test_exact_transfers_give_the_wire_back(tmp_path):
    table = write(tmp_path / "t.csv", [(size, alone_s(size)) for size in SIZES])
    fit = fit_wire(table, LINE_BPS)
    assert fit.header_B.value == pytest.approx(82.0, abs=1e-6)
    assert fit.fixed_s[""].value == pytest.approx(9.4e-6, abs=1e-12)
    assert np.abs(fit.residuals_s).max() < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_disturbed_transfers_move_it_little(tmp_path, seed):
    random = np.random.default_rng(seed)
    rows = []
    for client, cost in (("a", 9.4e-6), ("b", 14e-6)):
        for size in SIZES:
            for _ in range(15):
                late = random.exponential(60e-6) if random.random() < 0.2 else 0.0
                rows.append(
                    (client, size, alone_s(size, cost=cost) + random.normal(0, 2e-7) + late)
                )
    table = write(tmp_path / "t.csv", rows, ("client", "size_B", "duration_s"))
    fit = fit_wire(table, LINE_BPS)
    assert fit.header_B.value == pytest.approx(82.0, abs=2.0)
    assert fit.fixed_s["a"].value == pytest.approx(9.4e-6, abs=0.5e-6)
    assert fit.fixed_s["b"].value == pytest.approx(14e-6, abs=0.5e-6)
    assert any("stand apart" in remark.text for remark in fit.remarks)


def test_intervals_hold_the_true_values_as_often_as_they_say(tmp_path):
    random, held = np.random.default_rng(7), 0
    for _ in range(100):
        rows = [(s, alone_s(s) + random.normal(0, 1e-7)) for s in SIZES for _ in range(6)]
        low, high = fit_wire(write(tmp_path / "t.csv", rows), LINE_BPS).header_B.interval95
        held += low <= 82.0 <= high
    assert 88 <= held <= 100


def test_transfers_that_overlap_are_left_out(tmp_path):
    rows, at = [], 0.0
    for size in SIZES * 3:
        rows.append((at, size, alone_s(size)))
        at += 1e-2
    rows += [(1.0, SIZES[0], 1e-3), (1.0005, SIZES[0], 1e-3)]
    fit = fit_wire(write(tmp_path / "t.csv", rows, ("start_s", "size_B", "duration_s")), LINE_BPS)
    assert len(fit.used) == 9
    assert "2 of 11 transfers overlap others: left out" in [one.text for one in fit.remarks]


def test_think_times_are_read_off_dates(tmp_path):
    table = write(tmp_path / "t.csv", [(size, alone_s(size)) for size in SIZES])
    rows, at = [], 0.0
    for size in SIZES * 4:
        at += 130e-6 + size / 4e9
        rows.append((at, size, 3e-3))
        at += 3e-3
    loops = write(tmp_path / "loops.csv", rows, ("start_s", "size_B", "duration_s"))
    fit = fit_wire(table, LINE_BPS, loops=loops)
    assert fit.think_s.value == pytest.approx(130e-6, rel=1e-6)
    assert fit.think_Bps.value == pytest.approx(4e9, rel=1e-6)


def test_think_times_follow_from_a_loop_that_keeps_the_link_busy(tmp_path):
    table = write(tmp_path / "t.csv", [(size, alone_s(size)) for size in SIZES])
    busy = [(s, 11 * alone_s(s, cost=0.0) - 130e-6 - s / 4e9) for s in SIZES for _ in range(2)]
    loops = write(tmp_path / "loops.csv", busy)
    fit = fit_wire(table, LINE_BPS, loops=loops, clients=11)
    assert fit.think_s.value == pytest.approx(130e-6, rel=1e-6)
    assert fit.think_Bps.value == pytest.approx(4e9, rel=1e-6)
    with pytest.raises(MeasurementError, match="--clients"):
        fit_wire(table, LINE_BPS, loops=loops)


def test_a_rate_of_thought_that_may_be_infinite_is_null_in_json(tmp_path, capsys):
    table = write(tmp_path / "t.csv", [(size, alone_s(size)) for size in SIZES])
    busy = [(s, 11 * alone_s(s, cost=0.0) - t) for s in SIZES for t in (100e-6, 190e-6 + s * 1e-11)]
    loops = write(tmp_path / "loops.csv", busy)
    words = ["calibrate", str(table), "--model", "wire", "--bandwidth", "10Gbps", "--json"]
    assert main([*words, "--loops", str(loops), "--clients", "11"]) == 0
    found = json.loads(capsys.readouterr().out)["parameters"]["think_Bps"]
    assert found["interval95"][1] is None


def test_a_bad_row_is_left_out_with_its_line(tmp_path):
    rows = [*((size, alone_s(size)) for size in SIZES), ("x", 1.0), (1e308, 1.0)]
    found, remarks = read_transfers(write(tmp_path / "t.csv", rows))
    assert len(found) == 3
    assert "t.csv:5: left out: size_B is 'x'" in remarks[0].text
    assert "t.csv:6: left out: size_B is '1e+308'; give a number above 0" in remarks[1].text


def test_a_row_of_other_columns_is_left_out(tmp_path):
    rows = [*((size, alone_s(size)) for size in SIZES), (1000, 5.0, 1e-3), (1000,)]
    found, remarks = read_transfers(write(tmp_path / "t.csv", rows))
    assert len(found) == 3
    assert "t.csv:5: left out: has 3 fields instead of 2" in remarks[0].text
    assert "t.csv:6: left out: has 1 field instead of 2" in remarks[1].text


@pytest.mark.parametrize(
    ("rows", "bandwidth", "complaint"),
    [
        ([(1000, 1e-3), (1000, 2e-3)], LINE_BPS, "give two sizes or more"),
        ([(size, alone_s(size)) for size in SIZES], LINE_BPS / 100, "faster than the link"),
        ([("a", "b"), ("c", 1.0), (1000, 1.0)], LINE_BPS, "2 problems"),
        ([], LINE_BPS, "no transfers"),
    ],
)
def test_what_cannot_be_fitted_is_refused(tmp_path, rows, bandwidth, complaint):
    with pytest.raises(MeasurementError, match=complaint):
        fit_wire(write(tmp_path / "t.csv", rows), bandwidth)


def test_the_command_writes_a_file_of_network_parameters(tmp_path, capsys):
    table = write(tmp_path / "t.csv", [(size, alone_s(size)) for size in SIZES])
    arguments = ["calibrate", str(table), "--model", "wire", "--bandwidth", "10Gbps"]
    out, picture = tmp_path / "wire.json", tmp_path / "residuals.png"
    assert main([*arguments, "-o", str(out), "--plot", str(picture)]) == 0
    assert "headers a packet" in capsys.readouterr().out
    assert read_wire(out).header_B == pytest.approx(82.0, abs=1e-6)
    assert picture.stat().st_size > 1000
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["parameters"]
    assert found["fixed_s"]["interval95"][0] <= found["fixed_s"]["value"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--model", "wire"), "--bandwidth"),
        (("--model", "wire", "--bandwidth", "1Gbps", "--fit-on", "endpoints"), "no --fit-on"),
        (("--bandwidth", "1Gbps"), "only --model wire has --bandwidth"),
    ],
)
def test_options_of_another_model_are_refused(tmp_path, capsys, options, complaint):
    table = write(tmp_path / "t.csv", [(size, alone_s(size)) for size in SIZES])
    assert main(["calibrate", str(table), *options]) == 2
    assert complaint in capsys.readouterr().err
