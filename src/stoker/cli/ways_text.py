"""How the ways to use several boxes look on a terminal, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.cli.rates_text import say_rate
from stoker.cli.show import table, wrapped
from stoker.records import say_bytes
from stoker.records.speed import WayView


def ways_lines(ways: Sequence[WayView]) -> list[str]:
    """Returns the ways as a table, and below it what is against some of them."""
    counts = next(([one.requests for one in way.speeds] for way in ways if way.speeds), [])
    heads = ["  way", "memory a box", "cache"]
    heads += [f"{count} at once" if count > 1 else "one request" for count in counts]
    rows = [
        (f"  {name_of(way)}", _memory(way), f"{way.kv_tokens:,}" if way.kv_tokens else "-", *_rates(way)) for way in ways
    ]
    lines = [table((*heads, *("each",) * (len(counts) > 1)), rows)]
    if counts:
        lines.append("  predicted tok/s of all together, from the slowest to the fastest to be expected, not measured")
    for way in ways:
        if way.why_not:
            rule = f" (rule {way.rule})" if way.rule else ""
            lines += wrapped(f"not {name_of(way)}: {way.why_not}{rule}", "  ", "      ")
    return lines


def name_of(way: WayView) -> str:
    """Returns what a way is called: one box, 2 copies, TP=2, TP=2 PP=2."""
    if way.kind == "one box":
        return "one box"
    if way.kind == "replicas":
        return f"{way.boxes} copies"
    sizes = [f"TP={way.tensor}" if way.tensor > 1 else "", f"PP={way.pipeline}" if way.pipeline > 1 else ""]
    return " ".join(size for size in sizes if size)


def _memory(way: WayView) -> str:
    if way.need_bytes is None:
        return "-"
    return say_bytes(way.need_bytes) + ("" if way.fits else ", too much")


def _rates(way: WayView) -> tuple[str, ...]:
    if way.fits is False:
        return tuple("-" for _ in way.speeds) + (("-",) if len(way.speeds) > 1 else ())
    said = [
        f"{say_rate(one.total.decode_tok_s)} ({say_rate(one.total.low_tok_s)} to {say_rate(one.total.high_tok_s)})"
        for one in way.speeds
    ]
    each = (say_rate(way.speeds[-1].each.decode_tok_s),) if len(way.speeds) > 1 else ()
    return (*said, *each)
