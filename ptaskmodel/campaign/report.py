"""One self-contained page about a campaign: what it found, and how to run it again."""

from __future__ import annotations

import base64
import html
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel import __version__
from ptaskmodel.campaign.campaign import Campaign
from ptaskmodel.campaign.pictures import (
    differences_figure,
    effects_figure,
    interaction_figure,
    pareto_figure,
)
from ptaskmodel.campaign.statistics import effects, means, paired
from ptaskmodel.campaign.store import DONE, FAILED
from ptaskmodel.campaign.words import in_short
from ptaskmodel.errors import CampaignError
from ptaskmodel.files import whole_file

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

MOST_ROWS = 400
STYLE = (
    "img { max-width: 100%; height: auto; } "
    "pre { overflow: auto; background: var(--panel); padding: 8px; }"
)


def figures(campaign: Campaign, frame: pandas.DataFrame) -> dict[str, Figure]:
    """The pictures that these runs can show, by name."""
    plan = campaign.plan
    factors = [name for name in plan.factors if frame[name].nunique() > 1]
    metrics = list(metrics_of(campaign, frame))
    if not factors or not metrics:
        return {}
    made = {
        "effects": effects_figure(frame, factors, metrics),
        "interactions": interaction_figure(frame, factors, metrics),
        "differences": differences_figure(frame, list(plan.factors), metrics, plan.baseline),
        "pareto": pareto_figure(
            frame, factors, {name: sign for name, sign in plan.better.items() if name in frame}
        ),
    }
    return {name: figure for name, figure in made.items() if figure is not None}


def done(campaign: Campaign, frame: pandas.DataFrame | None = None) -> pandas.DataFrame:
    """The rows of the runs that were made. Raises CampaignError if there is none."""
    frame = campaign.frame() if frame is None else frame
    made = frame[frame["status"] == DONE]
    if not len(made):
        raise CampaignError(f"{campaign.store.directory}: no run is made yet; run the campaign")
    return made


def metrics_of(campaign: Campaign, frame: pandas.DataFrame) -> Sequence[str]:
    """The metrics that are looked at: as the plan or the kind says, else all columns of numbers."""
    if campaign.metrics():
        return campaign.metrics()
    known = {*campaign.plan.factors, "repetition", "status", "wall_s", "run"}
    return [name for name in frame.columns if name not in known]


def write_campaign_report(campaign: Campaign, path: str | Path) -> list[str]:
    """Write the page; return what it found in short.

    Raises CampaignError if no run is made, or it cannot be written.
    """
    whole = campaign.frame()
    frame = done(campaign, whole)
    plan, metrics = campaign.plan, list(metrics_of(campaign, whole))
    factors = list(plan.factors)
    count = Counter(whole["status"])
    parts = [
        f"<p class=soft>{count[DONE]} of {len(whole)} runs made, {count[FAILED]} failed; "
        f"ptaskmodel {html.escape(__version__)}. Everything is in this page.</p>"
    ]
    short = in_short(frame, factors, metrics, plan.baseline, plan.better)
    if short:
        said = "".join(f"<li>{html.escape(one)}</li>" for one in short)
        parts.append(f"<h2>In short</h2><ul>{said}</ul>")
    pictures = figures(campaign, frame)
    titles = {
        "differences": "Against the baseline, run by run",
        "effects": "What each factor does",
        "interactions": "What depends on what",
        "pareto": "Both at once",
    }
    notes = {
        "differences": "Runs that are alike in all else, seed included, are compared; bars are "
        "95 % intervals of the mean difference. Grey: not told apart from none.",
        "effects": "Means over all else, with 95 % intervals.",
        "interactions": "For each metric the two factors whose effects depend on each other most.",
        "pareto": "Means of each combination; the line joins those that none beats in both.",
    }
    for name, title in titles.items():
        if name in pictures:
            parts += [
                f"<h2>{title}</h2><p class=soft>{notes[name]}</p>",
                _image(pictures[name], title),
            ]
            if name == "differences":
                parts.append(_table(paired(frame, factors, metrics, plan.baseline)))
            if name == "effects":
                varied = [one for one in factors if frame[one].nunique() > 1]
                parts.append(
                    "<p class=soft>Part of the variation of each metric that goes with each "
                    "factor, or with a pair of them beyond both.</p>"
                )
                parts.append(_table(effects(frame, varied, metrics)))
    parts += ["<h2>Means</h2>", _table(means(frame, factors, metrics))]
    if count[FAILED]:
        failures = campaign.failures()[:MOST_ROWS]
        rows = [(*run.point.values(), run.repetition, error) for run, error in failures]
        parts += ["<h2>Runs that failed</h2>", _rows((*factors, "repetition", "error"), rows)]
    again = f"ptaskmodel campaign run campaign.toml -o {campaign.store.directory.name}"
    parts += [
        "<h2>How it was made, and how to make it again</h2>",
        f"<pre>{html.escape(again)}</pre>",
        f"<p class=soft>campaign.toml:</p><pre>{html.escape(plan.text)}</pre>",
        _inputs(campaign),
    ]
    css = files("ptaskmodel.results").joinpath("templates/report.css").read_text(encoding="utf-8")
    title = html.escape(plan.name)
    with whole_file(path) as stream:
        stream.write(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="icon" href="data:,"><title>{title}</title><style>{css}{STYLE}</style>'
            f"</head><body><main><h1>{title}</h1>\n"
        )
        stream.write("\n".join(parts))
        stream.write("\n</main></body></html>\n")
    return short


def _inputs(campaign: Campaign) -> str:
    """The files that runs read, with their digests."""
    from ptaskmodel.campaign.inputs import digest_of

    paths = {
        path
        for run in campaign.runs
        for name, value in run.parameters.items()
        if (path := campaign.plan.kind.file_in(name, value)) is not None
    }
    rows = [(Path(path).name, digest_of(Path(path), path)) for path in sorted(paths)]
    return _rows(("input", "SHA-256"), rows) if rows else ""


def _image(figure: Figure, title: str) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=130, facecolor="white")
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'


def _table(frame: pandas.DataFrame) -> str:
    rows = frame.head(MOST_ROWS).itertuples(index=False, name=None)
    cut = f"<p class=soft>The first {MOST_ROWS} of {len(frame):,} rows.</p>"
    return _rows(list(frame.columns), rows) + (cut if len(frame) > MOST_ROWS else "")


def _rows(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    cells = "".join(f"<th>{html.escape(str(name)).replace('_', ' ')}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class=scroll>{table}</div>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{html.escape(str(value))}</td>"
    text = "" if math.isnan(value) else f"{value:.5g}" if isinstance(value, float) else f"{value:,}"
    return f"<td class=number>{text}</td>"
