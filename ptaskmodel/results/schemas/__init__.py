"""JSON Schemas of input and output files; for tables, the schema of one line."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from typing import Any

from ptaskmodel.errors import PTaskModelError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TABLES = "tables.toml"

# Name, the package with the file, its name, what it is of.
DOCUMENTS = {
    "tasks": ("ptaskmodel.workload", "tasks.schema.json", "tasks files"),
    "workload": (__name__, "workload.schema.json", "workloads, in Batsim's JSON"),
    "calibration": (__name__, "calibration.schema.json", "what `calibrate --output` writes"),
    "summary.json": (__name__, "summary.schema.json", "in every directory of results"),
    "schedule.json": (__name__, "schedule.schema.json", "in results of batches: Batsim's figures"),
    "meta.json": (
        __name__,
        "meta.schema.json",
        "in results of `slurm-live`: its phases",
    ),
    "wire": (__name__, "wire.schema.json", "what `simulate --network-parameters` reads"),
    "campaign": (__name__, "campaign.schema.json", "campaign files (TOML)"),
    "campaign-run": (
        __name__,
        "campaign-run.schema.json",
        "in directories of campaigns: a run each",
    ),
    "simulate": (__name__, "simulate.schema.json", "what `simulate --json` prints"),
    "platform-info": (__name__, "platform-info.schema.json", "what `platform info --json` prints"),
    "workload-info": (__name__, "workload-info.schema.json", "what `workload info --json` prints"),
    "trace-info": (__name__, "trace-info.schema.json", "what `trace info --json` prints"),
}
TYPES: dict[str, dict[str, Any]] = {
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "string": {"type": "string"},
    "number, -1": {"type": "number", "minimum": -1},
    "number or NA": {"anyOf": [{"type": "number"}, {"const": "NA"}]},
    "number or text": {"type": ["number", "string"]},
    "names": {"type": ["string", "null"]},
}
# The same of what `--json` prints: there names are a list.
JSON_TYPES = TYPES | {"names": {"type": "array", "items": {"type": "string"}}}


def schema_names() -> dict[str, str]:
    """The names of all schemas, with what each is of."""
    found = {name: what for name, (_, _, what) in DOCUMENTS.items()}
    return found | {name: f"a line for {table['line']}" for name, table in _tables().items()}


def schema_of(name: str) -> dict[str, Any]:
    """A JSON Schema: of a JSON document, or of a line of a table (an object by its columns).

    In lines an empty field is null, and what is a number is one. Raises PTaskModelError for a name
    that is not known.
    """
    if name in DOCUMENTS:
        package, file, _ = DOCUMENTS[name]
        text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text, object_hook=_with_records)
        return found
    tables = _tables()
    if name not in tables:
        import difflib

        near = difflib.get_close_matches(name, [*DOCUMENTS, *tables], 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise PTaskModelError(
            f"schema '{name[:60]}' is unknown: `ptaskmodel schema` lists all{hint}"
        )
    return _of_line(name, tables[name])


def _tables() -> dict[str, dict[str, Any]]:
    text = resources.files(__name__).joinpath(TABLES).read_text(encoding="utf-8")
    return tomllib.loads(text)


def _with_records(value: dict[str, Any]) -> dict[str, Any]:
    """The schema of the lines of a table as JSON objects for a reference to the table."""
    table = value.get("$ref", "")
    if not table.endswith(".csv"):
        return value
    columns, required = _columns(_tables()[table])
    return _object({name: _column(columns[name], JSON_TYPES) for name in required}, required)


def _of_line(name: str, table: dict[str, Any]) -> dict[str, Any]:
    columns, required = _columns(table)
    return {
        "$schema": DIALECT,
        "title": name,
        "description": f"A line for {table['line']}.",
        **_object({key: _column(text, TYPES) for key, text in columns.items()}, required),
    }


def _columns(table: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The columns of a table, and the names of those that it always has."""
    columns = {key: text for key, text in table.items() if key not in ("line", "optional")}
    optional = table.get("optional", [])
    return columns, [key for key in columns if key not in optional]


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _column(text: str, types: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The schema of a column: "TYPE: what it is", TYPE with ? if the field may be empty."""
    kind, _, description = text.partition(": ")
    found = types[kind.removesuffix("?")]
    if kind.endswith("?"):
        found = {"anyOf": [found, {"type": "null"}]}
    return {**found, "description": description}
