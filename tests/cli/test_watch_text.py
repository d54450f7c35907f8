"""What `stoker watch` says before the daemon has looked at anything."""

from __future__ import annotations

import time

import msgspec

from stoker.cli.watch_text import watch_text
from stoker.records.watching import WatchView


def unseen(**more: object) -> WatchView:
    """What a daemon tells before its first look."""
    nothing = dict.fromkeys(WatchView.__struct_fields__) | dict.fromkeys(("services", "alerts", "silences", "lost"), ())
    return msgspec.convert(nothing | {"at": time.time(), "every_s": 15.0} | more, WatchView)


def test_before_the_first_look_it_does_not_say_that_all_is_well() -> None:
    assert watch_text(unseen()) == "Nothing was looked at yet; the first look comes within 15 s."


def test_what_could_not_be_looked_at_is_named() -> None:
    assert "lost: the memory cannot be read" in watch_text(unseen(lost=("the memory cannot be read",)))
