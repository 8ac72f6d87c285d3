"""Recorded sessions of real clients: told the same, they answer the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batsim_sessions import PLAIN, SLEEPY, serve

from ptaskmodel.connect.transport import ReplayingWire

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "batsim"

OPTIONS = {
    "energy": {"energy": True},
    "walltime_failure_rejection": {"forward_profiles": True},
    "batsim_py": {"forward_profiles": True},
    "dynamic_acknowledged": {"dynamic_jobs": True, "acknowledge_dynamic_jobs": True},
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_transcript_goes_through_our_server(path, tmp_path):
    lines = path.read_text().splitlines()
    scenario = json.loads(lines[0])
    ours = [line.replace("/workloads/w0.json", str(tmp_path / "w0.json")) for line in lines]
    if path.stem == "energy":
        # What hosts draw stands in our platform; the recorded server knew it by itself.
        hosts = json.loads(ours[1])
        for host in hosts["message"]["events"][0]["data"]["compute_resources"]:
            host["properties"] = {
                "wattage_per_state": ", ".join(["100:100:100"] * 6),
                "sleep_pstates": "3:4:5",
                "role": "",
            }
            host["zone_properties"] = {
                key: value for key, value in host["properties"].items() if key != "role"
            }
        ours[1] = json.dumps(hosts)
    record = tmp_path / "record.jsonl"
    record.write_text("\n".join(ours) + "\n")
    session, result = serve(
        tmp_path,
        ReplayingWire(record),
        scenario["jobs"],
        scenario["profiles"],
        platform=SLEEPY if path.stem == "energy" else PLAIN,
        **OPTIONS.get(path.stem, {}),
    )
    assert session.fault is None
    said = sum(json.loads(line).get("from") == "scheduler" for line in lines)
    assert result.driven["exchanges"] == said
