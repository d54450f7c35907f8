"""What there is to draw of a run of a benchmark: series of numbers with their words."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record


class Series(Record, frozen=True):
    """One line; None where it has no value."""

    label: str
    values: tuple[float | None, ...]


class Chart(Record, frozen=True):
    """Lines over one x; `bars` have words instead of x. `note` says what was left out or is doubtful."""

    name: str
    title: str
    kind: Literal["lines", "steps", "bars"]
    x_label: str
    y_label: str
    x: tuple[float, ...]
    series: tuple[Series, ...]
    words: tuple[str, ...] = ()
    note: str = ""


class HeatMap(Record, frozen=True):
    """Numbers in rows and columns; None where nothing was measured."""

    name: str
    title: str
    x_label: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]


class Pictures(Record, frozen=True):
    """All that can be drawn of a run."""

    charts: tuple[Chart, ...]
    heat_maps: tuple[HeatMap, ...]
