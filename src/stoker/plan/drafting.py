"""Plans how a GPU engine drafts: by the wish, else by what rules prefer, in the words of its version. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from stoker.engines import Engine
from stoker.errors import Refused
from stoker.plan.ground import Ground, Settings
from stoker.plan.speculation import Speculation
from stoker.plan.wishes import DRAFTING, USER
from stoker.records import Setting, SettingValue, SpeculationKind, Way, Wish

RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def plan_drafting(ground: Ground, engine: Engine, speculation: Speculation, first: Settings) -> Settings:
    """Returns the flags that say how to draft; raises Refused for what this version cannot be told, or not for this kind."""
    wish = ground.wish
    _check_kind(wish, speculation.kind, engine)
    if speculation.kind == "off":
        return {}
    preferred = first.get("draft_tokens")
    way = way_of_wish(wish, speculation.kind, _drafted_tokens(wish, first))
    flags = _in_words(engine.speculate(way, speculation.draft_path), ground, engine)
    _check_since(wish, ground, engine)
    counted = Setting("", 0, USER) if wish.draft_tokens or wish.draft_tiers else preferred or Setting("", 0, "")
    return {name: _because(name, value, speculation, counted, wish) for name, value in flags.items()}


def step_tokens(wish: Wish, kind: SpeculationKind, first: Settings) -> int:
    """Returns how many tokens of a request one step verifies: its next, and those that were drafted."""
    if kind == "off":
        return 1
    return 1 + max((tier[2] for tier in wish.draft_tiers or ()), default=_drafted_tokens(wish, first))


def _drafted_tokens(wish: Wish, first: Settings) -> int:
    preferred = first.get("draft_tokens")
    tokens = wish.draft_tokens or (preferred.value if preferred else 1)
    return tokens if isinstance(tokens, int) else 1


def way_of_wish(wish: Wish, kind: SpeculationKind, tokens: int) -> Way:
    """Returns how a wish drafts, once its kind and number are decided."""
    said = {name: getattr(wish, name) for name in DRAFTING}
    return msgspec.structs.replace(Way(**said), kind=kind, draft_tokens=tokens)


def _because(name: str, value: SettingValue, speculation: Speculation, counted: Setting, wish: Wish) -> Setting:
    chosen = {"steps": wish.draft_steps, "topk": wish.draft_topk, "ngram": True, "adaptive": True}
    if any(part in name and wanted for part, wanted in chosen.items()):
        return Setting(name, value, USER)
    if "tokens" in name or "steps" in name:
        return Setting(name, value, counted.because, counted.rule)
    return Setting(name, value, speculation.because)


def _check_kind(wish: Wish, kind: SpeculationKind, engine: Engine) -> None:
    """Raises Refused for what was said of another kind of drafting than the plan chose."""
    given = [name for name in DRAFTING if name != "draft_tokens" and getattr(wish, name) not in (None, False)]
    unused = next((name for name in given if kind not in engine.drafting.get(name, ())), None)
    if unused is not None:
        drafts = "nothing drafts" if kind == "off" else f"{wish.name} drafts with `{kind}`"
        raise Refused(
            f"`{unused}` is set, but {drafts}",
            why="it would be ignored in silence",
            next_step=f"say `speculation`, or leave `{unused}` out",
        )


def _in_words(said: Mapping[str, SettingValue], ground: Ground, engine: Engine) -> dict[str, SettingValue]:
    """Returns neutral names in the newest words that the engine's version knows."""
    return {name if name.startswith("--") else _word(name, ground, engine): value for name, value in said.items()}


def _word(name: str, ground: Ground, engine: Engine) -> str:
    known = next((flag for flag in engine.spelling[name] if ground.knows(flag)), None)
    if known is None:
        raise Refused(
            f"{engine.name} {ground.version or ''} has no {' or '.join(engine.spelling[name])}".replace("  ", " "),
            why=f"`{KEYS.get(name, name)}` is said with it",
            next_step=f"leave `{KEYS.get(name, name)}` out, or use a version that has it: `stoker flags {engine.name}`",
        )
    return known


KEYS = {"lookup_breadth": "draft_topk"}


def _check_since(wish: Wish, ground: Ground, engine: Engine) -> None:
    found = RELEASE.match(ground.version or "")
    for name, since in engine.since.items():
        old = found is not None and tuple(int(part or 0) for part in found.groups()) < since
        if old and getattr(wish, name) is not None:
            raise Refused(
                f"{engine.name} {ground.version} does not know `{name}`",
                why=f"it came with {'.'.join(map(str, since)).removesuffix('.0')}",
                next_step="give one number as `draft_tokens`, or use a later version",
            )
