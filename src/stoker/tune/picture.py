"""Draws a tuning: for each way the predicted band and the measured point; as SVG, and as a page that asks nobody.

Pure. What is said in it is escaped, and the page's own policy lets nothing leave it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import floor, log10

from stoker.records import Band, TriedWay, TuneView
from stoker.tune.showing import say_band, shown_ways

LEFT, TOP, STEP, HEIGHT, FOOT, BAR, DOT, LINE = 64, 16, 72, 300, 80, 28, 5, 16
LEAST_WIDTH, TICKS = 420, 5
HEADINGS = ("way", "predicted, tok/s", "measured, tok/s", "accepted", "runs", "what became of it")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
svg, body { font: 14px system-ui, sans-serif; color: #1d2733; background: #fff; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
svg { max-width: 100%; height: auto; }
text { fill: #1d2733; } .tick { fill: #5b6876; text-anchor: end; }
.name { text-anchor: middle; } .chosen { font-weight: bold; }
.grid { stroke: #d9dfe6; } .band { fill: #b9d3ee; }
.measured { fill: #b3541e; } .interval { stroke: #b3541e; stroke-width: 2; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; border-bottom: 1px solid #d9dfe6; }
"""


def render_page(view: TuneView) -> str:
    """Returns the tuning as HTML."""
    title = f"How {view.service} drafts best"
    head = "".join(f"<th>{name}</th>" for name in HEADINGS)
    rows = "\n".join(map(_row, view.ways))
    notes = "".join(f"<p>{escape(one)}</p>\n" for one in view.warnings)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{STYLE}</style></head>
<body><h1>{escape(title)}</h1>
<p>{escape(_outcome(view))}</p>
{notes}{render_svg(view)}
<table><tr>{head}</tr>
{rows}</table>
<p>Bands and intervals should hold the rate four times in five.</p></body></html>
"""


def _outcome(view: TuneView) -> str:
    chosen = f"{view.chosen.name}: " if view.chosen else ""
    said = f"{view.engine}, {view.objective}, {' and '.join(view.contents)}. {chosen}{view.why}"
    return said + ("" if view.took_s is None else f"; {view.starts} starts, {view.sweep_starts} for a sweep")


def _row(one: TriedWay) -> str:
    rate = "-" if one.accept_rate is None else f"{one.accept_rate:.0%}"
    became = one.tried + (f": {one.why}" if one.why else "")
    cells = (one.way.name, _said(one.predicted), _said(one.measured), rate, ", ".join(map(str, one.run_ids)) or "-", became)
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _said(band: Band | None) -> str:
    return "-" if band is None else say_band(band)


def render_svg(view: TuneView) -> str:
    """Returns the curve as a picture."""
    shown = shown_ways(view)
    most = max(
        (band.high_tok_s or band.tok_s for one in shown for band in (one.predicted, one.measured) if band), default=1.0
    )
    width = max(LEAST_WIDTH, LEFT + STEP * len(shown))
    drawn = [*_grid(most, width), *(line for place, one in enumerate(shown) for line in _column(one, place, most, view))]
    size = f'viewBox="0 0 {width} {TOP + HEIGHT + FOOT}" width="{width}" height="{TOP + HEIGHT + FOOT}"'
    said = escape(f"Rates of {len(shown)} ways to draft", quote=True)
    return "\n".join((f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{said}">',
                      f"<style>{STYLE}</style>", *drawn, "</svg>"))  # fmt: skip


def _grid(most: float, width: int) -> Iterator[str]:
    step = _tick(most)
    for number in range(int(most / step) + 1):
        y = _y(number * step, most)
        yield f'<line class="grid" x1="{LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 8}" y="{y + 5:.1f}">{number * step:g}</text>'
    yield f'<text class="tick" x="{LEFT - 8}" y="{TOP + HEIGHT + 24}">tok/s</text>'


def _tick(most: float) -> float:
    """Returns a round step that gives about as many ticks as are wanted."""
    power: float = 10.0 ** floor(log10(most / TICKS))
    return next(power * part for part in (1, 2, 5, 10) if power * part * TICKS >= most)


def _y(tok_s: float, most: float) -> float:
    return TOP + HEIGHT * (1 - tok_s / most)


def _column(one: TriedWay, place: int, most: float, view: TuneView) -> Iterator[str]:
    x = LEFT + STEP * place + STEP / 2
    band, seen = one.predicted, one.measured
    if band is not None and band.low_tok_s is not None and band.high_tok_s is not None:
        high, low = _y(band.high_tok_s, most), _y(band.low_tok_s, most)
        yield f'<rect class="band" x="{x - BAR / 2}" y="{high:.1f}" width="{BAR}" height="{low - high:.1f}"/>'
    if seen is not None:
        if seen.low_tok_s is not None and seen.high_tok_s is not None:
            low, high = _y(seen.low_tok_s, most), _y(seen.high_tok_s, most)
            yield f'<line class="interval" x1="{x}" x2="{x}" y1="{low:.1f}" y2="{high:.1f}"/>'
        yield f'<circle class="measured" cx="{x}" cy="{_y(seen.tok_s, most):.1f}" r="{DOT}"/>'
    chosen = " chosen" if one.way == view.chosen else ""
    for line, words in enumerate(_name_lines(one.way.name)):
        yield f'<text class="name{chosen}" x="{x}" y="{TOP + HEIGHT + 24 + LINE * line}">{escape(words)}</text>'


def _name_lines(name: str) -> Iterator[str]:
    """Breaks a long name, as `ngram 8 after 2 to 8`, so that it fits below its column."""
    words = name.split()
    yield " ".join(words[:2])
    yield from (" ".join(words[place : place + 2]) for place in range(2, len(words), 2))
