"""Files of measurements: what is read, and what is told of a wrong one."""

import math

import pytest

from ptaskmodel.calibration import MeasurementError, read_measurements

HEADER = "code,interference_on_s,interference_off_s,runs,mean_runtime_s,stddev_s\n"


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "runs.csv"
        path.write_text(text)
        return path

    return write


def test_the_tables_of_the_clusters_are_read_as_they_are(repository_measurements):
    groups = read_measurements(repository_measurements / "pdgemm_runtimes.csv")
    assert len(groups) == 8
    assert sum(len(group.measurements) for group in groups) == 48
    assert sum(len(group.measured) for group in groups) == 47
    first = groups[0]
    assert first.labels == {
        "cluster": "paravance",
        "broadcast": "blocking",
        "block_subdivisions": "1",
    }
    row = first.measurements[1]
    assert (row.runtime_s, row.stddev_s, row.runs) == (469.19, 0.41, 5)
    assert row.error_s == pytest.approx(0.41 / math.sqrt(5))
    assert first.measurements[-1].pattern.constant


def test_the_follow_up_is_read_with_its_competitors(repository_measurements):
    file = repository_measurements / "pdgemm_tcp_connections.csv"
    grisou, paravance = read_measurements(file, "n_tcp_connections")
    assert len(grisou.measurements) + len(paravance.measurements) == 175
    assert grisou.measurements[0].pattern.none
    assert grisou.measurements[-1].competitors == 32
    assert read_measurements(file, "n_host_pairs")[1].measurements[-1].competitors == 5


def test_the_carried_tables_are_the_published_ones(repository_measurements, shared_data):
    for path in repository_measurements.glob("*.csv"):
        assert path.read_bytes() == (shared_data / "measurements" / path.name).read_bytes()


def test_a_minimal_file_of_single_runs(written):
    (group,) = read_measurements(
        written("runtime_s,interference_on_s,interference_off_s\n10,0,0\n12,5,5\n")
    )
    assert group.labels == {}
    assert group.measurements[0].stddev_s is None
    assert group.measurements[1].competitors == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "runs.csv:1: a column of runtimes is missing"),
        ("a,b\n1,2\n", "found a, b$"),
        ("runtime_s,mean_runtime_s\n1,2\n", "found mean_runtime_s and runtime_s"),
        ("runtime_s\n1\n", "interference_on_s and interference_off_s are needed, or a column"),
        ("runtime_s,interference_on_s\n1,2\n", "interference_off_s are needed$"),
        (HEADER, "no measurements below the header; add rows"),
        (HEADER + "x,0,0,5,abc,1\n", "runs.csv:2: mean_runtime_s is 'abc'; give a number"),
        (HEADER + "x,0,0,5,-3,1\n", "mean_runtime_s is '-3'"),
        (HEADER + "x,0,0,5,0,1\n", "give a time > 0 s, or nothing if the run did not end"),
        (HEADER + "x,0,0,5,10,0\n", "stddev_s is '0'; give a value > 0 s, or nothing"),
        (HEADER + "x,0,0,2.5,10,1\n", "runs is '2.5'; give a whole number"),
        (HEADER + "x,-1,0,5,10,1\n", "interference_on_s is '-1'"),
        (HEADER + "x,0,inf,5,10,1\n", "interference_off_s is inf"),
        (HEADER + "x,0,0,5,10\n", "runs.csv:2: has 5 fields instead of 6"),
        (HEADER + "x,0,0,5,10,1,7\n", "has 7 fields instead of 6"),
        ("x," + HEADER.replace("code", "x"), "column 'x' occurs twice"),
        (
            "competitors,runtime_s,interference_on_s,interference_off_s\n0,1,inf,0\n",
            "competitors is 0 in a row with interference",
        ),
    ],
)
def test_mistakes_are_named_in_one_line(written, text, message):
    with pytest.raises(MeasurementError, match=message) as caught:
        read_measurements(written(text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"# of 2024-01-01\n\n{text}# the end\n",
        lambda text: text.replace(",", " , "),
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text + 'x,"10,10,120,1,3\n',
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tables_are_read_as_people_have_them(written, change):
    text = HEADER + "x,0,0,100,1,3\nx,inf,0,180,1,3\n"
    (group,) = read_measurements(written(change(text)))
    assert dict(group.labels) == {"code": "x"}
    assert len(group.measurements) == 2


def test_a_missing_file_or_column(tmp_path, written):
    with pytest.raises(MeasurementError, match="no such file"):
        read_measurements(tmp_path / "none.csv")
    with pytest.raises(MeasurementError, match="no column 'n_pairs'"):
        read_measurements(written(HEADER + "x,0,0,5,10,1\n"), "n_pairs")
