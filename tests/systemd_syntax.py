"""How systemd reads a unit, by systemd.syntax(7) and systemd.service(5): what our renderers have to undo."""

from __future__ import annotations

import re

ESCAPES = {"\\": "\\", '"': '"', "'": "'", "s": " ", "n": "\n", "t": "\t"}
TOKEN = re.compile(r"""[ \t]*((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\.|[^ \t"'\\])+)""")
PIECE = re.compile(r""""((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|(\\.|[^"'\\]+)""")


def logical_lines(text: str) -> list[str]:
    """Returns the lines of a unit as systemd joins them: comments between joined lines are dropped."""
    lines, open_line = [], ""
    for line in text.splitlines():
        if line.lstrip().startswith(("#", ";")):
            continue
        ends = len(line) - len(line.rstrip("\\"))
        assert ends in (0, 1), f"a line ends with {ends} backslashes: {line}"
        open_line += line[:-1] + " " if ends else line
        if not ends:
            lines.append(open_line)
            open_line = ""
    return lines


def values_of(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in logical_lines(text) if line.startswith(f"{key}=")]


def split_words(line: str) -> list[str]:
    """Splits a line as systemd.syntax(7) says: quotes, C escapes, white space."""
    found = [unquote(match[1]) for match in TOKEN.finditer(line)]
    assert TOKEN.sub("", line).strip(" \t") == "", f"left over: {line!r}"
    return found


def unquote(token: str) -> str:
    pieces = ("".join(filter(None, match.groups())) for match in PIECE.finditer(token))
    return "".join(re.sub(r"\\(.)", lambda escape: ESCAPES[escape[1]], piece) for piece in pieces)


def without_specifiers(text: str) -> str:
    assert not re.search(r"%(?!%)", text.replace("%%", "")), f"a specifier is left in {text!r}"
    return text.replace("%%", "%")


def exec_argv(text: str, key: str = "ExecStart") -> list[str]:
    """Returns the words that systemd would start: specifiers and variables are put in after splitting."""
    [line] = values_of(text, key)
    words = [without_specifiers(word) for word in split_words(line)]
    assert not any(re.search(r"\$(?!\$)", word.replace("$$", "")) for word in words), words
    return [word.replace("$$", "$") for word in words]
