"""How a client's settings, and what was found in them, look on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from stoker.cli.plan_text import findings_lines
from stoker.cli.show import printable, table, wrapped
from stoker.records import ClientConfig, ClientReport, McpStart


def reasons_text(config: ClientConfig) -> str:
    """Returns where the text for a client belongs, and the reasons of what it says."""
    lines = [click.style(f"{config.title}: this is for {config.place}", bold=True)]
    for one in config.settings:
        named = f"{one.name} = {one.value}" if one.value else one.name
        lines += [f"  {named}", *wrapped(one.because, "      ", "      ")]
    if config.key_file:
        lines += [f"key in {config.key_file}" + (f": {config.key}" if config.key else "; --with-key prints it")]
    return "\n".join(lines)


def report_text(report: ClientReport) -> str:
    """Returns what was found, how the servers started, what nobody knows, and what was written."""
    safe = [msgspec.structs.replace(one, what=printable(one.what), where=printable(one.where)) for one in report.findings]
    lines = findings_lines(safe, {}) or [f"nothing is known against {report.file}"]
    lines += ["", *_starts(report)] if report.starts else []
    lines += [click.style(f"unknown: {what}", dim=True) for what in report.unknown]
    lines += [f"{report.mended} was mended; it was copied to {report.backup} before"] if report.mended else []
    return "\n".join(lines)


def _starts(report: ClientReport) -> Iterator[str]:
    yield table(("server", "ready", "tools", ""), [_row(one) for one in report.starts])
    times = [one.ready_s for one in report.starts if one.ready_s is not None]
    if times:
        yield from wrapped(
            f"They are asked for their tools at once, so the slowest decides: {max(times):.1f} s. Each is started again "
            f"at its first call: {sum(times):.1f} s for all of them."
        )


def _row(start: McpStart) -> tuple[str, ...]:
    ready = "-" if start.ready_s is None else f"{start.ready_s:.1f} s"
    return (printable(start.server), ready, "-" if start.tools is None else str(start.tools), printable(start.why)[:100])
