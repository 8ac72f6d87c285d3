"""The simulated parallel task: the published predictions, and its calibration on real runs."""

import math
from pathlib import Path

import pytest
from pdgemm_study.follow_up import follow_up, grisou_errors
from pdgemm_study.tables import (
    PATTERNS,
    phase_wise,
    read_published,
    with_competitors,
)

from ptaskmodel.apps import OnOff, Pdgemm, TwoGroups, bytes_between, interference_tasks
from ptaskmodel.calibration import (
    Measurement,
    MeasurementError,
    apply,
    calibrate,
    rates_fitter,
    read_measurements,
    summarise,
)
from ptaskmodel.calibration.fits import (
    NOMINAL,
    REFERENCE_SEED,
    Setting,
    bundle_of_labels,
    pdgemm_setting,
    plain_runtime,
    predicted_runtime,
    ptask_fitter,
    runtime_beside,
    setting_from_files,
    two_groups_platform,
    undisturbed_runtime,
)
from ptaskmodel.calibration.measurements import MeasuredGroup
from ptaskmodel.platform import load_platform
from ptaskmodel.workload.tasks import Task

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.jit


@pytest.fixture(scope="module")
def first(repository_measurements):
    return with_competitors(read_measurements(repository_measurements / "pdgemm_runtimes.csv"))


@pytest.fixture(scope="module")
def on_endpoints(first):
    return calibrate(first, ptask_fitter(bundle_of_labels), "ptask", "endpoints")


@pytest.mark.parametrize("seed", [REFERENCE_SEED, 52])
def test_the_simulated_row_rounds_to_the_published_one(seed, repository_measurements):
    published_s = read_published(repository_measurements / "ptask_predicted_runtimes.csv")
    setting = pdgemm_setting(seed=seed).merged()
    undisturbed_s = plain_runtime(setting, PATTERNS[0])
    assert 311.5 <= undisturbed_s <= 311.7
    for pattern in PATTERNS:
        assert round(plain_runtime(setting, pattern)) == published_s[pattern]


@pytest.mark.parametrize("seed", range(5))
def test_every_placement_follows_the_closed_form(seed):
    setting = pdgemm_setting(seed=seed).merged()
    groups = TwoGroups("paravance")
    group = [groups.group(host) for host in setting.hosts]
    undisturbed_s = bytes_between(setting.work, group)[0, 1] / 1.25e9
    for pattern in PATTERNS:
        expected = predicted_runtime(1 / (3 * undisturbed_s), 1 / undisturbed_s, pattern)
        assert plain_runtime(setting, pattern) == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize("connections", [1, 2, 5])
def test_the_plain_model_keeps_one_part_in_one_and_twice_the_connections(connections):
    setting = pdgemm_setting().merged()
    constant = OnOff(math.inf, 0)
    slowdown = plain_runtime(setting, constant, connections) / plain_runtime(setting, OnOff(0, 0))
    assert slowdown == pytest.approx(1 + 2 * connections, rel=1e-5)


def test_the_calibrated_application_keeps_k_of_k_plus_w():
    setting = pdgemm_setting().merged()
    values = {**NOMINAL, "competitors": 35.0}
    rows = [
        Measurement(OnOff(0, 0), None),
        Measurement(OnOff(math.inf, 0), None, competitors=100.0),
        Measurement(OnOff(15, 15), None, competitors=100.0),
    ]
    calm, stormy, changing = setting.runtimes(values, rows)
    assert stormy / calm == pytest.approx(135 / 35, rel=1e-5)
    expected = predicted_runtime(35 / 135 / calm, 1 / calm, OnOff(15, 15))
    assert changing == pytest.approx(expected, abs=5e-3)


def test_merging_flows_changes_no_runtime():
    whole = pdgemm_setting()
    rows = [Measurement(pattern, None) for pattern in PATTERNS]
    assert whole.runtimes(NOMINAL, rows) == pytest.approx(whole.merged().runtimes(NOMINAL, rows))


def test_the_platform_files_are_the_generated_platform():
    for name in ("paravance", "grisou"):
        file = load_platform(REPOSITORY / "platforms" / f"{name}.xml")
        made = two_groups_platform(name)
        assert [host.speeds_flops for host in file.hosts] == [h.speeds_flops for h in made.hosts]
        assert [(x.name, x.bandwidth_Bps) for x in file.links] == [
            (x.name, x.bandwidth_Bps) for x in made.links
        ]
        assert file.route(f"{name}-0", f"{name}-9") == made.route(f"{name}-0", f"{name}-9")


def test_fitted_on_the_endpoints_it_predicts_as_the_rates_do(first, on_endpoints):
    rates = summarise(calibrate(first, rates_fitter(), "rates", "endpoints").predictions, False)
    ptask = summarise(on_endpoints.predictions, used_in_fit=False)
    assert ptask.count == 28
    assert ptask.mean <= 0.009 + 0.002
    assert ptask.largest <= 0.043 + 0.002
    assert ptask.mean == pytest.approx(rates.mean, abs=0.002)
    assert ptask.largest == pytest.approx(rates.largest, abs=0.002)


def test_the_fitted_parameters_are_what_they_must_be(on_endpoints):
    fitted = on_endpoints.group(cluster="grisou", broadcast="nonblocking", block_subdivisions="50")
    assert fitted.value("competitors") == pytest.approx(100 / (1455.86 / 379.14 - 1), rel=1e-4)
    assert fitted.value("network_efficiency") == pytest.approx(311.52 / 379.14, rel=1e-4)
    assert fitted.parameters["compute_efficiency"].stderr is None


def test_a_joint_fit_of_the_simulation_is_that_of_the_rates(first):
    (group,) = [
        g
        for g in first
        if g.name == "cluster=paravance broadcast=nonblocking block_subdivisions=50"
    ]
    used = [True] * 6
    rates = rates_fitter()(group, used)
    ptask = ptask_fitter(bundle_of_labels)(group, used)
    assert ptask.chi_square == pytest.approx(rates.chi_square, rel=1e-2)
    k = ptask.value("competitors")
    assert k / (k + 1) == pytest.approx(rates.value("c1") / rates.value("c2"), rel=1e-3)


def test_what_the_first_experiment_predicts_for_grisou_depends_on_w(
    on_endpoints, repository_measurements
):
    follow_up_file = repository_measurements / "pdgemm_tcp_connections.csv"
    errors = grisou_errors(on_endpoints, follow_up_file, (50, 100, 200))
    assert [round(error, 3) for error in errors.values()] == [0.226, 0.036, 0.157]


def test_the_first_experiment_predicts_the_follow_up(on_endpoints, repository_measurements):
    grisou, paravance = follow_up(
        on_endpoints, repository_measurements / "pdgemm_tcp_connections.csv"
    )
    assert (grisou.runs.competitors > 0).sum() + (paravance.runs.competitors > 0).sum() == 171
    assert grisou.first_only_error <= 0.04
    assert paravance.first_only_error <= 0.025
    assert max(grisou.half_errors + paravance.half_errors) <= 0.025


def test_phases_predict_the_blocking_rows_better_than_the_bundle(first, on_endpoints):
    labels = {"cluster": "paravance", "broadcast": "blocking", "block_subdivisions": "1"}
    phases = phase_wise([g for g in first if g.labels == labels], "endpoints").groups[0]
    bundle = on_endpoints.group(**labels)
    by_phases = summarise(phases.predictions, used_in_fit=False).mean
    assert by_phases < 0.7 * summarise(bundle.predictions, used_in_fit=False).mean
    assert by_phases < 0.005


def test_applying_a_calibration_gives_the_fitted_runtime(on_endpoints):
    labels = {"cluster": "grisou", "broadcast": "nonblocking", "block_subdivisions": "50"}
    setting = pdgemm_setting("grisou").merged()
    noise = interference_tasks(
        OnOff(math.inf, 0), *setting.pair, 1.0, joint=True, competitors=100.0
    )
    platform, tasks = apply(
        on_endpoints, setting.platform, [Task(setting.hosts, setting.work), *noise], labels
    )
    predicted = on_endpoints.group(**labels).predictions[-1].predicted_s
    assert runtime_beside(platform, tasks[0], tasks[1:]) == pytest.approx(predicted, rel=1e-6)


def test_a_user_application_is_read_from_files(tmp_path):
    (tmp_path / "p.xml").write_text(TwoGroups("mine", nodes_per_group=1).xml())
    (tmp_path / "t.json").write_text(
        '{"tasks": [{"id": "app", "hosts": ["mine-0", "mine-1"], "flows": [[0, 1, 2.5e9]]}]}'
    )
    setting = setting_from_files(tmp_path / "p.xml", tmp_path / "t.json", ["mine-0", "mine-1"])
    alone = undisturbed_runtime(setting.platform, Task(setting.hosts, setting.work))
    assert alone == pytest.approx(2.0, rel=1e-4)
    with pytest.raises(MeasurementError, match="name two different hosts"):
        setting_from_files(tmp_path / "p.xml", tmp_path / "t.json", ["mine-0"])


def test_unknown_parameters_and_groups_too_small_are_told(first):
    with pytest.raises(MeasurementError, match="unknown parameter 'speed'"):
        ptask_fitter(bundle_of_labels, {"speed": 1.0})
    fitted = ptask_fitter(bundle_of_labels)(first[0], [True, *[False] * 5])
    assert "too few rows" in fitted.note


def test_a_parameter_on_which_nothing_depends_is_told(tmp_path):
    """The application only computes: whoever is on the network, it does not notice."""
    (tmp_path / "p.xml").write_text(TwoGroups("mine", nodes_per_group=1).xml())
    (tmp_path / "t.json").write_text(
        '{"tasks": [{"id": "app", "hosts": ["mine-0"], "cpu": [1e12]}]}'
    )
    setting = setting_from_files(tmp_path / "p.xml", tmp_path / "t.json", ["mine-0", "mine-1"])
    rows = (Measurement(OnOff(0.0, 0.0), 100.0), Measurement(OnOff(math.inf, 0.0), 101.0))
    fitter = ptask_fitter(setting, {"network_efficiency": 1.0})
    fitted = fitter(MeasuredGroup({}, rows), [True, True])
    assert not fitted.parameters
    assert "no predicted runtime depends on competitors" in fitted.note
    fitter = ptask_fitter(setting, {"network_efficiency": 1.0, "competitors": 1.0})
    assert fitter(MeasuredGroup({}, rows), [True, True]).parameters["compute_efficiency"].stderr


def test_the_label_free_setting_is_pdgemm():
    setting = bundle_of_labels({})
    assert isinstance(setting, Setting)
    assert setting.work.flow_bytes.sum() == pytest.approx(Pdgemm(80_000, 256).total_bytes)
