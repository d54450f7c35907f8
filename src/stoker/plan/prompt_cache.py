"""Bounds llama.cpp's prompt cache: what it keeps of conversations that gave up their slot, in the machine's memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.engines.llamacpp import SWITCHES
from stoker.plan.wishes import USER
from stoker.records import MIB, Setting, SettingValue, Wish

PROMPT_CACHE = "prompt_cache_mib"
SWITCH = SWITCHES[PROMPT_CACHE]
VARIABLE = "LLAMA_ARG_CACHE_RAM"


def choose_prompt_cache(wish: Wish, kv_bytes: int, bound: Setting | None) -> tuple[Setting, ...]:
    """Returns the size of the prompt cache; nothing where the user's own flags say it or the server may not know the flag.

    `bound` is the most that a rule allows. As much as the cache of the slots holds every conversation once more.
    """
    if wish.prompt_cache_mib is not None:
        return (Setting(PROMPT_CACHE, wish.prompt_cache_mib, USER),)
    if bound is None or _is_said(wish):
        return ()
    most_mib = int(str(bound.value))
    if not 0 < kv_bytes < most_mib * MIB:
        return (bound,)
    because = f"as much again as the KV cache; left to itself it grows with every prompt (rule {bound.rule})"
    return (Setting(PROMPT_CACHE, -(-kv_bytes // MIB), because, bound.rule),)


def _is_said(wish: Wish) -> bool:
    names = {f"--{name}".replace("_", "-").lower() for name in wish.flags}
    return SWITCH in names or VARIABLE in wish.environment


def prompt_cache_bytes(settings: Iterable[Setting]) -> int | None:
    """Returns how large the prompt cache may get; None where nothing in the settings bounds it."""
    said = {one.name.replace("_", "-"): one.value for one in settings}
    found = [
        said[name.replace("_", "-")] for name in (PROMPT_CACHE, SWITCH, f"${VARIABLE}") if name.replace("_", "-") in said
    ]
    return _mib(found[0]) if found else None


def _mib(value: SettingValue) -> int | None:
    try:
        mib = int(str(value))
    except ValueError:
        return None
    return mib * MIB if mib >= 0 else None  # -1 is no limit
