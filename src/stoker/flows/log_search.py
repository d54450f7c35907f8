"""Searches all that is kept of an engine's log, its former file too, without ever holding more than a part of it."""

from __future__ import annotations

import contextlib
from collections import deque
from pathlib import Path

from stoker.diagnose.blocks import Source, read_blocks
from stoker.diagnose.redact import hide_secrets
from stoker.errors import WrongUse
from stoker.flows.logs import is_noise
from stoker.records import LogLine
from stoker.records.diagnosis import LogSearch
from stoker.supervise.logs import ESCAPES, visible

LONGEST_TEXT = 200


def search_log(file: Path, text: str, most: int, folds: bool) -> LogSearch:
    """Returns the last lines that hold a text, whatever the case of its letters; all do where it is empty.

    Lines are numbered over both files, oldest first. `folds`: those that are only noise are counted and left out.
    """
    if len(text) > LONGEST_TEXT:
        raise WrongUse(f"the text is {len(text)} letters long", next_step=f"search for at most {LONGEST_TEXT}")
    search = _Search(text, most, folds)
    for part in (file.with_name(file.name + ".1"), file):
        with contextlib.suppress(FileNotFoundError), part.open("rb") as source:
            search.read(source)
    return LogSearch(tuple(search.lines), search.found, search.folded, search.read_lines)


class _Search:
    """What was found so far."""

    def __init__(self, text: str, most: int, folds: bool) -> None:
        self.lines: deque[LogLine] = deque(maxlen=most)
        self.found = self.folded = self.read_lines = 0
        self._text, self._wanted = text.lower(), text.lower().encode()
        self._is_ascii, self._folds = text.isascii(), folds

    def read(self, source: Source) -> None:
        before = self.read_lines
        for data, first_line in read_blocks(source):
            plain = ESCAPES.sub(b"", data)
            if not self._is_ascii or self._wanted in plain.lower():  # most parts of a log are passed over as a whole
                self._look(plain, before + first_line)
            self.read_lines = before + first_line - 1 + data.count(b"\n") + (not data.endswith(b"\n"))

    def _look(self, data: bytes, first_line: int) -> None:
        for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), start=first_line):
            line = visible(raw)
            if self._text not in line.lower():
                continue
            if self._folds and is_noise(line):
                self.folded += 1
                continue
            self.found += 1
            self.lines.append(LogLine(number, hide_secrets(line)))
