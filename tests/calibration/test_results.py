"""Calibrations as files and as text, and laid on tasks."""

import json
import math

import numpy as np
import pytest

from ptaskmodel.apps import OnOff
from ptaskmodel.calibration import (
    Calibration,
    GroupCalibration,
    MeasurementError,
    Parameter,
    apply,
    apply_to_jobs,
    calibrate,
    parameter_table,
    prediction_table,
    rates_fitter,
    read_calibration,
    read_measurements,
    report,
    write_calibration,
)
from ptaskmodel.calibration.measurements import MeasuredGroup, Measurement
from ptaskmodel.remarks import Remark
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.tasks import Delay, Flow, ParallelTask, Task
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, SequenceWork


@pytest.fixture(scope="module")
def rates(repository_measurements):
    groups = read_measurements(repository_measurements / "pdgemm_runtimes.csv")
    return calibrate(groups, rates_fitter(), "rates", "endpoints", "runs.csv")


def test_the_file_has_what_is_promised(rates, tmp_path):
    write_calibration(rates, tmp_path / "calibration.json")
    data = json.loads((tmp_path / "calibration.json").read_text())
    assert len(data["groups"]) == 8
    group = data["groups"][0]
    assert group["labels"]["cluster"] == "paravance"
    assert {"value", "stderr", "unit"} <= set(group["parameters"]["c1"])
    row = group["predictions"][-1]
    assert row["interference_on_s"] is None
    assert row["used_in_fit"] is True
    assert row["relative_error"] == pytest.approx(
        row["predicted_s"] / row["measured_s"] - 1, abs=1e-12
    )
    assert [path.name for path in tmp_path.iterdir()] == ["calibration.json"]


def test_a_group_that_cannot_be_fitted_says_so(rates):
    group = rates.group(cluster="grisou", broadcast="blocking", block_subdivisions="1")
    assert not group.parameters
    assert "needs rows with interference" in group.note
    assert group.note in report(rates)


def test_reading_gives_the_same_calibration_back(rates, tmp_path):
    write_calibration(rates, tmp_path / "c.json")
    again = read_calibration(tmp_path / "c.json")
    assert again == rates


def test_the_report_shows_parameters_rows_and_errors(rates):
    text = report(rates)
    assert "cluster=paravance broadcast=blocking block_subdivisions=50" in text
    assert "469.19 +- 0.41" in text
    assert "did not end" in text
    assert "(28 rows)" in text
    assert max(len(line) for line in text.splitlines()) < 120


def test_tables_have_every_parameter_and_row(rates):
    parameters = parameter_table(rates)
    assert len(parameters) == 14
    assert (parameters.low95 < parameters.value).all()
    rows = prediction_table(rates)
    assert len(rows) == 48
    first = rows.iloc[1]
    assert first.residual_s == pytest.approx(first.predicted_s - first.measured_s)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as a calibration"),
        ("[]", "/version is not 1"),
        ('{"version": 1}', "not a calibration"),
        ('{"version": 1, "model": "ptask", "fit_on": "all", "source": "", "groups": [3]}', "not a"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(MeasurementError, match=message) as caught:
        read_calibration(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("parameters", "competitors", "value"), 0, r"parameters\[\.\.\.\]\.value"),
        (("parameters", "competitors", "value"), None, "Expected `float`"),
        (("labels",), [], "Expected `object`"),
        (("predictions",), [{}], "required field"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(tmp_path, place, value, message):
    path = tmp_path / "c.json"
    write_calibration(ptask_calibration(), path)
    data = json.loads(path.read_text())
    inner = data["groups"][0]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(data))
    with pytest.raises(MeasurementError, match=message):
        read_calibration(path)


def test_a_calibration_without_a_parameter_is_not_applied(tmp_path):
    path = tmp_path / "c.json"
    write_calibration(ptask_calibration(), path)
    data = json.loads(path.read_text())
    for group in data["groups"]:
        del group["parameters"]["competitors"]
    path.write_text(json.dumps(data))
    with pytest.raises(MeasurementError, match=r"\(competitors\); calibrate with --model ptask"):
        apply(path, None, [], {"cluster": "grisou"})


def ptask_calibration():
    values = {"network_efficiency": 0.5, "compute_efficiency": 0.8, "competitors": 6.7}
    parameters = {name: Parameter(value, "1") for name, value in values.items()}
    groups = tuple(
        GroupCalibration({"cluster": name}, parameters, ()) for name in ("paravance", "grisou")
    )
    return Calibration("ptask", "all", "", groups)


def test_applied_tasks_need_more_and_count_for_k():
    tasks = [
        ParallelTask(["a", "b"], flops=8.0, bytes=[[0, 10], [0, 0]], id="app"),
        Flow("a", "b", 100.0, competitors=2, id="noise"),
        Delay(3.0, id="pause"),
    ]
    _, (app, noise, pause) = apply(ptask_calibration(), None, tasks, {"cluster": "grisou"})
    assert app.work.flops == pytest.approx(np.array([10.0, 10.0]))
    assert app.work.flow_bytes == pytest.approx(np.array([20.0]))
    assert app.competitors == 6.7
    assert app.id == "app"
    assert noise is tasks[1]
    assert pause.work == tasks[2].work
    assert tasks[0].competitors is None


def test_every_kind_of_work_is_scaled():
    work = SequenceWork((HomogeneousWork(8.0, 10.0), DelayWork(1.0)), repeat=3)
    _, (task,) = apply(ptask_calibration(), None, [Task(("a", "b"), work)], {"cluster": "grisou"})
    assert task.work == SequenceWork((HomogeneousWork(10.0, 20.0), DelayWork(1.0)), repeat=3)


def test_what_cannot_be_applied_is_told(rates):
    with pytest.raises(MeasurementError, match="2 groups match; give one of cluster=paravance"):
        apply(ptask_calibration(), None, [])
    with pytest.raises(MeasurementError, match="0 groups match"):
        apply(ptask_calibration(), None, [], {"cluster": "graphene"})
    labels = {"cluster": "paravance", "broadcast": "blocking", "block_subdivisions": "1"}
    with pytest.raises(MeasurementError, match="'rates' has no parameters for parallel tasks"):
        apply(rates, None, [], labels)


def test_nothing_to_fit_is_an_error():
    rows = (Measurement(OnOff(math.inf, 0), 10.0),)
    with pytest.raises(MeasurementError, match=r"runs\.csv: no group can be fitted"):
        calibrate([MeasuredGroup({}, rows)], rates_fitter(), "rates", "all", "runs.csv")


def test_jobs_that_are_parallel_tasks_need_more_and_count_for_k():
    work, wait = HomogeneousWork(8.0, 10.0), DelayWork(3.0)
    jobs = (
        Job("app", 0.0, 2, "p", work),
        Job("noise", 0.0, 2, "p", work, competitors=2.0),
        Job("pause", 0.0, 2, "d", wait),
    )
    given = Workload(jobs, {"p": work, "d": wait}, remarks=(Remark("read"),))
    made = apply_to_jobs(ptask_calibration(), given, {"cluster": "grisou"})
    app, noise, pause = made.jobs
    assert (app.work, app.competitors) == (HomogeneousWork(10.0, 20.0), 6.7)
    assert (noise, pause) == jobs[1:]
    assert made.profiles == {"p@calibrated": app.work, "p": work, "d": wait}
    assert made.notes == ("read", "calibrated 1 jobs: each counts as 6.7 competitors")
    with pytest.raises(MeasurementError, match="no job of the workload is a parallel task"):
        apply_to_jobs(ptask_calibration(), given.with_jobs(jobs[1:]), {"cluster": "grisou"})
