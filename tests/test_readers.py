"""Every reader keeps an account of its file, and no spoiled file ends in anything but a message."""

import ast
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import mutations
import pytest

import ptaskmodel
from ptaskmodel.calibration.measurements import MeasurementError, read_measurements
from ptaskmodel.calibration.run import read_calibration
from ptaskmodel.campaign import read_plan
from ptaskmodel.cli import main
from ptaskmodel.connect.events import read_external_events
from ptaskmodel.errors import CampaignError, PTaskModelError, RouteError
from ptaskmodel.platform.routing import read_routes
from ptaskmodel.remarks import Account
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.beside import read_topology
from ptaskmodel.slurm.conf.phases import read_cycles
from ptaskmodel.workload.formats import FORMATS
from ptaskmodel.workload.formats.tasks_json import load_tasks
from ptaskmodel.workload.formats.ti_trace import read_trace

SEEDS = 6


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with a good file of each kind, which commands run in."""
    mutations.write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# They read bytes for a reader, or call one.
NOT_OF_A_FILE_OF_ITS_OWN = {
    "read_bytes", "read_pieces", "read_text", "read_json", "read_lines", "load_tasks",
}  # fmt: skip


def test_functions_that_read_a_file_are_readers():
    """Each gets the account of its file from `reader`, or from such a function."""
    bare = []
    for file in Path(ptaskmodel.__file__).parent.rglob("*.py"):
        if "results" in file.parts:  # what runs have written
            continue
        for node in ast.parse(file.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or not node.args.args:
                continue
            first, *others = (argument.arg for argument in node.args.args)
            is_reader = any(ast.unparse(one).startswith("reader(") for one in node.decorator_list)
            reads = node.name.lstrip("_").startswith(("read_", "load_")) and first == "path"
            if is_reader or (reads and node.name not in NOT_OF_A_FILE_OF_ITS_OWN):
                bare += [f"{file}: {node.name}"] if others[:1] != ["account"] else []
                bare += [] if is_reader else [f"{file}: {node.name} is no reader"]
    assert bare == []


WITHOUT = """
from ptaskmodel.errors import SlurmError
from ptaskmodel.files import AnyPath
from ptaskmodel.remarks import Account, Reader, reader

@reader(SlurmError)
def good(path: AnyPath, account: Account, most: int = 1) -> list[int]:
    return [most]

@reader(SlurmError)
def without(path: AnyPath, most: int = 1) -> list[int]:
    return [most]

def plain(path: AnyPath) -> list[int]:
    return []

def run(read: Reader[..., list[int]]) -> list[int]:
    return read("file")

run(good)
run(plain)
good("file", most="2")
"""


def test_the_type_refuses_a_reader_without_an_account(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "own.py").write_text(WITHOUT)
    # In a process of its own: mypy raises the limit of recursion.
    command = [sys.executable, "-m", "mypy", tmp_path / "own.py", "--follow-imports=silent"]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    wrong = [WITHOUT.splitlines()[int(line.split(":")[1]) - 1] for line in said.splitlines()
             if ": error:" in line]  # fmt: skip
    assert wrong == ["@reader(SlurmError)", "run(plain)", 'good("file", most="2")'], said
    assert said.count('expected "Callable[[str | PathLike[str], Account], list[int]]"') == 1


def command(words):
    result = "cal.json" if words[0] == "calibrate" else "out"
    return main([*words, "-o", result])


@pytest.mark.parametrize("kind", mutations.KINDS)
def test_every_reader_keeps_an_account(folder, monkeypatch, kind):
    name, _, words = mutations.KINDS[kind]
    files = set()
    made = Account.__init__

    def listen(account, path, error):
        made(account, path, error)
        files.add(account.file)

    monkeypatch.setattr(Account, "__init__", listen)
    assert command(words) == 0
    assert name in files


def test_all_formats_are_among_the_kinds():
    suffixes = {suffix for each in FORMATS.values() for suffix in each.suffixes}
    assert suffixes == {".json", ".swf", ".gwf"}  # a new one needs a file in mutations.KINDS


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", mutations.KINDS | mutations.WHOLE)
def test_spoiled_files_are_refused_in_one_message_or_read_and_told(folder, capsys, kind):
    name, text, words = (mutations.KINDS | mutations.WHOLE)[kind]
    for seed in range(SEEDS):
        changed, _ = mutations.mutated(text, random.Random(f"{kind} {seed}"))
        (folder / name).write_text(changed, encoding="utf-8")
        status = command(words)
        said = capsys.readouterr()
        assert mutations.verdict(status, said.out, said.err, name) is None, (seed, said.err)


@pytest.mark.filterwarnings("default")
def test_unix_dates_of_tasks_are_counted_from_the_first_and_told(folder):
    tasks = [
        {"id": "a", "delay": 5, "start": 1_700_000_000},
        {"id": "b", "delay": 5, "start": 1_700_000_060.5},
        {"id": "c", "delay": 5, "after": ["a"]},
    ]
    (folder / "t.json").write_text(json.dumps({"tasks": tasks}))
    with pytest.warns(UserWarning, match="dates are Unix seconds: time 0 .* is the first, 17000"):
        assert [task.start_s for task in load_tasks("t.json")] == [0, 60.5, 0]
    assert main(["simulate", "p.xml", "t.json", "-o", "out"]) == 0
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert [remark["field"] for remark in summary["remarks"]] == ["start"]
    assert summary["makespan"] == 65.5


def test_a_bad_row_of_measurements_is_left_out_and_told(folder):
    rows = mutations.MEASURED.splitlines()
    (folder / "m.csv").write_text("\n".join([*rows[:2], "x,soon,0,0,3,1", *rows[2:]]))
    with pytest.warns(UserWarning, match=r"m.csv:3: left out: mean_runtime_s is 'soon'"):
        (group,) = read_measurements("m.csv")
    assert len(group.measurements) == 3
    (folder / "m.csv").write_text("\n".join([*rows, "x,180,inf,0,1e400,2.5"]))
    with pytest.warns(UserWarning, match=r"m.csv:5: left out: runs is '1e400'"):
        read_measurements("m.csv")


ROWS = ["0.5,main,full queue,", "1,job,submit,1", "3,limit,kill,", "4,job,end,1", "5,job,end,2"]


@pytest.mark.parametrize(
    ("bad", "line", "says"),
    [
        ("late,job,end,1", 4, "time is 'late'; give seconds from date 0"),
        ("nan,job,end,1", 4, "time is 'nan'"),
        ("inf,job,end,1", 4, "time is 'inf'"),
        ("20,backfill", 4, "separated by commas"),
        ('20,"backfill,begin,', 4, "unexpected end of data; write plain CSV"),
    ],
)
def test_a_bad_row_of_a_recorded_run_is_left_out_and_told(folder, bad, line, says):
    text = "\n".join(["time,who,what,id", *ROWS[:2], bad, *ROWS[2:]])
    (folder / "c.csv").write_text(text)
    with pytest.warns(UserWarning, match=f"c.csv:{line}: left out: .*{says}"):
        assert read_cycles("c.csv").ended == {"1": 4.0, "2": 5.0}


def test_bad_rows_of_routes_are_told_at_once(folder):
    lines = [*mutations.ROUTES.splitlines(), "f9,x,a s b", 'f8,0,"a s', "f7,0,a s b", "f7,0,a t b"]
    (folder / "r.csv").write_text("\n".join(lines))
    with pytest.raises(RouteError) as refused:
        read_routes("r.csv")
    head, *others = str(refused.value).splitlines()
    assert head == "r.csv: 3 problems:"
    assert [line.split(":")[0].strip() for line in others] == ["line 6", "line 7", "line 9"]


def test_a_bad_line_of_external_events_is_left_out_and_told(folder):
    down = '{"type": "machine_unavailable", "timestamp": %s, "resources": "0"}\n'
    (folder / "e.txt").write_text(down % 9 + "{\n" + down % 3)
    with pytest.warns(UserWarning, match="e.txt:2: left out: is not JSON"):
        events = read_external_events("e.txt", 2, False)
    assert [event.date_s for event in events] == [3, 9]


LATIN_1 = {"swf": " 1 1 -1 1", "gwf": "u1", "sacct": "ann", "jobs.csv": "ann", "events": "ann",
           "script": "ann", "slurm.conf": "big"}  # fmt: skip


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", LATIN_1)
def test_bytes_that_are_no_utf_8_cost_no_log_and_are_told(folder, capsys, kind):
    name, text, words = mutations.KINDS[kind]
    if kind == "swf":  # whose results have users' names
        words = ("slurm", "slurm.conf", name)
    old = LATIN_1[kind]
    new = old.replace("1 1", "1 Jos\xe9") if kind == "swf" else old + "\xe9"
    assert old in text
    (folder / name).write_bytes(text.replace(old, new).encode("latin-1"))
    assert command(words) == 0, capsys.readouterr().err
    summary = json.loads((folder / "out" / "summary.json").read_text())
    told = [one for one in summary["remarks"] if "read as Latin-1" in one["text"]]
    assert [one["file"] for one in told] == [name]
    (folder / name).write_bytes(text.encode("utf-16"))
    assert command(words) == 2
    assert re.search(f"error: {name}(:1)?: is .*UTF-16; save it as UTF-8", capsys.readouterr().err)


def test_the_trace_of_one_rank_alone_says_that_others_are_missing(folder, capsys):
    for rank, says in (
        (0, "r0.txt:3: send: field 1 is 1; .* Its trace is missing: give those of all ranks"),
        (1, "rank 1 in 'recv .*; 1 of 2 ranks have no actions: give the traces of all ranks"),
    ):
        lines = [line for line in mutations.TRACE.splitlines() if line.startswith(str(rank))]
        own = [line for line in lines if "allreduce" not in line]
        (folder / f"r{rank}.txt").write_text("\n".join(own))
        assert main(["replay", "p.xml", f"r{rank}.txt", "-o", "out"]) == 2
        assert re.search(says, capsys.readouterr().err)


CIRCLES = """sacctmgr -i add account a,x
sacctmgr -i add account b parent=a
sacctmgr -i add account y parent=x
sacctmgr -i modify account a set parent=b
sacctmgr -i modify account x set parent=y
"""
TREES = "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Switches=c\n"
BAD_TRACE = "0 init\n0 compute x\n0 sned 1 0 10\n0 send 9 0 10\n1 init\n1 bcast\n1 reduce 5\n"


def test_all_circles_and_all_problems_of_a_trace_are_told_at_once(folder):
    for name, text, read, lines in (
        ("accounts.txt", CIRCLES, read_accounts, [2, 3, 4, 5]),
        ("topology.conf", TREES, lambda path: read_topology(path, {}), [1, 3]),
        ("trace.txt", BAD_TRACE, read_trace, [2, 3, 4, 6, 7]),
    ):
        (folder / name).write_text(text)
        with pytest.raises(PTaskModelError) as refused:
            read(name)
        told = refused.value.message.splitlines()[1:]
        assert [int(line.split("line ")[1].split(":")[0]) for line in told] == lines, told


PLAN = """run = "batch"
[parameters]
platform = "p.xml"
workload = "w.json"
policy = "esay"
solver = 3
[factors]
seed = ["a", "b"]
"""


def test_all_problems_of_a_plan_are_told_at_once(folder):
    for text, words in (
        (PLAN, ["parameters.policy", "parameters.solver", "factors.seed"]),
        ("rnu = 1\nrun = 2\nmetric = []\n", ["'rnu'", "run: 2", "'metric'"]),
    ):
        (folder / "plan.toml").write_text(text)
        with pytest.raises(CampaignError) as refused:
            read_plan("plan.toml")
        head, *told = refused.value.message.splitlines()
        assert head.startswith("plan.toml: ")
        assert all(any(word in line for line in told) for word in words), told


def test_all_spoiled_plans_are_refused_in_one_message_or_checked(folder, capsys):
    for seed in range(SEEDS):
        changed, _ = mutations.mutated(mutations.PLAN, random.Random(f"plan {seed}"))
        Path("plan.toml").write_text(changed, encoding="utf-8")
        status = main(["campaign", "check", "plan.toml"])
        said = capsys.readouterr()
        assert mutations.verdict(status, said.out, said.err, "") is None, (seed, said.err)


def test_spoiled_calibrations_are_refused_in_one_message_or_read(folder):
    assert main(["calibrate", "m.csv", "-o", "cal.json"]) == 0
    text = Path("cal.json").read_text()
    for seed in range(100):
        draw = random.Random(f"calibration {seed}")
        content = mutations.mutated(text, draw)[0].encode()
        if seed % 5 == 0:  # Latin-1
            place = draw.randrange(len(content))
            content = content[:place] + b"\xe9" + content[place:]
        Path("cal.json").write_bytes(content)
        refused = "cal.json:"
        try:
            read_calibration("cal.json")
        except MeasurementError as error:
            refused = error.message
        assert refused.startswith("cal.json:"), (seed, refused)


def test_a_bad_line_of_think_times_is_left_out_and_told(folder):
    (folder / "think.txt").write_text("1\n2\nsoon\n3\n")
    request = {"id": "r", "hosts": ["h0"], "delay": 1, "count": 3, "think": {"file": "think.txt"}}
    (folder / "t.json").write_text(json.dumps({"tasks": [], "loops": [request]}))
    with pytest.warns(UserWarning, match="think.txt:3: left out: 'soon' is no time; give seconds"):
        tasks = load_tasks("t.json")
    pauses = [task.work.duration_s for task in tasks if task.profile == "r think"]
    assert pauses == [1, 2]
