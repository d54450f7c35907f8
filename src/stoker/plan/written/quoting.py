"""Prints words so that a shell reads back exactly these: nothing expands but what was open where it was read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from stoker.plan.written.prefixes import VARIABLE
from stoker.plan.written.tokens import ASSIGNMENT, Lexer, Token

HOME = "~/"
NOTHING_OPEN: frozenset[str] = frozenset()
# What can stand between double quotes without ending them, and holds no second expansion that nobody looked at.
EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[@*\d]|\{[^{}'\"`$\\\n]*\}|\([^()'\"`\\\n]*\))", re.ASCII)
# How the reader of each kind says that it does not know a variable, which is then set where the launch is typed.
UNSET = {
    "compose": "is set where compose is called",
    "systemd": "is not set in the unit",
    "recipe": "is not set in what was read",
    "llama-swap": "is not set in what was read",
}
REFERENCE = re.compile(r"`(\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})` (.*)", re.ASCII)
SINGLE_QUOTED = re.compile(r"'([^']*)'")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
PYTHON = re.compile(r"\bpython[\d.]*$")
# A shell at a prompt may read `#` as a command (zsh does) and go on with what follows, so a comment holds nothing active.
INACTIVE = str.maketrans(
    {"'": "\u2019", '"': "\u201d", "`": "\u2019", ";": ",", "(": "[", ")": "]", "{": "[", "}": "]", "<": "[", ">": "]",
     "$": "", "&": "+", "|": "/", "\\": "/", "!": "."}
)  # fmt: skip
MOST_OPEN = 200  # each is looked for in the whole text


def open_in_script(text: str) -> frozenset[str]:
    """Returns the expansions of shell text that its own shell would carry out wherever they stand in it.

    One that also stands where it is plain text, such as between single quotes, is left out: a word does not tell which
    of the two it comes from.
    """
    words = list(_words(Lexer(text).tokens()))
    parts = [part for word in words for part in word.parts if part.kind != "text"]
    plain = ["".join(part.text if part.kind == "text" else "\0" for part in word.parts) for word in words]
    plain += [inside for part in parts for inside in SINGLE_QUOTED.findall(part.text)]
    signs = "\0".join(plain)
    found = {part.text for part in parts if EXPANSION.fullmatch(part.text)}
    if len(found) > MOST_OPEN:
        return NOTHING_OPEN
    at_home = {is_open for word in words if (is_open := _is_home(word)) is not None}
    return frozenset(one for one in found if not re.search(_pattern(one), signs)) | ({HOME} if at_home == {True} else set())


def _words(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _words(token.items or ())


def _is_home(word: Token) -> bool | None:
    """Tells whether a word, or the value of an assignment, begins with a `~/` that is the home folder; None: with none."""
    text = "".join(part.text for part in word.parts)
    assignment = ASSIGNMENT.match(text)
    start = assignment.end() if assignment else 0
    if not text.startswith(HOME, start):
        return None
    first = word.parts[0]
    return first.kind == "text" and not first.quoted and len(first.text) >= start + len(HOME)


def open_variables(unknown: Iterable[str], kind: str) -> frozenset[str]:
    """Returns the plain variables that the reader of a kind of file told it does not know; they run nothing, ever."""
    said = UNSET.get(kind)
    found = (REFERENCE.fullmatch(sentence) for sentence in unknown)
    at_home = {HOME} if kind == "compose" else set()  # compose puts the home folder in as a shell does
    return frozenset(one[1] for one in found if one and one[2] == said) | at_home


def quoted(word: str, left_open: frozenset[str] = NOTHING_OPEN) -> str:
    """Returns a word as a shell reads it back; the expansions of `left_open` are carried out, everything else is text."""
    if HOME in left_open and word.startswith(HOME):
        rest = word.removeprefix(HOME)
        return HOME + (quoted(rest, left_open) if rest else "")
    names = sorted(left_open - {HOME}, key=len, reverse=True) if "$" in word else []
    if not names:
        return _plain(word)
    pieces = re.split(f"({'|'.join(map(_pattern, names))})", word)
    said = [f'"{piece}"' if place % 2 else _plain(piece) for place, piece in enumerate(pieces) if piece]
    return "".join(said) or _plain(word)


def _pattern(expansion: str) -> str:
    """Returns what finds an expansion in text: `$HOME`, and not the beginning of `$HOMES`."""
    return re.escape(expansion) + (r"(?!\w)" if re.fullmatch(r"\$[A-Za-z_]\w*", expansion) else "")


def _plain(text: str) -> str:
    if CONTROL.search(text):  # raw, it would drive the terminal that it is printed to
        escaped = text.replace("\\", "\\134").replace("'", "\\047")
        return "$'" + CONTROL.sub(lambda found: "".join(f"\\{byte:03o}" for byte in found[0].encode()), escaped) + "'"
    return f"'{text}'" if text.startswith("=") and shlex.quote(text) == text else shlex.quote(text)


def say_command(words: Sequence[str], left_open: frozenset[str] = NOTHING_OPEN) -> str:
    """Returns a command to copy into a shell: a flag a line, each line but the last with a backslash."""
    lines: list[list[str]] = [[]]
    is_leading = True
    for word in words:
        assignment = VARIABLE.fullmatch(word) if is_leading else None
        is_leading = assignment is not None
        runs_module = word == "-m" and lines[-1] and PYTHON.search(lines[-1][-1])
        if word.startswith("-") and len(word) > 1 and any(lines) and not runs_module:
            lines.append([])
        said = f"{assignment[1]}={quoted(assignment[2], left_open)}" if assignment else quoted(word, left_open)
        lines[-1].append(said)
    return " \\\n  ".join(" ".join(line) for line in lines)


def say_comments(sentences: Iterable[str]) -> list[str]:
    """Returns a comment line for each sentence, in which no shell finds anything to carry out, not even one at a prompt."""
    return [f"# {_inactive(sentence)}" for sentence in sentences]


def _inactive(sentence: str) -> str:
    line = " ".join(sentence.split()).translate(INACTIVE)
    return "".join(letter if letter.isprintable() else "?" for letter in line)
