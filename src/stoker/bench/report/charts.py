"""What there is to draw of a run: series of numbers with their words. Pure; who draws them decides how they look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from stoker.bench.figures import answered
from stoker.bench.formats.figures import find_figure
from stoker.records import GIB, BenchCell, BenchLoad, BenchRun, CellResult, SeriesPoint
from stoker.records.bench_pictures import Chart, HeatMap, Pictures, Series

MOST_SERIES = 8  # more lines are told apart by nobody
MOST_POINTS = 240
MOST_BINS, LEAST_BINS, USUAL_BIN_S = 120, 12, 0.25  # finer bins show the engine's steps, not its rate
RATES = {"total_e2e_tps": "tokens a second, all", "total_decode_tps": "tokens a second while decoding, all",
         "request_decode_tps": "tokens a second, each"}  # fmt: skip


def draw(run: BenchRun) -> Pictures:
    """Returns what there is to draw; a run of another tool without requests has less."""
    makers = (throughput, ttft, over_time, accept_length_over_time, memory_over_time, accepted)
    charts = [chart for make in makers if (chart := make(run.cells)) is not None]
    maps = [found for name, title in HEAT.items() if (found := heat_map(run.cells, name, title)) is not None]
    return Pictures(tuple(charts), tuple(maps))


def median_of_figure(result: CellResult, name: str) -> float | None:
    """Returns a figure's median, or its mean where another tool gives no more."""
    figure = find_figure(result, name) or find_figure(result, f"mean_{name}")
    return figure.median if figure else None


def say_cell(cell: BenchCell) -> str:
    """Returns a cell in few words."""
    depth = f" @ d{cell.depth_tokens}" if cell.depth_tokens else ""
    return f"{say_lengths(cell)}{depth}, {say_load(cell.load)}"


def say_lengths(cell: BenchCell) -> str:
    """Returns a cell's lengths, behind its text where that is not the usual one: `pp512 tg128`, `code pp512 tg128`."""
    text = f"{cell.content} " if cell.content in ("code", "chat") else ""
    return f"{text}pp{cell.prompt_tokens}" + ("" if cell.new_tokens is None else f" tg{cell.new_tokens}")


def say_load(load: BenchLoad) -> str:
    """Returns a load in few words."""
    if load.arrivals == "closed":
        return f"c{load.concurrency}"
    return load.arrivals if load.rate_per_s is None else f"{load.rate_per_s:g}/s"


# Throughput.


def _rate_name(cells: Sequence[CellResult]) -> str | None:
    return next((name for name in RATES if any(median_of_figure(one, name) is not None for one in cells)), None)


def throughput(cells: Sequence[CellResult]) -> Chart | None:
    """Returns tokens a second over concurrency, or cell by cell where only one was tried."""
    name = _rate_name(cells)
    if name is None:
        return None
    closed = [one for one in cells if one.cell.load.arrivals == "closed" and one.cell.load.concurrency]
    loads = sorted({one.cell.load.concurrency or 0 for one in closed})
    if len(loads) < 2 or len(closed) < len(cells):
        words = tuple(say_cell(one.cell) for one in cells)
        values = tuple(median_of_figure(one, name) for one in cells)
        places = tuple(map(float, range(len(cells))))
        return Chart("throughput", "Throughput", "bars", "", RATES[name], places, (Series("median", values),), words)
    groups: defaultdict[str, dict[int, float | None]] = defaultdict(dict)
    for one in closed:
        depth = f" @ d{one.cell.depth_tokens}" if one.cell.depth_tokens else ""
        groups[f"{say_lengths(one.cell)}{depth}"][one.cell.load.concurrency or 0] = median_of_figure(one, name)
    series = [Series(label, tuple(rates.get(load) for load in loads)) for label, rates in groups.items()]
    return _chart("throughput", "Throughput", "lines", ("requests at once", RATES[name]), tuple(map(float, loads)), series)


def _chart(
    name: str,
    title: str,
    kind: Literal["lines", "steps"],
    labels: tuple[str, str],
    x: tuple[float, ...],
    series: list[Series],
) -> Chart:
    note = f"the first {MOST_SERIES} of {len(series)}" if len(series) > MOST_SERIES else ""
    return Chart(name, title, kind, *labels, x, tuple(series[:MOST_SERIES]), note=note)


# Distributions and time.


def ttft(cells: Sequence[CellResult]) -> Chart | None:
    """Returns which share of requests had their first token within a time, for each cell."""
    told = {
        say_cell(one.cell): sorted(figure.values)
        for one in cells
        if (figure := find_figure(one, "ttft_s")) and figure.values
    }
    if not told:
        return None
    shown = dict(list(told.items())[:MOST_SERIES])
    times = sorted({value for values in shown.values() for value in values})
    step = max(1, len(times) // MOST_POINTS)
    x = sorted({*times[::step], times[-1]})
    series = [Series(label, tuple(_share_within(told[label], at) for at in x)) for label in told]
    title, labels = "Time to first token", ("ms", "share of requests that had it")
    return _chart("ttft", title, "steps", labels, tuple(round(at * 1000, 3) for at in x), series)


def _share_within(values: Sequence[float], at: float) -> float:
    return sum(value <= at for value in values) / len(values)


def over_time(cells: Sequence[CellResult]) -> Chart | None:
    """Returns tokens a second as time went by: of a soak its series, else of each cell's last repeat, read by read."""
    if any(len(one.series) > 1 for one in cells):
        return _of_soak(cells, ("time", "Rate over time", "tokens a second, all"), lambda point: point.total_tps)
    reads = {say_cell(one.cell): list(_reads(one)) for one in cells if one.repeats}
    reads = {label: each for label, each in reads.items() if each}
    if not reads:
        return None
    shown = list(reads.items())[:MOST_SERIES]
    longest_s = max(at for _, each in shown for at, _ in each)
    bin_s = max(longest_s / MOST_BINS, min(USUAL_BIN_S, longest_s / LEAST_BINS)) or 1.0
    bins = int(longest_s / bin_s) + 1
    x = tuple(round((place + 0.5) * bin_s, 4) for place in range(bins))
    series = [Series(label, _rates(each, bins, bin_s)) for label, each in reads.items()]
    labels = ("s since the repeat began", "tokens a second, all")
    return _chart("time", "Rate over time, last repeat of each cell", "steps", labels, x, series)


def accept_length_over_time(cells: Sequence[CellResult]) -> Chart | None:
    """Returns the tokens a verify step of a soak as time went by."""
    words = "accept-length-time", "Accept length over time", "tokens a verify step"
    return _of_soak(cells, words, lambda point: point.accept_length)


def memory_over_time(cells: Sequence[CellResult]) -> Chart | None:
    """Returns how much memory was left at the least while a soak went on."""
    words = "memory-time", "Memory left over time", "GiB available, at the least"
    return _of_soak(
        cells, words, lambda point: None if point.available_bytes is None else round(point.available_bytes / GIB, 3)
    )


def _of_soak(
    cells: Sequence[CellResult], words: tuple[str, str, str], value_of: Callable[[SeriesPoint], float | None]
) -> Chart | None:
    """Returns one value of the first soak's series; None where there is no soak, or nobody knows the value."""
    soaked = next((one for one in cells if len(one.series) > 1), None)
    if soaked is None or not any(value_of(point) is not None for point in soaked.series):
        return None
    name, title, label = words
    x = tuple(round(point.at_s, 3) for point in soaked.series)
    series = [Series(say_cell(soaked.cell), tuple(map(value_of, soaked.series)))]
    return _chart(name, title, "lines", ("s", label), x, series)


def _reads(result: CellResult) -> Iterator[tuple[float, int]]:
    for request in answered(result.repeats[-1]):
        for write in request.writes:
            yield request.sent_at_s + write.at_s, write.tokens or 0


def _rates(reads: Sequence[tuple[float, int]], bins: int, bin_s: float) -> tuple[float | None, ...]:
    counts = [0] * bins
    for at, tokens in reads:
        if at < bins * bin_s:  # of a cell that is not shown
            counts[int(at / bin_s)] += tokens
    last = int(max(at for at, _ in reads) / bin_s)
    return tuple(round(count / bin_s, 3) if place <= last else None for place, count in enumerate(counts))


def accepted(cells: Sequence[CellResult]) -> Chart | None:
    """Returns which share of verify steps accepted the draft token at each position."""
    told = {
        say_cell(one.cell): rates for one in cells if one.speculation and (rates := one.speculation.accept_rate_by_position)
    }
    if not told:
        return None
    most = max(map(len, told.values()))
    series = [Series(label, (*rates, *(None,) * (most - len(rates)))) for label, rates in told.items()]
    labels = ("position of the draft token", "share of verify steps that accepted it")
    return _chart("accepted", "Accepted draft tokens", "lines", labels, tuple(map(float, range(1, most + 1))), series)


# Heat maps.

HEAT = {"rate": "Tokens a second", "ttft_s": "Time to first token, ms"}


def heat_map(cells: Sequence[CellResult], name: str, title: str) -> HeatMap | None:
    """Returns a figure by prompt and depth (rows) and load (columns); None where that would be one row or column."""
    rate = _rate_name(cells) if name == "rate" else name
    if rate is None:
        return None
    rows = list(dict.fromkeys(_row_of(one.cell) for one in cells))
    columns = list(dict.fromkeys(say_load(one.cell.load) for one in cells))
    if len(rows) < 2 or len(columns) < 2:
        return None
    scale: Callable[[float], float] = (lambda value: value * 1000) if name == "ttft_s" else (lambda value: value)
    found = {
        (_row_of(one.cell), say_load(one.cell.load)): scale(value)
        for one in cells if (value := median_of_figure(one, rate)) is not None
    }  # fmt: skip
    values = tuple(tuple(found.get((row, column)) for column in columns) for row in rows)
    heading = RATES[rate].capitalize() if name == "rate" else title
    return HeatMap(f"map-{name}", heading, "load", tuple(columns), tuple(rows), values) if found else None


def _row_of(cell: BenchCell) -> str:
    return f"{say_lengths(cell)} @ d{cell.depth_tokens}"
