"""The same charts as one SVG, for a document or a picture: no script, no font of its own, light or dark by wish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from math import floor, log10

from stoker.records.bench_pictures import Chart, HeatMap, Pictures

WIDTH, CHART_HEIGHT, GAP = 900, 340, 30
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 40, 62
CELL_WIDTH, CELL_HEIGHT, ROW_LABEL = 90, 28, 210
LEGEND_WIDTH, LEGEND_HEIGHT = 210, 18
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8c8c", "#b8a800")  # Okabe and Ito
TICKS, FEW = 5, 12
Place = Callable[[float, float], tuple[float, float]]
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1c1e21; }
.title { font-size: 15px; font-weight: 600; } .dim { fill: #5b626b; }
.paper { fill: #fff; } .line { stroke: #d5d9de; } .heat { fill: #0072b2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6e8ea; } .dim { fill: #9aa3ad; }
.paper { fill: #15181b; } .line { stroke: #343a41; } .heat { fill: #56b4e9; } }
"""


def render_svg(pictures: Pictures, title: str) -> tuple[str, int, int]:
    """Returns all pictures below each other, with the sheet's width and height."""
    parts, top = [f'<text class="title" x="20" y="30">{escape(title)}</text>'], 50
    for body, height in (*map(_chart, pictures.charts), *map(_map, pictures.heat_maps)):
        parts += [f'<g transform="translate(0 {top})">', *body, "</g>"]
        top += height + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}">'
    paper = f'<rect class="paper" width="{WIDTH}" height="{top}"/>'
    return "\n".join((head, f"<style>{STYLE}</style>", paper, *parts, "</svg>", "")), WIDTH, top


def _chart(chart: Chart) -> tuple[list[str], int]:
    low, high = (min(chart.x, default=0), max(chart.x, default=1)) if chart.kind != "bars" else (-0.6, len(chart.x) - 0.4)
    most = max((value for one in chart.series for value in one.values if value is not None), default=0) or 1
    x_span, y_span = WIDTH - LEFT - RIGHT, CHART_HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - low) / ((high - low) or 1) * x_span, CHART_HEIGHT - BOTTOM - y / (most * 1.05) * y_span

    body = [f'<text class="title" x="20" y="16">{escape(chart.title)}</text>', *_axes(chart, place, (low, high), most)]
    for number, one in enumerate(chart.series):
        points = [place(x, y) for x, y in zip(chart.x, one.values, strict=True) if y is not None]
        body += _series(chart, points, COLOURS[number % len(COLOURS)], place(low, 0)[1])
    legend = list(_legend(chart))
    return [*body, *legend], CHART_HEIGHT + LEGEND_HEIGHT * (-(-len(chart.series) // (WIDTH // LEGEND_WIDTH)))


def _axes(chart: Chart, place: Place, span: tuple[float, float], most: float) -> Iterator[str]:
    bottom = CHART_HEIGHT - BOTTOM
    for value in ticks(0, most):
        y = place(span[0], value)[1]
        yield f'<line class="line" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="dim" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>'
    for at, word in _x_words(chart, span):
        yield f'<text class="dim" x="{place(at, 0)[0]:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(word)}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text class="dim" x="{middle}" y="{bottom + 38}" text-anchor="middle">{escape(chart.x_label)}</text>'
    yield f'<text class="dim" x="20" y="{TOP - 6}">{escape(chart.y_label)}</text>'


def _x_words(chart: Chart, span: tuple[float, float]) -> list[tuple[float, str]]:
    if chart.words:
        return list(zip(chart.x, chart.words, strict=True))
    if chart.kind == "lines" and len(chart.x) <= FEW:
        return [(at, f"{at:,g}") for at in chart.x]
    return [(at, f"{at:,g}") for at in ticks(*span)]


def ticks(low: float, high: float) -> list[float]:
    """Returns some round numbers from low to high."""
    if high <= low:
        return [low]
    rough = (high - low) / TICKS
    unit = 10 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first = -floor(-low / step)
    return [round(step * number, 10) for number in range(first, floor(high / step + 1e-9) + 1)]


def _series(chart: Chart, points: Sequence[tuple[float, float]], colour: str, ground: float) -> Iterator[str]:
    if chart.kind == "bars":
        width = min(80.0, 0.6 * (WIDTH - LEFT - RIGHT) / (len(chart.x) + 0.2))
        for x, y in points:
            size = f'width="{width:.1f}" height="{ground - y:.1f}"'
            yield f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" {size} fill="{colour}"/>'
        return
    if chart.kind == "steps":
        points = [point for before, after in pairwise(points) for point in (before, (after[0], before[1]), after)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
    if chart.kind == "lines":
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)


def _legend(chart: Chart) -> Iterator[str]:
    columns = WIDTH // LEGEND_WIDTH
    for number, one in enumerate(chart.series if chart.kind != "bars" else ()):
        x, y = 20 + number % columns * LEGEND_WIDTH, CHART_HEIGHT + number // columns * LEGEND_HEIGHT
        yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>'
        yield f'<text x="{x + 16}" y="{y}">{escape(one.label)}</text>'


def _map(one: HeatMap) -> tuple[list[str], int]:
    most = max(value for row in one.values for value in row if value is not None)
    width = min(CELL_WIDTH, (WIDTH - ROW_LABEL - RIGHT) // len(one.columns))
    body = [f'<text class="title" x="20" y="16">{escape(one.title)}</text>']
    for number, column in enumerate(one.columns):
        body.append(
            f'<text class="dim" x="{ROW_LABEL + (number + 0.5) * width}" y="38" text-anchor="middle">{escape(column)}</text>'
        )
    for row, (name, values) in enumerate(zip(one.rows, one.values, strict=True)):
        y = 46 + row * CELL_HEIGHT
        body.append(f'<text class="dim" x="{ROW_LABEL - 10}" y="{y + 18}" text-anchor="end">{escape(name)}</text>')
        for number, value in enumerate(values):
            body += _heat(value, most, (ROW_LABEL + number * width, y, width))
    return body, 46 + len(one.rows) * CELL_HEIGHT


def _heat(value: float | None, most: float, at: tuple[int, int, int]) -> Iterator[str]:
    x, y, width = at
    share = 0.0 if value is None or not most else value / most
    text = "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    size = f'width="{width - 2}" height="{CELL_HEIGHT - 2}"'
    yield f'<rect class="heat" x="{x}" y="{y}" {size} fill-opacity="{0.7 * share:.2f}"/>'
    yield f'<text x="{x + width / 2}" y="{y + 18}" text-anchor="middle">{text}</text>'
