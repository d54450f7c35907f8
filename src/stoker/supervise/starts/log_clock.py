"""When the lines of an engine's log were written: by the log's own clock, else by when they arrived. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stoker.records import LogForm

# A leap year, so that no day is impossible: what an undated log is counted from where nothing tells the year.
SOME_YEAR = 2000
QUARTER_HOUR_S = 900.0  # time zones differ by whole ones
DAY_PARTS = ("year", "month", "day", "hour", "minute", "second")


class Line(NamedTuple):
    """A line of a log and when it was written, in seconds; None where nothing tells. `stamp` is by the log's own clock."""

    at: float | None
    stamp: float | None
    text: str


def read_clock(form: LogForm, lines: Iterable[tuple[float | None, str]], begun_at: float | None) -> list[Line]:
    """Returns the lines with their times: on the clock of the arrivals where there are any, else on the log's own.

    A clock that counts from the start is anchored by the arrivals, one with a date may differ from them by a time zone.
    """
    given = list(lines)
    first_s = begun_at if begun_at is not None else next((arrived for arrived, _ in given if arrived is not None), None)
    stamps = list(_stamps(form, (text for _, text in given), first_s))
    shift = _shift(form, [(arrived, stamp) for (arrived, _), stamp in zip(given, stamps, strict=True)], begun_at)
    return [
        Line(stamp + shift if stamp is not None else arrived, stamp, text)
        for (arrived, text), stamp in zip(given, stamps, strict=True)
    ]


def _shift(form: LogForm, seen: list[tuple[float | None, float | None]], begun_at: float | None) -> float:
    """What to add to the log's own time: no line was written before the start or after it arrived."""
    behind = [arrived - stamp for arrived, stamp in seen if arrived is not None and stamp is not None]
    if not behind:
        return 0.0
    if _is_dated(form):
        return round(min(behind) / QUARTER_HOUR_S) * QUARTER_HOUR_S
    return max(min(behind), begun_at if begun_at is not None else min(behind))


def _is_dated(form: LogForm) -> bool:
    return "day" in re.compile(form.stamp).groupindex


def _stamps(form: LogForm, texts: Iterable[str], near_s: float | None) -> Iterator[float | None]:
    pattern = re.compile(form.stamp)
    for text in texts:
        found = pattern.search(text)
        stamp = _seconds(found.groupdict(), near_s) if found else None
        near_s = near_s if stamp is None else stamp
        yield stamp


def _seconds(parts: dict[str, str | None], near_s: float | None) -> float | None:
    """Returns a stamp in seconds; one without a year is in that year which brings it nearest to the line before."""
    part_s = int(parts.get("milli") or 0) / 1e3 + int(parts.get("micro") or 0) / 1e6
    if parts.get("day") is None:
        return int(parts["minute"] or 0) * 60 + int(parts["second"] or 0) + part_s
    numbers = [int(parts.get(name) or 0) for name in DAY_PARTS]
    near_year = SOME_YEAR if near_s is None else _year(near_s)
    years = (numbers[0],) if numbers[0] else (near_year, near_year - 1, near_year + 1)
    dates = [date for year in years if (date := _date(year, numbers[1:])) is not None]
    return min(dates, key=lambda date: 0.0 if near_s is None else abs(date - near_s)) + part_s if dates else None


def _year(seconds: float) -> int:
    try:
        return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC).year
    except (OverflowError, ValueError, OSError):
        return SOME_YEAR


def _date(year: int, numbers: list[int]) -> float | None:
    month, day, hour, minute, second = numbers
    try:
        return datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC).timestamp()
    except (ValueError, OverflowError):  # such a day there is not, or not in this year
        return None


def last_start(form: LogForm, texts: list[str]) -> tuple[int, int]:
    """Returns where the last start in a log begins, and where it is over because the engine said that it is ready.

    It begins with its first words, where something of another start came before them.
    """
    starts, ready, signs = (
        re.compile(form.starts),
        re.compile(form.ready),
        [re.compile(sign.pattern) for sign in form.signs],
    )
    begin, has_worked = 0, False
    for number, text in enumerate(texts):
        if starts.search(text):
            begin, has_worked = (number, False) if has_worked else (begin, False)
        elif not has_worked:
            has_worked = any(sign.search(text) for sign in (ready, *signs))
    end = next((number for number in range(begin, len(texts)) if ready.search(texts[number])), len(texts) - 1)
    return begin, end + 1
