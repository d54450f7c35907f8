"""The report, looked at by a real Chromium: charts are drawn, nothing leaves the page, and nothing said in it is run."""

from __future__ import annotations

import json
import struct
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench_samples import make_cell, make_figure, make_repeats, make_result, make_run
from browser import CHROMIUM, Page, chromium
from home import Home
from stoker.bench.published import load_published
from stoker.bench.report.charts import MOST_SERIES, accepted, draw, heat_map, over_time, throughput, ttft
from stoker.bench.report.page import ASSETS, render_page
from stoker.bench.report.svg import COLOURS, render_svg, ticks
from stoker.records import GIB, BenchLoad, BenchRun, CellResult, SeriesPoint, SpeculationSeen

in_chromium = pytest.mark.elsewhere(bool(CHROMIUM), "Chromium")
SEEN = SpeculationSeen("vLLM's counters", 264, 160, 88, 0.6, 2.8, (0.91, 0.8, 0.1))
EVIL = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">&\u2028"


def make_grid(*concurrency: int, **changes: Any) -> BenchRun:
    """Returns a run with everything that can be drawn."""
    cells = []
    for depth in (0, 4096):
        for load in concurrency or (1, 8):
            rates = [100.0 * load / (1 + depth / 4096)] * 3
            figures = (make_figure("total_e2e_tps", rates), make_figure("ttft_s", (0.2, 0.3, 0.5), "request"))
            repeats = make_repeats(2, concurrency=load, tokens=60)
            cells.append(make_result(make_cell(512, 60, depth, load), *figures, repeats=repeats, speculation=SEEN))
    return make_run(*cells, **changes)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


def write(folder: Path, run: BenchRun) -> Path:
    file = folder / "report.html"
    file.write_text(render_page(run))
    return file


# What there is to draw.


def test_throughput_is_drawn_over_concurrency_for_each_length() -> None:
    chart = throughput(make_grid(1, 4, 8).cells)
    assert chart is not None
    assert (chart.kind, chart.x) == ("lines", (1.0, 4.0, 8.0))
    assert [one.label for one in chart.series] == ["code pp512 tg60", "code pp512 tg60 @ d4096"]
    assert chart.series[0].values == (100.0, 400.0, 800.0)


def test_with_one_load_it_is_drawn_cell_by_cell() -> None:
    chart = throughput(make_grid(4).cells)
    assert chart is not None
    assert (chart.kind, chart.words) == ("bars", ("code pp512 tg60, c4", "code pp512 tg60 @ d4096, c4"))
    assert chart.series[0].values == (400.0, 200.0)


def test_the_distribution_of_ttft_reaches_one_at_the_slowest_request() -> None:
    chart = ttft(make_grid().cells)
    assert chart is not None
    assert chart.x == (200.0, 300.0, 500.0)
    assert chart.series[0].values == pytest.approx((1 / 3, 2 / 3, 1.0))


def test_the_rate_over_time_holds_every_token() -> None:
    (result,) = (one for one in make_grid(4).cells if not one.cell.depth_tokens)
    chart = over_time([result])
    assert chart is not None
    bin_s = chart.x[1] - chart.x[0]
    tokens = sum(rate * bin_s for rate in chart.series[0].values if rate is not None)
    assert tokens == pytest.approx(4 * 60, rel=0.01)


def test_a_soak_is_drawn_by_its_series() -> None:
    points = tuple(SeriesPoint(at, 10.0, 5, 0, 90.0 + at, 0.2, 0.02) for at in (0.0, 10.0, 20.0))
    chart = over_time([make_result(series=points)])
    assert chart is not None
    assert (chart.x, chart.series[0].values) == ((0.0, 10.0, 20.0), (90.0, 100.0, 110.0))


def test_memory_and_accept_length_of_a_soak_are_drawn_where_they_are_known() -> None:
    points = tuple(
        SeriesPoint(at, 10.0, 5, 0, 90.0, 0.2, 0.02, accept_length=3.0 if at else None, available_bytes=int((30 - at) * GIB))
        for at in (0.0, 10.0)
    )
    charts = {chart.name: chart for chart in draw(make_run(make_result(series=points))).charts}
    assert charts["accept-length-time"].series[0].values == (None, 3.0)
    assert charts["memory-time"].series[0].values == (30.0, 20.0)
    bare = tuple(SeriesPoint(at, 10.0, 5, 0, 90.0, 0.2, 0.02) for at in (0.0, 10.0))
    assert {chart.name for chart in draw(make_run(make_result(series=bare))).charts}.isdisjoint(charts.keys() - {"time"})


def test_accepted_positions_and_maps_are_drawn_where_they_are_known() -> None:
    run = make_grid(1, 8)
    chart = accepted(run.cells)
    assert chart is not None
    assert (chart.x, chart.series[0].values) == ((1.0, 2.0, 3.0), (0.91, 0.8, 0.1))
    found = heat_map(run.cells, "rate", "Tokens a second")
    assert found is not None
    assert (found.rows, found.columns) == (("code pp512 tg60 @ d0", "code pp512 tg60 @ d4096"), ("c1", "c8"))
    assert found.values == ((100.0, 800.0), (50.0, 400.0))


def test_what_is_not_known_is_not_drawn() -> None:
    assert draw(make_run(make_result())).charts == ()
    assert draw(make_run()).heat_maps == ()
    assert [chart.name for chart in draw(load_published()["gemma4-mtp-n4"]).charts] == ["throughput", "accepted"]


def test_more_lines_than_anybody_can_tell_apart_are_left_out_by_name() -> None:
    cells: list[CellResult] = [
        make_result(make_cell(size), make_figure("ttft_s", (0.1, 0.2), "request")) for size in range(1, 20)
    ]
    chart = ttft(cells)
    assert chart is not None
    assert len(chart.series) == MOST_SERIES
    assert chart.note == f"the first {MOST_SERIES} of 19"


def test_loads_of_all_kinds_have_words() -> None:
    cells = [
        make_result(make_cell(load=load), make_figure("total_e2e_tps", (1.0,)))
        for load in (BenchLoad("poisson", None, 2.5), BenchLoad("trace"), BenchLoad("closed", 3))
    ]
    chart = throughput(cells)
    assert chart is not None
    assert chart.words == ("code pp512 tg32, 2.5/s", "code pp512 tg32, trace", "code pp512 tg32, c3")


# SVG and PNG.


@pytest.mark.parametrize(
    "run", [make_grid(1, 8), make_grid(4), load_published()["qwen3.6-27b-nvfp4-mtp"], make_run(make_result())]
)
def test_the_svg_is_well_formed_and_holds_each_picture(run: BenchRun) -> None:
    pictures = draw(run)
    svg, width, height = render_svg(pictures, EVIL.replace("\u2028", ""))
    root = ET.fromstring(svg)  # noqa: S314 - it is ours
    assert (root.get("width"), root.get("height")) == (str(width), str(height))
    titles = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "title"]
    assert titles[1:] == [*(one.title for one in pictures.charts), *(one.title for one in pictures.heat_maps)]
    assert "nan" not in svg
    assert all(
        float(one.get("height", "0").removesuffix("px")) >= 0 for one in root.iter("{http://www.w3.org/2000/svg}rect")
    )


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (3, 17, [5, 10, 15]), (2, 2, [2]), (0, 0.03, [0, 0.01, 0.02, 0.03])],
)
def test_ticks_are_round(low: float, high: float, found: list[float]) -> None:
    assert ticks(low, high) == found


@in_chromium
def test_a_png_is_the_sheet_with_its_colours(home: Home) -> None:
    file = home.folder / "out.png"
    home.run("bench", "report", "published:qwen3.6-27b-nvfp4-mtp", "-o", str(file))
    width, height, colours = read_png(file.read_bytes())
    assert (width, height) == render_svg(draw(load_published()["qwen3.6-27b-nvfp4-mtp"]), "")[1:]
    assert {(0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00), (255, 255, 255)} <= colours


def read_png(data: bytes) -> tuple[int, int, set[tuple[int, ...]]]:
    """Returns a PNG's size and its colours."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed, head = 8, b"", b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        head, packed = (body, packed) if kind == b"IHDR" else (head, packed + body if kind == b"IDAT" else packed)
        at += size + 12
    width, height, depth, colour = struct.unpack(">IIBB", head[:10])
    assert (depth, colour) in ((8, 2), (8, 6))
    step = 3 if colour == 2 else 4
    rows, colours, before = zlib.decompress(packed), set[tuple[int, ...]](), bytearray(width * step)
    for number in range(height):
        line = bytearray(rows[number * (width * step + 1) + 1 : (number + 1) * (width * step + 1)])
        unfilter(rows[number * (width * step + 1)], line, before, step)
        colours |= {tuple(line[place : place + 3]) for place in range(0, width * step, step)}
        before = line
    return width, height, colours


def unfilter(kind: int, line: bytearray, before: bytearray, step: int) -> None:
    """Undoes what PNG did to a row of bytes."""
    for place in range(len(line)):
        left = line[place - step] if place >= step else 0
        above, corner = before[place], before[place - step] if place >= step else 0
        guess = left + above - corner
        nearest = min((left, above, corner), key=lambda each: abs(guess - each))
        line[place] = (line[place] + (0, left, above, (left + above) // 2, nearest)[kind]) & 255


def test_without_chromium_a_png_is_refused_and_the_others_are_written(home: Home) -> None:
    home.environment["PATH"] = str(home.folder)
    refused = home.run("bench", "report", "published:gemma4-mtp-n4", "-o", str(home.folder / "x.png"), code=3)
    assert "a PNG needs Chromium" in refused.stderr
    for kind in ("html", "svg"):
        home.run("bench", "report", "published:gemma4-mtp-n4", "-o", str(home.folder / f"x.{kind}"))
    assert "let its name end in .html, .svg, .png" in home.run("bench", "report", "last", "-o", "x.pdf", code=2).stderr


# The page.

BLANK = """
[...document.querySelectorAll("#charts canvas")].map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) colours.add(data.slice(at, at + 3).join());
  return [...colours].length;
})
"""
HAS_COLOUR = """
(id, colour) => {
  const canvas = document.querySelector(id + " canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4) if (data.slice(at, at + 4).join() === colour) return true;
  return false;
}
"""


@in_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_and_nothing_is_asked_of_the_network(page: Page, tmp_path: Path, scheme: str) -> None:
    run = make_grid(1, 8)
    file = write(tmp_path, run)
    page.open(file, scheme=scheme)
    assert page.faults() == []
    assert page.run("[...document.querySelectorAll('#charts figure')].map((one) => one.id)") == [
        f"chart-{chart.name}" for chart in draw(run).charts
    ]
    assert all(colours > 3 for colours in page.run(BLANK))
    for chart in draw(run).charts:  # the last line lies on top of others with the same values
        red, green, blue = bytes.fromhex(COLOURS[len(chart.series) - 1][1:])
        assert page.run(f"({HAS_COLOUR})('#chart-{chart.name}', '{red},{green},{blue},255')"), f"{chart.name} has no line"
    assert page.requests() == [file.as_uri()]
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 27)"}[scheme]


@in_chromium
def test_the_page_forbids_itself_every_request(page: Page, tmp_path: Path) -> None:
    file = write(tmp_path, make_grid(1, 8))
    page.open(file)
    assert page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert any("Content Security Policy" in fault for fault in page.faults())
    assert page.requests()[0] == file.as_uri()


@in_chromium
def test_the_shade_can_be_changed_and_charts_follow(page: Page, tmp_path: Path) -> None:
    page.open(write(tmp_path, make_grid(1, 8)), scheme="light")
    before = page.picture()
    page.run("document.getElementById('shade').click()")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 27)"
    assert page.run("document.querySelectorAll('#charts canvas').length") == 4
    assert page.picture() != before


@in_chromium
def test_the_maps_and_the_table_say_what_was_measured(page: Page, tmp_path: Path) -> None:
    page.open(write(tmp_path, make_grid(1, 8)))
    assert page.run("[...document.querySelectorAll('#map-rate td')].map((one) => one.textContent)") == [
        "100.0",
        "800.0",
        "50.0",
        "400.0",
    ]
    shades = page.run("[...document.querySelectorAll('#map-rate td')].map((one) => getComputedStyle(one).backgroundColor)")
    assert len(set(shades)) == 4


@in_chromium
def test_a_chart_can_be_saved_as_png_without_leaving_the_page(page: Page, tmp_path: Path) -> None:
    file = write(tmp_path, make_grid(1, 8))
    page.open(file)
    page.run(
        "window.links = [];"
        "HTMLAnchorElement.prototype.click = function () { window.links.push([this.download, this.href]); }"
    )
    page.run("document.querySelector('#chart-ttft button').click()")
    ((name, link),) = page.run("window.links")
    assert name == "ttft.png"
    assert link.startswith("data:image/png;base64,")
    assert page.requests() == [file.as_uri()]


@in_chromium
def test_words_of_others_are_shown_and_never_run(page: Page, tmp_path: Path) -> None:
    result = make_result(
        make_cell(content=EVIL),
        make_figure("total_e2e_tps", (1.0,)),
        warnings=(EVIL,),
        errors=((EVIL, 3),),
        speculation=SEEN,
    )
    run = make_run(result, model=EVIL, engine=EVIL, flags=(EVIL,), note=EVIL, words=(EVIL,), tool=EVIL)
    page.open(write(tmp_path, run))
    assert page.run("document.title").startswith(EVIL[:20])
    assert page.run("document.querySelector('h1').textContent").startswith(EVIL)
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.faults() == []


@in_chromium
def test_a_run_of_many_cells_and_tokens_is_drawn(page: Page, tmp_path: Path) -> None:
    run = make_grid(1, 2, 4, 8, 16, 32)
    file = write(tmp_path, run)
    assert file.stat().st_size < 300_000
    page.open(file)
    assert all(colours > 3 for colours in page.run(BLANK))


def test_a_published_run_has_a_report_too() -> None:
    text = render_page(load_published()["qwen3.6-27b-nvfp4-mtp"])
    assert "al-engr.com" in text
    assert "23.3*" in text


def test_the_page_holds_uplot_whole_with_its_licence() -> None:
    text = render_page(make_run(make_result()))
    assert (ASSETS / "uPlot.iife.min.js").read_text() in text
    assert "uPlot (v1.6.32)" in text
    assert (ASSETS / "LICENSE.uPlot").read_text() in text
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert "default-src 'none'" in text


def test_data_in_the_page_is_what_was_drawn() -> None:
    run = make_grid(1, 8)
    text = render_page(run).split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert json.loads(text) == json.loads(msgspec.json.encode(draw(run).charts))
