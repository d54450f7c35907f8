"""Programs that are handed a command and start it somewhere else: `ssh`, `tmux`, `screen`, `su -c`, `eval`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stoker.plan.written.prefixes import program_name

Words = tuple[str, ...]
SSH_VALUED = "BbcDEeFIiJLlmOopQRSWw"
# The last letter of a word of options tells whether a value follows: `-dmS name`.
TMUX_VALUED, TMUX_SEND_VALUED, SCREEN_VALUED = "cefFlnstxyp", "tN", "cehpStT"
TMUX_STARTS = frozenset(
    ("new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawnp", "respawn-window")
)
TMUX_SENDS = frozenset(("send-keys", "send"))
KEYS = frozenset(("Enter", "C-m", "KPEnter"))
TEXT_OPTION = "c"  # su -c TEXT, runuser -lc TEXT, script -qc TEXT


class HandedOn(NamedTuple):
    """The command that is handed on, by whom, and whether another machine runs it."""

    words: Words
    through: str
    is_remote: bool = False


def handed_on(words: Sequence[str]) -> HandedOn | None:
    """Returns the command that these words hand on; None where they hand on none that is known here."""
    name = program_name(words[0]) if words else ""
    read = READERS.get(name)
    found = read(tuple(words[1:])) if read else ()
    return HandedOn(found, name, is_remote=name == "ssh") if found else None


def _text(text: str) -> Words:
    return ("sh", "-c", text) if text.strip() else ()


def _after_options(words: Words, is_valued: Callable[[str], bool]) -> Words:
    place = 0
    while place < len(words) and words[place].startswith("-") and len(words[place]) > 1:
        if words[place] == "--":
            return words[place + 1 :]
        place += 2 if is_valued(words[place]) else 1
    return words[place:]


def _ssh(words: Words) -> Words:
    """What follows the host: ssh joins its words with blanks, and a shell there reads them again."""
    behind = _after_options(words, _ssh_takes_value)[1:]
    return _text(" ".join(_after_options(behind, _ssh_takes_value)))


def _ssh_takes_value(word: str) -> bool:
    return len(word) == len("-p") and word[1] in SSH_VALUED


def _tmux(words: Words) -> Words:
    rest = _after_options(words, lambda word: word[-1] in "cfLST")
    if rest[:1] and rest[0] in TMUX_SENDS:
        typed = _after_options(rest[1:], lambda word: word[-1] in TMUX_SEND_VALUED)
        return _text(" ".join(word for word in typed if word not in KEYS))
    if not rest[:1] or rest[0] not in TMUX_STARTS:
        return ()
    command = _after_options(rest[1:], lambda word: word[-1] in TMUX_VALUED)
    return _text(command[0]) if len(command) == 1 else command


def _screen(words: Words) -> Words:
    if "stuff" in words:  # screen -S NAME -X stuff TEXT types it in
        return _text(" ".join(words[words.index("stuff") + 1 :]).replace("\\n", "\n"))
    return _after_options(words, lambda word: word == "-Logfile" or word[-1] in SCREEN_VALUED)


def _named_text(words: Words) -> Words:
    """The text behind `-c`."""
    for place, word in enumerate(words[:-1]):
        is_short = word.startswith("-") and not word.startswith("--") and word.endswith(TEXT_OPTION)
        if is_short or word == "--command":
            return _text(words[place + 1])
    return ()


READERS: dict[str, Callable[[Words], Words]] = {
    "ssh": _ssh, "tmux": _tmux, "screen": _screen, "su": _named_text, "runuser": _named_text, "script": _named_text,
    "eval": lambda words: _text(" ".join(words)),
}  # fmt: skip
