"""Keeps the last lines of a log, which tell how far a start came where nothing in it looks like a fault."""

from __future__ import annotations

from stoker.diagnose.blocks import Block
from stoker.diagnose.judge import show_line
from stoker.records import LogLine
from stoker.supervise.logs import visible

LAST_LINES = 5


class Ending:
    """The last two blocks: the last one alone may hold a single line."""

    def __init__(self) -> None:
        self._blocks: tuple[Block, ...] = ()

    def add(self, block: Block) -> None:
        """Takes the next block."""
        self._blocks = (*self._blocks[-1:], block)

    def lines(self) -> tuple[LogLine, ...]:
        """Returns the last lines that say anything, in their order."""
        found: dict[int, str] = {}
        for block in reversed(self._blocks):
            for place, line in reversed(list(enumerate(block.data.split(b"\n"), block.first_line))):
                if len(found) < LAST_LINES and (text := visible(line).strip()):
                    found.setdefault(place, text)
        return tuple(LogLine(place, show_line(text)) for place, text in sorted(found.items()))
