"""Notices commands that seem to start an engine in a way that nobody here reads."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.engines import engine_of_image
from stoker.plan.written.prefixes import program_name, strip_prefixes
from stoker.plan.written.programs import find_program

# They show, look for, end or fetch what they name, and start nothing.
NAMES = """
echo printf cat grep egrep fgrep rg pgrep pkill killall kill ps awk sed tee logger log info warn error die say msg usage
pip pip3 apt apt-get dnf brew git curl wget which type alias hash command ls find test cd mkdir rm cp mv ln chmod chown
tar hf huggingface-cli man help make cmake ninja trap sleep read systemctl journalctl service notify-send
"""
NAMING = frozenset(NAMES.split())
STARTING = frozenset({"run", "create", "up", "apply", "start"})
MOST_WORDS = 400


def names_engine(words: Sequence[str]) -> bool:
    """Tells whether an engine's start, or the image of one that is to run, stands somewhere in a command."""
    rest = strip_prefixes(words, {}).words[:MOST_WORDS]
    if not rest or program_name(rest[0]) in NAMING:
        return False
    if any(_starts(rest[place:]) or _starts(rest[place].split()) for place in range(len(rest))):
        return True
    return bool(STARTING.intersection(rest)) and any(engine_of_image(word) for word in rest if "/" in word)


def _starts(words: Sequence[str]) -> bool:
    """`vllm serve`, or a program of one word with something behind it: its name alone may be a file or a service."""
    found = find_program(words)
    return found is not None and max(len(words), found.length) > 1
