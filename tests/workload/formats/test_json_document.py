"""JSON read quickly: the same as strictly, or left to that."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats import json as json_document
from ptaskmodel.workload.formats.json import read_json

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5), st.sampled_from(['a":', "b :", "c\n:", "12:30", '\\":']),
)  # fmt: skip
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(documents, st.sampled_from([None, 1]), st.sampled_from([":", " : ", "\n:\t"]))
def test_a_document_is_the_same_or_left(document, indent, colon):
    text = json.dumps(document, indent=indent, separators=(",", colon), ensure_ascii=False)
    try:
        found = json_document._read_quickly(text)
    except json_document._NotRead:
        return
    assert repr(found) == repr(json.loads(text))


@pytest.mark.parametrize("text", ['{"a": 1, "b": [{"c": "12:30", "d": 1e3}]}', '{"a" : -0.0}'])
def test_usual_documents_are_read(text):
    assert repr(json_document._read_quickly(text)) == repr(json.loads(text))


@pytest.mark.parametrize("colon", [":", ": ", " :", "\n:", "\t:", "\r:"])
@pytest.mark.parametrize("other", ["", '"c": "x:y", '])
def test_a_key_that_is_given_twice_is_found(tmp_path, colon, other):
    file = tmp_path / "d.json"
    file.write_text(f'{{{other}"a": [{{"b"{colon}1, "b"{colon}1}}]}}', newline="")
    with pytest.raises(WorkloadError, match="/a/0: 'b' is given twice; keep one"):
        read_json(file)
