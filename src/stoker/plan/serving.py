"""Plans a service for an engine that runs on a GPU: every setting, who chose it, and the memory it takes. Pure.

What the user said comes first, then what rules prefer here, then what the budget leaves; what the rules find wrong with the
plan's own choices is mended, what they find wrong with the user's is a finding.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stoker.engines import Engine
from stoker.plan.budget import EIGHT_BIT_BYTES, SIXTEEN_BIT_BYTES, Load, Room, plan_budget, room_of, wanted_share
from stoker.plan.ground import Ground, Knows, Settings
from stoker.plan.mending import mend_settings
from stoker.plan.situation import numbers_of, setting_facts
from stoker.plan.speculation import Speculation, choose_speculation
from stoker.plan.wishes import USER
from stoker.records import Budget, Finding, Model, Record, Setting, SettingValue, Wish
from stoker.rules.match import preferred


class Served(Record, frozen=True):
    """The settings of a GPU engine, the memory they take, and what the rules still find."""

    settings: tuple[Setting, ...]
    budget: Budget
    findings: tuple[Finding, ...]
    context: int


def plan_serving(ground: Ground, engine: Engine, knows: Knows) -> Served:
    """Returns the plan for one engine; `knows` tells whether the engine's version has a flag."""
    user = _wished(ground.wish)
    speculation = choose_speculation(ground.wish, ground.model, ground.draft, ground.engine)
    spoken = {"speculation": speculation.kind}
    wishes = preferred(ground.rules, ground.facts() | setting_facts(user.values()) | spoken)
    first = {name: Setting(name, value, rule.title, rule.id) for name, (value, rule) in wishes.items()}
    numbers = _numbers(ground, user, first, engine)
    drafting = _drafting(engine, speculation, first, ground.wish)
    parameters = _parameters(first)
    load, room = _load(ground, engine, numbers, user, parameters), room_of(ground.machine, parameters)
    share = _share(ground.wish, user, load, room, engine)
    neutral = {**numbers, **share, **_batch(first), **_graphs(engine, load.requests)}
    mine = _spelled(neutral, engine, knows) | drafting | {n: s for n, s in first.items() if n.startswith(("--", "$"))}
    settings, findings = mend_settings({**mine, **user}, user, ground, knows)
    share_now = numbers_of(setting_facts(settings.values())).get("memory_share")
    budget = plan_budget(load, room, float(str(share_now)) if share_now is not None else None)
    shown = {name: setting for name, setting in neutral.items() if name in ("context", "parallel")}
    return Served((*shown.values(), *_ordered(settings)), budget, tuple(findings), load.context)


def _wished(wish: Wish) -> Settings:
    """What the user said in the engine's own words."""
    flags = {_flag_name(name): value for name, value in wish.flags.items()}
    said: dict[str, SettingValue] = {**flags, **{f"${name}": value for name, value in wish.environment.items()}}
    return {name: Setting(name, value, USER) for name, value in said.items()}


def _flag_name(name: str) -> str:
    """`gpu_memory_utilization` as `--gpu-memory-utilization`; the keys of an object keep their underscores."""
    flag, dot, key = name.lstrip("-").partition(".")
    return f"--{flag.replace('_', '-')}{dot}{key}"


def _numbers(ground: Ground, user: Settings, first: Settings, engine: Engine) -> Settings:
    """Context and requests at once: the user's, else the rules' first values within what the model was trained for."""
    said = numbers_of(setting_facts(user.values()))
    context = ground.wish.context or said.get("context")
    parallel = ground.wish.parallel or said.get("concurrency")
    return {
        "context": Setting("context", int(str(context).split(".")[0]), USER) if context else _context(ground.model, first),
        "parallel": Setting("parallel", int(str(parallel).split(".")[0]), USER) if parallel else first["parallel"],
    }


def _context(model: Model, first: Settings) -> Setting:
    preferred_tokens, trained = first["context"], model.context_tokens
    if trained is not None and isinstance(preferred_tokens.value, int) and trained <= preferred_tokens.value:
        return Setting("context", trained, "all that the model was trained for")
    return preferred_tokens


def _drafting(engine: Engine, speculation: Speculation, first: Settings, wish: Wish) -> Settings:
    if speculation.kind == "off":
        return {}
    preferred_tokens = first.get("draft_tokens")
    value = wish.draft_tokens or (preferred_tokens.value if preferred_tokens else 1)
    tokens = value if isinstance(value, int) else 1
    flags = engine.speculate(speculation.kind, speculation.draft_path, tokens)
    why = USER if wish.draft_tokens else preferred_tokens.because if preferred_tokens else ""
    rule = "" if wish.draft_tokens or not preferred_tokens else preferred_tokens.rule
    counts = {name for name in flags if "tokens" in name or "steps" in name}
    return {
        name: Setting(name, flag, why, rule) if name in counts else Setting(name, flag, speculation.because)
        for name, flag in flags.items()
    }


def _load(ground: Ground, engine: Engine, numbers: Settings, user: Settings, parameters: dict[str, float]) -> Load:
    said = {name: setting.value for name, setting in user.items()}
    batch = next((said[flag] for flag in engine.spelling.get("batch_tokens", ()) if flag in said), None)
    kv_type = str(next((said[flag] for flag in engine.spelling.get("kv_type", ()) if flag in said), "auto"))
    if kv_type == "auto":  # engines follow what the checkpoint asks for, and do not say so
        kv_type = ground.model.cache_quantisation or kv_type
    return Load(
        model=ground.model,
        draft=ground.draft,
        context=int(str(numbers["context"].value)),
        requests=int(str(numbers["parallel"].value)),
        batch_tokens=int(str(batch)) if batch is not None else int(parameters.get("batch_tokens", 0)),
        parameters=parameters,
        share_covers_activations=engine.share_covers_activations,
        kv_value_bytes=EIGHT_BIT_BYTES if "fp8" in kv_type else SIXTEEN_BIT_BYTES,
    )


def _batch(first: Settings) -> Settings:
    """The tokens of a prefill step are said, since the budget counts on them."""
    return {"batch_tokens": first["batch_tokens"]} if "batch_tokens" in first else {}


def _parameters(first: Settings) -> dict[str, float]:
    return {name: float(setting.value) for name, setting in first.items() if isinstance(setting.value, int | float)}


def _share(wish: Wish, user: Settings, load: Load, room: Room, engine: Engine) -> Settings:
    if wish.memory_share is not None:
        return {"memory_share": Setting("memory_share", wish.memory_share, USER)}
    if any(flag in user for flag in engine.spelling.get("memory_share", ())):
        return {}
    because = f"weights, buffers and a cache for {load.requests} requests of {load.context:,} tokens, as far as it may go"
    return {"memory_share": Setting("memory_share", wanted_share(load, room), because)}


def _graphs(engine: Engine, batch: int) -> Settings:
    size = 1 << max(0, batch - 1).bit_length()
    because = f"as many as run at once ({batch}), rounded up to a power of two; more cost memory and start-up time"
    return {name: Setting(name, value, because) for name, value in engine.graph_sizes(size).items()}


def _spelled(neutral: Settings, engine: Engine, knows: Knows) -> Settings:
    """Says neutral settings in the engine's words, by the newest spelling that its version knows."""
    found: Settings = {}
    for name, setting in neutral.items():
        spelling = next((flag for flag in engine.spelling.get(name, ()) if knows(flag)), None)
        if spelling is not None:
            found[spelling] = msgspec.structs.replace(setting, name=spelling)
    return found


def _ordered(settings: Mapping[str, Setting]) -> list[Setting]:
    """Flags in the order in which they were decided, then variables."""
    return sorted(settings.values(), key=lambda setting: setting.name.startswith("$"))
