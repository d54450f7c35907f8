"""Reads what can be searched: the rules, Stoker's own pages, and the Markdown of folders that the user names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from stoker.config import docs_folder
from stoker.errors import WrongUse
from stoker.flows.reading import read_start
from stoker.records import MIB, KnowledgeKind, Passage, Rule
from stoker.rules.load import load_rules

SUFFIXES = (".md", ".markdown", ".mdx")
# The rules' own pages are made from the rules, which are searched themselves.
LEFT_OUT = ("rules",)
FILE_BYTES, ALL_BYTES, MOST_FILES = 2 * MIB, 64 * MIB, 20_000
PASSAGE_LETTERS = 6000
HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
BYTE_ORDER = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


def rule_passages() -> Iterator[Passage]:
    """Yields a passage for each rule, with everything that it says."""
    return (Passage("rule", rule.id, rule.title, _rule_text(rule)) for rule in load_rules())


def _rule_text(rule: Rule) -> str:
    tests = (f"{name} {value}" for table in (rule.when, rule.wrong, rule.use, rule.prefer) for name, value in table.items())
    seen = (f"{one.says} {one.build} {one.source}" for one in rule.evidence)
    return "\n".join([rule.cause, rule.fix, *seen, *tests, *rule.drop, *rule.signs, rule.id])


def page_passages() -> Iterator[Passage]:
    """Yields the passages of Stoker's documentation; nothing where it did not come along."""
    folder = docs_folder()
    for file in _find_files(folder) if folder.is_dir() else ():
        inside = file.relative_to(folder)
        if inside.parts[0] not in LEFT_OUT:
            yield from split_markdown(file.read_text(encoding="utf-8"), "page", f"docs/{inside}")


class Notes:
    """The user's folders, read to their end; `unread` says which files could not be, and why."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = [Path(one) for one in folders]
        self.unread: list[str] = []

    def passages(self) -> Iterator[Passage]:
        """Yields the passages of all files that can be read."""
        left_bytes = ALL_BYTES
        for place, file in enumerate(self._files()):
            if place >= MOST_FILES or left_bytes <= 0:
                self.unread.append(f"{file} and all after it: together they are too large to be searched at each question")
                return
            try:
                held = read_start(file, FILE_BYTES)
            except WrongUse as problem:
                self.unread.append(f"{problem.what}: {problem.why}")
                continue
            if len(held) == FILE_BYTES:
                self.unread.append(f"{file}: only its first {FILE_BYTES // MIB} MiB")
            left_bytes -= len(held)
            yield from split_markdown(decode(held), "note", str(file))

    def _files(self) -> Iterator[Path]:
        for folder in self._folders:
            if folder.is_dir():
                yield from _find_files(folder)
            else:
                self.unread.append(f"{folder}: there is no such folder")


def _find_files(folder: Path) -> Iterator[Path]:
    """The Markdown files in order; links to folders are not followed, since they may lead in a circle."""
    for inside, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(inside, name) for name in sorted(names) if name.lower().endswith(SUFFIXES))


def decode(held: bytes) -> str:
    """Returns a file's text, whatever its encoding is: by its byte order mark, as UTF-8, or as Latin-1."""
    named = next((name for mark, name in BYTE_ORDER if held.startswith(mark)), "utf-8")
    try:
        return held.decode(named)
    except UnicodeDecodeError as problem:
        cut = problem.start >= len(held) - 4  # the file was longer than what was read of it
        return held.decode(named if cut else "latin-1", errors="replace")


def split_markdown(text: str, kind: KnowledgeKind, source: str) -> Iterator[Passage]:
    """Yields a passage for each heading and what stands below it; a long one in pieces."""
    title, first, body, letters, fence = Path(source).stem, 1, list[str](), 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if opened := FENCE.match(line):
            mark = opened[1]
            fence = "" if fence and mark.startswith(fence) else fence or mark
        heading = None if fence else HEADING.match(line)
        if heading or letters > PASSAGE_LETTERS:
            yield from _passage(kind, source, title, body, first)
            title, first, body, letters = heading[2] if heading else title, number, [], 0
        body.append(line[:PASSAGE_LETTERS])
        letters += len(body[-1])
    yield from _passage(kind, source, title, body, first)


def _passage(kind: KnowledgeKind, source: str, title: str, body: list[str], first: int) -> Iterator[Passage]:
    text = "\n".join(body).strip()
    if text:
        yield Passage(kind, source, title, text, first)
