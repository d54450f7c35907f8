"""What `stoker watch` says before the daemon has looked at anything."""

from __future__ import annotations

import time

import msgspec

from stoker.cli.watch_text import watch_text
from stoker.records.watching import CanaryView, WatchedService, WatchView


def unseen(**more: object) -> WatchView:
    """What a daemon tells before its first look."""
    nothing = dict.fromkeys(WatchView.__struct_fields__) | dict.fromkeys(
        ("services", "alerts", "silences", "lost", "boxes"), ()
    )
    return msgspec.convert(nothing | {"at": time.time(), "every_s": 15.0} | more, WatchView)


def test_before_the_first_look_it_does_not_say_that_all_is_well() -> None:
    assert watch_text(unseen()) == "Nothing was looked at yet; the first look comes within 15 s."


def test_what_could_not_be_looked_at_is_named() -> None:
    assert "lost: the memory cannot be read" in watch_text(unseen(lost=("the memory cannot be read",)))


def test_canary_prompts_are_shown_apart_from_what_users_asked() -> None:
    canary = CanaryView(time.time() - 120, 0.08, 0.0451, 0.62)
    service = WatchedService("coder", "READY", 0, 0, 0.0, 0.35, None, None, canary=canary)
    said = watch_text(unseen(total_bytes=1, services=(service,)))
    assert "canary prompts of coder, 2 min ago: TTFT 80 ms, 45.1 ms a token, accept rate 0.62" in said
    blind = WatchedService("coder", "READY", 0, 0, 0.0, None, None, None, canary=CanaryView(time.time(), 0.08, None, None))
    assert "accept rate 0" not in watch_text(unseen(total_bytes=1, services=(blind,)))
