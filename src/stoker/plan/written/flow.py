"""Keeps track of which parts of a shell script run: surely, surely not, or nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stoker.plan.written.conditions import both, either, opposite

Kind = Literal["if", "loop", "case", "(", "{"]


@dataclass
class Block:
    """An open `if`, `case`, loop or group, which itself is reached as `reached` says.

    `runs`: whether what is read now is run; `done`: whether an earlier part was.
    """

    kind: Kind
    reached: bool | None = True
    runs: bool | None = True
    done: bool | None = False
    subject: str | None = None

    def branch(self, holds: bool | None) -> None:
        """Begins the part of an `if` or `case` that runs where this holds and no part before it ran."""
        self.runs = both(opposite(self.done), holds)
        self.done = either(self.done, holds)


class Flow:
    """The blocks around a command, and the `&&` and `||` before it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.negated = False
        self.begin_list()

    def begin_list(self) -> None:
        """Begins a list of commands of which nothing is known yet."""
        self.result: bool | None = None
        self.end_command()

    def end_command(self) -> None:
        """Begins the next command of a list; what the last one said remains for `then`."""
        self._gate: bool | None = True
        self._joined_by = ""
        self._last: bool | None = None

    def runs(self) -> bool | None:
        """Returns whether the command that is read now is run."""
        around = both(self.blocks[-1].reached, self.blocks[-1].runs) if self.blocks else True
        return both(self._gate, around)

    def answer(self, status: bool | None, is_test: bool) -> None:
        """Takes what a command answers; None is unknown."""
        status = opposite(status) if self.negated else status
        self.negated = False
        # `mkdir -p x && A=1`: an ordinary command succeeds as a rule, a test is there to fail at times.
        self._last = True if status is None and not is_test else status
        join = {"&&": both, "||": either}.get(self._joined_by)
        self.result = join(self.result, status) if join else status

    def join(self, operator: str) -> None:
        """Goes on after `&&`, `||` or a pipe."""
        if operator == "&&":
            self._gate = both(self._gate, self._last)
        elif operator == "||":
            self._gate = opposite(self.result)
        self._joined_by = operator

    def open(self, kind: Kind, subject: str | None = None) -> None:
        """Opens a block; no part of a `case` runs before its first pattern."""
        self.blocks.append(Block(kind, self.runs(), runs=kind != "case", subject=subject))
        self.end_command()

    def close(self, kind: Kind) -> None:
        """Closes the innermost block where it is of this kind."""
        if self.top(kind):
            self.blocks.pop()

    def top(self, kind: Kind) -> Block | None:
        """Returns the innermost block where it is of this kind."""
        return self.blocks[-1] if self.blocks and self.blocks[-1].kind == kind else None
