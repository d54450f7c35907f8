"""Cuts shell text into words and operators; knows quotes, expansions, comments and heredocs, and runs nothing."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

CONTROL = re.compile(r";;&|&&|\|\||;;|;&|\|&|[;&|()\n]")
REDIRECTION = re.compile(r"&>>|<<<|<<-|&>|<<|>>|<&|>&|<>|>\||[<>]")
BLANKS = re.compile(r"[ \t]+")
CONTINUED = re.compile(r"\\([ \t]*)(\n|\Z)")
PLAIN = re.compile(r"[^\s'\"\\$`;&|()<>]+|[^\S \t\n]")
IN_QUOTES = re.compile(r"[^\"\\$`]+")
NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?(\+?)=")
ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b"}
ANSI_C_ESCAPE = re.compile(r"((?:\\[0-7]{1,3})+)|\\(.)", re.DOTALL)


class Part(NamedTuple):
    """A piece of a word: plain text, a variable as it was written, or a command whose output would stand there."""

    kind: Literal["text", "variable", "command"]
    text: str
    quoted: bool = False


class Token(NamedTuple):
    """A control operator, or a word with its parts; `items` are the words of `NAME=(...)`."""

    operator: str
    line: int
    start: int
    parts: tuple[Part, ...] = ()
    items: tuple[Token, ...] | None = None

    @property
    def literal(self) -> str | None:
        """The word where it is one unquoted text, such as `then`; else None."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only.text if only and only.kind == "text" and not only.quoted else None


class Lexer:
    """Reads shell text once from left to right.

    `notes` and `notes_by_line` say what the shell takes otherwise than its author meant: everywhere, and around a line.
    """

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.line = first_line
        self.notes: list[str] = []
        self.notes_by_line: dict[int, str] = {}
        self._awaited: list[tuple[str, bool]] = []  # the ends of heredocs whose bodies follow the next newline

    def tokens(self, inside_array: bool = False) -> list[Token]:
        """Returns all tokens up to the end, or to the bracket that closes an array."""
        found: list[Token] = []
        while self._skip_to_token():
            start, line = self.at, self.line
            if operator := CONTROL.match(self.text, self.at):
                self.at = operator.end()
                if inside_array and operator[0] == ")":
                    break
                self._end_line(operator[0])
                if not inside_array:
                    found.append(Token(operator[0], line, start))
            elif (redirection := REDIRECTION.match(self.text, self.at)) and not self._is_substitution():
                self._redirect(redirection[0])
            else:
                parts = self._word()
                items = None if inside_array else self._array(parts)
                if not self._is_descriptor(parts):
                    found.append(Token("", line, start, tuple(parts), items))
        return found

    def _skip_to_token(self) -> bool:
        """Skips blanks, continuations and comments; tells whether anything is left."""
        was_continued = False
        while self.at < len(self.text):
            if blanks := BLANKS.match(self.text, self.at):
                self.at = blanks.end()
            elif continued := CONTINUED.match(self.text, self.at):
                was_continued = True
                self._continue(continued)
            elif self.text[self.at] == "#":
                if was_continued:
                    self.notes_by_line[self.line] = f"line {self.line}: a comment after a backslash ends the command there"
                self.at = _end_of_line(self.text, self.at)
            else:
                return True
        return False

    def _continue(self, found: re.Match[str]) -> None:
        if found[1] and found[2]:
            said = f"line {self.line}: blanks follow the backslash, so the shell ends the command there"
            self.notes_by_line[self.line] = said
        self.at = found.end()
        self.line += 1

    def _end_line(self, operator: str) -> None:
        if operator != "\n":
            return
        self.line += 1
        for end, strips_tabs in self._awaited:
            self._skip_heredoc(end, strips_tabs)
        self._awaited.clear()

    def _skip_heredoc(self, end: str, strips_tabs: bool) -> None:
        while self.at < len(self.text):
            stop = _end_of_line(self.text, self.at)
            line = self.text[self.at : stop]
            self.at = min(stop + 1, len(self.text))
            self.line += 1
            if (line.lstrip("\t") if strips_tabs else line) == end:
                return

    def _redirect(self, operator: str) -> None:
        """Leaves out a redirection and its target, which say nothing of the launch."""
        self.at += len(operator)
        while blanks := BLANKS.match(self.text, self.at) or CONTINUED.match(self.text, self.at):
            self.line += blanks[0].count("\n")
            self.at = blanks.end()
        if self.at < len(self.text) and not CONTROL.match(self.text, self.at):
            target = self._word()
            if operator in ("<<", "<<-"):
                self._awaited.append(("".join(part.text for part in target), operator == "<<-"))

    def _is_substitution(self) -> bool:
        return self.text[self.at : self.at + 2] in ("<(", ">(")

    def _is_descriptor(self, parts: list[Part]) -> bool:
        """Tells whether a word is the 2 of `2>&1`."""
        only = parts[0] if len(parts) == 1 else None
        is_number = only is not None and only.kind == "text" and not only.quoted and only.text.isdigit()
        return is_number and self.text[self.at : self.at + 1] in ("<", ">") and self.at < len(self.text)

    def _array(self, parts: list[Part]) -> tuple[Token, ...] | None:
        is_assignment = len(parts) == 1 and not parts[0].quoted and ASSIGNMENT.fullmatch(parts[0].text)
        if not is_assignment or self.text[self.at : self.at + 1] != "(":
            return None
        self.at += 1
        return tuple(self.tokens(inside_array=True))

    def _word(self) -> list[Part]:
        parts: list[Part] = []
        if self._is_substitution():
            self.at += 1
            parts.append(Part("command", self._balanced("(", ")")))
        while self.at < len(self.text):
            sign = self.text[self.at]
            continued = CONTINUED.match(self.text, self.at)
            if continued and not continued[1]:  # `--port\` and `8000` on the next line are one word
                self._continue(continued)
            elif continued or sign in " \t<>" or CONTROL.match(sign):
                break
            else:
                parts += self._part(sign)
        return _joined(parts)

    def _part(self, sign: str) -> list[Part]:
        if sign == "'":
            return [Part("text", self._until("'"), quoted=True)]
        if sign == '"':
            return self._double_quoted()
        if sign == "\\":
            self.at += 2
            return [Part("text", self.text[self.at - 1 : self.at], quoted=True)]
        if sign in "$`":
            return [self._expansion(quoted=False)]
        plain = PLAIN.match(self.text, self.at)
        self.at = plain.end() if plain else self.at + 1
        return [Part("text", plain[0] if plain else sign)]

    def _until(self, quote: str) -> str:
        """Returns what stands between two quotes, the first of which comes next."""
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            self.notes.append(f"line {self.line}: a quote is never closed")
            end = len(self.text)
        inside = self.text[self.at + 1 : end]
        self.line += inside.count("\n")
        self.at = min(end + 1, len(self.text))
        return inside

    def _double_quoted(self) -> list[Part]:
        first_line = self.line
        parts = [Part("text", "", quoted=True)]  # "" is a word too
        self.at += 1
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == '"':
                self.at += 1
                return parts
            parts.append(self._quoted_part(sign))
        self.notes.append(f"line {first_line}: a quote is never closed")
        return parts

    def _quoted_part(self, sign: str) -> Part:
        if sign in "$`":
            return self._expansion(quoted=True)
        if sign == "\\":
            escaped = self.text[self.at + 1 : self.at + 2]
            self.at += 2
            self.line += escaped == "\n"
            return Part("text", {"\n": ""}.get(escaped, escaped if escaped in '"\\$`' else sign + escaped), quoted=True)
        plain = IN_QUOTES.match(self.text, self.at)
        inside = plain[0] if plain else sign
        self.line += inside.count("\n")
        self.at += len(inside)
        return Part("text", inside, quoted=True)

    def _expansion(self, quoted: bool) -> Part:
        following = self.text[self.at + 1 : self.at + 2]
        if self.text[self.at] == "`":
            return Part("command", f"$({self._until('`')})", quoted)
        self.at += 1
        if following == "(":
            return Part("command", f"${self._balanced('(', ')')}", quoted)
        if following == "{":
            return Part("variable", f"${self._balanced('{', '}')}", quoted)
        if following == "'" and not quoted:
            inside = self._until("'")
            return Part("text", ANSI_C_ESCAPE.sub(_unescaped, inside), quoted=True)
        if following == '"' and not quoted:
            return Part("text", "")
        if name := NAME.match(self.text, self.at):
            self.at = name.end()
            return Part("variable", f"${name[0]}", quoted)
        return Part("text", "$", quoted)

    def _balanced(self, opens: str, closes: str) -> str:
        """Returns the text from a bracket to the one that closes it, both included; quotes inside hide brackets."""
        start, depth = self.at, 0
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign in "'\"" and (sign == '"' or closes == ")"):
                self._skip_quoted(sign)
                continue
            self.at += 2 if sign == "\\" else 1
            depth += (sign == opens) - (sign == closes)
            if depth == 0:
                break
        found = self.text[start : self.at]
        if depth:
            self.notes.append(f"line {self.line}: `{opens}` is never closed")
        self.line += found.count("\n")
        return found + closes * depth

    def _skip_quoted(self, quote: str) -> None:
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != quote:
            self.at += 2 if self.text[self.at] == "\\" and quote == '"' else 1
        self.at += 1


def _unescaped(found: re.Match[str]) -> str:
    """Returns what an escape of `$'...'` stands for; several octal ones together are the bytes of one text."""
    if found[2]:
        return ANSI_C.get(found[2], found[2])
    return bytes(int(digits, 8) & 255 for digits in found[1].split("\\")[1:]).decode(errors="replace")


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _joined(parts: list[Part]) -> list[Part]:
    """Joins neighbouring texts that are quoted alike, so that a plain word is one part; an empty text stands only alone."""
    joined: list[Part] = []
    for part in parts:
        if part.kind == "text" and not part.text and len(parts) > 1 and part is not parts[-1]:
            continue
        last = joined[-1] if joined else None
        if last and part.kind == last.kind == "text" and part.quoted == last.quoted:
            joined[-1] = Part("text", last.text + part.text, part.quoted)
        else:
            joined.append(part)
    return joined
