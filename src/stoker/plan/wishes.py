"""Checks a wish before anything is decided: names, numbers, and settings that would be ignored in silence."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stoker.config import SERVICE_NAME
from stoker.errors import Refused
from stoker.records import SpeculationKind, Tiers, Wish

MOST_DRAFT_TOKENS = 64
MOST_LOOKUP_TOKENS = 64
LEAST_CONTEXT_TOKENS = 64
WITHOUT_DRAFT = frozenset({"off", "ngram"})
USER = "you asked for it"
# The keys that say how to draft, beside `speculation` and `draft`.
DRAFTING = ("draft_tokens", "draft_steps", "draft_topk", "draft_adaptive", "draft_tiers", "lookup_min", "lookup_max")
Takes = Mapping[str, frozenset[SpeculationKind]]


def check_wish(wish: Wish, engine: str = "", takes: Takes | None = None) -> None:
    """Raises Refused where a wish contradicts itself; `takes`: what an engine can be told of drafting, for which kinds."""
    _check_names(wish)
    _check_numbers(wish)
    _check_draft_is_used(wish)
    if takes is not None:
        _check_is_taken(wish, engine, takes)
    _check_lookup(wish)
    _check_adaptive(wish)
    _check_tree(wish)
    _check_tiers(wish)


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
        "prompt_cache_mib": (wish.prompt_cache_mib, 0, 1_048_576),
        "draft_tokens": (wish.draft_tokens, 1, MOST_DRAFT_TOKENS),
        "draft_steps": (wish.draft_steps, 1, MOST_DRAFT_TOKENS),
        "draft_topk": (wish.draft_topk, 1, MOST_DRAFT_TOKENS),
        "lookup_min": (wish.lookup_min, 1, MOST_LOOKUP_TOKENS),
        "lookup_max": (wish.lookup_max, 1, MOST_LOOKUP_TOKENS),
        "batch_tokens": (wish.batch_tokens, 1, 1_048_576),
        "graph_batch": (wish.graph_batch, 1, 4096),
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


def _check_draft_is_used(wish: Wish) -> None:
    given = ["draft"] if wish.draft is not None and wish.speculation in WITHOUT_DRAFT else []
    given += _given(wish) if wish.speculation == "off" else []
    if given:
        raise _unused(given[0], wish, "set speculation = 'draft', or")


def _given(wish: Wish) -> list[str]:
    return [name for name in DRAFTING if getattr(wish, name) not in (None, False)]


def _unused(name: str, wish: Wish, instead: str = "") -> Refused:
    return Refused(
        f"`{name}` is set, but `speculation` is '{wish.speculation}'",
        why="it would be ignored in silence",
        next_step=f"{instead} leave `{name}` out".strip(),
    )


def _check_is_taken(wish: Wish, engine: str, takes: Takes) -> None:
    """Raises Refused for what the engine cannot be told at all, or not for this kind of drafting."""
    for name in _given(wish):
        if not takes.get(name):
            raise Refused(f"`{name}` is set, and {engine} has nothing like it", next_step=f"leave `{name}` out")
        if wish.speculation not in ("auto", *takes[name]):
            raise _unused(name, wish)


def _check_lookup(wish: Wish) -> None:
    if wish.lookup_min is not None and wish.lookup_max is not None and wish.lookup_min > wish.lookup_max:
        raise Refused(
            f"`lookup_min` is {wish.lookup_min} and `lookup_max` {wish.lookup_max}",
            next_step="give a `lookup_max` that is at least as large",
        )


def _check_adaptive(wish: Wish) -> None:
    given = [name for name in _given(wish) if name != "draft_adaptive"]
    if wish.draft_adaptive and given:
        raise Refused(
            f"`draft_adaptive` is set, and `{given[0]}` beside it",
            why="the engine chooses the numbers itself then",
            next_step="keep one of them",
        )


def tree_tokens(steps: int, topk: int) -> int:
    """Returns how many tokens a tree can hold: the first pass gives `topk`, each further one as many for each of those."""
    return topk + (steps - 1) * topk * topk


def _check_tree(wish: Wish) -> None:
    """Raises Refused unless steps, top-k and draft tokens are said together and fit each other."""
    if wish.draft_steps is None and (wish.draft_topk in (None, 1) or wish.speculation == "ngram"):
        return
    steps, topk, tokens = wish.draft_steps, wish.draft_topk, wish.draft_tokens
    if steps is None or topk is None or tokens is None:
        raise Refused(
            "`draft_steps`, `draft_topk` and `draft_tokens` say a tree together, and one of them is missing",
            why="the engine ends its start where it gets some of them",
            next_step="give all three, or `draft_tokens` alone for a chain",
        )
    most = tree_tokens(steps, topk)
    if not steps <= tokens <= most:
        raise Refused(
            f"`draft_tokens` is {tokens}, and a tree of {steps} steps by {topk} holds {steps} to {most}",
            next_step=f"give {steps} to {most}",
        )


def _check_tiers(wish: Wish) -> None:
    if wish.draft_tiers and (wish.draft_steps is not None or wish.draft_topk not in (None, 1)):
        raise Refused(
            "`draft_tiers` is set, and a tree beside it",
            why="a tier is a number of tokens one after another, and an engine that is told both ignores one in silence",
            next_step="leave `draft_steps` and `draft_topk` out, or `draft_tiers`",
        )
    most = max((tokens for _, _, tokens in wish.draft_tiers or ()), default=None)
    if most and wish.draft_tokens not in (None, most):
        raise Refused(
            f"`draft_tokens` is {wish.draft_tokens}, and `draft_tiers` drafts {most} at most",
            next_step="leave `draft_tokens` out: the tiers say it",
        )
    if wish.draft_tiers and not any(tokens for _, _, tokens in wish.draft_tiers):
        raise Refused("`draft_tiers` drafts nothing at any load", next_step="say speculation = 'off', and leave it out")
    if wish.draft_tiers is not None and not _is_whole(wish.draft_tiers):
        raise Refused(
            f"`draft_tiers` is {[list(one) for one in wish.draft_tiers]}",
            why="each is [from, to, draft tokens] for so many requests at once; the first begins at 1, the next after it",
            next_step="write for example draft_tiers = [[1, 2, 4], [3, 8, 2], [9, 64, 0]]",
        )


def _is_whole(tiers: Tiers) -> bool:
    begins = [1, *(last + 1 for _, last, _ in tiers[:-1])]
    return bool(tiers) and all(
        first == begin and first <= last and 0 <= tokens <= MOST_DRAFT_TOKENS
        for (first, last, tokens), begin in zip(tiers, begins, strict=True)
    )


def name_for(stem: str) -> str:
    """Returns a service name made from a file's or folder's name."""
    return re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._")[:63] or "model"
