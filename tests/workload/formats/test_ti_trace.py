"""Time-independent traces: files read, packed and refused."""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.actions import ACTIONS, FIELDS, fields_of, least_fields
from ptaskmodel.workload.formats.ti_trace import HEAD, read_trace, write_trace

SHARED = """\
# two ranks
0 init
1 init
0 compute 1.5e9
1 recv 0 3 1e6

0\tsend 1 3 1e6 6
1 location main.c 12
1 waitall
0 finalize
1 finalize"""


@pytest.fixture
def shared(tmp_path):
    path = tmp_path / "shared.txt"
    path.write_text(SHARED)
    return path


def plain(trace):
    """Kind and fields of each action of each rank."""
    made = []
    for rank in range(trace.ranks):
        own = range(trace.first[rank], trace.first[rank + 1])
        values = [trace.values[trace.start[k] : trace.start[k + 1]].tolist() for k in own]
        made.append([(ACTIONS[trace.actions[k]], *v) for k, v in zip(own, values, strict=True)])
    return made


def test_a_file_for_all_ranks_is_split(shared):
    trace = read_trace(shared)
    assert trace.ranks == 2
    assert plain(trace) == [
        [("init",), ("compute", 1.5e9), ("send", 1, 3, 1e6, 6), ("finalize",)],
        [("init",), ("recv", 0, 3, 1e6), ("location", 0), ("waitall",), ("finalize",)],
    ]
    assert trace.type_bytes == 1
    assert read_trace(shared, ranks=5).ranks == 5


@pytest.mark.parametrize("piece", [1, 7, 30, 64])
def test_pieces_of_any_size_make_the_same_trace(shared, tmp_path, monkeypatch, piece):
    """A large trace is read, kept in a file and looked at in pieces; so is this small one."""
    whole = read_trace(shared)
    (tmp_path / "rank0").write_text(SHARED + "\n0 sleep 2")
    (tmp_path / "rank1.gz").write_bytes(gzip.compress(SHARED.encode()))
    (tmp_path / "list").write_text("rank0\nrank1.gz\n")
    both = read_trace(tmp_path / "list")
    monkeypatch.setattr("ptaskmodel.workload.formats.ti_trace.PIECE", piece)
    monkeypatch.setattr("ptaskmodel.workload.traces.IN_MEMORY_BYTES", 10)
    monkeypatch.setattr("ptaskmodel.workload.traces.SLICE", 3)
    for name, expected in ((shared, whole), (tmp_path / "list", both)):
        trace = read_trace(name)
        trace.let_go()
        assert plain(trace) == plain(expected)
        assert (trace.notes, trace.counts()) == (expected.notes, expected.counts())
    shared.write_text(SHARED.replace("1 recv 0 3 1e6", "1 recv 0 3 1e6\n1 recv 9 3 1"))
    with pytest.raises(WorkloadError, match=r"shared.txt:6: recv: field 1 is 9; give a rank"):
        read_trace(shared)


def test_a_list_names_the_files_of_the_ranks(tmp_path):
    (tmp_path / "a").write_text("0 init 1\n0 barrier\n")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"1 init 1\n0 sleep 3\n1 barrier\n"))
    (tmp_path / "list").write_text("a\nb.gz\n")
    trace = read_trace(tmp_path / "list")
    assert plain(trace)[1] == [("init", 0), ("barrier",)]
    assert trace.type_bytes == 8
    assert trace.notes == (f"{tmp_path / 'b.gz'}: left out 1 lines of ranks other than 1",)


def test_a_packed_trace_reads_back(shared, tmp_path):
    trace = read_trace(shared)
    told = []
    write_trace(trace, tmp_path / "packed.npz", lambda *numbers: told.append(numbers))
    assert told[-1][0] == told[-1][1] > 0
    again = read_trace(tmp_path / "packed.npz")
    assert plain(again) == plain(trace)
    assert again.type_bytes == trace.type_bytes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x compute 1", "2: 'x' is not a rank"),
        ("-1 compute 1", "2: '-1' is not a rank"),
        ("1", "2: there is no action after the rank; add one"),
        ("1 dance", "2: 'dance' is not an action"),
        ("1 testany", "2: 'testany': smpirun writes it, but it cannot be replayed; let the"),
        ("1 Start 1 7 100 2", "2: 'Start': smpirun writes it, .* use MPI_Isend and MPI_Irecv"),
        (
            "1 ireducescatter 1 1 1 0 1",
            "2: ireducescatter has 5 fields, 4 at most on 2 ranks; give",
        ),
        ("1 alltoallv 4 1 1 1 4 1 1 1 1 1", "2: alltoallv has 10 fields, 8 at most on 2 ranks"),
        ("1 sendrecv 1 0", "2: 'sendrecv' is not an action; write sendRecv, as SimGrid"),
        ("1 compute fast", "2: compute: 'fast' is not a number"),
        ("1 compute nan", "2: compute: field 1 is nan; give a finite amount"),
        ("1 compute -1", "2: compute: field 1 is -1; give a finite amount, 0 or more"),
        ("1 compute", "2: compute has 0 fields of the 1 it needs"),
        ("1 send 7 0 1", "2: send: field 1 is 7; give a rank, 0 to 1"),
        ("1 send -555 0 1", "2: send: field 1 is -555; give a rank, 0 to 1, or -666 for none"),
        ("1 recv -2 0 1", "2: recv: field 1 is -2; give a rank, 0 to 1, or -555 for any, or -666"),
        ("1 bcast 1 -333", "2: bcast: field 2 is -333; give a rank, 0 to 1"),
        ("1 send 0 -444 1", "2: send: field 2 is -444; give a whole number"),
        ("1 send 0.5 0 1", "2: send: field 1 is 0.5; give a rank"),
        ("1 send 0 x 1", "2: send: 'x' is not a number"),
        ("1 send 0 1.5 1", "2: send: field 2 is 1.5; give a whole number"),
        ("1 send 0 0 -1", "2: send: field 3 is -1; give a number of elements, 0 or more"),
        ("1 send 0 0 1 77", "2: send: field 4 is 77; give the number of a datatype"),
        ("1 sleep inf", "2: sleep: field 1 is inf; give a finite time"),
        ("1 alltoallv 4 1 1 4 1", "2: alltoallv has 5 fields of the 6 it needs on 2 ranks"),
        ("1 alltoallv 4 1 4 1", "2: .*; a collective on fewer ranks cannot be replayed"),
        ("1 sendRecv 1 0 1 0", "2: sendRecv has 4 fields of the 6"),
        ("1 bcast 1 2", "2: bcast: field 2 is 2; give a rank, 0 to 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "bad.txt"
    path.write_text(f"0 init\n{line}\n")
    with pytest.raises(WorkloadError, match=f"bad.txt:{message}".replace("(", r"\(")):
        read_trace(path, ranks=2)


def test_ranks_without_actions_are_noted(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("0 init\n3 init\n")
    assert read_trace(path).notes == ("ranks 1 to 2 have no actions",)
    trace = read_trace(path, ranks=6)
    assert trace.notes == ("4 ranks have no actions, the first of them rank 1",)
    write_trace(trace, tmp_path / "t.npz")
    assert read_trace(tmp_path / "t.npz").notes == trace.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"# nothing\n", "names '#', but there is no such file"),
        (b"0 init\n5 init\n", "has actions of rank 5, but there are 2 ranks"),
        (b"num_ranks 2\nrank 0 {\n", "is a GOAL schedule"),
        (b"\nnowhere.txt other.txt\n", ":2: names 'nowhere.txt', but there is no such file"),
        (b"a.txt b.txt c.txt\n", "names 3 traces for 2 ranks"),
        (b"PK\x03\x04 and more", "is damaged"),
        (b"\x1f\x8b and more", "not a whole gzip file"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, content, message):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(WorkloadError, match=message):
        read_trace(path, ranks=2)


def test_arrays_that_do_not_fit_together_are_refused(shared, tmp_path):
    write_trace(read_trace(shared), tmp_path / "packed.npz")
    with np.load(tmp_path / "packed.npz") as packed:
        arrays = dict(packed)
    arrays["start"] = arrays["start"][:-1]
    np.savez(tmp_path / "cut.npz", **arrays)
    with pytest.raises(WorkloadError, match="its arrays do not fit together"):
        read_trace(tmp_path / "cut.npz")


def test_what_simgrid_writes_of_any_source_and_of_none_is_told_apart(tmp_path):
    """Both are -333; from how many messages come follows which is which."""
    path = tmp_path / "t.txt"
    first = ["irecv -333 0 5", "isend -333 4 5", "recv -333 9 1", "irecv -333 8 1"]
    first += ["wait -333 0 0", "wait 0 -333 4", "wait -333 0 8", "sendRecv 3 -333 3 1 6 6"]
    other = ["send 0 9 1", "send 0 8 1", "sendRecv 3 0 3 -333 6 6"]
    lines = [f"0 {line}\n" for line in first] + [f"1 {line}\n" for line in other]
    path.write_text("".join(lines))
    none, any_source = -666, -555
    zero, one = plain(read_trace(path))
    assert [action[1] for action in zero[:5]] == [none, none, any_source, any_source, none]
    assert [action[1:3] for action in zero[5:7]] == [(0, none), (any_source, 0)]
    assert zero[7][2] == one[2][4] == none
    path.write_text("".join([*lines, "0 recv -333 9 1\n"]))
    with pytest.raises(WorkloadError, match=r"t.txt:3: recv: -333 is ambiguous"):
        read_trace(path)
    # With any tag, messages of all tags are counted together.
    path.write_text("0 recv -333 -444 1\n0 recv 1 3 1\n1 send 0 3 1\n1 send 0 4 1\n")
    assert plain(read_trace(path))[0][0][1] == any_source


def test_a_list_that_names_lists_is_refused(tmp_path):
    for name, named in (("itself", "itself"), ("one", "other"), ("other", "one")):
        (tmp_path / name).write_text(named + "\n")
    for name in ("itself", "one"):
        with pytest.raises(
            WorkloadError, match="is a list of traces, not a trace; name the traces of ranks"
        ):
            read_trace(tmp_path / name)


@pytest.mark.parametrize("name", ["bomb.gz", "bomb.npz", "list"])
def test_what_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch, name):
    module = "ptaskmodel.workload.formats.ti_trace"
    monkeypatch.setattr(f"{module}.available_bytes", lambda: 4 * 100_000)
    monkeypatch.setattr(f"{module}._room", lambda: 100_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0 barrier\n" * 20_000))
    np.savez_compressed(tmp_path / "bomb.npz", values=np.zeros(20_000))
    for rank in range(2):
        (tmp_path / f"r{rank}").write_text(f"{rank} barrier\n" * 8000)
    (tmp_path / "list").write_text("r0\nr1\n")
    with pytest.raises(WorkloadError, match=r"holds .*more than (the )?[\d,]+"):
        read_trace(tmp_path / name)


@pytest.mark.parametrize("shape", [(10**15,), (3, 2), ()])
def test_arrays_of_other_shapes_are_refused(shared, tmp_path, shape):
    write_trace(read_trace(shared), tmp_path / "packed.npz")
    header = io.BytesIO()
    kind = {"descr": "<i8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, kind)
    with (
        zipfile.ZipFile(tmp_path / "packed.npz") as packed,
        zipfile.ZipFile(tmp_path / "other.npz", "w") as other,
    ):
        for name in packed.namelist():
            own = header.getvalue() + b"\0" * 48 if name == "first.npy" else packed.read(name)
            other.writestr(name, own)
    with pytest.raises(WorkloadError, match="is damaged"):
        read_trace(tmp_path / "other.npz")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_files_are_read_or_refused_in_one_line(tmp_path_factory, data):
    place = tmp_path_factory.mktemp("damaged")
    (place / "whole.txt").write_text(SHARED)
    write_trace(read_trace(place / "whole.txt"), place / "whole.npz")
    kinds = (SHARED.encode(), gzip.compress(SHARED.encode()), (place / "whole.npz").read_bytes())
    content = bytearray(data.draw(st.sampled_from(kinds)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        put = data.draw(st.one_of(st.binary(max_size=3), st.sampled_from(ODD)))
        content[at : at + data.draw(st.sampled_from((0, 1, 4, 10**6)))] = put
    (place / "damaged").write_bytes(content)
    told = "nothing"
    try:
        read_trace(place / "damaged")
    except WorkloadError as error:
        told = str(error)
    assert is_one_message(told)


ODD = (
    b"nan",
    b"-1",
    b"1e400",
    b"9" * 30,
    b"\n",
    b"\x00",
    b" -333 ",
    b"PK",
    b"\x1f\x8b",
    b"99999999 ",
)

numbers = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-(10**9), 10**9, places=6).map(str),
    st.sampled_from(["1e6", "1.e3", ".5", "+7", "1E-5", "00012", "1e400", "1_000", "0x10", "--1"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=20))
def test_numbers_are_read_as_python_reads_them(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("numbers") / "t.txt"
    path.write_text("".join(f"0 compute {word}\n" for word in words))
    try:
        expected = [float(word) for word in words]
    except ValueError:
        expected = None
    sound = expected is not None and all(0 <= x < float("inf") for x in expected)
    if sound and not any("_" in word for word in words):
        assert read_trace(path).values.tolist() == expected
    elif not sound:
        with pytest.raises(WorkloadError, match=r"t.txt:( \d+ problems:\s+line )?\d+: compute"):
            read_trace(path)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_whatever_bytes_come_one_line_is_said(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "t.txt"
    path.write_bytes(b"0 init\n" + content)
    said = ""
    try:
        read_trace(path)
    except WorkloadError as error:
        said = str(error)
    assert is_one_message(said)


def is_one_message(text):
    """Whether it is a line, or one with a line for each problem below."""
    return all(line.startswith("  ") for line in text.split("\n")[1:])


def test_a_trace_is_refused_with_all_its_problems(tmp_path):
    lines = ["0 init", "x init", "0 dance", "0", "1 init", "0 send 1 0 1", "0 compute 1e"]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    with pytest.raises(WorkloadError) as caught:
        read_trace(tmp_path / "t.txt")
    head, *problems = caught.value.message.split("\n")
    assert head.endswith("t.txt: 4 problems:")
    assert [problem.split(":")[0][-1] for problem in problems] == list("2347")
    lines = ["0 init", "0 send 5 0 1", "0 compute", "1 init", "0 compute -1", "0 compute"]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    with pytest.raises(WorkloadError) as caught:
        read_trace(tmp_path / "t.txt")
    head, *problems = caught.value.message.split("\n")
    assert [problem.split(":")[0] for problem in problems] == ["  line 2", "  line 3", "  line 5"]
    assert problems[1].endswith("(and 1 more such)")


def test_all_traces_that_a_list_names_are_looked_at(tmp_path):
    (tmp_path / "l.txt").write_text("0.txt\n1.txt\n2.txt\n")
    (tmp_path / "0.txt").write_text("0 init\n0 dance\n")
    (tmp_path / "2.txt").write_text("2 init\n2 sing\n")
    with pytest.raises(WorkloadError) as caught:
        read_trace(tmp_path / "l.txt")
    told = caught.value.message
    assert "3 problems" in told
    assert "0.txt:2: 'dance'" in told
    assert "line 2: names '1.txt', but there is no such file" in told
    assert "2.txt:2: 'sing'" in told


def test_every_action_has_fields_or_none_are_read():
    assert set(FIELDS) | set(range(6)) == set(range(len(ACTIONS)))
    for action in FIELDS:
        assert least_fields(action, 4) <= len(fields_of(action, 4))


# Written after SimGrid's description of replay before 3.20, and what it is now.
OLD = """init
compute 1e6
Isend {other} 1000 0
Irecv {other} 1000 0
wait
wait
send {other} 2e3
recv {other}
allReduce 8 1e3
waitAll
bcast 100
finalize
"""
OLD_NOW = """init
compute 1e6
isend {other} 0 1000 0
irecv {other} 0 1000 0
wait {other} {own} 0
wait {own} {other} 0
send {other} 0 2e3
recv {other} 0 -1
allreduce 8 1e3
waitall
bcast 100
finalize
"""


def of_ranks(text, rank="{}"):
    parts = []
    for own in (0, 1):
        lines = text.format(own=own, other=1 - own).splitlines()
        parts += [f"{rank.format(own)} {line}" for line in lines]
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("rank", ["{}", "p{}"])
def test_a_trace_of_before_2018_is_read_as_one_of_now(tmp_path, rank):
    (tmp_path / "now.txt").write_text(of_ranks(OLD_NOW))
    old = of_ranks(OLD, rank)
    if rank != "{}":
        for peer in (0, 1):  # other ranks have their names too
            old = re.sub(rf"(send|recv) {peer}\b", rf"\1 p{peer}", old)
    (tmp_path / "old.txt").write_text(old)
    now, found = (read_trace(tmp_path / name) for name in ("now.txt", "old.txt"))
    assert plain(found) == plain(now)
    (told,) = (each for each in found.remarks if each.kind == "taken as")
    assert "before SimGrid 3.20" in told.text
    lines = old.splitlines(keepends=True)
    half = len(lines) // 2
    (tmp_path / "r0").write_text("".join(lines[:half]))
    (tmp_path / "r1").write_text("".join(lines[half:]))
    (tmp_path / "list.txt").write_text("r0\nr1\n")
    listed = read_trace(tmp_path / "list.txt")
    assert plain(listed) == plain(now)
    assert len(listed.remarks) == len(found.remarks)


def test_mutations_of_an_old_trace_are_refused_in_one_message(tmp_path):
    draw = random.Random(1)
    path = tmp_path / "t.txt"
    whole = of_ranks(OLD)
    refused = 0
    for _ in range(150):
        lines = whole.splitlines()
        k = draw.randrange(len(lines))
        words = lines[k].split()
        j = draw.randrange(len(words))
        words[j] = draw.choice(["x", "-1", "1e400", "p", "", "Isend", "9"])
        lines[k] = " ".join(words)
        path.write_text("\n".join(lines))
        try:
            read_trace(path, ranks=2)
        except WorkloadError:
            refused += 1
    assert refused > 50


def test_numbers_of_all_lengths_are_those_that_python_reads(tmp_path):
    """Up to 18 digits, and many more, of which the scanner leaves the reading to Python."""
    draw = random.Random(6)
    words = [
        f"{'0' * draw.randrange(3)}{draw.randrange(10 ** draw.randrange(1, 21))}"
        f".{'0' * draw.randrange(20)}{draw.randrange(10 ** draw.randrange(1, 18))}"
        f"{draw.choice(['', f'e{draw.randrange(-30, 30)}'])}"
        for _ in range(20_000)
    ]
    (tmp_path / "t.txt").write_text("".join(f"0 compute {word}\n" for word in words))
    assert read_trace(tmp_path / "t.txt").values.tolist() == [float(word) for word in words]


def test_a_large_trace_is_not_taken_for_an_old_one_where_its_first_bytes_end(tmp_path):
    """A message that is cut there has no tag, as those of before SimGrid 3.20."""
    head = "0 init\n1 init\n"
    for cut in range(len("0 send 1"), len("0 send 1 0 1000 6")):
        blank = " " * (HEAD - cut - len(head) - 1)
        text = f"{head}{blank}\n0 send 1 0 1000 6\n1 recv 0 0 1000 6\n0 finalize\n1 finalize\n"
        (tmp_path / "t.txt").write_text(text)
        assert read_trace(tmp_path / "t.txt").remarks == ()
