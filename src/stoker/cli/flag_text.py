"""How an engine's flags, and what is different between two versions of it, look on a terminal."""

from __future__ import annotations

import click

from stoker.cli.show import wrapped
from stoker.records import Flag
from stoker.records.flags import CatalogChanges, Changed, FlagsView, Renamed

ANYTHING = "anything"  # what `flag_changes` says of a flag that has no list of values
FEW = 8  # values that are shown of one flag; `--json` has them all


def flags_text(view: FlagsView) -> str:
    """Returns the flags of one version: each with what it takes, its default, and since when it is known."""
    lines = [click.style(view.note, fg="yellow")] if view.note else []
    lines.append(f"{view.engine} {view.version}: {len(view.flags)} flags, from {view.source}")
    for one in view.flags:
        default, takes = _default(one.flag), _takes(one.flag)
        facts = (
            takes, f"default {default}" if default else "", _lived(one.since, one.until),
            f"deprecated: {one.flag.deprecated}" if one.flag.deprecated else "",
        )  # fmt: skip
        said = "; ".join(fact for fact in facts if fact)
        lines += wrapped(f"{_words(one.flag)}   {said}".rstrip(), "", "    ")
    return "\n".join(lines if view.flags else [*lines, "none match"])


def changes_text(changes: CatalogChanges) -> str:
    """Returns what was added, removed, renamed, re-defaulted, and what takes other values."""
    parts = (
        ("added", [f"{_words(flag)}  {_takes(flag)}" for flag in changes.added]),
        ("removed", [_words(flag) for flag in changes.removed]),
        ("renamed", [_renamed(one) for one in changes.renamed]),
        ("another default", [_changed(one) for one in changes.defaults]),
        ("other values", [_values(one) for one in changes.choices]),
        ("other words", [_values(one) for one in changes.words]),
        ("another type", [_changed(one) for one in changes.types]),
        ("deprecated", [f"{one.name}: {one.after or 'no longer'}" for one in changes.deprecated]),
    )
    said = [
        "\n".join([click.style(f"{title} ({len(lines)})", bold=True), *(f"  {line}" for line in lines)])
        for title, lines in parts
        if lines
    ]
    head = f"{changes.engine} {changes.before} -> {changes.after}"
    return "\n\n".join([head, *(said or ["nothing is different"])])


def _words(flag: Flag) -> str:
    return ", ".join([flag.name, *flag.aliases, *flag.negated])


def _takes(flag: Flag) -> str:
    listed = _few(flag.choices) if flag.choices else f"{_few(flag.named)} or others" if flag.named else ""
    text = listed or {"switch": "", "unknown": "a value"}.get(flag.type, flag.type)
    return f"{text} ..." if flag.many else f"[{text}]" if flag.optional else text


def _few(values: tuple[str, ...]) -> str:
    more = len(values) - FEW
    return ", ".join(values[:FEW]) + (f" and {more} more" if more > 0 else "")


def _default(flag: Flag) -> str:
    return "" if flag.default is None else str(flag.default).lower() if isinstance(flag.default, bool) else str(flag.default)


def _lived(since: str | None, until: str | None) -> str:
    return " ".join(word for word in (f"since {since}" if since else "", f"until {until}" if until else "") if word)


def _renamed(one: Renamed) -> str:
    return f"{one.before} -> {one.after}  ({one.evidence})"


def _changed(one: Changed) -> str:
    return f"{one.name}: {one.before or 'none fixed'} -> {one.after or 'none fixed'}"


def _values(one: Changed) -> str:
    if ANYTHING in (one.before, one.after):
        return f"{one.name}: now " + (f"only {one.after}" if one.before == ANYTHING else f"anything, not just {one.before}")
    lost, won = (f"{name} {values}" if values else "" for name, values in (("without", one.before), ("now", one.after)))
    return f"{one.name}: {'; '.join(part for part in (won, lost) if part)}"
