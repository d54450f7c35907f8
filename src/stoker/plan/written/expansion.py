"""Turns the parts of shell words into words with the variables that are known; what is not known stays as it was written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from stoker.plan.written.tokens import Lexer, Part, Token

MOST_CHARACTERS = 2_000_000  # all that variables may become: a few lines of `A=$A$A` mean more than there is memory
MOST_DEPTH = 12
MOST_NOTES = 12
MOST_EXPORTED = 200
LIST = re.compile(r"\$@|\$\{(@|\w+\[@\]).*", re.DOTALL)
LONGEST_PATTERN_TEXT = 500
PATTERN_COST = 10
PARAMETER = re.compile(
    r"(?P<prefix>[#!]?)(?P<name>[A-Za-z_]\w*|\d+|[@*?$!#-])(?:\[(?P<index>[^\]]*)\])?"
    r"(?P<operator>:?[-=?+]|##?|%%?|//?|\^\^?|,,?|:)?(?P<rest>.*)",
    re.DOTALL,
)


class Value(NamedTuple):
    """What a variable holds (several words for an array), and what is not known of it."""

    words: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Scope:
    """The variables that a script has set so far, and which of them the programs it starts will see."""

    def __init__(self, values: dict[str, Value] | None = None) -> None:
        self.values = dict(values or {})
        self.doubts: dict[str, list[str]] = {}
        self._exported: dict[str, None] = {}
        self._seen: dict[str, Value] | None = None
        self.characters_left = MOST_CHARACTERS

    def set(self, name: str, value: Value) -> None:
        """Sets a variable."""
        self.values[name] = value
        self._seen = None

    def doubt(self, name: str, sentence: str) -> None:
        """Notes that a variable may hold something else, or more."""
        self._seen = None
        said = self.doubts.setdefault(name, [])
        if len(said) < MOST_NOTES and sentence not in said:
            said.append(sentence)

    def export(self, names: Iterable[str]) -> None:
        """Lets all programs of the script see these variables."""
        self._exported |= dict.fromkeys(names)
        self._seen = None

    def forget(self, names: Iterable[str]) -> None:
        """Takes variables away, as `unset` does."""
        for name in names:
            self.values.pop(name, None)
        self._seen = None

    def exported_values(self) -> dict[str, Value]:
        """Returns what the programs of the script see now."""
        if self._seen is None:
            names = list(self._exported)[:MOST_EXPORTED]
            self._seen = {name: value for name in names if (value := self.find(name))}
        return self._seen

    def find(self, name: str) -> Value | None:
        """Returns what a variable holds, with the doubts about it; None where it was never set."""
        value = self.values.get(name)
        return None if value is None else Value(value.words, (*value.notes, *self.doubts.get(name, ())))


class Words(NamedTuple):
    """Words, and sentences on what in them could not be resolved."""

    words: tuple[str, ...]
    notes: tuple[str, ...] = ()


def expand_all(tokens: Iterable[Token], scope: Scope) -> Words:
    """Returns the words that a command would get."""
    words: list[str] = []
    notes: list[str] = []
    for token in tokens:
        found = expand(token.parts, scope)
        words += found.words
        notes += found.notes
    return Words(tuple(words), _some(notes))


def expand(parts: Iterable[Part], scope: Scope, depth: int = 0, split: bool = True) -> Words:
    """Returns the words that one word becomes: none, one or, where a list stands in it, several.

    Without `split` it stays one word whatever stands in it, as in an assignment.
    """
    done: list[str] = []
    open_word: str | None = None
    notes: list[str] = []
    for part in parts:
        found = _part_words(part, scope, depth, split)
        notes += found.notes
        if not found.words:
            continue
        first, *others = found.words
        open_word = (open_word or "") + first
        for word in others:
            done.append(open_word)
            open_word = word
    words = [*done, open_word] if open_word is not None else done
    return Words(tuple(words) if split else (" ".join(words),), _some(notes))


def _some(notes: Iterable[str]) -> tuple[str, ...]:
    """Returns each sentence once, and not more of them than somebody reads."""
    return tuple(dict.fromkeys(notes))[:MOST_NOTES]


def _part_words(part: Part, scope: Scope, depth: int, split: bool) -> Words:
    if part.kind == "text":
        return Words((part.text,))
    if part.kind == "command":
        return Words((part.text,), (f"what `{_short(part.text)}` gives is known only when it runs",))
    found = _resolve(part.text, scope, depth)
    if part.quoted or not split:
        return found if split and LIST.fullmatch(part.text) else Words((" ".join(found.words),), found.notes)
    if found.words == (part.text,):
        return found
    return Words(tuple(word for value in found.words for word in value.split()), found.notes)


def _resolve(written: str, scope: Scope, depth: int) -> Words:
    """Returns what `$NAME` or `${NAME...}` stands for; an unknown one stays, with a sentence on it."""
    found = PARAMETER.fullmatch(written[2:-1] if written.startswith("${") else written[1:])
    if found is None or depth > MOST_DEPTH:
        return Words((written,), (f"`{_short(written)}` was not understood",))
    value = scope.find(found["name"]) if not found["prefix"] and (found["index"] or "@") in "@*" else None
    operator, rest = found["operator"] or "", found["rest"]
    if found["prefix"] or (found["index"] or "@") not in "@*" or (rest and not operator):
        return _unknown(written, found["name"])
    if operator.lstrip(":") in ("-", "=", "?", "+") and operator:
        found_words = _alternative(written, value, operator, rest, scope, depth)
        doubts = scope.doubts.get(found["name"], ()) if value is None else ()
        return Words(found_words.words, (*found_words.notes, *doubts))
    if value is None:
        return _unknown(written, found["name"], scope.doubts.get(found["name"], ()))
    if found["index"] is None and found["name"] not in "@*":
        value = Value(value.words[:1], value.notes)  # `$LIST` is its first word
    spent = _spent(value, written, scope)
    if not operator or spent.words == (written,):
        return spent
    scope.characters_left -= PATTERN_COST * sum(map(len, value.words))
    changed = tuple(_changed(word, operator, rest) for word in value.words)
    known = tuple(word for word in changed if word is not None)
    return Words(known, value.notes) if len(known) == len(changed) else _unknown(written, found["name"])


def _alternative(written: str, value: Value | None, operator: str, rest: str, scope: Scope, depth: int) -> Words:
    """Returns the outcome of `${X:-rest}` and its kin, for a variable that nobody set from outside."""
    is_set = value is not None and (not operator.startswith(":") or any(value.words))
    if operator.endswith("+"):
        return _default(rest, scope, depth) if is_set else Words(())
    if value is not None and is_set:
        return _spent(value, written, scope)
    if operator.endswith("?"):
        return _unknown(written, "")
    return _default(rest, scope, depth)


def _spent(value: Value, written: str, scope: Scope) -> Words:
    """Returns a known value, unless all of them together have become too long."""
    scope.characters_left -= len(value.words) + sum(map(len, value.words))
    if scope.characters_left < 0:
        return Words((written,), ("the variables became too long to follow",))
    return Words(value.words, value.notes)


def _default(rest: str, scope: Scope, depth: int) -> Words:
    tokens = Lexer(rest).tokens()
    if any(token.operator for token in tokens):
        return Words((rest,))
    found = [expand(token.parts, scope, depth + 1) for token in tokens]
    words = tuple(word for one in found for word in one.words)
    return Words(words or ("",), tuple(note for one in found for note in one.notes))


def _unknown(written: str, name: str, doubts: Iterable[str] = ()) -> Words:
    if name in ("@", "*") or name.isdigit():
        return Words((written,), (f"`{written}` is what the script is called with",))
    return Words((written,), (f"`{_short(written)}` is not set in what was read", *doubts))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def _changed(word: str, operator: str, pattern: str) -> str | None:
    """Returns a value with a part cut off or replaced; None for what is not understood here."""
    if len(word) > LONGEST_PATTERN_TEXT or len(pattern) > LONGEST_PATTERN_TEXT or "$" in pattern:
        return None
    if operator in ("^^", ",,") and not pattern:
        return word.upper() if operator == "^^" else word.lower()
    if operator in ("/", "//"):
        old, _, new = pattern.partition("/")
        plain = old and not re.search(r"[*?\[\\#%]", old)
        return word.replace(old, new, -1 if operator == "//" else 1) if plain else None
    if operator in ("#", "##", "%", "%%"):
        return _cut(word, operator, pattern)
    return None


def _cut(word: str, operator: str, pattern: str) -> str:
    from_front = operator.startswith("#")
    cuts = range(len(word) + 1) if len(operator) == 1 else range(len(word), -1, -1)
    for length in cuts:
        end = word[:length] if from_front else word[len(word) - length :]
        if fnmatchcase(end, pattern):
            return word[length:] if from_front else word[: len(word) - length]
    return word
