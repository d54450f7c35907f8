"""`docs/probes.md`: what `stoker verify` asks, from the probes' files."""

from __future__ import annotations

import tomllib
from pathlib import Path

from stoker.probes import find, names
from stoker.probes.kit.probe import Probe, name_of

NOTE = "<!-- Written by tools/make_docs.py from src/stoker/probes. -->"
VERDICTS = Path(__file__).parent.parent.parent / "docs" / "verdicts.toml"
SEEN = """\
With the demo model, through the gateway, `--deep`; llama.cpp and vLLM on a processor, where tests ask them again,
SGLang on an H200, by hand. What is not well: llama.cpp does not hold this model to the tool that a request names. vLLM
without a tool parser refuses tools, and its `/v1/responses` hands calls on as text; it guards `/v1` with the key, but
not `/tokenize` and `/invocations`; it counts no thoughts; and this model fills its JSON with blanks there. SGLang
without a tool parser hands calls on as text; with one it takes a call that was required without its arguments, and one
by name with a text in their place; it answers whoever reaches its port, counts thoughts where clients do not look,
repeats nothing for a seed, and drops images without a word where the model has no eyes; the one with parsers was not
asked since a quick engine is left once more. The demo model overlooks a number in a long text. Started with
`--embeddings --pooling mean`, llama.cpp gives vectors that pass."""
INTRODUCTION = """\
What `stoker verify` asks, in this order. [Verify](verify.md) tells how it is used and what the verdicts mean. Those
marked deep are asked with `--deep`, or by name. The checks that have `yes` under gate are asked before a service is READY,
where it requires that probe.
"""


def pages() -> dict[str, str]:
    """Returns the page by its path in `docs/`."""
    sections = [line for name in names() for line in _section(find(name))]
    return {"probes.md": "\n".join(["# Probes", "", NOTE, "", INTRODUCTION, *_seen(), *sections])}


def _seen() -> list[str]:
    """Returns the table of what was seen of real engines; the tests hold the engines to the same file."""
    engines = tomllib.loads(VERDICTS.read_text()).values()
    rows = [
        f"| [{name}](#{name}{'-deep' * find(name).deep}) | {' | '.join(one[name] for one in engines)} |" for name in names()
    ]
    titles = " | ".join(one["title"] for one in engines)
    return ["## Seen", "", SEEN, "", f"| probe | {titles} |", "| --- |" + " --- |" * len(engines), *rows, ""]


def _section(probe: Probe) -> list[str]:
    gate = probe.for_gate().checks
    checks = [
        f"| {name_of(check)} | {' '.join((check.__doc__ or '').split())} | {'yes' if check in gate else ''} |"
        for check in probe.checks
    ]
    return [
        f"## {probe.name}{' (deep)' if probe.deep else ''}", "",
        f"**Sends.** {probe.sends} At most {probe.tokens} tokens.", "",
        f"**Expects.** {probe.expects}", "", f"**A failure means:** {probe.means}", "", f"**To mend it:** {probe.mend}.", "",
        "| check | what it finds out | gate |", "| --- | --- | --- |", *checks, "",
    ]  # fmt: skip
