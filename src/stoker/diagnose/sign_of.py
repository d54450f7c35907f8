"""Makes a sign of a line: what differs from run to run is left open, what stands before the message is left out. Pure."""

from __future__ import annotations

import re

LONGEST = 160
# Who said it and when: stamps, processes, levels, places in the code.
BEFORE = re.compile(
    r"^(?:\s|\((?:\w+ )?\w*pid=\d+\)|\[[^\]]*\]|\d{2,4}-\d\d(?:-\d\d)?|\d\d:\d\d:\d\d(?:[.,]\d+)?|\d+\.\d+(?:\.\d+)*(?=\s)"
    r"|(?:INFO|WARN|WARNING|ERROR|CRITICAL|FATAL|DEBUG)\b:?|[IWED](?=\s))+"
)
OPEN = re.compile(r"0x[0-9a-fA-F]+|(?<![\w.])/[\w./-]+|\d+(?:\.\d+)*|\s+")


def sign_of(text: str) -> str:
    """Returns a pattern that finds this line and those that differ from it in numbers, addresses and paths alone."""
    said = message_of(text, LONGEST)
    pattern, place = "", 0
    for found in OPEN.finditer(said):
        pattern += _escaped(said[place : found.start()]) + _open(found[0])
        place = found.end()
    return pattern + _escaped(said[place:])


def message_of(text: str, longest: int) -> str:
    """Returns what a line says, without who said it and when, cut between two words where it is long."""
    said = BEFORE.sub("", text).strip().removesuffix("…").rstrip()
    return said if len(said) <= longest else said[:longest].rpartition(" ")[0] or said[:longest]


def _open(piece: str) -> str:
    if piece.isspace():
        return r"\s+" if len(piece) > 1 else " "
    if piece.startswith("0x"):
        return "0x[0-9a-fA-F]+"
    return r"\S+" if piece.startswith("/") else r"[\d.]+" if "." in piece else r"\d+"


def _escaped(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)
