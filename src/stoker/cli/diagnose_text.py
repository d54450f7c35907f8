"""How a diagnosis looks on a terminal."""

from __future__ import annotations

import json

import click

from stoker.cli.show import printable, wrapped
from stoker.records import Cause, Diagnosis, LogLine, Noise, Scalar

MOST_FINDINGS = 5
MOST_NOISE = 6
COLOURS = {"certain": "red", "likely": "yellow", "possible": "cyan"}


def diagnosis_text(told: Diagnosis) -> str:
    """Returns the findings, the cause first, then what is noise, then what nobody knows."""
    lines = [_head(told)]
    for number, cause in enumerate(told.findings[:MOST_FINDINGS], 1):
        lines += ["", *_finding(number, cause)]
    if len(told.findings) > MOST_FINDINGS:
        lines += ["", f"{len(told.findings) - MOST_FINDINGS} more findings: --json has them all"]
    lines += _noise(told.noise)
    return "\n".join([*lines, *_unknown(told)])


def _head(told: Diagnosis) -> str:
    whose = " ".join(part for part in (told.engine, told.version) if part) or "an engine that is not known"
    start = f", the last of {told.starts} starts" if told.starts > 1 else ""
    ready = "it said that it is ready" if told.ready else "it never said that it is ready"
    ready += ", and was told to stop" if told.stopped else ""
    lines = "line" if told.lines == 1 else "lines"
    return click.style(f"{told.source}: {whose}{start}; {told.lines:,} {lines}; {ready}", bold=True)


def _finding(number: int, cause: Cause) -> list[str]:
    sure = click.style(cause.confidence, fg=COLOURS[cause.confidence])
    lines = [*wrapped(f"{number}. {sure}: {cause.title}", "", "   "), *_lines(cause.evidence, cause.times)]
    lines += wrapped(f"why: {cause.cause}", "   ", "        ")
    if cause.hangs_on:
        lines += wrapped(f"if:  {'; '.join(cause.hangs_on)} - what yours is, is unknown", "   ", "        ")
    lines += wrapped(f"fix: {cause.fix}", "   ", "        ")
    if change := _change(cause):
        lines += wrapped(f"set: {change}", "   ", "        ")
    if cause.command:
        lines += [f"   run: {cause.command}"]
    said = "; ".join((cause.standing, cause.rule, *cause.sources[:1]))
    lines.append(click.style(f"   {said}", dim=True))
    if cause.local:
        lines.append(click.style(f"   your own rule, which wins over ours: {cause.local}", dim=True))
    return [*lines, *(click.style(f"   contradicts {other}", dim=True) for other in cause.contradicts)]


def _change(cause: Cause) -> str:
    """The changed wish, as `stoker.toml` has it where it is one for the engine."""
    flags = {name[2:]: value for name, value in cause.use.items() if name.startswith("--")}
    variables = {name[1:]: value for name, value in cause.use.items() if name.startswith("$")}
    others = [f"{name} {value}" for name, value in cause.use.items() if not name.startswith(("--", "$"))]
    said = [f"flags = {_table(flags)}" if flags else "", f"environment = {_table(variables)}" if variables else "", *others]
    left = f"leave out {', '.join(cause.drop)}" if cause.drop else ""
    return "; ".join(part for part in (*said, left) if part)


def _table(values: dict[str, Scalar]) -> str:
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items()) + " }"


def _lines(evidence: tuple[LogLine, ...], times: int = 1) -> list[str]:
    lines = [f"   {one.line:>6}  {printable(one.text)}" for one in evidence]
    if lines and times > len(lines):
        more = times - len(lines)
        lines.append(f"     and {more} more {'time' if more == 1 else 'times'}")
    return [click.style(line, dim=True) for line in lines]


def _noise(noise: tuple[Noise, ...]) -> list[str]:
    if not noise:
        return []
    lines = ["", "not the cause, though it may look like one:"]
    for one in noise[:MOST_NOISE]:
        lines += wrapped(f"line {one.evidence[0].line}: {one.title} [{one.rule}]", "   ", "     ")
    return lines


def _unknown(told: Diagnosis) -> list[str]:
    if not told.collect:
        return [] if told.findings else ["", "Nothing in it looks like a fault."]
    begin = "None of that is sure" if told.findings else "I don't know"
    lines = ["", f"{begin}. {_why_unknown(told)}", *_lines(told.unknown), "", "What would help:"]
    return [*lines, *(line for one in told.collect for line in wrapped(f"- {one}", "   ", "     "))]


def _why_unknown(told: Diagnosis) -> str:
    if not told.breaks_off:
        return "The most telling lines that no rule explains:"
    if not told.unknown:
        return "Nothing was said at all."
    yet = "the engine failed" if told.ready else "none says that the engine is ready"
    return f"No line looks like a fault, and yet {yet}. It ends with:"
