"""How the proof of an endpoint looks: on a terminal, and as the reports that other programs read."""

from __future__ import annotations

import re
import time
from itertools import groupby

import click

from stoker.cli.show import place_text, printable, wrapped
from stoker.records import CheckResult, KeptVerification, ProbeResult, Target, Verdict, Verification, say_s

COLOURS = {
    Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.DEGRADED: "yellow", Verdict.NOT_OFFERED: "cyan",
    Verdict.UNKNOWN: "magenta",
}  # fmt: skip
WIDEST = max(map(len, Verdict))
QUOTED = re.compile(r"(?<!\w)(['\"])[^'\"]{1,70}\1(?!\w)")  # what checks quote is cut at 60 characters
UNBROKEN = "\N{NO-BREAK SPACE}"  # no place to break a line at
INDENT = " " * (WIDEST + 2)


def probe_text(result: ProbeResult, *, everything: bool = False) -> str:
    """Returns a probe's verdict, and below it each check that did not pass, with what to do."""
    shown = [check for check in result.checks if everything or check.verdict is not Verdict.PASS]
    lines = [f"{_verdict(result.verdict)}  {click.style(result.name, bold=True)}  {_summary(result)}"]
    for _, alike in groupby(shown, _what):
        lines += _checks(list(alike))
    return "\n".join(lines)


def _summary(result: ProbeResult) -> str:
    names = [check.name for check in result.checks if check.verdict is Verdict.PASS]
    return click.style(f"{len(names)} of {len(result.checks)} pass{': ' if names else ''}{', '.join(names)}", dim=True)


def _what(check: CheckResult) -> tuple[Verdict, str, str]:
    return check.verdict, check.says, check.mend


def _checks(alike: list[CheckResult]) -> list[str]:
    """Returns the lines of checks of which the same is to be said, as where nothing answers."""
    verdict, says, to_mend = _what(alike[0])
    names = ", ".join(check.name for check in alike)
    said = [
        line.replace(UNBROKEN, " ")
        for line in wrapped(_hold_quoted(printable(f"{names}: {says}")), f"{INDENT}{verdict}  ", INDENT + "    ")
    ]
    mend = wrapped(printable(f"mend: {to_mend}"), INDENT + "    ", INDENT + "      ") if to_mend else []
    return [*said, *mend]


def _hold_quoted(text: str) -> str:
    """Keeps what a model said on one line, so that its words are told from ours."""
    return QUOTED.sub(lambda found: found[0].replace(" ", UNBROKEN), text)


def _verdict(verdict: Verdict) -> str:
    return click.style(f"{verdict:<{WIDEST}}", fg=COLOURS[verdict])


def heading_text(target: Target) -> str:
    """Returns the line above the results."""
    return f"{click.style(target.model, bold=True)} {place_text(target.url, target.box)}\n"


def kept_text(kept: KeptVerification) -> str:
    """Returns the line above the results of a former time."""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept.verification.begun))
    who = f"its gate asked for {', '.join(kept.required)}" if kept.occasion == "gate" else "you asked"
    engine = f"{kept.engine} {kept.engine_version}" if kept.engine_version else kept.engine
    return f"{click.style(kept.service, bold=True)} by plan {kept.plan_id} with {engine}, {at}: {who}\n"


def gate_text(view: Verification, service: str) -> str:
    """Returns why a service that is READY may fail here; empty where nothing failed."""
    if view.verdict is not Verdict.FAIL:
        return ""
    said = (
        f"{service} goes on serving: before it was READY its gate asked what every client relies on, and less of that than"
        " `verify` does (docs/verify.md). What fails here is what clients that use it will miss."
    )
    return "\n".join(wrapped(said))


def closing_text(view: Verification) -> str:
    """Returns the line below the results."""
    counts = {verdict: sum(one.verdict is verdict for one in view.probes) for verdict in Verdict}
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    late = "" if view.in_time else f"; the {say_s(view.budget_s)} were not enough for all of it"
    verdict = click.style(view.verdict, fg=COLOURS[view.verdict], bold=True)
    return f"\n{verdict}: {said}, in {say_s(view.took_s)}{late}"
