"""Campaign files: what they vary, what identifies a run, one clear line for each mistake."""

from __future__ import annotations

from collections import Counter

import pytest

from ptaskmodel.campaign.factors import Condition, Interval, Sampling, points, read_factor
from ptaskmodel.campaign.plan import plan_of
from ptaskmodel.campaign.run_types import kind_of
from ptaskmodel.errors import CampaignError

STUDY = "def measure(parameters):\n    return {'y': parameters['x']}\n"
PLAN = """
run = "study.py:measure"
repetitions = 2
constraints = ["x < 3 or mode != 'b'"]
compare_with = {mode = "a"}
[parameters]
size = 4
[factors]
x = [1, 2, 3]
mode = ["a", "b"]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.py").write_text(STUDY)
    (tmp_path / "in.txt").write_text("one")
    return tmp_path


def test_points_are_all_combinations_that_fulfil_the_constraints(folder):
    runs = plan_of(PLAN, folder, "plan").runs()
    assert len(runs) == (3 * 2 - 1) * 2
    assert {(run.parameters["seed"], run.repetition) for run in runs} == {(0, 0), (1, 1)}
    assert all(run.parameters["size"] == 4 for run in runs)
    assert (3, "b") not in {tuple(run.point.values()) for run in runs}


def test_a_run_is_what_it_reads_and_what_it_is_told(folder):
    text = PLAN.replace("size = 4", 'size = 4\nfile = "in.txt"').replace(
        'run = "', 'files = ["file"]\nrun = "'
    )
    before = [run.id for run in plan_of(text, folder, "plan").runs()]
    assert before == [run.id for run in plan_of(text, folder, "other").runs()]
    assert len(set(before)) == len(before)
    (folder / "in.txt").write_text("two")
    assert not set(before) & {run.id for run in plan_of(text, folder, "plan").runs()}
    (folder / "in.txt").write_text("one")
    (folder / "study.py").write_text(STUDY + "# changed\n")
    assert not set(before) & {run.id for run in plan_of(text, folder, "plan").runs()}


def test_what_a_function_imports_is_loaded_as_it_is_now_and_from_beside_it(tmp_path):
    found = []
    for place, value in (("a", "1"), ("b", "22"), ("a", "333")):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "one_of_two.py").write_text(f"y = {value}\n")
        (tmp_path / place / "study.py").write_text(
            "from one_of_two import y\n\n\ndef run(given):\n    return {'y': y}\n"
        )
        kind = kind_of("study.py:run", (), tmp_path / place)
        found.append(kind.run({})["y"])
    assert found == [1, 22, 333]


def test_a_function_is_its_file_and_what_that_imports_beside_it(folder):
    package = folder / "package"
    package.mkdir()
    (folder / "study.py").write_text("from helping import y\n" + STUDY)
    (folder / "helping.py").write_text("import deep\nfrom package.inner import z\ny = 1\n")
    (package / "inner.py").write_text("from . import innermost\nz = 1\n")
    files = folder / "deep.py", package / "__init__.py", package / "innermost.py"
    others = folder / "other.py", package / "other.py"
    for file in (*files, *others):
        file.write_text("")
    text = PLAN.replace("size = 4", "size = 5")

    def ids():
        return [run.id for run in plan_of(text, folder, "plan").runs()]

    before = ids()
    for file in others:
        file.write_text("changed = True\n")
        assert ids() == before
    for file in files:
        file.write_text("changed = True\n")
        assert not set(ids()) & set(before)
        file.write_text("")


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        ({"from": 1, "to": 4}, (1, 2, 3, 4)),
        ({"from": 0.1, "to": 0.5, "step": 0.1}, (0.1, 0.2, 0.3, 0.4, 0.5)),
        ({"from": 1, "to": 2, "step": 0.3}, (1.0, 1.3, 1.6, 1.9)),
        ({"files": "*.txt"}, ("in.txt",)),
        ([True, 1, "1"], (True, 1, "1")),
    ],
)
def test_levels(folder, given, levels):
    assert read_factor("f", given, folder) == levels


def test_a_latin_hypercube_has_one_point_in_each_slice():
    factors = {
        "a": Interval(0.0, 1.0),
        "b": Interval(1.0, 1000.0, "log"),
        "n": Interval(1, 10, whole=True),
    }
    drawn = list(points(factors, Sampling(10, seed=3)))
    assert sorted(int(point["a"] * 10) for point in drawn) == list(range(10))
    assert sorted(point["n"] for point in drawn) == list(range(1, 11))
    assert all(1.0 <= point["b"] <= 1000.0 for point in drawn)
    assert drawn == list(points(factors, Sampling(10, seed=3)))
    mixed = list(points({"m": (1, 2), **factors}, Sampling(10, "random")))
    assert Counter(point["m"] for point in mixed) == {1: 10, 2: 10}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("x < 3", True),
        ("not x < 3 or mode in ('a', 'b')", True),
        ("x * 2 + 1 == 5 and -x < 0", True),
        ("1 < x < 2", False),
        ("x % 2 == 0 and mode != 'a'", False),
    ],
)
def test_conditions(text, holds):
    assert Condition(text, {"x", "mode"}).holds({"x": 2, "mode": "a"}) is holds


OF_BATCH = 'run = "batch"\n[parameters]\nplatform = "in.txt"\nworkload = "in.txt"\n'
MISTAKES = [
    (OF_BATCH + "tau_s = '60'", "parameters.tau_s: '60' is not a number"),
    (OF_BATCH + "energy = 1", "parameters.energy: 1 is not true or false"),
    (OF_BATCH + "until_s = -1", "parameters.until_s: -1 is not a number from 0"),
    (OF_BATCH + "jobs = 2.5", "parameters.jobs: 2.5 is not a whole number from 1"),
    (OF_BATCH + "calibration = true", "parameters.calibration: true is not a file"),
    (OF_BATCH + "walltimes = 'keep'", "is not one of kill, ignore, extend"),
    (OF_BATCH + "[factors]\npolicy = ['easy', 3]", "factors.policy: 3 is not one of"),
    (OF_BATCH + "[factors]\nload = {least = -1, most = 2}", "is not a number above 0"),
    ("run = 3", "run: 3 is not a string"),
    ("[parameters", "is not TOML"),
    ("", "nothing to run"),
    ("[factors]\nx = [1]", "run: is missing"),
    ('run = "bach"\n[factors]\nx = [1]', "run: 'bach' is unknown"),
    ('run = "no.py:f"\n[factors]\nx = [1]', "no such file"),
    ('run = "study.py:nothing"\n[factors]\nx = [1]', "has no function 'nothing'"),
    ('runs = "batch"', "did you mean 'run'"),
    (PLAN.replace("[1, 2, 3]", "[]"), "factors.x: is empty"),
    (PLAN.replace("[1, 2, 3]", "[1, 1]"), "occurs twice"),
    (PLAN.replace("[1, 2, 3]", "[[1]]"), "a list is not a number"),
    (PLAN.replace("[1, 2, 3]", "[nan]"), "not finite"),
    (PLAN.replace("[1, 2, 3]", "7"), "7 is not a list of values"),
    (PLAN.replace("[1, 2, 3]", "{from = 1}"), "a range without an end"),
    (PLAN.replace("[1, 2, 3]", "{from = 3, to = 1}"), "is not an increasing range; correct it"),
    (PLAN.replace("[1, 2, 3]", "{from = 0, to = 1, step = 1e-9}"), "more than 100,000 levels"),
    (PLAN.replace("[1, 2, 3]", '{files = "*.nothing"}'), "no file matches"),
    (PLAN.replace("[1, 2, 3]", "{least = 1, most = 1}"), "nothing to draw"),
    (PLAN.replace("[1, 2, 3]", "{least = 0, most = 1, scale = 'log'}"), "nothing to draw"),
    (PLAN.replace("[1, 2, 3]", "{least = 1, most = 2, scale = 'ln'}"), "use one of linear, log"),
    (PLAN.replace("[1, 2, 3]", "{least = 1, most = 2}"), "is sampled; set the number"),
    (PLAN.replace("[1, 2, 3]", "{lowest = 1}"), "lowest is not a list"),
    (PLAN + "[sample]\ncount = 3", "no factor is sampled"),
    (PLAN + "[sample]\ncount = 0", "give the number of points"),
    (PLAN + "[sample]\ncount = 1\nmethod = 'sobol'", "use one of random, latin-hypercube"),
    (PLAN + "[sample]\nsize = 1", "'size' is unknown"),
    (PLAN.replace("size = 4", "size = [4]"), "several values belong in"),
    (PLAN.replace("size = 4", "x = 4"), "is a parameter and a factor"),
    (PLAN.replace("size = 4", "seed = 4"), "repetitions set 'seed' themselves"),
    (PLAN.replace("repetitions = 2", "repetitions = 0"), "repetitions: 0 is below 1"),
    (PLAN.replace("repetitions = 2", "timeout_s = -1"), "timeout_s: -1 is not positive"),
    (PLAN.replace("repetitions = 2", "repetitions = 20000000"), "are too many runs; at most"),
    (PLAN.replace('mode = "a"}', 'mode = "c"}'), "'c' is not a level; use one of a, b"),
    (PLAN.replace('{mode = "a"}', "{size = 4}"), "'size' is not a factor"),
    (PLAN.replace("x < 3 or", "y < 3 or"), "uses 'y', which is not a parameter"),
    (PLAN.replace("x < 3 or", "x < or"), "is not a condition"),
    (PLAN.replace("x < 3 or", "__import__('os') or"), "is not a condition"),
    (PLAN.replace("x < 3 or", "x.__class__ or"), "which is not a parameter"),
    (PLAN.replace("x < 3 or mode != 'b'", "x > 9"), "no run satisfies the constraints; relax them"),
    (PLAN.replace("x < 3 or mode != 'b'", "x < mode"), "cannot be evaluated"),
    ('run = "batch"\n[factors]\nplatform = ["p.xml"]', "batch needs 'workload'"),
    ('run = "batch"\n[factors]\nalocation = ["a"]', "did you mean 'allocation'"),
    ('run = "simulate"\nrepetitions = 2\n[parameters]\nplatform = "p"\ntasks = "t"', "has no seed"),
    ('run = "simulate"\n[parameters]\nplatform = "p"\ntasks = "t"', "'platform': "),
    ('run = "slurm"\n[factors.set]\nbf_intervall = [30]', "did you mean bf_interval"),
    ('run = "slurm"\n[factors.set]\nNodeName = ["n1"]', "set: 'NodeName' is no key of a whole"),
    ('run = "slurm"\n[factors]\nconf = ["slurm.conf"]', "slurm needs 'workload'"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_one_line(folder, text, said):
    with pytest.raises(CampaignError) as caught:
        plan_of(text, folder, "plan").runs()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_policy_and_partitions_of_files_are_of_the_folder_and_part_of_what_a_run_is(folder):
    (folder / "mine.py").write_text("from helping import y\n\n\nclass Mine:\n    pass\n")
    for name in ("helping.py", "platform.xml", "jobs.json", "parts.json"):
        (folder / name).write_text("1")
    text = (
        'run = "batch"\n[parameters]\nplatform = "platform.xml"\nworkload = "jobs.json"\n'
        'allocation = "partitions:parts.json"\n[factors]\npolicy = ["easy", "mine.py:Mine"]\n'
    )

    def runs():
        return plan_of(text, folder, "plan").runs()

    easy, own = runs()
    assert easy.parameters["policy"] == "easy"
    assert own.parameters["policy"] == f"{folder / 'mine.py'}:Mine"
    assert own.parameters["allocation"] == f"partitions:{folder / 'parts.json'}"
    (folder / "helping.py").write_text("2")
    same, other = runs()
    assert same.id == easy.id
    assert other.id != own.id
    (folder / "parts.json").write_text("2")
    assert easy.id not in {run.id for run in runs()}
    (folder / "mine.py").unlink()
    with pytest.raises(CampaignError, match=r"parameter 'policy': .*mine\.py: no such file"):
        runs()


def test_an_old_name_of_a_parameter_works_and_is_told(folder):
    text = 'run = "simulate"\n[parameters]\nplatform = "in.txt"\ntasks = "in.txt"\n'
    with pytest.warns(UserWarning, match="parameter 'until' is called 'until_s' now"):
        (old,) = plan_of(text + "until = 5.0", folder, "p").runs()
    (new,) = plan_of(text + "until_s = 5.0", folder, "p").runs()
    assert old == new
    factor = text + "[factors]\nuntil = [1, 2]\n[compare_with]\nuntil = 1"
    with pytest.warns(UserWarning, match="until_s"):
        assert plan_of(factor, folder, "p").baseline == {"until_s": 1}
    with pytest.raises(CampaignError, match="give only 'until_s'"):
        plan_of(text + "until = 5.0\nuntil_s = 5.0", folder, "p")


def test_one_repetition_asked_for_is_the_first_of_several(folder):
    text = 'run = "study.py:measure"\nrepetitions = 3\n[factors]\nx = [1]\n'
    one, several = (plan_of(t, folder, "p").runs() for t in (text.replace("3", "1"), text))
    assert one[0].id == several[0].id
    assert one[0].parameters["seed"] == 0
    assert (
        "seed" not in plan_of(text.replace("repetitions = 3", ""), folder, "p").runs()[0].parameters
    )
