"""How a plan over several boxes looks on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stoker.cli.plan_text import findings_lines
from stoker.cli.predict_text import say_rate
from stoker.cli.show import table, wrapped
from stoker.records import Setting, say_bytes
from stoker.records.spread import Link, RankPlan, SpreadReport, WayView
from stoker.rules.load import load_rules

KINDS = {"rdma": "RDMA", "sockets": "no RDMA", "unknown": "unknown"}


def spread_text(report: SpreadReport, explain: bool) -> str:
    """Returns the report: the link, the ways side by side, what was chosen, what each box is told, and what is wrong."""
    lines = [f"{click.style(report.service, bold=True)}  over {', '.join(report.boxes)}", ""]
    lines += [*_link(report.link), "", *ways_lines(report.ways), ""]
    if report.chosen is not None:
        lines += [*wrapped(f"chosen  {_name(report.chosen)}: {report.because}", "", "        "), ""]
    lines += _ranks(report.ranks, explain)
    rules = {rule.id: rule for rule in load_rules()} if explain else {}
    return "\n".join([*lines, *findings_lines(report.findings, rules)]).rstrip()


def _link(link: Link) -> list[str]:
    lines = wrapped(f"link    {KINDS[link.kind]}: {link.because}", "", "        ")
    for rank in link.ranks:
        told = (rank.interface, rank.address, ",".join(rank.devices), rank.rate_gbit and f"{rank.rate_gbit:g} Gb/s",
                rank.mtu and f"MTU {rank.mtu}")  # fmt: skip
        said = ", ".join(str(one) for one in told if one)
        lines.append(f"        {rank.box}: {said or 'nothing known'}")
    return lines


def ways_lines(ways: Sequence[WayView]) -> list[str]:
    """Returns the ways as a table, and below it what is against some of them."""
    counts = next(([one.requests for one in way.speeds] for way in ways if way.speeds), [])
    heads = ["  way", "memory a box", "cache"]
    heads += [f"{count} at once" if count > 1 else "one request" for count in counts]
    rows = [(f"  {_name(way)}", _memory(way), f"{way.kv_tokens:,}" if way.kv_tokens else "-", *_rates(way)) for way in ways]
    lines = [table((*heads, *("each",) * (len(counts) > 1)), rows)]
    if counts:
        lines.append("  predicted tok/s of all together, from the slowest to the fastest to be expected, not measured")
    for way in ways:
        if way.why_not:
            rule = f" (rule {way.rule})" if way.rule else ""
            lines += wrapped(f"not {_name(way)}: {way.why_not}{rule}", "  ", "      ")
    return lines


def _name(way: WayView) -> str:
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


def _ranks(ranks: Sequence[RankPlan], explain: bool) -> list[str]:
    """The settings that all share once, then what each alone is told."""
    if not ranks:
        return []
    said = [{(one.name, str(one.value)): one for one in rank.plan.settings} for rank in ranks]
    common = [one for key, one in said[0].items() if all(key in other for other in said)]
    lines = [f"each box  {ranks[0].plan.engine} {ranks[0].plan.engine_version or ''}".rstrip(), *_settings(common, explain), ""]
    for rank, own in zip(ranks, said, strict=True):
        memory = f", {say_bytes(rank.budget.total_bytes)}" if rank.budget else ""
        lines.append(f"rank {rank.rank} on {rank.box}{memory}")
        lines += _settings([one for one in own.values() if one not in common], explain=True)
        for words in (rank.before, rank.instead):
            lines += [f"  {' '.join(words)}"] if words else []
        lines.append("")
    return lines


def _settings(settings: Sequence[Setting], explain: bool) -> list[str]:
    shown = [one for one in settings if one.name.startswith(("--", "$"))]
    width = max((len(_say(one)) for one in shown), default=0)
    return [f"  {_say(one):<{width}}  {one.because}".rstrip() if explain else f"  {_say(one)}" for one in shown]


def _say(one: Setting) -> str:
    if one.value is True:
        return one.name
    words = " ".join(map(str, one.value)) if isinstance(one.value, tuple) else str(one.value)
    return f"{one.name}={words}" if one.name.startswith("$") else f"{one.name} {words}"
