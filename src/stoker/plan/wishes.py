"""Checks a wish before anything is decided: names, numbers, and settings that would be ignored in silence."""

from __future__ import annotations

import re

from stoker.config import SERVICE_NAME
from stoker.errors import Refused
from stoker.records import Wish

MOST_DRAFT_TOKENS = 64
LEAST_CONTEXT_TOKENS = 64
WITHOUT_DRAFT = frozenset({"off", "ngram"})
USER = "you asked for it"


def check_wish(wish: Wish, ngram_counts: bool = True) -> None:
    """Raises Refused where a wish contradicts itself; `ngram_counts`: whether n-gram lookup takes a number."""
    _check_names(wish)
    _check_numbers(wish)
    _check_draft_is_used(wish, ngram_counts)


def _check_names(wish: Wish) -> None:
    if SERVICE_NAME.fullmatch(wish.name) is None:  # it becomes a file's name and a part of markers
        raise Refused(
            f"{wish.name!r} cannot be a service's name",
            next_step="use lower-case letters, digits, '.', '_' and '-', starting with a letter or digit",
        )
    served = wish.served_name
    if served is not None and (not served.strip() or not served.isprintable()):  # it becomes a header and an argument
        raise Refused(f"`served_name` is {served!r}", next_step="give a name of printable characters, or leave it out")


def _check_numbers(wish: Wish) -> None:
    limits: dict[str, tuple[float | None, float, float]] = {
        "port": (wish.port, 0, 65535),
        "threads": (wish.threads, 1, 1024),
        "gpu_layers": (wish.gpu_layers, -1, 100_000),
        "draft_tokens": (wish.draft_tokens, 1, MOST_DRAFT_TOKENS),
        "memory_share": (wish.memory_share, 0.01, 1),
        "claim_gib": (wish.claim_gib, 0.01, 100_000),
    }
    for name, (value, least, most) in limits.items():
        if value is not None and not least <= value <= most:
            raise Refused(f"`{name}` is {value:,}", next_step=f"give a number from {least} to {most}")
    if wish.parallel is not None and wish.parallel < 1:
        raise Refused(f"`parallel` is {wish.parallel}", next_step="give 1 or more")
    if wish.context is not None and wish.context < LEAST_CONTEXT_TOKENS:
        raise Refused(f"`context` is {wish.context} tokens", next_step=f"give {LEAST_CONTEXT_TOKENS} or more")


def _check_draft_is_used(wish: Wish, ngram_counts: bool) -> None:
    given = [name for name, value in (("draft", wish.draft), ("draft_tokens", wish.draft_tokens)) if value is not None]
    counts = {"off": False, "ngram": ngram_counts}.get(wish.speculation, True)
    unused = [name for name in given if (wish.speculation in WITHOUT_DRAFT and name == "draft") or not counts]
    if unused:
        raise Refused(
            f"`{unused[0]}` is set, but `speculation` is '{wish.speculation}'",
            why="it would be ignored in silence",
            next_step=f"set speculation = 'draft', or leave `{unused[0]}` out",
        )


def name_for(stem: str) -> str:
    """Returns a service name made from a file's or folder's name."""
    return re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._")[:63] or "model"
