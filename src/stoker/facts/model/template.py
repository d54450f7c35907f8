"""Reads what a chat template can do from the names its code uses; the template is never run.

`system`: it knows the system role. `tools`: it shows tools. `thinking`: it writes or removes a train of thought.
`images`: it places images. `alternation`: it refuses messages whose roles do not alternate. `switch:NAME`: a request may set
this variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stoker.facts.model.documents import Document, items, read_document, read_text, text

CLOSING = {"{%": "%}", "{{": "}}", "{#": "#}"}
OPENING = re.compile(r"\{[%{#]")
# A literal that is never closed reaches to the end, so that no text takes longer than its length; attributes are no names.
TOKEN = re.compile(
    r"'(?P<single>(?:[^'\\]|\\.)*+)(?:'|\\?\Z)|\"(?P<double>(?:[^\"\\]|\\.)*+)(?:\"|\\?\Z)"
    r"|\.\s*+[A-Za-z_]\w*+|(?P<name>[A-Za-z_]\w*+)|\d\w*+",
    re.DOTALL,
)
SWITCHES = ("enable_thinking", "thinking", "reasoning_effort", "thinking_budget", "thinking_mode")
THOUGHT_MARKS = ("<think>", "reasoning_content", "[THINK]", "<|channel>", "<|channel|>")
IMAGE_MARKS = frozenset({"image", "image_url"})
LIMIT_BYTES = 4 * 1024**2


class Names(NamedTuple):
    """What a template's code is made of: the names that it asks for and does not give a value itself, and its literals."""

    names: frozenset[str]
    literals: frozenset[str]


def read_template(folder: Path, tokenizer_config: Document, problems: list[str]) -> str | None:
    """Returns the folder's chat template, wherever it is kept; None where it has none."""
    found = read_text(folder / "chat_template.jinja", problems, LIMIT_BYTES)
    if found is not None:
        return found
    return _stored(tokenizer_config) or _stored(read_document(folder / "chat_template.json", problems))


def _stored(document: Document) -> str | None:
    if single := text(document, "chat_template"):
        return single
    named = [one for one in items(document, "chat_template") if isinstance(one, dict)]
    ordered = sorted(named, key=lambda one: one.get("name") != "default")
    return next((template for one in ordered if (template := text(one, "template"))), None)


def template_features(template: str | None) -> tuple[str, ...]:
    """Returns what the template can do, in the words above; nothing without a template."""
    if template is None:
        return ()
    used = _names(template[:LIMIT_BYTES])
    switches = [name for name in SWITCHES if name in used.names]
    found = {
        "system": "system" in used.literals or "system_message" in used.names,
        "tools": "tools" in used.names,
        "thinking": bool(switches) or any(mark in template for mark in THOUGHT_MARKS),
        "images": bool(used.literals & IMAGE_MARKS),
        "alternation": "raise_exception" in used.names and any("alternat" in literal for literal in used.literals),
    }
    return (*(name for name, can in found.items() if can), *(f"switch:{name}" for name in switches))


def _names(template: str) -> Names:
    names: set[str] = set()
    literals: set[str] = set()
    own: set[str] = set()
    for code in _code(template):
        found = list(TOKEN.finditer(code))
        literals |= {token["single"] or token["double"] or "" for token in found if not token["name"]}
        words = [token["name"] for token in found if token["name"]]
        target = words[1] if words[:1] == ["set"] and len(words) > 1 else None
        # Read before it is set, as in `set x = x if x is defined`, a name is asked of the request.
        names |= set(words[2:] if target else words) - own
        own |= {target} if target else set()
    return Names(frozenset(names), frozenset(literals))


def _code(template: str) -> Iterator[str]:
    """Yields what stands in each block and each output; a comment says nothing, and an open block reaches to the end."""
    place = 0
    while opening := OPENING.search(template, place):
        end = template.find(CLOSING[opening[0]], opening.end())
        end = len(template) if end < 0 else end
        if opening[0] != "{#":
            yield template[opening.end() : end]
        place = end + 2
