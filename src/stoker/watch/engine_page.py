"""Reads an engine's own metrics into values that mean the same for all engines. Pure, and sure of nothing that it reads."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from stoker.engines import find
from stoker.watch.engine_series import ENGINE_SERIES, EngineSeries

# Cutting a page into lines holds the interpreter as long as it takes, and streams wait: it is done in small pieces.
PIECE_BYTES = 64 * 1024
ENDS = (b"_bucket", b"_sum", b"_count")
LABEL = re.compile(rb'(\w+)="((?:[^"\\]|\\.)*)"')
NOT_A_NUMBER, NO_NAMES = "not a number", "unknown names"
Labels = dict[bytes, bytes]
Buckets = tuple[tuple[float, float], ...]  # (upper bound, how many lie below it)


class Histogram(NamedTuple):
    """What lies below each bound, the last of which is infinite, and the sum of all."""

    buckets: Buckets
    total: float


class EnginePage(NamedTuple):
    """What a page told, by the names in `ENGINE_SERIES`, and what was wrong with it."""

    values: Mapping[str, float]
    histograms: Mapping[str, Histogram]
    problems: frozenset[str]


class _Spelling(NamedTuple):
    """An engine's name for something: which labels it has to have, and how new it is (0: the newest)."""

    series: EngineSeries
    labels: Labels
    age: int


class _Line(NamedTuple):
    name: bytes
    labels: Labels
    value: float


def read_page(engine: str, text: bytes) -> EnginePage:
    """Returns what a page in Prometheus's text form tells of an engine; values that are no amounts are left out and said."""
    spellings = _spellings_of(engine)
    found: defaultdict[EngineSeries, dict[int, list[_Line]]] = defaultdict(dict)
    problems = set[str]()
    for line in _lines(spellings, text):
        if not _is_amount(line.value):
            problems.add(NOT_A_NUMBER)
            continue
        for spelling in spellings[line.name]:
            if spelling.labels.items() <= line.labels.items():
                found[spelling.series].setdefault(spelling.age, []).append(line)
    newest = {series: lines[min(lines)] for series, lines in found.items()}
    if not newest:
        problems.add(NO_NAMES)
    values = {one.name: _join(one, lines) for one, lines in newest.items() if one.kind != "histogram"}
    histograms = {one.name: _histogram(lines) for one, lines in newest.items() if one.kind == "histogram"}
    return EnginePage(values, {name: one for name, one in histograms.items() if one.buckets}, frozenset(problems))


@lru_cache(8)
def _spellings_of(engine: str) -> Mapping[bytes, list[_Spelling]]:
    """Returns which series each name of a line is for."""
    known, spellings = find(engine), defaultdict[bytes, list[_Spelling]](list)
    for series in ENGINE_SERIES:
        written = [known.metrics[name] for name in series.neutral if name in known.metrics]
        written += [name for neutral in series.neutral for name in known.former_metrics.get(neutral, ())]
        for age, name in enumerate(written):
            bare, _, labels = name.encode().partition(b"{")
            for end in ENDS if series.kind == "histogram" else (b"",):
                spellings[bare + end].append(_Spelling(series, dict(LABEL.findall(labels)), age))
    return dict(spellings)


def _lines(names: Mapping[bytes, object], text: bytes) -> Iterator[_Line]:
    """Yields the lines with these names; most lines of a page have another one, and cost no more than a look at it."""
    for piece in _pieces(text):
        for line in piece.split(b"\n"):
            brace = line.find(b"{")
            name, _, rest = line.partition(b" ") if brace < 0 else (line[:brace], b"", line[brace:])
            if name in names:
                labels, _, value = rest.rpartition(b"}")
                words = value.split(maxsplit=1)  # a time may follow
                yield _Line(name, dict(LABEL.findall(labels)), _number(words[0] if words else b""))


def _pieces(text: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(text):
        end = text.find(b"\n", at + PIECE_BYTES)
        end = len(text) if end < 0 else end + 1
        yield text[at:end]
        at = end


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _is_amount(value: float) -> bool:
    return 0 <= value < 2**63  # false for NaN


def _join(series: EngineSeries, lines: Iterable[_Line]) -> float:
    values = [line.value for line in lines]
    total = math.fsum(values)
    return {"sum": total, "max": max(values), "mean": total / len(values)}[series.joined]


def _histogram(lines: Iterable[_Line]) -> Histogram:
    below: defaultdict[float, float] = defaultdict(float)
    total = 0.0
    for line in lines:
        if line.name.endswith(b"_bucket"):
            below[_number(line.labels.get(b"le", b""))] += line.value
        elif line.name.endswith(b"_sum"):
            total += line.value
    is_whole = math.inf in below and not any(math.isnan(bound) for bound in below)
    return Histogram(tuple(sorted(below.items())) if is_whole else (), total)
