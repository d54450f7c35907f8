"""How a plan over several boxes looks on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stoker.cli.plan_text import findings_lines
from stoker.cli.show import wrapped
from stoker.cli.ways_text import name_of, ways_lines
from stoker.records import Setting, say_bytes
from stoker.records.ranks import Link
from stoker.records.spread import RankPlan, SpreadReport
from stoker.rules.load import load_rules

KINDS = {"rdma": "RDMA", "sockets": "no RDMA", "unknown": "unknown"}


def spread_text(report: SpreadReport, explain: bool) -> str:
    """Returns the report: the link, the ways side by side, what was chosen, what each box is told, and what is wrong."""
    lines = [f"{click.style(report.service, bold=True)}  over {', '.join(report.boxes)}", ""]
    lines += [*_link(report.link), "", *ways_lines(report.ways), ""]
    if report.chosen is not None:
        lines += [*wrapped(f"chosen  {name_of(report.chosen)}: {report.because}", "", "        "), ""]
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


def _ranks(ranks: Sequence[RankPlan], explain: bool) -> list[str]:
    """The settings that all share once, then what each alone is told."""
    if not ranks:
        return []
    said = [{(one.name, str(one.value)): one for one in rank.plan.settings} for rank in ranks]
    common = [one for key, one in said[0].items() if all(key in other for other in said)]
    lines = [
        f"each box  {ranks[0].plan.engine} {ranks[0].plan.engine_version or ''}".rstrip(),
        *_settings(common, explain),
        "",
    ]
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
