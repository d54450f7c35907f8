"""Finds the commands in shell text, with the variables that the text itself sets. Nothing is run, and nothing is guessed.

A script is read as if nobody set a variable outside it: `${PORT:-8000}` is 8000, and `$HF_TOKEN` stays and is told.
Commands in all branches are found; what a branch that may not be taken adds to a variable is told, and not added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from stoker.errors import WrongUse
from stoker.plan.written.conditions import decide, either, is_condition
from stoker.plan.written.expansion import Scope, Value, Words, expand, expand_all
from stoker.plan.written.flow import Flow
from stoker.plan.written.tokens import Lexer, Token
from stoker.plan.written.variables import DECLARING, assign, assignment, declare, names_in, value_of

MOST_CHARACTERS = 300_000
MOST_DEPTH = 16
LONGEST_PATTERN_TEXT = 500
SOURCING = frozenset({"source", "."})


class Command(NamedTuple):
    """A simple command: its words, the variables that it alone sees, and those that all programs of the script see.

    `used` are the variables that its words name; `start` is where it begins in the text; `notes` say what in its words
    could not be resolved. `is_certain` tells that whoever runs the text runs it, `is_background` that the next command
    does not wait for it.
    """

    words: tuple[str, ...]
    line: int
    start: int
    assigned: dict[str, str]
    exported: dict[str, Value]
    notes: tuple[str, ...]
    used: frozenset[str] = frozenset()
    is_certain: bool = True
    is_background: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """What the command is started with, as far as the script sets it."""
        return {**{name: " ".join(value.words) for name, value in self.exported.items()}, **self.assigned}


def read_commands(text: str, first_line: int = 1, values: dict[str, Value] | None = None) -> list[Command]:
    """Returns the commands of a text in the order of its lines; raises WrongUse where it is too long for a script.

    The bodies of functions are read last, with all variables set, since scripts define them first.
    """
    if len(text) > MOST_CHARACTERS:
        raise WrongUse(
            f"the script is longer than {MOST_CHARACTERS:,} characters", next_step="give the part that starts the engine"
        )
    lexer = Lexer(text, first_line)
    tokens = lexer.tokens()
    scope = Scope(values)
    commands: list[Command] = []
    waiting: list[tuple[Sequence[Token], int]] = [(tokens, 0)]
    while waiting:
        body, depth = waiting.pop()
        reader = _Reader(body, scope, lexer, is_called=depth == 0)
        reader.read(keeps_functions=depth < MOST_DEPTH)
        commands += reader.commands
        waiting += [(function, depth + 1) for function in reader.functions]
    return sorted(commands, key=lambda command: command.start)


class _Reader:
    """Walks over the tokens of a script, or of a function's body, once."""

    def __init__(self, tokens: Sequence[Token], scope: Scope, lexer: Lexer, is_called: bool) -> None:
        self.tokens = tokens
        self.is_called = is_called
        self.scope = scope
        self.notes = lexer.notes
        self.notes_by_line = lexer.notes_by_line
        self.flow = Flow()
        self.at = 0
        self.commands: list[Command] = []
        self.functions: list[Sequence[Token]] = []

    def read(self, keeps_functions: bool) -> None:
        """Reads all tokens; the bodies of functions are put aside, or read where they stand."""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.operator:
                self._operate(token.operator)
            elif keeps_functions and self._is_function(token):
                self._keep_function()
            elif not self._reserved(token.literal or ""):
                self._simple()

    def _operate(self, operator: str) -> None:
        self.at += 1
        if operator in ("&&", "||", "|", "|&"):
            self.flow.join(operator)
            self._skip_newlines()
        elif operator == "(":
            self.flow.open("(")
        elif operator == ")":
            self.flow.close("(")
        elif operator in (";;", ";&", ";;&"):
            self._next_pattern()
        else:
            self.flow.end_command()

    def _skip_newlines(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at].operator == "\n":
            self.at += 1

    def _reserved(self, word: str) -> bool:
        """Reads a word of the shell's grammar where it is one."""
        read = _RESERVED.get(word)
        if read is None:
            return False
        self.at += 1
        read(self)
        return True

    def _if(self) -> None:
        self.flow.open("if")
        self.flow.begin_list()

    def _then(self) -> None:
        if block := self.flow.top("if"):
            block.branch(self.flow.result)
        self.flow.begin_list()

    def _else(self) -> None:
        if block := self.flow.top("if"):
            block.runs = None if block.done is None else not block.done
        self.flow.begin_list()

    def _loop(self) -> None:
        self.flow.open("loop")
        self.flow.begin_list()

    def _do(self) -> None:
        if block := self.flow.top("loop"):
            block.runs = None
        self.flow.begin_list()

    def _not(self) -> None:
        self.flow.negated = True

    def _for(self) -> None:
        header = self._until_operator()
        name = header[0].literal if header else None
        if name and header[1:] and header[1].literal == "in":
            found = expand_all(header[2:], self.scope)
            self.scope.forget([name])
            self.scope.doubt(name, f"line {header[0].line}: `{name}` goes through {' '.join(found.words)[:80]}")
        self._loop()

    def _until_operator(self) -> Sequence[Token]:
        start = self.at
        while self.at < len(self.tokens) and not self.tokens[self.at].operator:
            self.at += 1
        return self.tokens[start : self.at]

    def _case(self) -> None:
        start = self.at
        header = self._until_operator()
        subject = expand(header[0].parts, self.scope, split=False) if header else Words(("",), ("no subject",))
        self.flow.open("case", None if subject.notes else subject.words[0][:LONGEST_PATTERN_TEXT])
        if len(header) > 1:
            self.at = start + 2  # `case $X in a)` may stand in one line
        self._next_pattern()

    def _next_pattern(self) -> None:
        """Reads `a|b)` and decides whether its commands run."""
        block = self.flow.top("case")
        if block is None:
            return
        matches: bool | None = False
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.literal == "esac":
                return
            self.at += 1
            if token.operator == ")":
                break
            matches = matches if token.operator else either(matches, self._matches(block.subject, token))
        block.branch(matches)
        self.flow.begin_list()

    def _matches(self, subject: str | None, token: Token) -> bool | None:
        pattern = expand(token.parts, self.scope, split=False)
        if pattern.words[0] == "*":
            return True
        is_known = subject is not None and not pattern.notes and len(pattern.words[0]) < LONGEST_PATTERN_TEXT
        return fnmatchcase(subject or "", pattern.words[0]) if is_known else None

    def _test(self) -> None:
        """Reads `[[ ... ]]`, in which `&&` and `(` are not the shell's own."""
        inside: list[Token] = []
        while self.at < len(self.tokens) and self.tokens[self.at].operator != "\n":
            token = self.tokens[self.at]
            self.at += 1
            if token.literal == "]]":
                break
            inside.append(token)
        is_plain = not any(token.operator for token in inside)
        self._decide(("[[", *self._known_words(inside), "]]") if is_plain else ())

    def _known_words(self, tokens: Sequence[Token]) -> tuple[str, ...]:
        """Returns a word for each token, or none at all where one of them is not known."""
        found = [expand(token.parts, self.scope, split=False) for token in tokens]
        return () if any(one.notes for one in found) else tuple(one.words[0] for one in found)

    def _decide(self, words: Sequence[str]) -> None:
        self.flow.answer(decide(words), is_test=True)

    def _is_function(self, token: Token) -> bool:
        following = [one.operator for one in self.tokens[self.at + 1 : self.at + 3]]
        return token.literal == "function" or (token.literal is not None and following == ["(", ")"])

    def _keep_function(self) -> None:
        """Puts the body of a function aside; one that stands in no braces is read where it is."""
        self.at += 2 if self.tokens[self.at].literal == "function" else 1
        while self.at < len(self.tokens) and self.tokens[self.at].operator in ("(", ")", "\n"):
            self.at += 1
        start, depth = self.at, 0
        while self.at < len(self.tokens):
            word = self.tokens[self.at].literal
            depth += (word == "{") - (word == "}")
            if depth <= 0:
                break
            self.at += 1
        self.functions.append(self.tokens[start + 1 : self.at])
        self.at += self.at > start

    def _simple(self) -> None:
        tokens = self._until_operator()
        first = next((place for place, token in enumerate(tokens) if not assignment(token)), len(tokens))
        program = tokens[first].literal if first < len(tokens) else None
        if first == len(tokens):
            assign(tokens, self.scope, self.flow.runs())
            self.flow.answer(True, is_test=False)
        elif program in DECLARING:
            declare(tokens[first:], self.scope, self.flow.runs())
            self.flow.answer(True, is_test=False)
        elif is_condition([program or ""]):
            self._decide(self._known_words(tokens[first:]))
        else:
            self._record(tokens, first)

    def _record(self, tokens: Sequence[Token], first: int) -> None:
        found = expand_all(tokens[first:], self.scope)
        is_certain = self.is_called and self.flow.runs() is True
        self.flow.answer(None, is_test=False)
        if not found.words:
            return
        if found.words[0] in SOURCING:
            self.notes.append(f"line {tokens[first].line} reads `{' '.join(found.words[1:2])}`, which is not seen here")
        if found.words[0] == "unset":
            self.scope.forget(found.words[1:])
        assigned = {said[1]: value_of(token, self.scope) for token in tokens[:first] if (said := assignment(token))}
        values = {name: " ".join(value.words) for name, value in assigned.items()}
        around = range(tokens[0].line, tokens[-1].line + 2) if self.notes_by_line else ()
        notes = (
            *found.notes,
            *(note for value in assigned.values() for note in value.notes),
            *(self.notes_by_line[line] for line in around if line in self.notes_by_line),
            *self.notes,
        )
        self.commands.append(
            Command(
                found.words,
                tokens[first].line,
                tokens[0].start,
                values,
                self.scope.exported_values(),
                notes,
                names_in(tokens[first:]),
                is_certain,
                self._is_in_background(),
            )
        )

    def _is_in_background(self) -> bool:
        """Tells whether the list that the command just read belongs to ends with `&`."""
        ahead = (self.tokens[place].operator for place in range(self.at, len(self.tokens)))
        return next((operator for operator in ahead if operator not in ("", "|", "|&", ")")), "") == "&"


_RESERVED: dict[str, Callable[[_Reader], None]] = {
    "if": _Reader._if, "then": _Reader._then, "elif": _Reader._else, "else": _Reader._else,
    "fi": lambda reader: reader.flow.close("if"),
    "while": _Reader._loop, "until": _Reader._loop, "for": _Reader._for, "select": _Reader._for, "do": _Reader._do,
    "done": lambda reader: reader.flow.close("loop"),
    "case": _Reader._case, "esac": lambda reader: reader.flow.close("case"),
    "{": lambda reader: reader.flow.open("{"), "}": lambda reader: reader.flow.close("{"),
    "[[": _Reader._test, "!": _Reader._not, "time": lambda reader: None,
}  # fmt: skip
