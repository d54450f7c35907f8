"""How a soak looks on a terminal: a few stretches of it, so that one sees whether it stayed as it began."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.cli.show import duration, size, table
from stoker.records import SeriesPoint

ROWS = 12
UNKNOWN = "-"
HEADINGS = ("from", "answered", "failed", "t/s all", "TTFT", "ms/token", "tokens a step", "memory left", "heat")


def soak_text(series: Sequence[SeriesPoint]) -> str:
    """Returns a table of so many stretches at most, from the first to the last; the report draws all of them."""
    step = max(1.0, (len(series) - 1) / (ROWS - 1))
    places = sorted({round(number * step) for number in range(ROWS) if round(number * step) < len(series)})
    return table(HEADINGS, [_row(series[place]) for place in places])


def _row(point: SeriesPoint) -> tuple[str, ...]:
    return (
        duration(point.at_s), str(point.answered), str(point.failed), f"{point.total_tps:.1f}", _ms(point.ttft_s, 1),
        _ms(point.itl_token_s, 2), UNKNOWN if point.accept_length is None else f"{point.accept_length:.2f}",
        size(point.available_bytes), UNKNOWN if point.temperature_c is None else f"{point.temperature_c:.0f} °C",
    )  # fmt: skip


def _ms(value_s: float | None, places: int) -> str:
    return UNKNOWN if value_s is None else f"{value_s * 1000:.{places}f}"
