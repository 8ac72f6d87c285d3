"""Spoiled files of all kinds: one line with file and line, exit code 2; no traceback, no hang."""

import contextlib
import re
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from slurm.good_files import GOOD, words, write_all

from ptaskmodel.cli import main
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.phases import read_cycles, read_phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.conf.reservations import read_reservations
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm

# (file, what stands there, what stands there instead, the line at fault, what is said)
SPOILED = [
    ("slurm.conf", "ClusterName=c", "ClusterName", 1, "write Key=Value"),
    ("slurm.conf", "select/cons_tres", "select/magic", 2, "give select/linear"),
    ("slurm.conf", "bf_interval=60", "bf_interval=0", 4, "from 1 to 10800"),
    ("slurm.conf", "Fairshare=10000", "Fairshare=lots", 6, "give a whole number"),
    ("slurm.conf", "HalfLife=1-0", "HalfLife=1-0-0", 7, "give minutes"),
    ("slurm.conf", "CPU=100,", "100,", 8, "give weights such as"),
    ("slurm.conf", "SUSPEND,GANG", "SUSPEND", 10, "give SUSPEND,GANG"),
    ("slurm.conf", "topology/tree", "topology/torus", 11, "no other is simulated"),
    ("slurm.conf", "Enforce=limits,qos", "Enforce=limit", 13, "give some of"),
    ("slurm.conf", "n[1-4] G", " G", 16, "has no names"),
    ("slurm.conf", "RealMemory=16000", "RealMemory=-5", 15, "give MiB"),
    ("slurm.conf", "tesla:2", "tesla:two", 16, "the count a number"),
    ("slurm.conf", "Tier=10", "Tier=70000", 22, "from 0 to 65533"),
    ("slurm.conf", "MaxNodes=3", "TRESBillingWeights=CPU", 22, "give weights such as"),
    ("slurm.conf", "ClusterName=c", "SchedulerType=sched/magic", 1, "give sched/backfill"),
    ("slurm.conf", "n[1-4]", "n[1-4", 16, "brackets that do not match"),
    ("slurm.conf", "n[1-4]", "n[4-1]", 16, "goes down"),
    ("slurm.conf", "m[01-02]", "m[01-2]", 17, "the same number of digits"),
    ("slurm.conf", "m[01-02]", "n[2-3]", 17, "there already"),
    ("slurm.conf", "m[01-02]", "m[1-99999999]", 17, "more than 1000000 hosts"),
    ("slurm.conf", "m[01-02]", "m[1-65537]", 17, "at most 65536 in one range"),
    ("slurm.conf", "State=UNKNOWN", "State=BROKEN", 17, "give UNKNOWN, DOWN"),
    ("slurm.conf", "CPUs=8", "CPUs=0", 17, "from 1 to"),
    ("slurm.conf", "CPUs=8", "CoreSpecCount=8", 17, "leave a core"),
    ("slurm.conf", "Feature=big\nDown", "\nDown", 18, "give Nodes or Feature"),
    ("slurm.conf", "bigs Feature=big\n", "bigs Nodes=n1\nNodeSet=bigs Nodes=n2\n", 19, "already"),
    ("slurm.conf", "DownNodes=m02", "DownNodes=m03", 19, "no such node"),
    ("slurm.conf", "m02 State=DOWN", "m02 State=LOST", 19, "give UNKNOWN, DOWN"),
    ("slurm.conf", "MaxTime=1-0", "MaxTime=tomorrow", 20, "give minutes"),
    ("slurm.conf", "bigs,m01", "bigs,m07", 21, "no NodeName line gives"),
    ("slurm.conf", "Default=YES", "Default=PERHAPS", 21, "give YES or NO"),
    ("slurm.conf", "FORCE:1 Def", "SOME Def", 21, "give NO, EXCLUSIVE"),
    ("slurm.conf", "PartitionName=high", "PartitionName=low", 22, "is there already"),
    ("slurm.conf", "ClusterName=c", "Include other.conf", 1, "no such file"),
    ("slurm.conf", "ClusterName=c", "Include slurm.conf", 1, "includes itself"),
    ("topology.conf", "SwitchName=s1", "Switch=s1", 1, "begin the line with SwitchName="),
    ("topology.conf", "n[1-2]", "n[1-", 1, "brackets that do not match"),
    ("topology.conf", "=s2 Nodes", "=s1 Nodes", 2, "is there already"),
    ("topology.conf", "s[1-2]", "s[1-3]", 3, "there is no switch 's3'"),
    ("topology.conf", "s[1-2]", "s[1-2],top", 3, "below itself"),
    ("topology.conf", "s[1-2]\n", "s[1-2]\nSwitchName=t Switches=s1\n", 4, "is below top and t"),
    ("accounts.txt", "modify user ann", "mdify user ann", 5, "begin it with add"),
    ("accounts.txt", "qos+=urgent", "maxjobs+=5", 5, "write ="),
    ("accounts.txt", "grptres=cpu=20", "grptres=20", 1, "give amounts such as cpu=100"),
    ("accounts.txt", "grptres=cpu=20", "grptres=cpus=20", 1, "is no TRES; give cpu, mem"),
    ("accounts.txt", "grptres=cpu=20", "grptresmins=cpu=2.5", 1, "give a whole number"),
    ("accounts.txt", "grptres=cpu=20", "grpwall=soon", 1, "give minutes"),
    ("accounts.txt", "modify qos normal", "modify qos zoe", 3, "qos 'zoe' does not exist"),
    ("accounts.txt", "modify user ann", "modify user zoe", 5, "user 'zoe' does not exist"),
    ("accounts.txt", "usagefactor=2", "usagefactor=-2", 4, "give a number, 0 or more"),
    ("accounts.txt", "account=physics", "account=chemistry", 2, "add it in an earlier"),
    ("accounts.txt", "fairshare=1 qos=normal", "qos=normal,+urgent", 2, "give a list such as"),
    ("accounts.txt", "fairshare=1 qos=normal", "qos=+", 2, "give a list such as"),
    ("accounts.txt", "fairshare=1", "fairnes=1", 2, "is not a known option"),
    ("accounts.txt", "30|normal", "30|abnormal", 15, "which is not defined"),
    ("accounts.txt", "fairshare=2 max", "parent=physics max", 1, "its own ancestor"),
    ("accounts.txt", "Parent - 'bio'", "Parent - 'dna'", 9, "define it in an"),
    ("accounts.txt", "Account|User|", "Accounts|Users|", 11, "has no header"),
    ("accounts.txt", "|50|", "|50|1|2|3|4|5|", 15, "fields instead of 6"),
    ("reservations.txt", "create", "delete", 1, "write create reservation"),
    ("reservations.txt", "now+300", "now+999999999weeks", 1, "1970 to 2242"),
    ("reservations.txt", "now+300", "0001-01-01T00:00:00", 1, "1970 to 2242"),
    ("reservations.txt", "2024-01-01T00:30:00", "9999-12-31T23:59:59", 2, "1970 to 2242"),
    ("reservations.txt", "2024-01-01T00:30:00", "soon", 2, "a date such as"),
    ("reservations.txt", "2024-01-01", "2124-01-01", 2, "more than 20 years"),
    ("reservations.txt", "Users=root", "Nodes=n1", 1, "Nodes is there already"),
    ("reservations.txt", "Nodes=ALL", "Nodes=ALL Colour=red", 2, "each with ="),
    ("sacct.txt", "JobID|", "JobName|", 1, "without the column jobid"),
    ("sacct.txt", "ReqNodes|", "User|", 1, "occurs twice"),
    ("sacct.txt", "Submit|", "SubmittedAt|", 1, "without the column submit"),
    ("jobs.csv", "limit", "most", 1, "without the column limit"),
    ("jobs.csv", "id,", "name,", 1, "without the column id;"),
    ("run.meta.json", '"speed": 20.0', '"speed": 20.0.0', 1, "is not JSON"),
    ("run.meta.json", '"speed": 20.0', '"speed": 0', None, r"\$.speed"),
    ("run.meta.json", "-49.5", "-1e300", None, r"\$.loaded"),
    ("events.csv", "time,", "date,", 1, "columns are not"),
]


@pytest.mark.parametrize(("name", "there", "instead", "line", "says"), SPOILED)
def test_a_mistake_is_one_line_with_its_place(tmp_path, capsys, name, there, instead, line, says):
    write_all(tmp_path)
    assert there in GOOD[name]
    (tmp_path / name).write_text(GOOD[name].replace(there, instead, 1))
    assert main(words(tmp_path, name)) == 2
    told = capsys.readouterr().err
    place = name if line is None else f"{name}:{line}"
    assert re.search(rf"{re.escape(place)}:.*{says}", told), told
    assert told.count("\n") == 1


# Of a log, one row is left out: (file, what stands there, what instead, the line, what is said)
SPOILED_ROWS = [
    ("sacct.txt", "T10:01:00|", "T10:61:00|", 2, "give a date such as"),
    ("sacct.txt", "cpu=4,", "cpu=four,", 2, "give a whole number"),
    ("sacct.txt", "|1|billing", "|some|billing", 2, "give a whole number"),
    ("sacct.txt", "2024-03-01T10:00:10|2", "9999-12-31T23:59:59-09:00|2", 2, "1970 to 2242"),
    ("sacct.txt", "2024-03-01T10:00:10|2", "0001-01-01T00:00:00|2", 2, "1970 to 2242"),
    ("sacct.txt", "2024-03-01T10:00:10|2", "2224-03-01T10:00:10|2", 2, "10 years away from those"),
    ("sacct.txt", "mem=4G", "mem=-4G", 2, "give MiB"),
    ("sacct.txt", "2_0|", "two|", 3, "give an id such as"),
    ("sacct.txt", "01:00:00", "an hour", 3, "minutes:seconds"),
    ("sacct.txt", "COMPLETED", "COMPLETED|a|b", 2, "16 fields instead of 14"),
    ("sacct.txt", "|COMPLETED", "", 2, "13 fields instead of 14"),
    ("jobs.csv", "1-2", "2-1", 2, "the smaller number first"),
    ("jobs.csv", "300,120", "5m,120", 3, "give a number"),
    ("jobs.csv", "a,0,", "a,nan,", 2, "submit is 'nan'"),
    ("jobs.csv", "600,400", "600,99999999999", 2, "less than 20 years"),
    ("jobs.csv", "\nb,2", "\na,2", 3, "also occurs in line 2"),
    ("jobs.csv", "afterok:a", "afterwards:a", 3, "write after, afterany"),
    ("jobs.csv", "0-3%2", "3-0%2", 4, "give indices such as"),
    ("jobs.csv", "0-3%2", "0-99999999", 4, "give indices such as"),
    ("jobs.csv", '"low,high"', '"low,high', 4, "write plain CSV"),
    ("jobs.csv", "--gres=gpu:1", "--grass=gpu:1", 2, "is unknown; remove it"),
]


@pytest.mark.parametrize(("name", "there", "instead", "line", "says"), SPOILED_ROWS)
def test_one_bad_row_does_not_lose_a_log(tmp_path, capsys, name, there, instead, line, says):
    write_all(tmp_path)
    assert there in GOOD[name]
    (tmp_path / name).write_text(GOOD[name].replace(there, instead, 1))
    assert main(words(tmp_path, name)) == 0
    told = capsys.readouterr()
    assert re.search(rf"{name}:{line}: left out: .*{says}", told.out), told.out
    assert re.search("jobs +[256]: ", told.out), told.out
    assert told.err == ""


def test_a_log_of_which_most_rows_are_bad_is_refused(tmp_path, capsys):
    write_all(tmp_path)
    text = GOOD["sacct.txt"].replace("cpu=", "cpus=")
    (tmp_path / "sacct.txt").write_text(text)
    assert main(words(tmp_path, "sacct.txt")) == 2
    told = capsys.readouterr().err
    assert re.search(r"sacct.txt: 3 problems:\s+line 2: .*\s+line 3: .*\s+line 4: ", told)


@pytest.mark.parametrize(("kept", "says"), [(14, "NodeName"), (19, "PartitionName")])
def test_what_is_missing_is_missed_at_the_end(tmp_path, kept, says):
    write_all(tmp_path)
    lines = GOOD["slurm.conf"].split("\n")[:kept]
    (tmp_path / "slurm.conf").write_text("\n".join(lines) + "\n")
    with pytest.raises(PTaskModelError, match=rf"slurm.conf:{kept}: ends without a {says} line"):
        read_conf(tmp_path / "slurm.conf")


@pytest.mark.parametrize("key", ["NodeName", "PartitionName"])
def test_a_misspelt_key_is_named_where_a_line_is_missing(tmp_path, key):
    write_all(tmp_path)
    text = GOOD["slurm.conf"].replace(f"{key}=", f"{key[:-1]}=")
    line = 1 + text[: text.index(f"{key[:-1]}=")].count("\n")
    (tmp_path / "slurm.conf").write_text(text)
    with pytest.raises(PTaskModelError, match=rf"\b{line}: {key[:-1]} is not known; write {key}"):
        read_conf(tmp_path / "slurm.conf")


@pytest.mark.parametrize("kept", [["ClusterName=c", "Sele"], ["Include nodes.conf", "NodeSet="]])
def test_nothing_is_missed_that_a_line_may_have_said_that_cannot_be_read(tmp_path, kept):
    (tmp_path / "slurm.conf").write_text("\n".join(kept))
    with pytest.raises(PTaskModelError) as caught:
        read_conf(tmp_path / "slurm.conf")
    assert "ends without" not in str(caught.value)


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("Account - 'bio':", "Account - 'bio':Fairshare=x:"),
        ("add account physics", "ad account physics"),
        ("add user ann account=physics", "add user ann account=physic"),
    ],
)
def test_what_a_refused_line_would_have_added_is_not_missed(tmp_path, there, instead):
    write_all(tmp_path)
    assert there in GOOD["accounts.txt"]
    (tmp_path / "accounts.txt").write_text(GOOD["accounts.txt"].replace(there, instead, 1))
    with pytest.raises(PTaskModelError, match=r"accounts.txt:\d+: ") as caught:
        read_accounts(tmp_path / "accounts.txt")
    assert "problems" not in str(caught.value)


@pytest.mark.parametrize("mark", [" ", ","])
def test_a_table_of_sacct_is_printed_with_bars(tmp_path, capsys, mark):
    write_all(tmp_path)
    (tmp_path / "sacct.txt").write_text(GOOD["sacct.txt"].replace("|", mark))
    assert main(words(tmp_path, "sacct.txt")) == 2
    assert "print it with -P" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("mistake", ["bf_intervall=60", "bf_interval", "default_queue_deep=50"])
def test_an_option_that_slurm_would_not_find_is_noted(tmp_path, capsys, mistake):
    write_all(tmp_path)
    text = GOOD["slurm.conf"].replace("bf_interval=60", mistake)
    (tmp_path / "slurm.conf").write_text(text)
    assert main(words(tmp_path, "slurm.conf")) == 0
    name = mistake.partition("=")[0]
    note = rf"slurm.conf:4: SchedulerParameters {name} changes nothing"
    assert re.search(note, capsys.readouterr().out)


def test_good_files_make_sense(tmp_path, capsys):
    write_all(tmp_path)
    for name in GOOD:
        if name != "events.csv":  # a script of which most is missing
            assert main(words(tmp_path, name)) == 0
    assert "Traceback" not in capsys.readouterr().err


TOKENS = re.compile(r"[A-Za-z_]+|\d+|\s|.", re.DOTALL)
SPICE = [
    *("-1", "0", "99999999999999999999", "1e308", "nan", "", "é", "²", "٣", "\0", "n[1-", "]"),
    *("=", "+", ",", ":", "'", '"', "\\", "#", "|", "DEFAULT", "ALL", "UNLIMITED", "\n", "  "),
    *("9999-12-31T23:59:59", "0001-01-01", "n[1-99999999]", "\u2028", "\x85", "\x1c", "\r", "1_0"),
]


@st.composite
def spoiled(draw):
    """The name of a good file, and its bytes after a few changes of bytes or of words."""
    name = draw(st.sampled_from(sorted(GOOD)))
    if draw(st.booleans()):
        content = bytearray(GOOD[name].encode())
        for _ in range(draw(st.integers(1, 3))):
            place = draw(st.integers(0, len(content) - 1))
            content[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
        return name, bytes(content)
    found = TOKENS.findall(GOOD[name])
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(found) - 1))
        new = draw(st.sampled_from(SPICE) | st.sampled_from(found))
        found[place : place + draw(st.integers(0, 2))] = [new]
    return name, "".join(found).encode()


@settings(max_examples=100, deadline=None)
@given(spoiled())
@example(("events.csv", b"time,who,what,id\n0.5,job,submit,a\n20,backfill,begin,\n400,job,end,a\n"))
def test_spoiled_files_are_refused_or_simulated(tmp_path_factory, file):
    folder = tmp_path_factory.getbasetemp() / "spoiled"
    folder.mkdir(exist_ok=True)
    write_all(folder)
    name, content = file
    (folder / name).write_bytes(content)
    with contextlib.suppress(PTaskModelError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        conf = read_conf(folder / "slurm.conf")
        workload = "sacct.txt" if name == "sacct.txt" else "jobs.csv"
        jobs = read_submissions(folder / workload, conf).jobs
        phases = read_phases(folder / "run.meta.json", conf)
        simulate_slurm(
            conf,
            jobs,
            accounts=read_accounts(folder / "accounts.txt"),
            phases=phases,
            reserved=read_reservations(folder / "reservations.txt", conf, phases.t0),
            recorded=read_cycles(folder / "events.csv") if name == "events.csv" else None,
        )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,0,1-2,4,600\nb,1,1,4,60\n", "jobs.csv:1: is a table whose first line names no"),
        ("id,submit_time,run_time\n1,0,9\n", "jobs.csv without the column submit, run, limit"),
        ("JobID|User|Account|P", "jobs.csv:1: is a table like sacct -P without the column submit"),
    ],
)
def test_a_table_without_its_header_is_told_what_it_lacks(tmp_path, text, says):
    write_all(tmp_path)
    (tmp_path / "jobs.csv").write_text(text)
    conf = read_conf(tmp_path / "slurm.conf")
    with pytest.raises(PTaskModelError, match=says):
        read_submissions(tmp_path / "jobs.csv", conf)
