"""Turns into tables: medians, the spread over repeats, and ratios to a peer of the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.gateway.cells import CELLS, Cell, Turn, cpu_ms_per_1000_chunks

MIB = 2**20
UNKNOWN = "-"
HEADS = (
    "gateway", "chunk p50", "chunk p99", "TTFT p50", "TTFT p99", "CPU ms / 1000 chunks", "of nginx's", "CPU ms / reply",
    "chunks/s", "replies/s", "stretch", "peak MiB", "errors", "unfinished", "others' cores", "repeats",
)  # fmt: skip


def render(turns: list[Turn], cells: list[str], foreign_cores: float) -> str:
    """Returns all tables as Markdown."""
    parts = [render_cell(turns, name, foreign_cores) for name in cells]
    return "\n\n".join((*parts, render_processes(turns), render_failures(turns))).rstrip()


def render_cell(turns: list[Turn], name: str, foreign_cores: float) -> str:
    """Returns one cell's table; times in microseconds, the engine's own ones absolute, the gateways' what they add."""
    measured = {peer: calm(turns, peer, name, foreign_cores) for peer in peers_of(turns)}
    rows = [_row(peer, name, measured) for peer in measured if measured[peer]]
    return f"### {title(name)}\n\n{markdown(HEADS, rows)}"


def title(name: str) -> str:
    """Returns a cell's heading."""
    load = CELLS[name]
    if load.tokens == 1:
        return f"{load.streams} streams, one-chunk replies one after another"
    if not load.itl_ms:
        return f"{load.streams} streams, flat out"
    streams, rate = f"{load.streams} stream{'s' * (load.streams > 1)}", load.streams * 1000 / load.itl_ms
    return f"{streams}, {rate:.0f} chunks/s offered{', once more' if name.endswith('-again') else ''}"


def peers_of(turns: list[Turn]) -> list[str]:
    """Returns the peers in their order."""
    return list(dict.fromkeys(turn.peer for turn in turns))


def calm(turns: list[Turn], peer: str, name: str, foreign_cores: float) -> list[Cell]:
    """Returns the repeats of a cell that others did not disturb, or all where none was left in peace."""
    cells = [turn.cells[name] for turn in turns if turn.peer == peer and name in turn.cells]
    return [cell for cell in cells if cell.foreign_cores <= foreign_cores] or cells


def _row(peer: str, name: str, measured: dict[str, list[Cell]]) -> list[str]:
    cells = measured[peer]
    base = [] if peer == "direct" else measured.get("direct", [])
    is_paced = CELLS[name].itl_ms > 0  # flat out, a chunk's age is the length of the engine's own queue
    latencies = [_latency(cells, base, part, q) if is_paced else UNKNOWN for part, q in LATENCIES]
    lost = [str(sum(sum(cell.measured.errors.values()) for cell in cells)), str(sum(c.measured.unfinished for c in cells))]
    return [
        peer, *latencies, *_cpu(peer, cells, measured.get("nginx", [])),
        spread([cell.measured.chunks / cell.measured.wall_s for cell in cells]),
        spread([cell.measured.good / cell.measured.wall_s for cell in cells]),
        spread([cell.measured.stretch for cell in cells], 2),
        UNKNOWN if peer == "direct" else spread([cell.measured.rss_peak_bytes / MIB for cell in cells]),
        *lost, spread([cell.foreign_cores for cell in cells], 2), str(len(cells)),
    ]  # fmt: skip


LATENCIES = (("transit_us", "p50"), ("transit_us", "p99"), ("ttft_us", "p50"), ("ttft_us", "p99"))


def _latency(cells: list[Cell], base: list[Cell], part: str, quantile: str) -> str:
    values, bases = _quantiles(cells, part, quantile), _quantiles(base, part, quantile)
    return spread([value - (statistics.median(bases) if bases else 0.0) for value in values])


def _quantiles(cells: list[Cell], part: str, quantile: str) -> list[float]:
    found: list[dict[str, float] | None] = [getattr(cell.measured, part) for cell in cells]
    return [values[quantile] for values in found if values]


def _cpu(peer: str, cells: list[Cell], nginx: list[Cell]) -> list[str]:
    if peer == "direct":
        return [UNKNOWN] * 3
    per_chunk, per_reply = _costs(cells), [cell.measured.cpu_s * 1000 / max(1, cell.measured.good) for cell in cells]
    peers = _costs(nginx)
    ratio = f"{statistics.median(per_chunk) / statistics.median(peers):.2f}" if peers and per_chunk else UNKNOWN
    return [spread(per_chunk, 1), ratio, spread(per_reply, 2)]


def _costs(cells: list[Cell]) -> list[float]:
    return [cost for cell in cells if (cost := cpu_ms_per_1000_chunks(cell.measured)) is not None]


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Returns the median, and the lowest and highest where there are several."""
    if not values:
        return UNKNOWN
    median, low, high = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return median if low == high else f"{median} ({low} to {high})"


def render_processes(turns: list[Turn]) -> str:
    """Returns what each peer's processes take."""
    heads = ("gateway", "first answer after s", "idle MiB", "processes", "MiB after all cells", "SIGTERM to exit s")
    mine = {
        peer: [turn for turn in turns if turn.peer == peer and turn.cells] for peer in peers_of(turns) if peer != "direct"
    }
    rows = [[peer, *(spread(_known(took, get), digits) for get, digits in FIGURES)] for peer, took in mine.items() if took]
    return f"### Processes\n\n{markdown(heads, rows)}"


FIGURES: tuple[tuple[Callable[[Turn], float | None], int], ...] = (
    (lambda turn: turn.ready_s, 2),
    (lambda turn: turn.idle_rss_bytes / MIB, 0),
    (lambda turn: turn.processes, 0),
    (lambda turn: turn.after_rss_bytes / MIB, 0),
    (lambda turn: turn.stop_s, 2),
)


def _known(turns: list[Turn], get: Callable[[Turn], float | None]) -> list[float]:
    return [value for turn in turns if (value := get(turn)) is not None]


def render_failures(turns: list[Turn]) -> str:
    """Returns which turns came to nothing."""
    return "\n".join(f"- {turn.peer} failed: {turn.failed}" for turn in turns if turn.failed)


def markdown(heads: Sequence[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
