"""JSON with comments and trailing commas, as editors and their kin write it, read with the line of each key."""

from __future__ import annotations

import re

from stoker.plan.written.tree import Tree, read_tree

# A string, or a comment, or a comma that closes a list or a map: whichever begins first.
PIECES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])|\t', re.DOTALL)


def read_jsonc(text: str, name: str) -> Tree:
    """Returns what a file holds; raises StokerError where it is none."""
    return read_tree(PIECES.sub(_blank, text), name)


def _blank(found: re.Match[str]) -> str:
    """A string stays; all else becomes blanks, so that each key stays on its line."""
    piece = found[0]
    return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)
