"""Logs as people have them: names of columns, other separators, several preceding jobs, GWF."""

from __future__ import annotations

import json
import random
import warnings

import pytest

from ptaskmodel.cli import main
from ptaskmodel.errors import WorkloadError
from ptaskmodel.remarks import LEFT_OUT, MOST
from ptaskmodel.workload.formats import FORMATS, log_lines
from ptaskmodel.workload.formats.gwf import FIELDS as GWF_FIELDS
from ptaskmodel.workload.formats.swf import FIELDS, read_swf
from ptaskmodel.workload.jobs import columns_of, rows_of
from ptaskmodel.workload.reading import read_workload, write_workload
from ptaskmodel.workload.scaling import shrunk, without_lost_links

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="125MBps" lat="50us"/></platform>
"""
ROW = "{0} {1} -1 {2} 1 -1 -1 1 60 -1 1 1 1 1 1 1 {3} {4}"


def swf(*jobs):
    """Lines of (number, submission, run time, preceding jobs, think time)."""
    return "".join(ROW.format(*job) + "\n" for job in jobs)


THREE = swf((1, 0, 10, -1, -1), (2, 0, 20, -1, -1), (3, 0, 10, "1&2", 5))


@pytest.fixture
def read(tmp_path):
    def made(text, name="log.swf"):
        (tmp_path / name).write_text(text)
        return read_workload(tmp_path / name)

    return made


@pytest.mark.parametrize("mark", [" ", "\t", ",", ", ", ";", "|"])
@pytest.mark.parametrize("names", [False, True])
def test_fields_are_separated_by_anything_and_names_are_passed_over(read, mark, names):
    text = THREE.replace("1&2", "2").replace(" ", mark)
    text = (mark.join(FIELDS) + "\n" if names else "") + text
    made = read(text)
    assert [(j.id, j.num_hosts, j.work.duration_s) for j in made.jobs] == [
        ("1", 1, 10), ("2", 1, 20), ("3", 1, 10),
    ]  # fmt: skip
    told = [each for each in made.remarks if each.kind == "taken as"]
    assert len(told) == names + (mark.strip() != "")
    assert not names or told[0].line == 1


@pytest.mark.parametrize("mark", [" ", ","])
def test_a_large_log_with_names_is_read_as_a_small_one(read, mark, monkeypatch):
    text = mark.join(FIELDS) + "\n" + THREE.replace("1&2", "2").replace(" ", mark)
    slow = read(text)
    monkeypatch.setattr(log_lines, "LARGE", 0)
    parsed = log_lines.parsed
    monkeypatch.setattr(log_lines, "parsed", lambda *given: parsed(*given, large=0))
    quick = read(text)
    assert quick.frame().equals(slow.frame())
    assert set(quick.notes) == set(slow.notes)


def test_an_empty_field_is_unknown(read):
    made = read(THREE.replace("1&2", "2").replace(" ", ",").replace(",-1,", ",,"))
    assert made.jobs[0].preceding_job is None
    assert "empty fields, or such as NA, on 3 lines are unknown (-1)" in made.notes


@pytest.mark.parametrize("large", [0, 10**9])
def test_users_may_have_names_and_what_is_unknown_may_be_na(read, monkeypatch, large, tmp_path):
    monkeypatch.setattr(log_lines, "LARGE", large)
    rows = [f"{k} {10 * k} 0 60 2 NA -1 2 600 -1 1 {user} {group} 1 {queue} -1 -1 -1"
            for k, (user, group, queue) in enumerate(
                [("ann", "7", "N/A"), ("4", "7", "short"), ("bob", "NA", "short"), ("4", "0", "3")],
                1)]  # fmt: skip
    made = read("\n".join(rows))
    assert [job.user for job in made.jobs] == ["ann", "4", "bob", "4"]
    assert [job.group for job in made.jobs] == ["7", "7", None, "0"]
    assert [job.queue for job in made.jobs] == [None, "short", "short", "3"]
    assert "empty fields, or such as NA, on 4 lines are unknown (-1)" in made.notes
    with pytest.warns(UserWarning, match="such as NA"):
        log = read_swf(tmp_path / "log.swf")
    assert log.column("user").tolist() == [5, 4, 6, 4]  # names after the numbers
    assert log.names["user"] == {5: "ann", 6: "bob"}
    with pytest.raises(WorkloadError, match=r"field 4 \(run_time_s\) is 'soon'; give a number"):
        read(rows[0].replace(" 60 ", " soon "))


def test_fields_may_be_quoted(read):
    plain = read(THREE)
    lines = [FIELDS, *(line.split() for line in THREE.splitlines())]
    text = "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)
    assert read(text, "log.csv").frame().equals(plain.frame())
    line = [f'"{cell}"' for cell in lines[1]]
    line[FIELDS.index("user")] = '"Doe, Ann ""A"""'
    assert read(",".join(line)).jobs[0].user == 'Doe, Ann "A"'


@pytest.mark.parametrize("count", [16, 20, 28])
def test_grid_logs_may_lack_their_last_columns(read, count):
    whole = read(GWF, "grid.gwf")
    lines = [line if line[0] == "#" else " ".join(line.split()[:count]) for line in
             GWF.splitlines()]  # fmt: skip
    short = read("\n".join(lines), "grid.gwf")
    assert short.frame().equals(whole.frame())
    jobs = sum(line[0] != "#" for line in lines)
    assert f"{jobs} lines with fewer than 29 fields: the others are unknown (-1)" in short.notes
    with pytest.raises(WorkloadError, match="15 fields instead of 16, so this is no GWF job"):
        read(" ".join(lines[-1].split()[:15]), "grid.gwf")


def test_several_preceding_jobs_are_kept_by_both_formats_and_by_transforms(read, tmp_path):
    made = read(THREE)
    write_workload(made, tmp_path / "a.json")
    again = read_workload(tmp_path / "a.json")
    write_workload(again, tmp_path / "b.swf")
    last = read_workload(tmp_path / "b.swf")
    assert "1&2" in (tmp_path / "b.swf").read_text()
    for each in (made, again, last, shrunk(made, 1.0)):
        assert [job.preceding_jobs for job in each.jobs] == [(), (), ("1", "2")]
        assert each.jobs[2].think_time_s == 5
    columns = columns_of(made.jobs)
    two = without_lost_links(rows_of(columns, [1, 2]))
    assert two["preceding_job"] == [None, "2"]
    assert without_lost_links(rows_of(columns, [2]))["think_time_s"] == [0.0]


def test_lists_of_a_workload_are_read_as_columns_and_one_by_one(read):
    entry = {"subtime": 0, "res": 1, "profile": "d"}
    jobs = [
        {"id": "a"} | entry,
        {"id": "b"} | entry,
        {"id": "c", "preceding_job": ["a", "b", "a"]} | entry,
        {"id": "d", "preceding_job": ["c"]} | entry,
        {"id": "e", "preceding_job": []} | entry,
    ]
    document = {"jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 1}}}
    columns = read(json.dumps(document), "w.json")
    jobs[0]["ret"] = 0  # one that has it is read by itself
    one_by_one = read(json.dumps(document), "w.json")
    for made in (columns, one_by_one):
        assert [job.preceding_job for job in made.jobs] == [None, None, ("a", "b"), "c", None]
    jobs[2]["preceding_job"] = {"a": 1}
    made = read(json.dumps(document), "w.json")
    assert [job.id for job in made.jobs] == ["a", "b", "d", "e"]
    assert made.remarks[0].text.startswith("left out: /jobs/2/preceding_job: an object is not the")


@pytest.mark.parametrize(("asked", "start"), [([], 0), (["--dependencies"], 25)])
def test_a_job_is_submitted_when_all_before_it_are_over(tmp_path, capsys, asked, start):
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "l.swf").write_text(f"; MaxProcs: 8\n{THREE}")
    out = tmp_path / "out"
    given = [str(tmp_path / "p.xml"), str(tmp_path / "l.swf"), "-o", str(out)]
    assert main(["batch", *given, *asked]) == 0
    rows = (out / "jobs.csv").read_text().splitlines()
    (third,) = (dict(zip(rows[0].split(","), row.split(","), strict=True)) for row in rows[1:]
                if row.startswith("3,"))  # fmt: skip
    assert float(third["starting_time"]) == start
    note = "1 job names a preceding job; --dependencies makes it wait for it"
    assert (note in capsys.readouterr().out) == (not asked)


def test_the_public_cases_of_dependencies_start_when_they_should(shared_data, tmp_path):
    cases = shared_data / "public_cases" / "dag"
    if not cases.exists():
        pytest.skip("no public cases")
    for name, end in (("list.json", 30.0), ("two_before.swf", 30.0), ("one_before.swf", 40.0)):
        out = tmp_path / name
        given = [str(cases / "platform.xml"), str(cases / name), "--dependencies", "-o", str(out)]
        assert main(["batch", *given]) == 0
        assert json.loads((out / "summary.json").read_text())["makespan_s"] == end
    assert len(read_workload(cases / "header.swf").jobs) == 2


def test_one_bad_line_is_left_out_and_told(read):
    lines = swf(*((k, k, 10, -1, -1) for k in range(1, 9))).splitlines()
    lines[2] = "3 3 x"
    lines[5] = lines[5].replace(" 60 ", " soon ")
    lines[6] = lines[0]
    made = read("\n".join(lines))
    assert [job.id for job in made.jobs] == ["1", "2", "4", "5", "8"]
    told = [each for each in made.remarks if each.kind == LEFT_OUT]
    assert [(each.line, each.level) for each in told] == [
        (3, "warning"), (6, "warning"), (None, "warning"),
    ]  # fmt: skip
    assert told[1].text.endswith("field 9 (requested_time_s) is 'soon'; give a number")
    assert told[2].text == "left out 1 job with the number of an earlier job (first: 1)"


def test_a_log_is_refused_when_most_lines_are_bad(read):
    with pytest.raises(WorkloadError, match=r"log.swf: 4 problems:\n  line 1: 1 field instead"):
        read("a\n1 2\n1 2 3\n1 2 3 4\n" + swf((1, 0, 1, -1, -1)))


def test_unix_dates_are_counted_from_the_first(read):
    made = read(swf((1, 1700000000, 10, -1, -1), (2, 1700000007.5, 20, 1, 5)))
    assert [job.submit_time_s for job in made.jobs] == [0, 7.5]
    (told,) = made.remarks
    assert told.level == "warning"
    assert told.text == (
        "dates are Unix seconds: time 0 of the simulation is the first, 1700000000 (2023-11-14 "
        "22:13:20 UTC)"
    )


# Written after the description of the Grid Workloads Archive: columns, -1 for unknown, names of
# users, groups, queues and sites.
GWF = """# Version: 1.0
# MaxProcs: 64
0 1100000000 5 100 4 -1 -1 4 300 -1 1 U1 G1 X7 Q0 P0 S1 S1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 V2
1 1100000060 5 50 2 -1 -1 -1 -1 -1 0 U2 G1 X7 Q0 P0 S1 S1 BoT 1 -1 -1 -1 -1 -1 -1 -1 -1 V2
2 1100000090 -1 -1 2 -1 -1 2 -1 -1 5 U2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
"""


def test_a_log_of_a_grid_is_read(read, tmp_path):
    made = read(GWF, "grid.gwf")
    assert len(GWF.splitlines()[2].split()) == len(GWF_FIELDS) == 29
    found = [
        (j.id, j.submit_time_s, j.num_hosts, j.work.duration_s, j.walltime_s, j.user, j.group)
        for j in made.jobs
    ]
    assert found == [("0", 0, 4, 100, 300, "U1", "G1"), ("1", 60, 2, 50, None, "U2", "G1")]
    assert (made.jobs[0].executable, made.jobs[0].queue, made.num_hosts) == ("X7", "Q0", 64)
    told = "\n".join(made.notes)
    assert "columns that are not used: OrigSiteID, LastRunSiteID, JobStructure, " in told
    assert "left out 1 job cancelled before a run" in told
    (tmp_path / "grid").write_text(GWF)  # known by its content too
    assert read_workload(tmp_path / "grid").frame().equals(made.frame())
    with pytest.raises(WorkloadError, match="GWF can be read but not written"):
        write_workload(made, tmp_path / "again.gwf")


WORKFLOWS = """WorkflowID, JobID, SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies
7, 0, 100, 10, 1, 1,
7, 1, 100, 20, 2, 4, 0
7, 2, 100, 30, 1, 1, 0 1
8, 3, 105, 5, 1, 1, -1
8, 4, 105, 5, 1, 1, 3 9
8, 5, soon, 5, 1, 1, 3
"""


@pytest.mark.parametrize("name", ["grid.gwf", "grid"])
@pytest.mark.parametrize("mark", [",", ";"])
def test_a_log_of_workflows_is_read_with_its_dependencies(read, name, mark):
    made = read("# of two sites\n" + WORKFLOWS.replace(",", mark), name)
    assert [(j.id, j.submit_time_s, j.num_hosts, j.preceding_job) for j in made.jobs] == [
        ("1", 100, 1, None), ("2", 100, 4, "1"), ("3", 100, 1, ("1", "2")),
        ("4", 105, 1, None), ("5", 105, 1, "4"),
    ]  # fmt: skip
    told = "\n".join(made.notes)
    for what in (
        ":8: left out: submittime is 'soon'; give a number",
        ":7: depends on job '9', which the log lacks",
        "JobIDs are counted from 1",
    ):
        assert what in told


def test_jobs_of_workflows_that_number_each_its_own_are_told_apart(read):
    lines = ["WorkflowID,JobID,SubmitTime,RunTime,Dependencies,Color"]
    lines += [f"{flow},{job},0,5,{job - 1 if job else ''},red" for flow in "ab" for job in range(2)]
    made = read("\n".join(lines), "grid.gwf")
    assert [(j.id, j.preceding_job) for j in made.jobs] == [
        ("1", None), ("2", "1"), ("3", None), ("4", "3"),
    ]  # fmt: skip
    told = "\n".join(made.notes)
    assert "jobs are numbered from 1" in told
    assert "no column NProcs: each job has one processor" in told
    assert "columns that are not used: Color" in told
    with pytest.raises(WorkloadError, match=r"grid.gwf:1: .* without the column runtime"):
        read("WorkflowID,JobID,SubmitTime\n1,2,3\n", "grid.gwf")
    with pytest.raises(WorkloadError, match="has no jobs"):
        read(lines[0], "grid.gwf")


def mutated(text, draw):
    """The text with a line or a field changed, in one of many ways."""
    lines = text.splitlines()
    k = draw.randrange(len(lines))
    words = lines[k].split(" ")
    j = draw.randrange(len(words))
    kind = draw.randrange(7)
    if kind == 0:
        words[j] = draw.choice(
            ["x", "", "nan", "1e400", "-7", "1,5", "99999999999999999999", "\x00"]
        )
    elif kind == 1:
        del words[j]
    elif kind == 2:
        words.insert(j, draw.choice(["x", "1", "-1"]))
    lines[k] = " ".join(words)
    if kind == 3:
        lines[k] = lines[k][: draw.randint(1, len(lines[k]))]
    elif kind == 4:
        lines.insert(k, draw.choice(["", "hello", ";", "# x", "{", "\ufeff1 2 3"]))
    elif kind == 5:
        lines.append(lines[k])
    elif kind == 6:
        lines[k] = lines[k].replace(" ", draw.choice([",", ";", "\t", "|"]))
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["log.swf", "grid.gwf", "workflows.gwf"])
def test_mutations_are_refused_in_one_message_or_told(read, name):
    whole = (
        {"grid.gwf": GWF, "workflows.gwf": WORKFLOWS}[name]
        if name != "log.swf"
        else "; MaxProcs: 8\n"
        + swf(*((k, k, 10 + k, -1 if k < 3 else f"{k - 1}&{k - 2}", 1) for k in range(1, 9)))
    )
    before = len(read(whole, name).jobs)
    draw = random.Random(7)
    refused = 0
    for _ in range(200):
        text = mutated(whole, draw)
        try:
            made = read(text, name)
        except WorkloadError:
            refused += 1
            continue
        assert len(made.jobs) >= before or made.remarks, text
    assert refused < 200


def test_every_format_of_jobs_takes_an_account(tmp_path):
    import importlib
    import inspect

    for each in FORMATS.values():
        if each.holds == "jobs":
            given = inspect.signature(importlib.import_module(each.module).read).parameters
            assert list(given) == ["path", "cleaning", "account"]
    assert MOST >= 1000


def test_all_problems_of_a_workload_are_named_at_once(read):
    entry = {"subtime": 0, "res": 1, "profile": "d"}
    good = [{"id": name} | entry for name in "abcdef"]
    bad = [
        {"id": "g"} | entry | {"res": -1},
        {"id": "a"} | entry,
        {"id": "h"} | entry | {"profile": "x"},
        {"id": "i"} | entry | {"subtime": "soon"},
        {"id": "j"} | entry | {"profile": "p"},  # which cannot be read: that is told there
    ]
    profiles = {"d": {"type": "delay", "delay": 1}, "p": {"type": "dely"}, "q": 7}
    document = {"jobs": [*good, *bad], "profiles": profiles}
    made = read(json.dumps(document), "w.json")
    assert [job.id for job in made.jobs] == ["a", "b", "c", "d", "e", "f"]
    assert len(made.remarks) == 7
    assert made.remarks[-1].text == "left out: 1 job of a profile that cannot be read"
    document = {"jobs": [*good[:1], *bad], "profiles": profiles, "nb_res": 0}
    with pytest.raises(WorkloadError) as caught:
        read(json.dumps(document), "w.json")
    head, *lines = str(caught.value).splitlines()
    assert head.endswith("w.json: 7 problems:")
    assert [line.split(": ")[0] for line in lines] == [
        "  /profiles/p", "  /profiles/q",
        "  /jobs/1/res", "  /jobs/2/id", "  /jobs/3/profile", "  /jobs/4/subtime",
        "  /nb_res",
    ]  # fmt: skip


def test_fields_of_jobs_that_nothing_reads_are_told(read):
    jobs = [{"id": "a", "subtime": 0, "res": 1, "profile": "d", "thinktime": 3, "colour": "red"}]
    document = {"jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 1}}}
    told = read(json.dumps(document), "w.json").remarks
    assert [(each.kind, each.field) for each in told] == [
        ("not used", "colour"), ("not used", "thinktime"),
    ]  # fmt: skip
    assert told[1].text == "the field 'thinktime' of jobs is not used; did you mean think_time?"


def test_comments_may_begin_with_a_hash(read):
    made = read(f"# Version: 2.2\n{THREE}# the end\n".replace("1&2", "2"))
    assert len(made.jobs) == 3
    assert made.remarks == ()


def test_a_profile_that_no_job_uses_and_that_cannot_be_read_is_left_out(read):
    profiles = {
        "d": {"type": "delay", "delay": 1},
        "s": {"type": "composed", "seq": ["d"]},
        "lost": {"type": "smpi", "trace": "nowhere.txt"},
        "round": {"type": "composed", "seq": ["lost"]},
    }
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "s"}
    made = read(json.dumps({"jobs": [job], "profiles": profiles}), "w.json")
    assert set(made.profiles) == {"d", "s"}
    (remark,) = made.remarks
    assert remark.kind == LEFT_OUT
    assert remark.text.startswith("left out: /profiles/lost: cannot read the trace ")
    with pytest.raises(WorkloadError, match=r"/profiles/lost: cannot read the trace"):
        read(json.dumps({"jobs": [job | {"profile": "round"}], "profiles": profiles}), "w.json")


PLANNED = [
    {"id": "a1", "name": "a", "parents": []},
    {"id": "b1", "name": "b", "parents": ["a1"]},
    {"id": "c1", "name": "c", "parents": ["a1", "b1"]},
]
RAN = [
    {"id": name, "runtimeInSeconds": lasts, "coreCount": cores}
    for name, lasts, cores in (("a1", 10, 2), ("b1", 20.5, 1), ("c1", 10, 3))
]
OLD = [
    {"name": name, "runtime": lasts, "cores": cores, "parents": parents}
    for name, lasts, cores, parents in (
        *(("a1", 10, 2, []), ("b1", 20.5, 1, ["a1"])),
        ("c1", 10, 3, ["a1", "b1"]),
    )
]


@pytest.mark.parametrize(
    "workflow",
    [
        {"specification": {"tasks": PLANNED}, "execution": {"tasks": RAN}},
        {"jobs": OLD},
        {"tasks": [{**plan, **ran} for plan, ran in zip(PLANNED, RAN, strict=True)]},
    ],
)
def test_a_workflow_of_wfcommons_is_read(read, tmp_path, capsys, workflow):
    made = read(json.dumps({"name": "w", "workflow": workflow}), "w.json")
    jobs = [(job.id, job.num_hosts, job.work.duration_s, job.preceding_jobs) for job in made.jobs]
    assert jobs == [("a1", 2, 10, ()), ("b1", 1, 20.5, ("a1",)), ("c1", 3, 10, ("a1", "b1"))]
    assert made.remarks[0].text.startswith("a workflow of WfCommons: its tasks are jobs")
    (tmp_path / "p.xml").write_text(PLATFORM)
    assert main(["batch", str(tmp_path / "p.xml"), str(tmp_path / "w.json"), "--dependencies"]) == 0
    assert "makespan     40.5 s" in capsys.readouterr().out


def test_fields_of_tasks_of_a_workflow_that_are_not_read_are_told(read):
    ran = [{**one, "avgCPU": 9, "command": {}} for one in RAN]
    plan = {"specification": {"tasks": PLANNED}, "execution": {"tasks": ran}}
    made = read(json.dumps({"name": "w", "workflow": plan}), "w.json")
    assert made.remarks[0].text == "fields of tasks that are not used: 'avgCPU', 'command'"


def test_all_tasks_of_a_workflow_without_a_run_time_are_told(read):
    plan = {"specification": {"tasks": PLANNED}, "execution": {"tasks": RAN[:1]}}
    with pytest.raises(WorkloadError) as caught:
        read(json.dumps({"workflow": plan}), "w.json")
    assert "2 problems" in caught.value.message
    assert "/workflow/specification/tasks/2: has no runtimeInSeconds" in caught.value.message


def test_lines_that_are_not_plain_are_read_alike_one_by_one_and_in_blocks(tmp_path, monkeypatch):
    odd = {7: "x y z", 900: "", 1500: "; a comment", 1600: "1 2 3", 2900: "1 nan" + 16 * " 1"}
    lines = ["; MaxProcs: 8"]
    for k in range(1, 4000):
        tail = {0: "3&4", 1: "5&5", 2: "-1 7 8"}.get(k % 60, "-1")
        plain = f"{k} {k} 1 {k % 100} 2 -1 -1 2 600 -1 1 1 1 -1 1 -1 {tail} -1"
        lines.append(odd.get(k, plain))
    path = tmp_path / "log.swf"
    path.write_text("\n".join(lines))
    told = []
    for large in (1000, 10**9):
        monkeypatch.setattr(log_lines, "LARGE", large)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            log = read_swf(path)
        texts = [str(one.message) for one in said]
        told.append((log.rows.tolist(), log.several, log.header, texts))
    assert any("left out: 3 fields instead of 18" in text for text in told[0][3])
    assert told[0] == told[1]
    assert len(log.rows) == 3994
    assert len(log.several) == 64


def test_a_size_in_the_header_that_is_no_number_is_told(read):
    made = read("; MaxProcs: many\n; MaxNodes: 128 (of 2)\n" + THREE.replace("1&2", "2"))
    assert made.num_hosts == 128
    (remark,) = (each for each in made.remarks if each.field == "MaxProcs")
    assert remark.text == "MaxProcs of the header is 'many', no number"
