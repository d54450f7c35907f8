"""Writes pictures of a run: a page, an SVG, or a PNG of the SVG, which a Chromium draws where there is one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from stoker.bench.report.charts import draw
from stoker.bench.report.page import render_page
from stoker.bench.report.svg import render_svg
from stoker.box import Box, LocalBox
from stoker.config import Paths
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.bench_runs import find_run, write_text
from stoker.records import BenchRun

KINDS = (".html", ".svg", ".png")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_LIMIT_S = 60.0


def write_report(paths: Paths, name: str, file: Path) -> None:
    """Writes a run's pictures as the kind of file that its name says; raises WrongUse, Refused, StokerError."""
    if file.suffix not in KINDS:
        raise WrongUse(f"{file} says not what to write", next_step=f"let its name end in {', '.join(KINDS)}")
    run = find_run(paths, name).run
    if not run.cells:
        raise WrongUse(f"run {name} has no cells, so there is nothing to draw")
    if file.suffix == ".html":
        write_text(file, render_page(run))
        return
    svg, width, height = render_svg(draw(run), _title(run))
    if file.suffix == ".svg":
        write_text(file, svg)
    else:
        _write_png(LocalBox(), svg, (width, height), file)


def _title(run: BenchRun) -> str:
    engine = " ".join(part for part in (run.subject.engine, run.subject.engine_version) if part)
    return f"{run.subject.model}{f' on {engine}' if engine else ''}, measured by {run.tool}"


def _write_png(box: Box, svg: str, size: tuple[int, int], file: Path) -> None:
    chromium = next((found for name in CHROMIUMS if (found := box.find_program(name))), None)
    if chromium is None:
        raise Refused(
            "a PNG needs Chromium, and there is none on the search path",
            why="it draws the SVG; Stoker brings no program that draws",
            next_step="write .svg or .html instead (its charts have a button for PNG), or install chromium",
        )
    with tempfile.TemporaryDirectory() as folder:
        sheet, picture = Path(folder) / "sheet.svg", Path(folder) / "sheet.png"
        write_text(sheet, svg)
        box.run(_words(chromium, sheet, picture, size), CHROMIUM_LIMIT_S)
        if not picture.exists():
            raise StokerError(f"{chromium} drew nothing", next_step="write .svg or .html instead")
        try:
            file.write_bytes(picture.read_bytes())
        except OSError as problem:
            raise StokerError(f"{file} cannot be written", why=problem.strerror or str(problem)) from problem


def _words(chromium: str, sheet: Path, picture: Path, size: tuple[int, int]) -> tuple[str, ...]:
    alone = ("--no-sandbox",) if os.geteuid() == 0 else ()  # Chromium starts for root in no other way; the SVG is ours
    return (
        chromium, "--headless", *alone, "--disable-gpu", "--no-first-run", f"--user-data-dir={sheet.parent / 'profile'}",
        f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}", sheet.as_uri(),
    )  # fmt: skip
