"""`docs/probes.md`: what `stoker verify` asks, from the probes' files."""

from __future__ import annotations

from stoker.probes import find, names
from stoker.probes.kit.probe import Probe, name_of

NOTE = "<!-- Written by tools/make_docs.py from src/stoker/probes. -->"
INTRODUCTION = """\
What `stoker verify` asks, in this order. [Verify](verify.md) tells how it is used and what the verdicts mean. Those marked deep are
asked with `--deep`, or by name.
"""


def pages() -> dict[str, str]:
    """Returns the page by its path in `docs/`."""
    sections = [line for name in names() for line in _section(find(name))]
    return {"probes.md": "\n".join(["# Probes", "", NOTE, "", INTRODUCTION, *sections])}


def _section(probe: Probe) -> list[str]:
    checks = [f"| {name_of(check)} | {' '.join((check.__doc__ or '').split())} |" for check in probe.checks]
    return [
        f"## {probe.name}{' (deep)' if probe.deep else ''}", "",
        f"**Sends.** {probe.sends} At most {probe.tokens} tokens.", "",
        f"**Expects.** {probe.expects}", "", f"**A failure means:** {probe.means}", "", f"**To mend it:** {probe.mend}.", "",
        "| check | what it finds out |", "| --- | --- |", *checks, "",
    ]  # fmt: skip
