"""The report: one file with everything in it. What is said in it is escaped, and its own policy lets nothing leave it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path

import msgspec

from stoker.bench.formats.figures import find_figure
from stoker.bench.formats.names import meaning, split_name
from stoker.bench.report.charts import draw, say_cell
from stoker.records import BenchFigure, BenchRun, CellResult
from stoker.records.bench_pictures import HeatMap

ASSETS = Path(__file__).parent / "assets"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
MS, UNKNOWN = 1000, "-"
COLUMNS = ("ttft_s", "prefill_tps", "first_chunk_prefill_tps", "itl_token_s", "request_decode_tps", "total_e2e_tps",
           "total_decode_tps", "accept_rate", "accept_length")  # fmt: skip


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def render_page(run: BenchRun) -> str:
    """Returns the report as HTML."""
    pictures = draw(run)
    title = f"{run.subject.model}, benchmark{'' if run.id is None else f' {run.id}'}"
    data = msgspec.json.encode(pictures.charts).decode().replace("<", "\\u003c")  # nothing in it may end the script
    return "\n".join(
        (
            "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>", f"<style>{_asset('uPlot.min.css')}\n{_asset('report.css')}</style>",
            "</head>", "<body>", '<button id="shade" type="button">dark / light</button>', f"<h1>{escape(title)}</h1>",
            *_facts(run), *_doubts(run.cells), '<main id="charts"></main>', *(_map(one) for one in pictures.heat_maps),
            *_table(run.cells), *_footer(),
            f'<script type="application/json" id="data">{data}</script>',
            f"<!-- uPlot:\n{_asset('LICENSE.uPlot')}-->", f"<script>{_asset('uPlot.iife.min.js')}</script>",
            f"<script>{_asset('report.js')}</script>",
            "</body>", "</html>", "",
        )
    )  # fmt: skip


def _facts(run: BenchRun) -> Iterator[str]:
    of = run.subject
    facts = {
        "engine": " ".join(part for part in (of.engine, of.engine_version) if part), "machine": of.machine,
        "image": of.image_digest, "revision": of.model_revision, "plan": of.plan_id, "service": of.service,
        "box": of.box or "", "flags": " ".join(of.flags or ()), "measured by": f"{run.tool} {run.tool_version}".strip(),
        "when": _when(run.began_at), "asked": " ".join(run.words), "note": run.note,
        "not whole": "" if run.is_whole else "it was interrupted: some cells are missing",
    }  # fmt: skip
    yield "<dl>"
    yield from (f"<dt>{name}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items() if fact)
    yield "</dl>"


def _when(at: float | None) -> str:
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


def _doubts(cells: Sequence[CellResult]) -> Iterator[str]:
    texts = [f"{say_cell(one.cell)}: {text}" for one in cells for text in doubts_of(one)]
    if texts:
        yield "<h2>What is doubtful</h2><ul>"
        yield from (f"<li>{escape(text)}</li>" for text in texts)
        yield "</ul>"


def doubts_of(one: CellResult) -> tuple[str, ...]:
    """Returns what failed in a cell, and what makes its figures doubtful."""
    return (*(f"{error} ({times} times)" for error, times in one.errors), *one.warnings)


def _map(one: HeatMap) -> str:
    most = max(value for row in one.values for value in row if value is not None)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(_heat(value, most) for value in values)}</tr>'
        for name, values in zip(one.rows, one.values, strict=True)
    )
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in one.columns)
    table = f'<table class="map" id="{one.name}"><tr><th></th>{head}</tr>{rows}</table>'
    return f"<figure><figcaption>{escape(one.title)}</figcaption>{table}</figure>"


def _heat(value: float | None, most: float) -> str:
    if value is None:
        return f"<td>{UNKNOWN}</td>"
    return f'<td style="--heat: {100 * value / most:.0f}%">{say_number(value)}</td>'


def say_number(value: float) -> str:
    """Returns a number with as many digits as a measurement has."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _table(cells: Sequence[CellResult]) -> Iterator[str]:
    names = [name for name in COLUMNS if any(find_told(one, name) for one in cells)]
    if not names:
        return
    yield "<h2>Cells</h2><p>Medians, in brackets the interval of 95 %; * a mean without values.</p>"
    yield '<div class="wide"><table><tr><th></th>'
    yield "".join(f'<th scope="col" title="{escape(meaning(name))}">{_heading(name)}</th>' for name in names)
    yield "</tr>"
    for one in cells:
        figures = "".join(f"<td>{_figure(find_told(one, name))}</td>" for name in names)
        yield f'<tr><th scope="row">{escape(say_cell(one.cell))}</th>{figures}</tr>'
    yield "</table></div>"


def find_told(one: CellResult, name: str) -> BenchFigure | None:
    """Returns a figure of a cell, or its mean where another tool gives no more."""
    return find_figure(one, name) or find_figure(one, f"mean_{name}")


def _heading(name: str) -> str:
    words = name.removesuffix("_s").removesuffix("_tps").replace("_", " ")
    return f"{words}, {'ms' if name.endswith('_s') else 't/s' if name.endswith('_tps') else ''}".removesuffix(", ")


def _figure(figure: BenchFigure | None) -> str:
    if figure is None:
        return UNKNOWN
    statistic, name = split_name(figure.name)
    scale = MS if name.endswith("_s") else 1
    text = say_number(figure.median * scale) + ("*" if statistic == "mean" else "")
    if figure.low is None or figure.high is None:
        return text
    return f"{text} <small>({say_number(figure.low * scale)} to {say_number(figure.high * scale)})</small>"


def _footer() -> Iterator[str]:
    made = "Made by Stoker. uPlot (MIT), which is in this file, draws the charts. Nothing leaves your machine."
    yield f"<footer>{made}</footer>"
