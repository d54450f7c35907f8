"""Plans a service for an engine that runs on a GPU: every setting, who chose it, and the memory it takes. Pure.

What the user said comes first, then what rules prefer here, then what the budget leaves; what the rules find wrong with the
plan's own choices is mended, what they find wrong with the user's is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from stoker.engines import Engine, find
from stoker.errors import Refused
from stoker.plan.asked import Asked, sort_wish, whole_of
from stoker.plan.budget import CACHE, EIGHT_BIT_BYTES, SIXTEEN_BIT_BYTES, Load, Room, plan_budget, room_of, wanted_share
from stoker.plan.drafting import plan_drafting, step_tokens
from stoker.plan.ground import Ground, Settings
from stoker.plan.mending import mend_settings
from stoker.plan.situation import Facts, numbers_of, setting_facts
from stoker.plan.speculation import OFF, Speculation, choose_speculation, kind_of
from stoker.plan.wishes import USER
from stoker.records import Budget, Finding, Model, Record, Setting, SettingValue, Wish
from stoker.rules.match import preferred


class Served(Record, frozen=True):
    """The settings of a GPU engine, the memory they take, and what the rules still find."""

    settings: tuple[Setting, ...]
    budget: Budget
    findings: tuple[Finding, ...]
    context: int


def plan_serving(ground: Ground, engine: Engine) -> Served:
    """Returns the plan for one engine; raises Refused where the wish contradicts itself or cannot be carried out."""
    asked = sort_wish(ground.wish, engine, ground.catalog)
    speculation = OFF if asked.drafts_itself else _speculation(ground, asked)
    first = _preferred(ground, asked, {"speculation": speculation.kind})
    parameters = {name: float(one.value) for name, one in first.items() if isinstance(one.value, int | float)}
    numbers = _numbers(ground.model, asked, first)
    load, room = _load(ground, engine, {**numbers, **asked.flags}, parameters), room_of(ground.machine, parameters)
    share = {} if "memory_share" in numbers else _share(load, room)
    sizes = _sizes(share, load, room, ground)
    drafting = plan_drafting(ground, engine, speculation, first)
    graphs = _graphs(ground, engine, asked, load.requests, step_tokens(ground.wish, speculation.kind, first))
    mine = _spelled({**numbers, **sizes, **graphs}, engine, ground) | drafting
    mine |= {one.name: one for one in ground.told}
    mine = mine | {name: one for name, one in first.items() if name.startswith(("--", "$")) and name not in mine}
    fixed = {*asked.flags, *_spelled(asked.numbers, engine, ground), *_chosen_drafting(ground.wish, drafting)}
    fixed |= _chosen_graphs(ground.wish, graphs, engine) | {one.name for one in ground.told if one.name.startswith("--")}
    settings, findings = mend_settings({**mine, **asked.flags}, fixed, ground)
    budget = plan_budget(load, room, _share_now(settings.values(), share, sizes))
    shown = [numbers[name] for name in ("context", "parallel")]
    return Served((*shown, *_ordered(settings)), budget, tuple(findings), load.context)


def _preferred(ground: Ground, asked: Asked, spoken: Facts) -> Settings:
    found = preferred(ground.rules, ground.facts() | setting_facts(asked.flags.values()) | spoken)
    return {name: Setting(name, value, rule.title, rule.id) for name, (value, rule) in found.items()}


def _speculation(ground: Ground, asked: Asked) -> Speculation:
    """What the wish says, or what the model or its draft can do, unless a rule knows better for this engine's build."""
    known = _preferred(ground, asked, {})
    kind = known.get("draft_kind")
    chosen = choose_speculation(ground.wish, ground.model, ground.draft, kind_of(kind.value) if kind else None)
    better = known.get("speculation")
    if ground.wish.speculation != "auto" or better is None or chosen.kind == "off":
        return chosen
    return Speculation(kind_of(better.value), None, better.because)


def _chosen_drafting(wish: Wish, drafting: Settings) -> set[str]:
    """The flags of drafting that the user decided."""
    if wish.speculation != "auto" or wish.draft:
        return set(drafting)
    return {name for name, one in drafting.items() if one.because == USER}


def _numbers(model: Model, asked: Asked, first: Settings) -> Settings:
    """Context, requests and prefill step: the user's, else the rules' first values within what the model was trained for."""
    context = asked.numbers.get("context") or _context(model, first)
    trained = model.context_tokens
    if trained is not None and isinstance(context.value, int) and context.value > trained:
        raise Refused(
            f"`context` is {context.value:,} tokens, {model.name} was trained for {trained:,}",
            why="the engine refuses it, or the model writes nonsense beyond it",
            next_step=f"give {trained} or less",
        )
    others = {name: asked.numbers.get(name) or first.get(name) for name in ("parallel", "batch_tokens", "memory_share")}
    return {"context": context} | {name: one for name, one in others.items() if one is not None}


def _context(model: Model, first: Settings) -> Setting:
    preferred_tokens, trained = first["context"], model.context_tokens
    if trained is not None and isinstance(preferred_tokens.value, int) and trained <= preferred_tokens.value:
        return Setting("context", trained, "all that the model was trained for")
    return preferred_tokens


def _load(ground: Ground, engine: Engine, said: Settings, parameters: dict[str, float]) -> Load:
    def told(name: str) -> Setting | None:
        return next((said[flag] for flag in engine.spelling.get(name, ()) if flag in said), None)

    kv_setting, size, most = (told(name) for name in ("kv_type", "cache_bytes", "cache_tokens"))
    kv_type = str(kv_setting.value) if kv_setting else "auto"
    if kv_type == "auto":  # engines follow what the checkpoint asks for, and do not say so
        kv_type = ground.model.cache_quantisation or kv_type
    return Load(
        model=ground.model,
        draft=ground.draft,
        context=whole_of(said["context"]),
        requests=whole_of(said["parallel"]),
        batch_tokens=whole_of(said["batch_tokens"]) if "batch_tokens" in said else 0,
        parameters=parameters,
        share_covers_activations=engine.share_covers_activations,
        kv_value_bytes=EIGHT_BIT_BYTES if "fp8" in kv_type else SIXTEEN_BIT_BYTES,
        told_cache_bytes=whole_of(size) if size else None,
        most_cache_tokens=whole_of(most) if most else None,
    )


def _share(load: Load, room: Room) -> Settings:
    because = f"weights, buffers and a cache for {load.requests} requests of {load.context:,} tokens, as far as it may go"
    return {"memory_share": Setting("memory_share", wanted_share(load, room), because)}


def _sizes(share: Settings, load: Load, room: Room, ground: Ground) -> Settings:
    """Says a planned share in the engine's terms: without a GPU the size of the cache that it leaves, where there is a flag.

    A share is there of one memory node, or of a control group's limit: vLLM 0.32.0 once took 0.26 of 11 GiB where 23 are.
    """
    flags = find(ground.engine).spelling.get("cache_bytes", ())
    if ground.machine.gpus or not share or not any(map(ground.knows, flags)):
        return share
    budget = plan_budget(load, room, _float(share["memory_share"].value))
    kv_bytes = next(line.need_bytes for line in budget.lines if line.name == CACHE)
    because = f"a cache for {load.requests} requests of {load.context:,} tokens, as far as it may go"
    return {"cache_bytes": Setting("cache_bytes", kv_bytes, because)} if kv_bytes else share


def _share_now(settings: Iterable[Setting], share: Settings, sizes: Settings) -> float | None:
    """The share that the engine takes in the end: what is said, or what the cache's size was counted from."""
    said = numbers_of(setting_facts(settings)).get("memory_share")
    counted = share["memory_share"].value if "cache_bytes" in sizes else None
    return _float(counted) if said is None else _float(said)


def _float(value: object) -> float | None:
    return None if value is None else float(str(value))


def _graphs(ground: Ground, engine: Engine, asked: Asked, batch: int, step: int) -> Settings:
    wanted = ground.wish.graph_batch
    if wanted is not None:
        return {name: Setting(name, value, USER) for name, value in _graph_sizes(engine, asked, wanted, step).items()}
    if not ground.machine.gpus:
        return {}
    size = 1 << max(0, batch - 1).bit_length()
    because = f"as many as run at once ({batch}), rounded up to a power of two; more cost memory and start-up time"
    sizes = engine.graph_sizes(size, step)
    if sizes != engine.graph_sizes(size, 1):
        because = f"{because}; in tokens, of which each request has {step} a step with those that are drafted"
    return {name: Setting(name, value, because) for name, value in sizes.items()}


def _graph_sizes(engine: Engine, asked: Asked, batch: int, step: int) -> Mapping[str, SettingValue]:
    flags = (flag for name in ("graph_batch", "graph_sizes") for flag in engine.spelling.get(name, ()))
    said = next((flag for flag in flags if flag in asked.flags), None)
    if said is not None:
        raise Refused(f"`graph_batch` is {batch}, and `flags` says {said}", next_step="say it once")
    return engine.graph_sizes(batch, step)


def _chosen_graphs(wish: Wish, graphs: Settings, engine: Engine) -> set[str]:
    """The flags of graph capture that the user decided, in all their spellings."""
    return set() if wish.graph_batch is None else {flag for name in graphs for flag in engine.spelling.get(name, ())}


def _spelled(neutral: Settings, engine: Engine, ground: Ground) -> Settings:
    """Says neutral settings in the engine's words, by the newest spelling that its version knows."""
    found: Settings = {}
    for name, setting in neutral.items():
        spelling = next((flag for flag in engine.spelling.get(name, ()) if ground.knows(flag)), None)
        if spelling is not None:
            found[spelling] = msgspec.structs.replace(setting, name=spelling)
    return found


def _ordered(settings: Mapping[str, Setting]) -> list[Setting]:
    """Flags in the order in which they were decided, then variables."""
    return sorted(settings.values(), key=lambda setting: setting.name.startswith("$"))
