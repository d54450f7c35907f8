"""What assignments in shell text do to the variables, also where nobody knows whether they are run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stoker.plan.written.expansion import MOST_NOTES, Scope, Value, Words, expand, expand_all
from stoker.plan.written.tokens import ASSIGNMENT, Part, Token

DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
LONGEST_SAID = 160
MOST_WORDS = 5_000


def assignment(token: Token) -> re.Match[str] | None:
    """Returns the `NAME=` or `NAME+=` with which a word begins."""
    first = token.parts[0] if token.parts else None
    return ASSIGNMENT.match(first.text) if first and first.kind == "text" and not first.quoted else None


def names_in(tokens: Iterable[Token]) -> frozenset[str]:
    """Returns the variables that words name."""
    parts = (part.text for token in tokens for part in token.parts if part.kind == "variable")
    return frozenset(found[1] for text in parts if (found := VARIABLE.match(text)))


def value_of(token: Token, scope: Scope) -> Words:
    """Returns what stands after the sign of an assignment."""
    if token.items is not None:
        return expand_all(token.items, scope)
    first, *others = token.parts
    found = assignment(token)
    return expand((Part("text", first.text[found.end() if found else 0 :]), *others), scope, split=False)


def assign(tokens: Iterable[Token], scope: Scope, runs: bool | None) -> None:
    """Sets variables; where that may not happen, the old value stays and the new one is told."""
    for token in tokens:
        if found := assignment(token):
            _set(found[1], token, value_of(token, scope), scope, runs)


def _set(name: str, token: Token, value: Words, scope: Scope, runs: bool | None) -> None:
    before = scope.values.get(name)
    adds = token.parts[0].text.partition("=")[0].endswith("+")
    if runs is False or (runs is None and (adds or before is not None)):
        said = " ".join(value.words)[:LONGEST_SAID]
        scope.doubt(name, f"line {token.line} {'adds' if adds else 'sets'} `{said}` only under a condition")
        return
    notes = value.notes if runs else (*value.notes, f"line {token.line} sets `{name}` only under a condition")
    notes = tuple(dict.fromkeys((*(before.notes if adds and before else ()), *notes)))[:MOST_NOTES]
    if not adds or before is None:
        scope.set(name, Value(value.words, notes))
    elif len(before.words) > MOST_WORDS:
        scope.doubt(name, f"line {token.line} adds to a list that is too long to follow")
    elif token.items is not None:
        scope.set(name, Value((*before.words, *value.words), notes))
    else:
        first, others = (before.words or ("",))[0], before.words[1:]
        scope.set(name, Value((first + value.words[0], *others), notes))


def declare(tokens: Sequence[Token], scope: Scope, runs: bool | None) -> None:
    """Carries out `export`, `declare`, `local` and their kin."""
    assign(tokens[1:], scope, runs)
    flags = [token.literal for token in tokens if token.literal and token.literal.startswith("-")]
    if tokens[0].literal == "export" or any("x" in flag for flag in flags):
        names = [found[1] if (found := assignment(token)) else token.literal for token in tokens[1:]]
        scope.export(name for name in names if name and not name.startswith("-"))
