"""YAML with a reason above what has one: what clusters read cannot hold the reasons itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

MARK = re.compile(r"^( *)(?:- )?'@@(\d+)@@'(?:: null)?$")


class _Dumper(yaml.SafeDumper):
    """Writes text in quotes where it is a value, every list indented below its key, and nothing by reference."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


class Word(str):
    """Text that is always written in quotes: YAML's versions disagree on what is a number or a truth."""

    __slots__ = ()


_Dumper.add_representer(Word, lambda dumper, word: dumper.represent_scalar("tag:yaml.org,2002:str", str(word), style='"'))


class Reasons:
    """Collects reasons while a tree is made; each stands in it as a mark, in a list or as a key, until it is written."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def item(self, reason: str) -> str:
        """Returns the mark of a reason, to stand before what it is for."""
        self.said.append(" ".join(reason.split()))
        return f"@@{len(self.said) - 1}@@"

    def key(self, reason: str) -> dict[str, None]:
        """Returns a mark to unpack into a table, before the key that it is for."""
        return {self.item(reason): None}

    def write(self, trees: Sequence[Mapping[str, Any]], head: Sequence[str]) -> str:
        """Returns the text of all documents, with comments in the place of marks."""
        texts = [yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf")) for tree in trees]
        lines = [*(f"# {line}" for line in head)]
        for text in texts:
            lines += ["---", *(self._line(line) for line in text.rstrip("\n").split("\n"))]
        return "\n".join(lines) + "\n"

    def _line(self, line: str) -> str:
        found = MARK.match(line)
        return line if found is None else f"{found[1]}# {self.said[int(found[2])]}"
